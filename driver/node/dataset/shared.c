/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers that all claims of a dataset on this node share: a manifest and hearthd's fill layer,
 * mounted in the device directory under a name of the dataset, the slot (one for each Ceph user and
 * key, and for each readTimeout) and the generation (a new one after hearthd lost the last). The
 * mount table is the only record. dataset.c and claim.c call this with the dataset held.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/dataset/internal.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/image/block.h"
#include "proto/wire_keys.h"

#define FILL ".fill"
#define MANIFEST ".manifest"

void shared_layers_clear(SharedLayers *shared)
{
    g_clear_pointer(&shared->id, g_free);
    g_clear_pointer(&shared->busy, g_free);
    g_clear_pointer(&shared->volume, g_free);
    g_clear_pointer(&shared->fill, g_free);
    g_clear_pointer(&shared->manifest, g_free);
}

static void shared_init(SharedLayers *shared, const char *dir, const char *id, unsigned slot,
                        unsigned generation)
{
    g_autofree char *name = slot > 1 ? g_strdup_printf("%s-%u", id, slot) : g_strdup(id);
    shared->id = g_strdup(id);
    shared->slot = slot;
    shared->generation = generation;
    shared->volume = g_strconcat(DATASET_VOLUME_PREFIX, name, NULL);
    shared->busy = watch_busy_name(shared->volume);
    shared->fill = g_strdup_printf("%s/%s.%u" FILL, dir, name, generation);
    shared->manifest = g_strdup_printf("%s/%s.%u" MANIFEST, dir, name, generation);
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

static gboolean parse_path(const char *path, const char *suffix, SharedLayers *shared)
{
    char id[HEARTHD_DATASET_DIGITS + 1];
    unsigned slot, generation;
    const char *slash = strrchr(path, '/');
    if (!slash || !parse_name(slash + 1, suffix, id, &slot, &generation))
        return FALSE;
    g_autofree char *dir = g_strndup(path, (gsize)(slash - path));
    shared_init(shared, dir, id, slot, generation);
    return TRUE;
}

gboolean shared_layers_of(const MountEntry *stack, SharedLayers *shared)
{
    return strcmp(stack->type, MOUNT_STACK_TYPE) == 0 && mount_volume(stack) && stack->lower &&
           parse_path(stack->lower, MANIFEST, shared);
}

json_t *shared_layers_spec(const json_t *spec, const char *volume)
{
    json_t *copy = json_deep_copy(spec);
    json_object_set_new(copy, WIRE_KEY_VOLUME, json_string(volume));
    json_object_del(copy, WIRE_KEY_MOUNT_GROUP); /* a claim's own */
    json_object_del(copy, WIRE_KEY_NAMES);       /* likewise */
    return copy;
}

gboolean shared_layers_is_served(Staging *s, const GPtrArray *table, const SharedLayers *shared,
                                 gboolean *served, Deadline deadline, GError **error)
{
    const MountEntry *entry = mount_find(table, shared->fill);
    *served = FALSE;
    if (!entry || g_strcmp0(mount_served_volume(entry), shared->volume) != 0)
        return TRUE;
    return served_is_alive(s, shared->volume, shared->fill, served, deadline, error);
}

/* ---- removing ---- */

static gboolean is_on(const MountEntry *entry, const SharedLayers *shared)
{
    return strcmp(entry->type, MOUNT_STACK_TYPE) == 0 && mount_volume(entry) && entry->lower &&
           strcmp(entry->lower, shared->manifest) == 0;
}

static gboolean unmount_manifest(Staging *s, const SharedLayers *shared, Deadline deadline,
                                 GError **error)
{
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, shared->manifest, &entry, error))
        return FALSE;
    if (entry && strcmp(entry->type, "erofs") != 0)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "%s: \"%s\" of type %s is mounted there; unmount it first",
                           entry->target, entry->source, entry->type);
    /* Stacks that are still open somewhere hold the mount, and need no name of it. */
    return !entry || s->mounter->ops->unmount(s->mounter, entry->target, TRUE,
                                              left_ms(deadline, G_MAXINT64), error);
}

