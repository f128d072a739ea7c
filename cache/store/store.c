/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store, put together: opening and closing, looking objects up, linking them in, dropping them.
 * The parts are named in internal.h, with the order of their locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/hooked.h"
#include "cache/store/objects/internal.h"
#include "cache/store/objects/verity.h"
#include "common/io_error.h"

#define DEFAULT_FILL_THREADS 32
#define DEFAULT_CHUNK_BYTES (4u << 20)
#define CRASHES_TO_DISTRUST_INDEX 5

/* --- opening and closing --- */

static gboolean set_defaults(Store *store, const StoreConfig *config, const StoreHooks *hooks,
                             GError **error)
{
    StoreConfig *c = &store->config;
    StoreHooks *h = &store->hooks;
    *c = *config;
    if (hooks)
        *h = *hooks;
    if (!c->high_percent && !c->low_percent) {
        c->high_percent = 90;
        c->low_percent = 80;
    }
    if (!c->fill_threads)
        c->fill_threads = DEFAULT_FILL_THREADS;
    if (!c->chunk_bytes)
        c->chunk_bytes = DEFAULT_CHUNK_BYTES;
    h->flush_ms = h->flush_ms ? h->flush_ms : 5000;
    h->check_ms = h->check_ms ? h->check_ms : 5000;
    h->retry_ms = h->retry_ms ? h->retry_ms : 30000;
    h->slack_ms = h->slack_ms ? h->slack_ms : 60000;
    h->stuck_ms = h->stuck_ms ? h->stuck_ms : 1000;
    h->grace_ms = h->grace_ms ? h->grace_ms : 10;
    const char *wrong = NULL;
    if (!c->dir || !c->dir[0])
        wrong = "no directory is named";
    else if (c->high_percent > 100 || c->low_percent >= c->high_percent)
        wrong = "watermarks must be low < high <= 100 percent";
    else if (c->chunk_bytes < 4096 || c->chunk_bytes > (64 << 20) || c->chunk_bytes % 4096)
        wrong = "chunks must be of 4 KiB to 64 MiB, in steps of 4 KiB";
    else if (c->fill_threads > 64)
        wrong = "at most 64 fill threads";
    if (wrong)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "cache: %s", wrong);
    return wrong == NULL;
}

static gboolean open_index(Store *store, LayoutTrust trust, GError **error)
{
    g_autofree char *path = g_build_filename(store->layout.path, FORMAT_INDEX_NAME, NULL);
    g_autofree char *lock = g_build_filename(store->layout.path, FORMAT_INDEX_LOCK_NAME, NULL);
    if (store->layout.crashes >= CRASHES_TO_DISTRUST_INDEX) {
        g_warning(
            "cache: hearthd has crashed %u times in a row soon after start: the index is rebuilt",
            store->layout.crashes);
        unlink(path);
        unlink(lock);
    }
    gboolean created;
    store->index = index_open(path, &created, error);
    if (!store->index)
        return FALSE;
    IndexTotals totals;
    int rc = index_totals(store->index, &totals);
    if (rc < 0) {
        return io_fail(error, g_io_error_from_errno(-rc),
                       "cache index %s: %s; remove the file, it is rebuilt", path, g_strerror(-rc));
    }
    ledger_indexed(&store->ledger, &totals);
    atomic_store(&store->trust, (int)trust);
    atomic_store(&store->scanned, trust == LAYOUT_CLEAN && !created);
    return TRUE;
}

static gboolean start_thread(pthread_t *thread, void *(*run)(void *), Store *store, GError **error)
{
    int rc = pthread_create(thread, NULL, run, store);
    if (rc != 0)
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(rc), "cache: starting a thread: %s",
                    g_strerror(rc));
    return rc == 0;
}

static void stop_thread(pthread_t *thread, Wake *wake)
{
    wake_stop(wake);
    pthread_join(*thread, NULL);
}

static void free_parts(Store *store)
{
    index_close(store->index);
    layout_close(&store->layout);
    fills_destroy(store);
    tags_destroy(&store->tags);
    evicted_destroy(&store->evicted);
    ledger_destroy(&store->ledger);
    disk_destroy(&store->disk);
    wake_destroy(&store->flusher);
    wake_destroy(&store->evictor);
    wake_destroy(&store->scrubber);
    pthread_mutex_destroy(&store->space.lock);
    pthread_mutex_destroy(&store->flush_lock);
    pthread_mutex_destroy(&store->pins_lock);
    evict_turn_destroy(&store->evict_turn);
    g_free(store);
}

