#include "cache/control/away.h"
#include <fcntl.h>
#include <string.h>
#include "cache/autofd.h"
#include "cache/control/datasets_internal.h"
#include "cache/control/places.h"
#include "cache/control/wire.h"
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
    c->spec = spec_copy(spec);
    c->incarnation = incarnation;
    return origin_later_new(name, space, root, connect_now, c, free_connect);
}

/* Where it was there is something else, or nothing. */
static void forget(Datasets *all, const char *dir, const VolumeSpec *spec, const char *id)
{
    places_forget(dir, spec);
    datasets_drop(all, id);
}

static gboolean believe(Datasets *all, const char *dir, const VolumeSpec *spec, const char *id,
                        GError **error)
{
    atomic_store(&all->away_us, g_get_monotonic_time());
    if (!places_accept(dir, spec)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_UNAVAILABLE,
                    "volume %s: Ceph does not answer, and the key of user %s is not the one that "
                    "it accepted last on this node; try again when Ceph is back",
                    spec->volume, spec->user_id);
        return FALSE;
    }
    g_message("volume %s: Ceph does not answer; it is opened as the dataset %s, as which this node "
              "knows it",
              spec->volume, id);
    return TRUE;
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
        return believe(all, dir, spec, id, error) ? g_steal_pointer(&origin) : NULL;
    case ORIGIN_LATER_HERE:
        return g_steal_pointer(&origin);
    case ORIGIN_LATER_OTHER:
        forget(all, dir, spec, id);
        return spec_connect(spec, incarnation, error);
    case ORIGIN_LATER_REFUSED:
        away_refused(all, spec);
        break;
    case ORIGIN_LATER_FAILED:
        break;
    }
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        forget(all, dir, spec, id);
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

/* A key is hashed slowly, so once in a process: this names spec and key in memory. */
static char *name_accepted(const Datasets *all, const VolumeSpec *spec, const char *dataset)
{
    g_autofree char *text = g_strjoin("\n", dataset, spec->cluster_id, spec->fs_name,
                                      spec->root_path, spec->user_id, spec->user_key, NULL);
    char *name = g_compute_hmac_for_string(G_CHECKSUM_SHA256, all->accepted_key,
                                           sizeof(all->accepted_key), text, -1);
    explicit_bzero(text, strlen(text));
    return name;
}

void away_note(Datasets *all, const VolumeSpec *spec, const Origin *origin, const char *dataset)
{
    if (!spec->read_only || !spec->monitors ||
        (origin_is_later(origin) &&
         origin_later_wait((Origin *)origin, 0, NULL) != ORIGIN_LATER_HERE))
        return;
    g_autofree char *dir = dir_of(all), *name = name_accepted(all, spec, dataset);
    pthread_mutex_lock(&all->lock);
    if (g_hash_table_size(all->accepted) >= PLACES_MAX)
        g_hash_table_remove_all(all->accepted);
    const gboolean noted = g_hash_table_contains(all->accepted, name);
    pthread_mutex_unlock(&all->lock);
    g_autofree char *known = noted ? places_find(dir, spec) : NULL;
    if (g_strcmp0(known, dataset) == 0)
        return;
    places_note(dir, spec, dataset);
    pthread_mutex_lock(&all->lock);
    g_hash_table_add(all->accepted, g_steal_pointer(&name));
    pthread_mutex_unlock(&all->lock);
}

void away_refused(Datasets *all, const VolumeSpec *spec)
{
    g_autofree char *dir = dir_of(all);
    if (!places_accept(dir, spec))
        return;
    g_message("user %s: Ceph refuses the key that it accepted before; without Ceph nothing of %s "
              "is opened with it",
              spec->user_id, spec->root_path);
    places_forget(dir, spec);
}