/* The mount points are removed last, because shared_layers_list() finds the layers by them. Dead
 * layers are about to be replaced, so their volume stays with the keeper. */
static gboolean remove_layers(Staging *s, const SharedLayers *shared, gboolean dead,
                              Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    served_release_if_lost(s, shared->volume);
    if (!unmount_manifest(s, shared, deadline, error) ||
        !served_clear(s, shared->volume, shared->fill, dead, deadline, error))
        return FALSE;
    if (!dead && !served_detach_if_last(s, shared->volume, deadline, error))
        return FALSE;
    return m->ops->remove_dir(m, shared->manifest, error) &&
           m->ops->remove_dir(m, shared->fill, error);
}

gboolean shared_layers_remove_unused(Staging *s, const SharedLayers *shared, Deadline deadline,
                                     GError **error)
{
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    for (guint i = 0; i < table->len; i++)
        if (is_on(table->pdata[i], shared))
            return TRUE;
    return remove_layers(s, shared, FALSE, deadline, error);
}

static void shared_free(void *data)
{
    shared_layers_clear(data);
    g_free(data);
}

GPtrArray *shared_layers_list(Staging *s)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(shared_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GDir) dir = g_dir_open(s->device_dir, 0, NULL); /* none: nothing was mounted */
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        SharedLayers shared = {0};
        g_autofree char *path = g_build_filename(s->device_dir, name, NULL);
        if (!parse_path(path, FILL, &shared) && !parse_path(path, MANIFEST, &shared))
            continue;
        if (g_hash_table_add(seen, shared.fill))
            g_ptr_array_add(all, g_memdup2(&shared, sizeof(shared)));
        else
            shared_layers_clear(&shared);
    }
    return all;
}

/* ---- finding and mounting ---- */

/* The layers of a dataset for one user, key and readTimeout, of all generations. */
typedef struct Slot {
    unsigned number, last; /* generation */
    gboolean other;        /* they are of another user, key or readTimeout */
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

gboolean shared_list_has(const json_t *list, const char *text)
{
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one) {
        if (g_strcmp0(json_string_value(one), text) == 0)
            return TRUE;
    }
    return FALSE;
}

/* A search for layers that a claim can share, and what it has found so far. Borrowed. */
typedef struct LayersSearch {
    const DatasetClaim *claim;
    const GPtrArray *table;
    const json_t *refused; /* the volumes that Ceph has refused */
    GArray *slots;
    Deadline deadline;
} LayersSearch;

/* `kept`: the spec of the volume. A slot without one goes to the next claim, except after Ceph
 * refused its user or key: what is mounted over that stays closed. */
static gboolean is_of_other(const LayersSearch *search, const char *volume, const json_t *kept)
{
    return kept ? !node_spec_same_reads(kept, search->claim->spec)
                : shared_list_has(search->refused, volume);
}

/* Checks one mount: *shared gets its layers when they can be shared. Removes dead ones. */
static gboolean check_mount(Staging *s, const LayersSearch *search, const MountEntry *entry,
                            SharedLayers *shared, GError **error)
{
    const gboolean fill = mount_served_volume(entry) != NULL;
    g_auto(SharedLayers) found = {0};
    const gboolean parsed =
        fill ? parse_path(entry->target, FILL, &found) : shared_layers_of(entry, &found);
    if (!parsed || strcmp(found.id, search->claim->manifest.dataset) != 0)
        return TRUE;
    Slot *slot = slot_of(search->slots, found.slot);
    slot->last = MAX(slot->last, found.generation);
    g_autofree char *dir = g_path_get_dirname(found.fill);
    gboolean served = FALSE;
    /* Where the host's root is mounted too, each mount is listed once more. */
    const gboolean ours = fill && strcmp(dir, s->device_dir) == 0;
    if (ours &&
        !shared_layers_is_served(s, search->table, &found, &served, search->deadline, error))
        return FALSE;
    node_spec_auto_t *kept = served
                                 ? watch_spec(s->keeper, search->claim->link, found.volume, error)
                                 : keeper_spec(s->keeper, found.volume);
    if (served && !kept)
        return FALSE;
    if (is_of_other(search, found.volume, kept)) {
        slot->other = TRUE;
        return TRUE;
    }
    if (ours && !served)
        return remove_layers(s, &found, TRUE, search->deadline, error);
    if (ours) {
        *shared = found;
        found = (SharedLayers){0};
    }
    return TRUE;
}