static gboolean start_threads(Store *store, LayoutTrust trust, GError **error)
{
    if (!open_index(store, trust, error))
        return FALSE;
    if (!fills_start(store, error) ||
        !start_thread(&store->flusher_thread, store_flusher, store, error)) {
        fills_stop(store);
        return FALSE;
    }
    if (!start_thread(&store->evictor_thread, store_evictor, store, error)) {
        fills_stop(store);
        stop_thread(&store->flusher_thread, &store->flusher);
        return FALSE;
    }
    if (store->config.scrub_bytes_per_sec &&
        !start_thread(&store->scrubber_thread, store_scrubber, store, error)) {
        fills_stop(store);
        stop_thread(&store->evictor_thread, &store->evictor);
        stop_thread(&store->flusher_thread, &store->flusher);
        return FALSE;
    }
    return TRUE;
}

Store *store_open_hooked(const StoreConfig *config, const StoreHooks *hooks, GError **error)
{
    Store *store = g_new0(Store, 1);
    if (!set_defaults(store, config, hooks, error)) {
        g_free(store);
        return NULL;
    }
    LayoutOptions options = {.boot_id = store->hooks.boot_id,
                             .any_filesystem = store->hooks.any_filesystem,
                             .named_partials = store->hooks.named_partials};
    LayoutTrust trust;
    if (!layout_open(&store->layout, config->dir, &options, &trust, error)) {
        g_free(store);
        return NULL;
    }
    store->config.dir = store->layout.path;
    pthread_mutex_init(&store->space.lock, NULL);
    pthread_mutex_init(&store->flush_lock, NULL);
    pthread_mutex_init(&store->pins_lock, NULL);
    tags_init(&store->tags);
    tags_load(&store->tags, store->layout.dir_fd);
    evict_turn_init(&store->evict_turn);
    evicted_init(&store->evicted);
    wake_init(&store->flusher);
    wake_init(&store->evictor);
    wake_init(&store->scrubber);
    disk_init(&store->disk, store->hooks.retry_ms);
    ledger_init(&store->ledger);
    fills_init(store);
    store->verity = store->config.verity && verity_probe(store);
    if (!start_threads(store, trust, error)) {
        free_parts(store);
        return NULL;
    }
    return store;
}

Store *store_open(const StoreConfig *config, GError **error)
{
    return store_open_hooked(config, NULL, error);
}

void store_close(Store *store)
{
    if (!store)
        return;
    fills_stop(store);
    if (store->config.scrub_bytes_per_sec)
        stop_thread(&store->scrubber_thread, &store->scrubber);
    stop_thread(&store->evictor_thread, &store->evictor);
    stop_thread(&store->flusher_thread, &store->flusher);
    gboolean whole = disk_state(&store->disk) != STORE_DISK_BYPASS && store_flush(store) == 0 &&
                     atomic_load(&store->scanned) && !atomic_load(&store->index_lost);
    index_close(g_steal_pointer(&store->index));
    if (whole)
        layout_mark(&store->layout, FORMAT_STATE_CLEAN, 0);
    free_parts(store);
}

/* --- accounting --- */

void store_tag_usage(Store *store, const char *tag, uint64_t *bytes, uint64_t *objects)
{
    TagId id;
    IndexTotals indexed;
    tag_id(tag, &id);
    IndexTotals waiting = ledger_waiting_of(&store->ledger, &id);
    index_tag_totals(store->index, &id, &indexed);
    *bytes = indexed.bytes + waiting.bytes;
    *objects = indexed.objects + waiting.objects;
}

void store_use(Store *store, const char *tag, gboolean on)
{
    tags_use(&store->tags, tag, on ? 1 : -1);
}

int store_pin(Store *store, const char *tag, gboolean on)
{
    pthread_mutex_lock(&store->pins_lock);
    int rc = 0;
    if (tags_pin(&store->tags, tag, on)) {
        rc = tags_save(&store->tags, store->layout.dir_fd);
        if (rc < 0)
            tags_pin(&store->tags, tag, !on);
    }
    pthread_mutex_unlock(&store->pins_lock);
    return rc;
}

