#include "cache/control/away.h"
#include <fcntl.h>
#include <string.h>
#include "cache/autofd.h"
#include "cache/control/datasets_internal.h"
#include "cache/control/places.h"
#include "cache/origin/later.h"

typedef struct Connect {
    VolumeSpec *spec;
    const Incarnation *incarnation;
} Connect;

static Origin *connect_now(void *data, GError **error)
{
    const Connect *c = data;
    return spec_connect(c->spec, c->incarnation, error);
}

static void free_connect(gpointer data)
{
    Connect *c = data;
    spec_free(c->spec);
    g_free(c);
}

static char *dir_of(const Datasets *all)
{
    return g_build_filename(all->cache_dir, "manifests", NULL);
}

/* What the manifest says the root is; FALSE: there is none. */
static gboolean known_root(const char *dir, const char *id, uint8_t space[24], OriginAttr *root)
{
    g_autofree char *path = g_build_filename(dir, id, NULL);
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    g_autoptr(Manifest) manifest = fd >= 0 ? manifest_open(fd, FALSE, NULL) : NULL;
    if (!manifest)
        return FALSE;
    const ManifestFooter *f = &manifest->footer;
    memcpy(space, f->space, sizeof(f->space));
    *root = (OriginAttr){.version = f->root_version, .snapshot = f->snapshot};
    root->st.st_ino = f->root_ino;
    return TRUE;
}

static Origin *connect_known(const VolumeSpec *spec, const Incarnation *incarnation,
                             const char *dataset, const uint8_t space[24], const OriginAttr *root)
{
    Connect *c = g_new0(Connect, 1);
    g_autofree char *name = g_strdup_printf("dataset %s", dataset);
    c->spec = spec_parse(spec->json, NULL);
    c->incarnation = incarnation;
    return origin_later_new(name, space, root, connect_now, c, free_connect);
}

/* Where it was there is something else, or nothing. */
static void forget(Datasets *all, const char *dir, const VolumeSpec *spec, const char *id)
{
    places_forget(dir, spec);
    datasets_drop(all, id);
}

Origin *away_connect(Datasets *all, const VolumeSpec *spec, const Incarnation *incarnation,
                     GError **error)
{
    uint8_t space[24];
    OriginAttr root;
    g_autofree char *dir = all ? dir_of(all) : NULL;
    g_autofree char *id = all && spec->cache && spec->read_only ? places_find(dir, spec) : NULL;
    if (!id || !known_root(dir, id, space, &root))
        return spec_connect(spec, incarnation, error);
    g_autoptr(Origin) origin = connect_known(spec, incarnation, id, space, &root);
    const gint64 now = g_get_monotonic_time(), last = atomic_load(&all->away_us);
    const gboolean again = last && now - last < AWAY_AGAIN_SEC * G_USEC_PER_SEC;
    g_autoptr(GError) cause = NULL;
    switch (origin_later_wait(origin, again ? AWAY_AGAIN_MS : AWAY_WAIT_MS, &cause)) {
    case ORIGIN_LATER_AWAY:
        atomic_store(&all->away_us, g_get_monotonic_time());
        g_message("volume %s: Ceph does not answer; it is opened as the dataset %s, as which this "
                  "node knows it",
                  spec->volume, id);
        return g_steal_pointer(&origin);
    case ORIGIN_LATER_HERE:
        return g_steal_pointer(&origin);
    case ORIGIN_LATER_OTHER:
        forget(all, dir, spec, id);
        return spec_connect(spec, incarnation, error);
    case ORIGIN_LATER_FAILED:
        break;
    }
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        forget(all, dir, spec, id);
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

void away_note(Datasets *all, const VolumeSpec *spec, const Origin *origin, const char *dataset)
{
    g_autofree char *dir = dir_of(all);
    /* One that comes later was noted before. */
    if (spec->read_only && !origin_is_later(origin))
        places_note(dir, spec, dataset);
}
