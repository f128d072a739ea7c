/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/status.h"
#include "cache/report/disk_reads.h"
#include "common/dataset_key.h"
#include "proto/wire_keys.h"
#include <sys/statvfs.h>
#include <unistd.h>

/* JSON has no unsigned 64 bits; nothing counted here gets there. */
static json_int_t json_count(uint64_t n)
{
    return (json_int_t)MIN(n, (uint64_t)G_MAXINT64);
}

typedef struct Count {
    const char *key;
    uint64_t n;
} Count;

static void add_counts(json_t *object, const Count *counts, gsize n)
{
    for (gsize i = 0; i < n; i++)
        json_object_set_new(object, counts[i].key, json_integer(json_count(counts[i].n)));
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

json_t *report_volume(const VolumeReport *v)
{
    const FuseStats *s = &v->served;
    json_t *volume = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:s, s:s, s:I, s:I}",
        WIRE_KEY_VOLUME, v->volume, WIRE_KEY_NAME, or_empty(v->name), WIRE_KEY_CLAIM,
        or_empty(v->claim), WIRE_KEY_PERSISTENT_VOLUME, or_empty(v->pv), WIRE_KEY_TYPE, v->type,
        WIRE_KEY_CLUSTER_ID, v->cluster_id, WIRE_KEY_FS_NAME, v->fs_name, WIRE_KEY_ROOT_PATH,
        v->root_path, WIRE_KEY_ATTACHED, v->attached, WIRE_KEY_RESTS, v->rests, WIRE_KEY_CACHE,
        v->cache, WIRE_KEY_READ_ONLY, v->read_only, WIRE_KEY_PINNED, v->pinned, WIRE_KEY_DATASET,
        or_empty(v->dataset), WIRE_KEY_UNCACHED, or_empty(v->uncached), WIRE_KEY_BYTES_TOTAL,
        (json_int_t)v->bytes_total, WIRE_KEY_FILES_TOTAL, (json_int_t)v->files_total);
    const Count counts[] = {
        {WIRE_KEY_BYTES_CACHED, v->bytes_cached},
        {WIRE_KEY_OBJECTS, v->objects},
        {WIRE_KEY_OPENS, s->opens},
        {WIRE_KEY_HITS, s->hits},
        {WIRE_KEY_MISSES, s->misses},
        {WIRE_KEY_BYTES_STORE, s->bytes_store},
        {WIRE_KEY_BYTES_FILL, s->bytes_fill},
        {WIRE_KEY_BYTES_ORIGIN, s->bytes_origin},
        {WIRE_KEY_BYTES_WRITTEN, s->bytes_written},
        {WIRE_KEY_OPEN_US, s->open_us},
        {WIRE_KEY_READS, s->reads},
        {WIRE_KEY_READ_US, s->read_us},
        {WIRE_KEY_ORIGIN_READS, s->origin_reads},
        {WIRE_KEY_ORIGIN_US, s->origin_us},
        {WIRE_KEY_NODES, s->nodes},
    };
    add_counts(volume, counts, G_N_ELEMENTS(counts));
    g_autofree char *label = dataset_key(v->cluster_id, v->fs_name, v->root_path);
    json_object_set_new(volume, WIRE_KEY_LABEL, json_string(or_empty(label)));
    return volume;
}

static const char *disk_name(const StoreStats *store)
{
    if (!store)
        return WIRE_DISK_OFF;
    switch (store->disk) {
    case STORE_DISK_OK:
        return WIRE_DISK_OK;
    case STORE_DISK_SUSPECT:
        return WIRE_DISK_SUSPECT;
    case STORE_DISK_BYPASS:
        break;
    }
    return WIRE_DISK_BYPASS;
}

static const char *verity_name(const StoreStats *store)
{
    if (store->verity)
        return WIRE_VERITY_ON;
    return store->verity_wanted ? WIRE_VERITY_UNAVAILABLE : WIRE_VERITY_OFF;
}

static uint64_t free_bytes(const char *dir)
{
    struct statvfs st;
    if (!dir || statvfs(dir, &st) < 0)
        return 0;
    return (uint64_t)st.f_bavail * st.f_frsize;
}