gboolean store_is_pinned(Store *store, const char *tag)
{
    TagId id;
    tag_id(tag, &id);
    return tags_rank(&store->tags, &id) == TAG_RANK_PINNED;
}

GPtrArray *store_pins(Store *store)
{
    return tags_pinned(&store->tags);
}

size_t store_adopt(Store *store, const char *tag, const ObjectId *ids, size_t n)
{
    TagId own;
    IndexTotals delta;
    tag_id(tag, &own);
    const TagRank rank = tags_rank(&store->tags, &own);
    g_autofree IndexChange *changes = g_new(IndexChange, n);
    size_t taken = 0;
    for (size_t i = 0; i < n && rank > TAG_RANK_NONE; i++) {
        Record record;
        if (index_get(store->index, &ids[i], &record) == 0 &&
            tags_rank(&store->tags, &record.tag) < rank)
            changes[taken++] = (IndexChange){.op = INDEX_RETAG, .id = ids[i], .record.tag = own};
    }
    int rc = index_apply(store->index, changes, taken, 0, &delta);
    if (rc == -EUCLEAN)
        atomic_store(&store->index_lost, TRUE);
    return rc == 0 ? taken : 0;
}

StoreDisk store_disk(Store *store)
{
    return disk_state(&store->disk);
}

void store_report_disk(Store *store, int error)
{
    disk_failed(&store->disk, error, monotonic_ms());
}

const char *store_boot_id(const Store *store)
{
    return store->layout.boot_id;
}

const StoreTimes *store_times(const Store *store)
{
    return &store->times;
}

/* Those that hang have as much as the others together (fill/stuck.c). */
static uint64_t buffers_most(unsigned threads, size_t chunk_bytes)
{
    return (uint64_t)chunk_bytes * (2 * threads + 1 + MIN(FILL_RECENTS, threads));
}

uint64_t store_buffers_most(unsigned fill_threads)
{
    return buffers_most(fill_threads ? fill_threads : DEFAULT_FILL_THREADS, DEFAULT_CHUNK_BYTES);
}

void store_stats(Store *store, StoreStats *stats)
{
    Fills *fills = store->fills;
    IndexTotals held = ledger_held(&store->ledger);
    *stats = (StoreStats){
        .objects = held.objects,
        .bytes = held.bytes,
        .high_percent = store->config.high_percent,
        .low_percent = store->config.low_percent,
        .fills_started = atomic_load(&fills->started),
        .fills_completed = atomic_load(&fills->completed),
        .fills_failed = atomic_load(&fills->failed),
        .origin_bytes = atomic_load(&fills->origin_bytes),
        .origin_reads = histogram_count(&store->times.reads),
        .origin_us = atomic_load(&store->times.reads.sum_us),
        .refetched = atomic_load(&store->refetched),
        .disk_errors = atomic_load(&store->disk.errors),
        .bad_objects = atomic_load(&store->bad_objects),
        .scrub_rate = store_scrub_rate(&store->config, held.bytes),
        .scrub_objects = atomic_load(&store->scrub_objects),
        .scrub_bytes = atomic_load(&store->scrub_bytes),
        .scrub_ended_ms = atomic_load(&store->scrub_ended_ms),
        .verity_wanted = store->config.verity,
        .verity = store->verity,
        .sealed = atomic_load(&store->sealed),
        .disk = disk_state(&store->disk),
    };
    for (guint why = 0; why < STORE_EVICTS_REASONS; why++) {
        stats->evicted_objects_by[why] = atomic_load(&store->evicted_objects[why]);
        stats->evicted_bytes_by[why] = atomic_load(&store->evicted_bytes[why]);
        stats->evicted_objects += stats->evicted_objects_by[why];
        stats->evicted_bytes += stats->evicted_bytes_by[why];
    }
    space_bounds(store, &stats->max_bytes, &stats->max_inodes);
    pthread_mutex_lock(&fills->lock);
    stats->fills_active = fills->n_live - fills->n_parked;
    const uint64_t buffers = (uint64_t)fills->n_threads * store->config.chunk_bytes;
    pthread_mutex_unlock(&fills->lock);
    stats->max_buffer_bytes = buffers_most(fills->most, store->config.chunk_bytes);
    stats->buffer_bytes = MIN(buffers, stats->max_buffer_bytes); /* a stuck one has less */
}
