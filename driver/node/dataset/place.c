/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/dataset/internal.h"
#include "driver/node/hearthd/spec.h"

#define FILL ".fill"
#define MANIFEST ".manifest"
/* hearthd fetches in pieces of megabytes, several at once; INIT cannot ask for more than 128 KiB.
 */
#define READAHEAD_KIB 4096

void dataset_place_clear(DatasetPlace *place)
{
    g_clear_pointer(&place->id, g_free);
    g_clear_pointer(&place->busy, g_free);
    g_clear_pointer(&place->volume, g_free);
    g_clear_pointer(&place->fill, g_free);
    g_clear_pointer(&place->manifest, g_free);
}

void dataset_place_init(DatasetPlace *place, const char *dir, const char *id, unsigned slot,
                        unsigned generation)
{
    g_autofree char *name = slot > 1 ? g_strdup_printf("%s-%u", id, slot) : g_strdup(id);
    place->id = g_strdup(id);
    place->slot = slot;
    place->generation = generation;
    place->busy = g_strconcat(DATASET_VOLUME_PREFIX, id, NULL);
    place->volume = g_strconcat(DATASET_VOLUME_PREFIX, name, NULL);
    place->fill = g_strdup_printf("%s/%s.%u" FILL, dir, name, generation);
    place->manifest = g_strdup_printf("%s/%s.%u" MANIFEST, dir, name, generation);
}

char *dataset_busy_name(const char *volume)
{
    char id[WIRE_DATASET_DIGITS + 1];
    return wire_dataset_of(volume, id) ? g_strconcat(DATASET_VOLUME_PREFIX, id, NULL)
                                       : g_strdup(volume);
}

/* "<id>.<generation>" or "<id>-<slot>.<generation>", and the suffix. */
static gboolean parse_name(const char *name, const char *suffix, char id[], unsigned *slot,
                           unsigned *generation)
{
    int length = 0;
    if (strspn(name, "0123456789abcdef") != HEARTHD_DATASET_DIGITS)
        return FALSE;
    const char *rest = name + HEARTHD_DATASET_DIGITS;
    *slot = 1;
    if (*rest == '-') {
        if (sscanf(rest, "-%9u%n", slot, &length) != 1 || *slot < 2)
            return FALSE;
        rest += length;
    }
    if (sscanf(rest, ".%9u%n", generation, &length) != 1 || strcmp(rest + length, suffix) != 0)
        return FALSE;
    g_strlcpy(id, name, HEARTHD_DATASET_DIGITS + 1);
    return TRUE;
}

static gboolean parse_path(const char *path, const char *suffix, DatasetPlace *place)
{
    char id[HEARTHD_DATASET_DIGITS + 1];
    unsigned slot, generation;
    const char *slash = strrchr(path, '/');
    if (!slash || !parse_name(slash + 1, suffix, id, &slot, &generation))
        return FALSE;
    g_autofree char *dir = g_strndup(path, (gsize)(slash - path));
    dataset_place_init(place, dir, id, slot, generation);
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

/* What is mounted of a dataset for one user and key, of all generations. */
typedef struct Slot {
    unsigned number, last; /* generation */
    gboolean other;        /* it is of another user or key */
} Slot;

static Slot *slot_of(GArray *slots, unsigned number)
{
    for (guint i = 0; i < slots->len; i++)
        if (g_array_index(slots, Slot, i).number == number)
            return &g_array_index(slots, Slot, i);
    const Slot slot = {.number = number};
    g_array_append_val(slots, slot);
    return &g_array_index(slots, Slot, slots->len - 1);
}

static gboolean has_string(const json_t *list, const char *text)
{
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one)
        if (g_strcmp0(json_string_value(one), text) == 0)
            return TRUE;
    return FALSE;
}

/* Of one that nobody knows any more the next claim takes over the slot, but not from one that was
 * refused: what is mounted over that stays closed. */
static gboolean is_of_other(Staging *s, const char *volume, const json_t *spec,
                            const json_t *refused)
{
    json_t *kept = keeper_spec(s->keeper, volume);
    const gboolean other =
        kept ? !node_spec_same_authority(kept, spec) : has_string(refused, volume);
    node_spec_free(kept);
    return other;
}

/* Looks at one mount: *place is it when it can be shared. */
static gboolean look_at(Staging *s, HearthdLink *link, const GPtrArray *table,
                        const MountEntry *entry, const char *id, const json_t *spec,
                        const json_t *refused, GArray *slots, DatasetPlace *place,
                        Deadline deadline, GError **error)
{
    const gboolean fill = mount_served_volume(entry) != NULL;
    g_auto(DatasetPlace) found = {0};
    if (!(fill ? parse_path(entry->target, FILL, &found) : dataset_place_of(entry, &found)) ||
        strcmp(found.id, id) != 0)
        return TRUE;
    Slot *slot = slot_of(slots, found.slot);
    slot->last = MAX(slot->last, found.generation);
    g_autofree char *dir = g_path_get_dirname(found.fill);
    gboolean served = FALSE;
    /* Where the host's root is mounted too, each mount is listed once more. */
    const gboolean ours = fill && strcmp(dir, s->device_dir) == 0;
    if (ours && !dataset_place_is_served(s, link, table, &found, &served, deadline, error))
        return FALSE;
    if (served && !watch_fetch(s->keeper, link, found.volume, error))
        return FALSE;
    if (is_of_other(s, found.volume, spec, refused)) {
        slot->other = TRUE;
        return TRUE;
    }
    if (ours && !served)
        return remove_place(s, &found, TRUE, deadline, error);
    if (ours) {
        *place = found;
        found = (DatasetPlace){0};
    }
    return TRUE;
}

gboolean dataset_place_find(Staging *s, HearthdLink *link, const char *id, const json_t *spec,
                            DatasetPlace *place, Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    g_autoptr(GArray) slots = g_array_new(FALSE, FALSE, sizeof(Slot));
    if (!table)
        return FALSE;
    json_t *refused = hearthd_refused(link, STAGING_ASK_MS);
    gboolean good = TRUE;
    for (guint i = 0; good && !place->id && i < table->len; i++)
        good = look_at(s, link, table, table->pdata[i], id, spec, refused, slots, place, deadline,
                       error);
    json_decref(refused);
    if (!good || place->id)
        return good;
    unsigned number = 1;
    while (slot_of(slots, number)->other)
        number++;
    dataset_place_init(place, s->device_dir, id, number, slot_of(slots, number)->last + 1);
    return TRUE;
}

static gboolean mount_fill(Staging *s, const DatasetPlace *place, const json_t *spec,
                           Deadline deadline, GError **error)
{
    json_t *own = dataset_spec(spec, place->volume);
    /* Without a context: claims of all kinds share it, and the kernel goes through an overlay to it
     * with the rights of this process. */
    const MountOptions options = {.attrs =
                                      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    gboolean mounted =
        staging_mount_at(s, place->volume, place->fill, own, "fill", &options, deadline, error);
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
