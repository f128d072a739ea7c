#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include "cache/autofd.h"
#include "driver/node/dataset_internal.h"
#include "driver/node/spec.h"

#define FILL ".fill"
#define MANIFEST ".manifest"
/* hearthd fetches in pieces of megabytes, several at once; INIT cannot ask for more than 128 KiB.
 */
#define READAHEAD_KIB 4096

void dataset_place_clear(DatasetPlace *place)
{
    g_clear_pointer(&place->id, g_free);
    g_clear_pointer(&place->volume, g_free);
    g_clear_pointer(&place->fill, g_free);
    g_clear_pointer(&place->manifest, g_free);
}

void dataset_place_init(DatasetPlace *place, const char *dir, const char *id, unsigned generation)
{
    place->id = g_strdup(id);
    place->generation = generation;
    place->volume = g_strconcat(DATASET_VOLUME_PREFIX, id, NULL);
    place->fill = g_strdup_printf("%s/%s.%u" FILL, dir, id, generation);
    place->manifest = g_strdup_printf("%s/%s.%u" MANIFEST, dir, id, generation);
}

/* "<id>.<generation>" and the suffix. */
static gboolean parse_name(const char *name, const char *suffix, char id[], unsigned *generation)
{
    int length = 0;
    if (strspn(name, "0123456789abcdef") != HEARTHD_DATASET_DIGITS ||
        sscanf(name + HEARTHD_DATASET_DIGITS, ".%9u%n", generation, &length) != 1 ||
        strcmp(name + HEARTHD_DATASET_DIGITS + length, suffix) != 0)
        return FALSE;
    g_strlcpy(id, name, HEARTHD_DATASET_DIGITS + 1);
    return TRUE;
}

static gboolean parse_path(const char *path, const char *suffix, DatasetPlace *place)
{
    char id[HEARTHD_DATASET_DIGITS + 1];
    unsigned generation;
    const char *slash = strrchr(path, '/');
    if (!slash || !parse_name(slash + 1, suffix, id, &generation))
        return FALSE;
    g_autofree char *dir = g_strndup(path, (gsize)(slash - path));
    dataset_place_init(place, dir, id, generation);
    return TRUE;
}

gboolean dataset_place_of(const MountEntry *stack, DatasetPlace *place)
{
    return strcmp(stack->type, MOUNT_STACK_TYPE) == 0 && mount_volume(stack) && stack->lower &&
           parse_path(stack->lower, MANIFEST, place);
}

json_t *dataset_spec(const json_t *spec, const char *volume)
{
    json_t *copy = json_deep_copy(spec);
    json_object_set_new(copy, "volume", json_string(volume));
    json_object_del(copy, "mountGroup"); /* a claim's own */
    return copy;
}

gboolean dataset_place_is_served(Staging *s, HearthdLink *link, const GPtrArray *table,
                                 const DatasetPlace *place, gboolean *served, Deadline deadline,
                                 GError **error)
{
    const MountEntry *entry = mount_find(table, place->fill);
    *served = FALSE;
    if (!entry || g_strcmp0(mount_served_volume(entry), place->volume) != 0)
        return TRUE;
    if (!hearthd_is_attached(link, place->volume, left_ms(deadline, STAGING_ASK_MS), served, error))
        return FALSE;
    *served = *served && !staging_is_dead(s, place->fill);
    return TRUE;
}

/* ---- removing ---- */

static gboolean is_on(const MountEntry *entry, const DatasetPlace *place)
{
    return strcmp(entry->type, MOUNT_STACK_TYPE) == 0 && mount_volume(entry) && entry->lower &&
           strcmp(entry->lower, place->manifest) == 0;
}

static gboolean unmount_manifest(Staging *s, const DatasetPlace *place, Deadline deadline,
                                 GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, place->manifest) : NULL;
    if (!table)
        return FALSE;
    if (entry && strcmp(entry->type, "erofs") != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s: \"%s\" of type %s is mounted there; unmount it first", entry->target,
                    entry->source, entry->type);
        return FALSE;
    }
    /* Stacks that are still open somewhere hold what is mounted, and need no name of it. */
    return !entry || s->mounter->ops->unmount(s->mounter, entry->target, TRUE,
                                              left_ms(deadline, G_MAXINT64), error);
}

/* The mount points go last: as long as they are there the place is found. One that is dead is about
 * to be replaced, and its volume stays with the keeper. */
