/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of volumes: reserving one, using one, and what it is called in the store. Every other
 * file of this folder is above this one. Locks and invariants are in volumes.c.
 */
#include <errno.h>
#include <string.h>
#include "cache/store/disk/key.h"
#include "cache/volume/internal.h"
#include "common/autofd.h"
#include "common/monotonic.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

#define RESERVE_TIMEOUT_SEC 30

/* ---- one operation at a time ---- */

static Volume *add_locked(Volumes *vs, const char *id)
{
    Volume *v = g_new0(Volume, 1);
    v->id = g_strdup(id);
    v->bytes_total = v->bytes_counted = -1;
    v->state_fd = v->left_fd = -1;
    g_hash_table_insert(vs->by_id, v->id, v);
    return v;
}

static void free_volume(Volume *v)
{
    hearth_close_fd(&v->state_fd);
    hearth_close_fd(&v->left_fd);
    spec_free(v->spec);
    g_free(v->id);
    g_free(v);
}

gboolean volumes_reserve(Volumes *vs, const char *id, gboolean make, Volume **volume,
                         GError **error)
{
    const struct timespec deadline = deadline_after_ms(RESERVE_TIMEOUT_SEC * 1000);
    gboolean reserved = FALSE;
    pthread_mutex_lock(&vs->lock);
    for (;;) {
        Volume *v = g_hash_table_lookup(vs->by_id, id);
        if (make && (vs->stopping || vs->leaving)) {
            wire_fail(error, WIRE_ERROR_UNAVAILABLE,
                      "hearthd is stopping; try again when it is back");
            break;
        }
        if (!v && make)
            v = add_locked(vs, id);
        if (!v || !v->reserved) {
            if (v)
                v->reserved = TRUE;
            *volume = v;
            reserved = TRUE;
            break;
        }
        if (pthread_cond_timedwait(&vs->changed, &vs->lock, &deadline) == ETIMEDOUT) {
            wire_fail(error, WIRE_ERROR_ABORTED,
                      "volume %s: another operation is under way; try again", id);
            break;
        }
    }
    pthread_mutex_unlock(&vs->lock);
    return reserved;
}

void volumes_release(Volumes *vs, Volume *v)
{
    pthread_mutex_lock(&vs->lock);
    gboolean gone = !volume_is_connected(v);
    v->reserved = FALSE;
    if (gone)
        g_hash_table_remove(vs->by_id, v->id);
    pthread_cond_broadcast(&vs->changed);
    pthread_mutex_unlock(&vs->lock);
    if (gone)
        free_volume(v);
}

/* ---- uses ---- */

static Volume *use_locked(Volumes *vs, const char *id, GError **error)
{
    Volume *v = g_hash_table_lookup(vs->by_id, id);
    if (v && v->content == CONTENT_IMAGE) {
        wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                  "volume %s is an image, not a tree of files", id);
        return NULL;
    }
    if (!v || v->content == CONTENT_NONE) {
        wire_fail(error, WIRE_ERROR_NOT_FOUND,
                  "volume %s is not open on this node; 'hearthctl status' lists those that are",
                  id);
        return NULL;
    }
    if (atomic_load(&v->closing)) {
        wire_fail(error, WIRE_ERROR_ABORTED, "volume %s is being detached", id);
        return NULL;
    }
    v->uses++;
    return v;
}

Volume *volumes_use(Volumes *vs, const char *id, GError **error)
{
    pthread_mutex_lock(&vs->lock);
    Volume *v = use_locked(vs, id, error);
    pthread_mutex_unlock(&vs->lock);
    return v;
}

void volumes_done(Volumes *vs, Volume *v)
{
    pthread_mutex_lock(&vs->lock);
    v->uses--;
    pthread_cond_broadcast(&vs->changed);
    pthread_mutex_unlock(&vs->lock);
}

const char *volume_id(const Volume *v)
{
    return v->id;
}

Origin *volume_origin(const Volume *v)
{
    return v->origin;
}

gboolean volume_cached(const Volume *v)
{
    return v->cached;
}

uint64_t volume_quota_bytes(const Volume *v)
{
    return atomic_load(&v->quota_bytes);
}

