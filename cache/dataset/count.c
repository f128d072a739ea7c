/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of each dataset the store holds, whichever volume had it fetched. One thread counts: it
 * looks up every file in the index of the store. Between two counts the numbers follow the objects
 * that were filled and evicted since (dataset_report).
 */
#include <malloc.h>
#include <string.h>
#include "cache/dataset/internal.h"
#include "cache/store/disk/key.h"

/* What the store holds of a dataset is counted again after this, or COUNT_REST times as long as the
 * count took. */
#define COUNT_SEC 5
#define COUNT_REST 20
#define ADOPT_BATCH 1024

static Dataset *next_to_count_locked(Datasets *all)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, all->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Dataset *d = value;
        if (d->state == DATASET_READY &&
            (!d->counted || g_get_monotonic_time() >= d->count_at_us)) {
            d->references++;
            return d;
        }
    }
    return NULL;
}

static gboolean count_held(Dataset *d, uint64_t *files, uint64_t *bytes)
{
    Datasets *all = d->all;
    const Manifest *m = d->manifest;
    *files = *bytes = 0;
    for (uint64_t i = 0; i < m->footer.records; i++) {
        ObjectKey key;
        ObjectId id;
        if (i % 4096 == 0 && !datasets_is_wanted(d))
            return FALSE;
        if (!manifest_key(m, i, &key))
            continue;
        object_key_id(&key, &id);
        if (store_has(all->store, &id)) {
            *files += 1;
            *bytes += key.size;
        }
    }
    return TRUE;
}

/* Takes over objects that other volumes had fetched and that no dataset with a higher rank owns: a
 * pin of the dataset is for all of its objects. */
static void adopt_objects(Dataset *d)
{
    const Manifest *m = d->manifest;
    ObjectId ids[ADOPT_BATCH];
    size_t n = 0;
    for (uint64_t i = 0; i < m->footer.records; i++) {
        ObjectKey key;
        if (manifest_key(m, i, &key))
            object_key_id(&key, &ids[n++]);
        if (n < ADOPT_BATCH && i + 1 < m->footer.records)
            continue;
        store_adopt(d->all->store, d->id, ids, n);
        n = 0;
        pthread_mutex_lock(&d->all->lock);
        gboolean stop = d->all->stopping || d->members->len == 0;
        pthread_mutex_unlock(&d->all->lock);
        if (stop)
            return;
    }
}

static void trim_if_due_locked(Datasets *all)
{
    if (!all->trim_at_us || g_get_monotonic_time() < all->trim_at_us)
        return;
    all->trim_at_us = 0;
    pthread_mutex_unlock(&all->lock);
    malloc_trim(0);
    pthread_mutex_lock(&all->lock);
}

void *datasets_run_counter(void *data)
{
    Datasets *all = data;
    pthread_mutex_lock(&all->lock);
    while (!all->stopping) {
        trim_if_due_locked(all);
        Dataset *d = next_to_count_locked(all);
        if (!d) {
            const struct timespec soon = deadline_after_ms(1000);
            pthread_cond_timedwait(&all->changed, &all->lock, &soon);
            continue;
        }
        gboolean shared = d->shared;
        pthread_mutex_unlock(&all->lock);
        uint64_t files, bytes, tag_bytes = 0, tag_objects = 0;
        gint64 start = g_get_monotonic_time();
        if (!d->counted) /* by this thread alone */
            datasets_drop_misfits(d);
        if (shared)
            adopt_objects(d);
        store_tag_usage(all->store, d->id, &tag_bytes, &tag_objects);
        gboolean complete = count_held(d, &files, &bytes);
        gint64 now = g_get_monotonic_time();
        pthread_mutex_lock(&all->lock);
        if (complete) {
            d->counted = TRUE;
            d->shared = tag_objects < files;
            d->files_held = files;
            d->bytes_held = bytes;
            d->tag_objects = tag_objects;
            d->tag_bytes = tag_bytes;
            d->count_at_us = now + MAX(COUNT_SEC * G_TIME_SPAN_SECOND, COUNT_REST * (now - start));
            pthread_cond_broadcast(&all->changed);
        }
        dataset_unref_locked(d);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}
