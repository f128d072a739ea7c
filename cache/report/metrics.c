/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/metrics.h"
#include <stddef.h>
#include <sys/statvfs.h>
#include "cache/report/disk_reads.h"

static void one(OpenMetrics *m, OpenMetricsKind kind, const char *name, const char *help,
                guint64 value)
{
    openmetrics_family(m, kind, name, help);
    openmetrics_add(m, value, NULL);
}

/* ---- the process and its cache ---- */

static void tell_process(OpenMetrics *m, const MetricsSource *s)
{
    openmetrics_family(m, OPENMETRICS_INFO, "hearthd_build", "What runs");
    openmetrics_add(m, 1, "version", HEARTH_VERSION, NULL);
    openmetrics_family(m, OPENMETRICS_GAUGE, "hearthd_uptime_seconds", "Since it was started");
    openmetrics_add_seconds(m, (double)s->uptime_sec, NULL);
}

static void tell_disk(OpenMetrics *m, const MetricsSource *s)
{
    static const char *const names[] = {"ok", "suspect", "bypass", "off"};
    static const StoreDisk states[] = {STORE_DISK_OK, STORE_DISK_SUSPECT, STORE_DISK_BYPASS};
    struct statvfs st;
    openmetrics_family(m, OPENMETRICS_GAUGE, "hearth_cache_disk_state",
                       "1 for the state it is in; bypass: all is read from Ceph");
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const gboolean is =
            i < G_N_ELEMENTS(states) ? s->store && s->store->disk == states[i] : !s->store;
        openmetrics_add(m, is, "state", names[i], NULL);
    }
    if (s->cache_dir && statvfs(s->cache_dir, &st) == 0)
        one(m, OPENMETRICS_GAUGE, "hearth_cache_disk_free_bytes", "Free on the cache's file system",
            (guint64)st.f_bavail * st.f_frsize);
}

static void tell_disk_reads(OpenMetrics *m, const MetricsSource *s)
{
    guint64 all, own;
    if (!s->cache_dir || !disk_reads_of_device(s->cache_dir, &all) || !disk_reads_of_process(&own))
        return;
    one(m, OPENMETRICS_COUNTER, "hearth_cache_disk_read_bytes",
        "Read from the disk of the cache, by hearthd, natively, and by others that use the disk",
        all);
    one(m, OPENMETRICS_COUNTER, "hearthd_disk_read_bytes", "Read from any disk by hearthd itself",
        own);
}

static void tell_evictions(OpenMetrics *m, const StoreStats *s)
{
    static const char *const reasons[] = {"room", "quota", "asked"};
    openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_cache_evicted_objects",
                       "Removed from the cache");
    for (gsize i = 0; i < STORE_EVICTS_REASONS; i++)
        openmetrics_add(m, s->evicted_objects_by[i], "reason", reasons[i], NULL);
    openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_cache_evicted_bytes",
                       "Removed from the cache");
    for (gsize i = 0; i < STORE_EVICTS_REASONS; i++)
        openmetrics_add(m, s->evicted_bytes_by[i], "reason", reasons[i], NULL);
}

static void tell_fills(OpenMetrics *m, const StoreStats *s, const StoreTimes *t)
{
    openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_cache_fills", "Objects that were fetched");
    openmetrics_add(m, s->fills_completed, "result", "completed", NULL);
    openmetrics_add(m, s->fills_failed, "result", "failed", NULL);
    one(m, OPENMETRICS_GAUGE, "hearth_cache_fills_active", "Objects that are being fetched",
        s->fills_active);
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "hearth_cache_fill_seconds",
                       "From an object's being asked for until it is kept");
    openmetrics_add_histogram(m, &t->fills, NULL);
    one(m, OPENMETRICS_COUNTER, "hearth_ceph_read_bytes", "Read from Ceph into the cache",
        s->origin_bytes);
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "hearth_ceph_read_seconds",
                       "Reads of Ceph for the cache");
    openmetrics_add_histogram(m, &t->reads, NULL);
    one(m, OPENMETRICS_COUNTER, "hearth_ceph_read_errors", "Reads of Ceph that failed",
        atomic_load(&t->failed_reads));
}

static void tell_store(OpenMetrics *m, const MetricsSource *source)
{
    const StoreStats *s = source->store;
    one(m, OPENMETRICS_GAUGE, "hearth_cache_used_bytes", "In the cache", s->bytes);
    one(m, OPENMETRICS_GAUGE, "hearth_cache_limit_bytes", "What it may grow to", s->max_bytes);
    one(m, OPENMETRICS_GAUGE, "hearth_cache_objects", "In the cache, each an inode", s->objects);
    one(m, OPENMETRICS_GAUGE, "hearth_cache_objects_limit", "What it may grow to", s->max_inodes);
    tell_evictions(m, s);
    tell_fills(m, s, source->times);
    one(m, OPENMETRICS_COUNTER, "hearth_cache_disk_errors", "Of the cache's disk", s->disk_errors);
    one(m, OPENMETRICS_COUNTER, "hearth_cache_bad_objects",
        "Dropped, for they were not what was fetched", s->bad_objects);
}