static gboolean remove_place(Staging *s, const DatasetPlace *place, gboolean dead,
                             Deadline deadline, GError **error)
{
    staging_release_if_lost(s, place->volume);
    return unmount_manifest(s, place, deadline, error) &&
           staging_clear(s, place->volume, place->fill, dead, deadline, error) &&
           (dead || staging_detach_if_last(s, place->volume, deadline, error)) &&
           s->mounter->ops->remove_dir(s->mounter, place->manifest, error) &&
           s->mounter->ops->remove_dir(s->mounter, place->fill, error);
}

gboolean dataset_place_remove_unused(Staging *s, const DatasetPlace *place, Deadline deadline,
                                     GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table)
        return FALSE;
    for (guint i = 0; i < table->len; i++)
        if (is_on(table->pdata[i], place))
            return TRUE;
    return remove_place(s, place, FALSE, deadline, error);
}

static void place_free(void *data)
{
    dataset_place_clear(data);
    g_free(data);
}

GPtrArray *dataset_places(Staging *s)
{
    GPtrArray *places = g_ptr_array_new_with_free_func(place_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GDir) dir = g_dir_open(s->device_dir, 0, NULL); /* none: nothing was mounted */
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        DatasetPlace place = {0};
        g_autofree char *path = g_build_filename(s->device_dir, name, NULL);
        if (!parse_path(path, FILL, &place) && !parse_path(path, MANIFEST, &place))
            continue;
        if (g_hash_table_add(seen, place.fill))
            g_ptr_array_add(places, g_memdup2(&place, sizeof(place)));
        else
            dataset_place_clear(&place);
    }
    return places;
}

/* ---- finding and mounting ---- */

gboolean dataset_place_find(Staging *s, HearthdLink *link, const char *id, DatasetPlace *place,
                            Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    unsigned last = 0;
    if (!table)
        return FALSE;
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        const gboolean fill = mount_served_volume(entry) != NULL;
        g_auto(DatasetPlace) found = {0};
        if (!(fill ? parse_path(entry->target, FILL, &found) : dataset_place_of(entry, &found)) ||
            strcmp(found.id, id) != 0)
            continue;
        last = MAX(last, found.generation);
        g_autofree char *dir = g_path_get_dirname(found.fill);
        gboolean served;
        /* Where the host's root is mounted too, each mount is listed once more. */
        if (!fill || strcmp(dir, s->device_dir) != 0)
            continue;
        if (!dataset_place_is_served(s, link, table, &found, &served, deadline, error))
            return FALSE;
        if (served) {
            *place = found;
            found = (DatasetPlace){0};
            return TRUE;
        }
        if (!remove_place(s, &found, TRUE, deadline, error))
            return FALSE;
    }
    dataset_place_init(place, s->device_dir, id, last + 1);
    return TRUE;
}

static gboolean mount_fill(Staging *s, const DatasetPlace *place, const json_t *spec,
                           Deadline deadline, GError **error)
{
    json_t *own = dataset_spec(spec, place->volume);
    gboolean mounted =
        staging_mount_at(s, place->volume, place->fill, own, "fill",
                         MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, deadline, error);
    node_spec_free(own);
    g_autoptr(GPtrArray) table = mounted ? staging_list(s, error) : NULL;
    const MountEntry *entry = table ? mount_find(table, place->fill) : NULL;
    g_autoptr(GError) cause = NULL;
    if (entry && !s->datasets->layers->ops->set_readahead(s->datasets->layers, entry->dev,
                                                          READAHEAD_KIB, &cause))
        g_message("dataset %s: reads of what is not cached are slower: %s", place->id,
                  cause->message);
    return table != NULL;
}

gboolean dataset_place_mount(Staging *s, const DatasetPlace *place, const json_t *spec,
                             const char *manifest, Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    NodeLayers *l = s->datasets->layers;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table || !s->block->ops->make_root(s->block, s->device_dir, error))
        return FALSE;
    if (!mount_find(table, place->fill) && !mount_fill(s, place, spec, deadline, error))
        return FALSE;
    if (mount_find(table, place->manifest))
        return TRUE;
    gboolean made;
    g_autofree char *tag = g_strconcat(MOUNT_SOURCE_PREFIX, place->id, NULL);
    if (!m->ops->make_dir(m, place->manifest, &made, error))
        return FALSE;
    hearth_autofd int fd =
        l->ops->mount_manifest(l, manifest, tag, left_ms(deadline, G_MAXINT64), error);
    return fd >= 0 && m->ops->place(m, fd, place->manifest, error);
}
