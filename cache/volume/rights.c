/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/rights.h"
#include <errno.h>
#include <gio/gio.h>

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
    gboolean asked = FALSE;
    int r = 0;
    if (!origin->ops->may_read)
        return TRUE;
    for (uint64_t i = 0; i < n; i++) {
        g_autofree char *path = manifest_path(manifest, i * (records / n));
        OriginNode *node;
        OriginAttr attr;
        int found = path ? origin_find(origin, path, &node, &attr) : -EIO;
        if (found == 0) {
            r = origin_may_read(origin, node);
            origin->ops->put(origin, node);
        } else if (asked || i + 1 < n) {
            /* While the volume of the snapshot is being deleted, the MDS sometimes refuses names;
             * another file is as good. */
            continue;
        } else {
            r = found;
        }
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
        asked = TRUE;
    }
    return TRUE;
}
