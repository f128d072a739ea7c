#include "cache/control/rights.h"
#include <errno.h>
#include <gio/gio.h>

static int ask(Origin *origin, const char *path)
{
    OriginNode *node;
    OriginAttr attr;
    int r = origin_find(origin, path, &node, &attr);
    if (r < 0)
        return r;
    r = origin_may_read(origin, node);
    origin->ops->put(origin, node);
    return r;
}

static void set_refused(const VolumeSpec *spec, const char *path, GError **error)
{
    g_autofree char *shown = g_strescape(path, NULL);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                "the cluster refuses user client.%s to read data of %s (file \"%s\"): check the "
                "user's osd capabilities, which are for pools and RADOS namespaces",
                spec->user_id, spec->root_path, shown);
}

gboolean rights_check(Origin *origin, const VolumeSpec *spec, const Manifest *manifest,
                      GError **error)
{
    const uint64_t records = manifest->footer.records, n = MIN(records, RIGHTS_FILES);
    if (!origin->ops->may_read)
        return TRUE;
    for (uint64_t i = 0; i < n; i++) {
        g_autofree char *path = manifest_path(manifest, i * (records / n));
        int r = path ? ask(origin, path) : -EIO;
        if (r == -EPERM || r == -EACCES) {
            set_refused(spec, path, error);
            return FALSE;
        }
        if (r < 0) {
            g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r),
                        "whether user client.%s may read data of %s: %s", spec->user_id,
                        spec->root_path, g_strerror(-r));
            return FALSE;
        }
    }
    return TRUE;
}