gboolean volume_closing(Volume *v)
{
    return atomic_load(&v->closing);
}

const Manifest *volumes_ready_manifest(Volumes *vs, const Volume *v)
{
    pthread_mutex_lock(&vs->lock);
    Dataset *dataset = v->dataset;
    pthread_mutex_unlock(&vs->lock);
    return dataset ? dataset_manifest(dataset) : NULL;
}

void volumes_set_counted(Volumes *vs, Volume *v, uint64_t bytes)
{
    pthread_mutex_lock(&vs->lock);
    v->bytes_counted = (int64_t)MIN(bytes, (uint64_t)G_MAXINT64);
    if (v->bytes_total >= 0)
        v->bytes_total = v->bytes_counted; /* newer than the origin's number */
    pthread_mutex_unlock(&vs->lock);
}

/* ---- tags ---- */

/* Objects of a dataset belong to it rather than to one of its volumes. */
static char *tag_of_id(const char *id)
{
    char dataset[WIRE_DATASET_DIGITS + 1];
    return g_strdup(wire_dataset_of(id, dataset) ? dataset : id);
}

static char *tag_locked(const Volume *v)
{
    return v->server == SERVER_FILL_LAYER ? g_strdup(dataset_id(v->dataset)) : tag_of_id(v->id);
}

char *volumes_tag(Volumes *vs, const char *id)
{
    pthread_mutex_lock(&vs->lock);
    const Volume *v = g_hash_table_lookup(vs->by_id, id);
    char *tag = v ? tag_locked(v) : tag_of_id(id);
    pthread_mutex_unlock(&vs->lock);
    return tag;
}

char *volumes_tag_ahead(Volumes *vs, const Volume *v)
{
    pthread_mutex_lock(&vs->lock);
    char *tag =
        v->dataset && !volume_is_served(v) ? g_strdup(dataset_id(v->dataset)) : tag_locked(v);
    pthread_mutex_unlock(&vs->lock);
    return tag;
}

char *volumes_of_tag(const char *tag)
{
    ObjectId unused;
    return g_strconcat(object_id_parse(tag, &unused) ? WIRE_DATASET_PREFIX : "", tag, NULL);
}

/* ---- claims of datasets ---- */

void volumes_note_claim(Volumes *vs, const Volume *v, const char *dataset)
{
    json_t *claim =
        json_pack("{s:s, s:s, s:s, s:s}", WIRE_KEY_VOLUME, v->id, WIRE_KEY_DATASET, dataset,
                  WIRE_KEY_CLAIM, v->spec->claim, WIRE_KEY_PERSISTENT_VOLUME, v->spec->pv);
    const json_t *one;
    size_t i;
    pthread_mutex_lock(&vs->lock);
    json_array_foreach (vs->claims, i, one) {
        if (strcmp(json_string_value(json_object_get(one, WIRE_KEY_VOLUME)), v->id) != 0)
            continue;
        json_array_remove(vs->claims, i);
        break;
    }
    if (json_array_size(vs->claims) >= VOLUMES_CLAIMS_MAX)
        json_array_remove(vs->claims, 0);
    json_array_append_new(vs->claims, claim);
    pthread_mutex_unlock(&vs->lock);
}

json_t *volumes_claims(Volumes *vs)
{
    pthread_mutex_lock(&vs->lock);
    json_t *copy = json_deep_copy(vs->claims);
    pthread_mutex_unlock(&vs->lock);
    return copy;
}

/* ---- lists ---- */

static gint compare_ids(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *volumes_collect_ids(Volumes *vs, gboolean (*wanted)(const Volume *, const void *),
                               const void *data)
{
    GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&vs->lock);
    g_hash_table_iter_init(&iter, vs->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (wanted(value, data))
            g_ptr_array_add(ids, g_strdup(((Volume *)value)->id));
    pthread_mutex_unlock(&vs->lock);
    g_ptr_array_sort(ids, compare_ids);
    return ids;
}

gboolean volumes_is_open(const Volume *v, const void *data)
{
    const char *after = data;
    return volume_is_connected(v) && (!after || strcmp(v->id, after) > 0);
}