/* The layers that the claim can share, or names for new ones. */
static gboolean find_layers(Staging *s, const DatasetClaim *claim, const GPtrArray *table,
                            SharedLayers *shared, Deadline deadline, GError **error)
{
    g_autoptr(GArray) slots = g_array_new(FALSE, FALSE, sizeof(Slot));
    json_auto_t *refused = hearthd_refused(claim->link, SERVED_ASK_MS);
    const LayersSearch search = {
        .claim = claim, .table = table, .refused = refused, .slots = slots, .deadline = deadline};
    for (guint i = 0; !shared->id && i < table->len; i++)
        if (!check_mount(s, &search, table->pdata[i], shared, error))
            return FALSE;
    if (shared->id)
        return TRUE;
    unsigned number = 1;
    while (slot_of(slots, number)->other)
        number++;
    shared_init(shared, s->device_dir, claim->manifest.dataset, number,
                slot_of(slots, number)->last + 1);
    return TRUE;
}

gboolean shared_layers_renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                             Deadline deadline, GError **error)
{
    node_spec_auto_t *kept = watch_spec(s->keeper, link, volume, error);
    if (!kept)
        return FALSE;
    return !node_spec_update(kept, spec) || served_renew(s, link, volume, kept, deadline, error);
}

static gboolean mount_fill(Staging *s, const SharedLayers *shared, const json_t *spec,
                           Deadline deadline, GError **error)
{
    node_spec_auto_t *own = shared_layers_spec(spec, shared->volume);
    /* Without a context: claims of all kinds share it, and the kernel goes through an overlay to it
     * with the rights of this process. */
    const ServedMount mount = {
        .volume = shared->volume,
        .path = shared->fill,
        .spec = own,
        .layer = WIRE_LAYER_FILL,
        .options = {.attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV}};
    return served_mount(s, &mount, deadline, error);
}

static gboolean mount_manifest(Staging *s, const SharedLayers *shared, const char *file,
                               Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    NodeLayers *l = s->datasets->layers;
    gboolean made;
    g_autofree char *tag = g_strconcat(MOUNT_SOURCE_PREFIX, shared->id, NULL);
    if (!m->ops->make_dir(m, shared->manifest, &made, error))
        return FALSE;
    hearth_autofd int fd =
        l->ops->mount_manifest(l, file, tag, left_ms(deadline, G_MAXINT64), error);
    return fd >= 0 && m->ops->place(m, fd, shared->manifest, error);
}

gboolean shared_layers_mount(Staging *s, const DatasetClaim *claim, SharedLayers *shared,
                             Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table || !find_layers(s, claim, table, shared, deadline, error))
        return FALSE;
    if (!s->block->ops->make_root(s->block, s->device_dir, error))
        return FALSE;
    const gboolean filled =
        mount_find(table, shared->fill)
            ? shared_layers_renew(s, claim->link, shared->volume, claim->spec, deadline, error)
            : mount_fill(s, shared, claim->spec, deadline, error);
    if (!filled)
        return FALSE;
    return mount_find(table, shared->manifest) ||
           mount_manifest(s, shared, claim->manifest.path, deadline, error);
}