/* ---- each volume ---- */

typedef struct VolumeFamily {
    OpenMetricsKind kind;
    const char *name, *help, *source; /* source: a label's value; NULL: it has none */
    size_t at;                        /* of the uint64_t in VolumeReport */
} VolumeFamily;

#define AT(member) offsetof(VolumeReport, member)
/* Rows of one name follow each other; the first has the help. */
static const VolumeFamily families[] = {
    {OPENMETRICS_COUNTER, "hearth_volume_opens", "Opens of files", NULL, AT(served.opens)},
    {OPENMETRICS_COUNTER, "hearth_volume_hits", "Opens for reading that found the file cached",
     NULL, AT(served.hits)},
    {OPENMETRICS_COUNTER, "hearth_volume_misses",
     "Opens for reading that found the file not cached", NULL, AT(served.misses)},
    {OPENMETRICS_COUNTER, "hearth_volume_read_bytes",
     "Read through hearthd, by where it was: cache, filling (on its way there) or ceph", "cache",
     AT(served.bytes_store)},
    {OPENMETRICS_COUNTER, "hearth_volume_read_bytes", NULL, "filling", AT(served.bytes_fill)},
    {OPENMETRICS_COUNTER, "hearth_volume_read_bytes", NULL, "ceph", AT(served.bytes_origin)},
    {OPENMETRICS_COUNTER, "hearth_volume_written_bytes", "Written through hearthd", NULL,
     AT(served.bytes_written)},
    {OPENMETRICS_GAUGE, "hearth_volume_cached_bytes", "Of it in the cache", NULL, AT(bytes_cached)},
};
#undef AT

/* What serves it: "fill" what a dataset lacks on the disk, "live" file systems, "block" images. */
static const char *layer_of(const VolumeReport *v)
{
    if (g_str_equal(v->type, "rbd"))
        return "block";
    return g_str_has_prefix(v->volume, "dataset-") ? "fill" : "live";
}

static void tell_volume(OpenMetrics *m, const VolumeFamily *f, const VolumeReport *v)
{
    const char *dataset = v->dataset ? v->dataset : "";
    const guint64 value = *(const uint64_t *)(const void *)((const char *)v + f->at);
    if (f->source)
        openmetrics_add(m, value, "volume", v->volume, "dataset", dataset, "layer", layer_of(v),
                        "source", f->source, NULL);
    else
        openmetrics_add(m, value, "volume", v->volume, "dataset", dataset, "layer", layer_of(v),
                        NULL);
}

static void tell_volumes(OpenMetrics *m, const GPtrArray *volumes)
{
    const guint each = MIN(volumes->len, METRICS_EACH_MAX);
    one(m, OPENMETRICS_GAUGE, "hearth_volumes", "Served here", volumes->len);
    one(m, OPENMETRICS_GAUGE, "hearth_volumes_left_out", "Of which nothing more is told",
        volumes->len - each);
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++) {
        if (families[i].help)
            openmetrics_family(m, families[i].kind, families[i].name, families[i].help);
        for (guint k = 0; k < each; k++)
            tell_volume(m, &families[i], volumes->pdata[k]);
    }
}

/* ---- each dataset ---- */

static void tell_datasets(OpenMetrics *m, const json_t *datasets, const char *name,
                          const char *help, const char *member)
{
    const json_t *dataset;
    size_t i;
    openmetrics_family(m, OPENMETRICS_GAUGE, name, help);
    json_array_foreach (datasets, i, dataset) {
        const json_t *place = json_array_get(json_object_get(dataset, "places"), 0);
        if (i < METRICS_EACH_MAX)
            openmetrics_add(m, (guint64)json_integer_value(json_object_get(dataset, member)),
                            "dataset", json_string_value(json_object_get(dataset, "dataset")),
                            "path", json_string_value(json_object_get(place, "rootPath")), NULL);
    }
}

GBytes *metrics_text(const MetricsSource *source)
{
    OpenMetrics *m = openmetrics_new();
    tell_process(m, source);
    tell_disk(m, source);
    tell_disk_reads(m, source);
    if (source->store)
        tell_store(m, source);
    tell_volumes(m, source->volumes);
    tell_datasets(m, source->datasets, "hearth_dataset_cached_bytes", "Of it in the cache",
                  "bytesCached");
    tell_datasets(m, source->datasets, "hearth_dataset_size_bytes", "All of it", "bytesTotal");
    return openmetrics_end(m);
}