static json_t *report_pins(const GArray *pins)
{
    json_t *list = json_array();
    for (guint i = 0; pins && i < pins->len; i++) {
        const ReportPin *p = &g_array_index(pins, ReportPin, i);
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", WIRE_KEY_VOLUME, p->volume,
                                              WIRE_KEY_NAME, or_empty(p->name), WIRE_KEY_BYTES,
                                              json_count(p->bytes), WIRE_KEY_OBJECTS,
                                              json_count(p->objects)));
    }
    return list;
}

static json_t *report_cache(const ReportStatus *status)
{
    static const StoreStats none;
    const StoreStats *s = status->store ? status->store : &none;
    json_t *cache = json_pack("{s:s, s:s, s:s, s:o}", WIRE_KEY_DIR, or_empty(status->cache_dir),
                              WIRE_KEY_DISK, disk_name(status->store), WIRE_KEY_VERITY,
                              verity_name(s), WIRE_KEY_PINS, report_pins(status->pins));
    const Count counts[] = {
        {WIRE_KEY_OBJECTS, s->objects},
        {WIRE_KEY_BYTES, s->bytes},
        {WIRE_KEY_MAX_BYTES, s->max_bytes},
        {WIRE_KEY_MAX_INODES, s->max_inodes},
        {WIRE_KEY_FREE_BYTES, free_bytes(status->cache_dir)},
        {WIRE_KEY_EVICTED_OBJECTS, s->evicted_objects},
        {WIRE_KEY_EVICTED_BYTES, s->evicted_bytes},
        {WIRE_KEY_ORIGIN_BYTES, s->origin_bytes},
        {WIRE_KEY_ORIGIN_READS, s->origin_reads},
        {WIRE_KEY_ORIGIN_US, s->origin_us},
        {WIRE_KEY_REFETCHED, s->refetched},
        {WIRE_KEY_FILLS_ACTIVE, s->fills_active},
        {WIRE_KEY_FILLS_COMPLETED, s->fills_completed},
        {WIRE_KEY_FILLS_FAILED, s->fills_failed},
        {WIRE_KEY_DISK_ERRORS, s->disk_errors},
        {WIRE_KEY_HIGH_PERCENT, s->high_percent},
        {WIRE_KEY_LOW_PERCENT, s->low_percent},
        {WIRE_KEY_BAD_OBJECTS, s->bad_objects},
    };
    add_counts(cache, counts, G_N_ELEMENTS(counts));
    uint64_t native;
    if (status->cache_dir && disk_reads_native(status->cache_dir, &native))
        json_object_set_new(cache, WIRE_KEY_NATIVE_BYTES, json_integer(json_count(native)));
    json_object_set_new(
        cache, WIRE_KEY_SCRUB,
        json_pack("{s:I, s:I, s:I, s:I}", WIRE_KEY_BYTES_PER_SEC, json_count(s->scrub_rate),
                  WIRE_KEY_OBJECTS, json_count(s->scrub_objects), WIRE_KEY_BYTES,
                  json_count(s->scrub_bytes), WIRE_KEY_ENDED_MS, json_count(s->scrub_ended_ms)));
    return cache;
}

json_t *report_status(const ReportStatus *status)
{
    json_t *daemon = json_pack(
        "{s:s, s:i, s:I, s:b, s:I, s:I, s:i}", WIRE_KEY_VERSION, HEARTH_VERSION, WIRE_KEY_PID,
        (int)getpid(), WIRE_KEY_UPTIME_SEC, (json_int_t)status->uptime_sec, WIRE_KEY_IO_FLUSHER,
        status->io_flusher, WIRE_KEY_LIVE_INODES, json_count(status->live_inodes),
        WIRE_KEY_MAX_LIVE_INODES, json_count(status->live_inodes_most), WIRE_KEY_CEPHFS_CONNECTIONS,
        (int)status->cephfs_connections);
    const ReportUse *threads = &status->uses.threads;
    json_object_set_new(daemon, WIRE_KEY_MEMORY, report_memory(&status->uses));
    json_object_set_new(daemon, WIRE_KEY_CPU_MS, json_integer(json_count(report_cpu_ms())));
    json_object_set_new(daemon, WIRE_KEY_THREADS, json_integer(json_count(threads->used)));
    json_object_set_new(daemon, WIRE_KEY_MAX_THREADS, json_integer(json_count(threads->most)));
    return json_pack("{s:o, s:o, s:I}", WIRE_KEY_DAEMON, daemon, WIRE_KEY_CACHE,
                     report_cache(status), WIRE_KEY_VOLUMES, json_count(status->volumes));
}
