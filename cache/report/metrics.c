/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the metrics of hearthd from one MetricsSource: those of the process and its cache, of each
 * volume (a table), of each dataset. No state is kept here; control/ops_metrics.c collects it.
 */
#include "cache/report/metrics.h"
#include <stddef.h>
#include <sys/statvfs.h>
#include "cache/report/disk_reads.h"
#include "cache/volume/kinds.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

static void add_one(OpenMetrics *m, OpenMetricsKind kind, const char *name, const char *help,
                    guint64 value)
{
    openmetrics_family(m, kind, name, help);
    openmetrics_add(m, value, NULL);
}

/* ---- the process and its cache ---- */

static void add_process(OpenMetrics *m, const MetricsSource *s)
{
    openmetrics_family(m, OPENMETRICS_INFO, "hearthd_build", "Version of hearthd");
    openmetrics_add(m, 1, "version", HEARTH_VERSION, NULL);
    openmetrics_family(m, OPENMETRICS_GAUGE, "hearthd_uptime_seconds",
                       "Seconds since hearthd started");
    openmetrics_add_seconds(m, (double)s->uptime_sec, NULL);
    report_uses_metrics(m, &s->uses);
}

static void add_disk(OpenMetrics *m, const MetricsSource *s)
{
    static const char *const names[] = {WIRE_DISK_OK, WIRE_DISK_SUSPECT, WIRE_DISK_BYPASS};
    static const StoreDisk states[] = {STORE_DISK_OK, STORE_DISK_SUSPECT, STORE_DISK_BYPASS};
    const gboolean wanted = s->cache_dir && s->cache_dir[0];
    struct statvfs st;
    openmetrics_family(
        m, OPENMETRICS_GAUGE, "hearth_cache_disk_state",
        "1 for the current state of the cache disk; in state bypass all reads go to Ceph");
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        openmetrics_add(m, s->store && s->store->disk == states[i], "state", names[i], NULL);
    openmetrics_add(m, !s->store && wanted, "state", WIRE_DISK_OFF, NULL);
    /* A node that is to have no cache is no fault. */
    openmetrics_add(m, !s->store && !wanted, "state", "none", NULL);
    if (s->cache_dir && statvfs(s->cache_dir, &st) == 0)
        add_one(m, OPENMETRICS_GAUGE, "hearth_cache_disk_free_bytes",
                "Free bytes on the file system of the cache", (guint64)st.f_bavail * st.f_frsize);
}

static void add_disk_reads(OpenMetrics *m, const MetricsSource *s)
{
    guint64 all, own;
    if (!s->cache_dir || !disk_reads_of_device(s->cache_dir, &all) || !disk_reads_of_process(&own))
        return;
    add_one(m, OPENMETRICS_COUNTER, "hearth_cache_disk_read_bytes",
            "Bytes read from the disk of the cache, by hearthd, by native mounts and by other "
            "users of the disk",
            all);
    add_one(m, OPENMETRICS_COUNTER, "hearthd_disk_read_bytes",
            "Bytes that hearthd itself read from any disk", own);
}

static void add_evictions(OpenMetrics *m, const StoreStats *s)
{
    static const char *const reasons[] = {"room", "quota", "asked"};
    openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_cache_evicted_objects",
                       "Objects removed from the cache, by reason");
    for (gsize i = 0; i < STORE_EVICTS_REASONS; i++)
        openmetrics_add(m, s->evicted_objects_by[i], "reason", reasons[i], NULL);
    openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_cache_evicted_bytes",
                       "Bytes removed from the cache, by reason");
    for (gsize i = 0; i < STORE_EVICTS_REASONS; i++)
        openmetrics_add(m, s->evicted_bytes_by[i], "reason", reasons[i], NULL);
}

static void add_fills(OpenMetrics *m, const StoreStats *s, const StoreTimes *t)
{
    openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_cache_fills",
                       "Objects fetched into the cache, by result");
    openmetrics_add(m, s->fills_completed, "result", "completed", NULL);
    openmetrics_add(m, s->fills_failed, "result", "failed", NULL);
    add_one(m, OPENMETRICS_GAUGE, "hearth_cache_fills_active", "Objects being fetched",
            s->fills_active);
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "hearth_cache_fill_seconds",
                       "Time from the request for an object until it is in the cache");
    openmetrics_add_histogram(m, &t->fills, NULL);
    add_one(m, OPENMETRICS_COUNTER, "hearth_ceph_read_bytes", "Bytes read from Ceph into the cache",
            s->origin_bytes);
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "hearth_ceph_read_seconds",
                       "Duration of reads of Ceph for the cache");
    openmetrics_add_histogram(m, &t->reads, NULL);
    add_one(m, OPENMETRICS_COUNTER, "hearth_ceph_read_errors", "Failed reads of Ceph for the cache",
            atomic_load(&t->failed_reads));
}

static void add_store(OpenMetrics *m, const MetricsSource *source)
{
    const StoreStats *s = source->store;
    add_one(m, OPENMETRICS_GAUGE, "hearth_cache_used_bytes", "Bytes held in the cache", s->bytes);
    add_one(m, OPENMETRICS_GAUGE, "hearth_cache_limit_bytes",
            "Configured maximum size of the cache", s->max_bytes);
    add_one(m, OPENMETRICS_GAUGE, "hearth_cache_objects",
            "Objects held in the cache, each one an inode of its file system", s->objects);
    add_one(m, OPENMETRICS_GAUGE, "hearth_cache_objects_limit",
            "Configured maximum number of objects", s->max_inodes);
    add_evictions(m, s);
    add_fills(m, s, source->times);
    add_one(m, OPENMETRICS_COUNTER, "hearth_cache_disk_errors", "I/O errors of the cache disk",
            s->disk_errors);
    add_one(m, OPENMETRICS_COUNTER, "hearth_cache_bad_objects",
            "Objects dropped because their content had changed on the disk", s->bad_objects);
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
    {OPENMETRICS_COUNTER, "hearth_volume_opens", "Opened files", NULL, AT(served.opens)},
    {OPENMETRICS_COUNTER, "hearth_volume_hits", "Opens for reading that found the file cached",
     NULL, AT(served.hits)},
    {OPENMETRICS_COUNTER, "hearth_volume_misses",
     "Opens for reading that found the file not cached", NULL, AT(served.misses)},
    {OPENMETRICS_COUNTER, "hearth_volume_read_bytes",
     "Bytes read through hearthd, by source: cache, filling (being fetched into the cache) or ceph",
     "cache", AT(served.bytes_store)},
    {OPENMETRICS_COUNTER, "hearth_volume_read_bytes", NULL, "filling", AT(served.bytes_fill)},
    {OPENMETRICS_COUNTER, "hearth_volume_read_bytes", NULL, "ceph", AT(served.bytes_origin)},
    {OPENMETRICS_COUNTER, "hearth_volume_written_bytes", "Bytes written through hearthd", NULL,
     AT(served.bytes_written)},
    {OPENMETRICS_GAUGE, "hearth_volume_cached_bytes", "Bytes of the volume in the cache", NULL,
     AT(bytes_cached)},
};
#undef AT

/* What serves it: "block" images, "fill" files of a dataset that are not cached yet, "live" all
 * other volumes. */
static const char *layer_of(const VolumeReport *v)
{
    const OriginKind *kind = kind_find(v->type);
    if (kind && kind_is_image(kind))
        return "block";
    return g_str_has_prefix(v->volume, WIRE_DATASET_PREFIX) ? "fill" : "live";
}

static void add_volume(OpenMetrics *m, const VolumeFamily *f, const VolumeReport *v)
{
    const char *dataset = v->dataset ? v->dataset : "", *name = v->name ? v->name : v->volume;
    const guint64 value = *(const uint64_t *)(const void *)((const char *)v + f->at);
    if (f->source)
        openmetrics_add(m, value, "volume", v->volume, "name", name, "dataset", dataset, "layer",
                        layer_of(v), "source", f->source, NULL);
    else
        openmetrics_add(m, value, "volume", v->volume, "name", name, "dataset", dataset, "layer",
                        layer_of(v), NULL);
}

static void add_volumes(OpenMetrics *m, const GPtrArray *volumes)
{
    const guint each = MIN(volumes->len, METRICS_EACH_MAX);
    add_one(m, OPENMETRICS_GAUGE, "hearth_volumes", "Volumes open on this node", volumes->len);
    add_one(m, OPENMETRICS_GAUGE, "hearth_volumes_left_out",
            "Volumes omitted from the per-volume series", volumes->len - each);
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++) {
        if (families[i].help)
            openmetrics_family(m, families[i].kind, families[i].name, families[i].help);
        for (guint k = 0; k < each; k++)
            add_volume(m, &families[i], volumes->pdata[k]);
    }
}

/* ---- each dataset ---- */

static void add_datasets(OpenMetrics *m, const json_t *datasets, const char *name, const char *help,
                         const char *member)
{
    const json_t *dataset;
    size_t i;
    openmetrics_family(m, OPENMETRICS_GAUGE, name, help);
    json_array_foreach (datasets, i, dataset) {
        const json_t *location = json_array_get(json_object_get(dataset, WIRE_KEY_PLACES), 0);
        if (i < METRICS_EACH_MAX)
            openmetrics_add(m, (guint64)json_integer_value(json_object_get(dataset, member)),
                            "dataset",
                            json_string_value(json_object_get(dataset, WIRE_KEY_DATASET)), "name",
                            json_string_value(json_object_get(dataset, WIRE_KEY_NAME)), "label",
                            json_string_value(json_object_get(dataset, WIRE_KEY_LABEL)), "path",
                            json_string_value(json_object_get(location, WIRE_KEY_ROOT_PATH)), NULL);
    }
}

GBytes *metrics_text(const MetricsSource *source)
{
    OpenMetrics *m = openmetrics_new();
    add_process(m, source);
    add_disk(m, source);
    add_disk_reads(m, source);
    if (source->store)
        add_store(m, source);
    add_volumes(m, source->volumes);
    add_datasets(m, source->datasets, "hearth_dataset_cached_bytes",
                 "Bytes of the dataset in the cache", WIRE_KEY_BYTES_CACHED);
    add_datasets(m, source->datasets, "hearth_dataset_size_bytes",
                 "Bytes of all files of the dataset", WIRE_KEY_BYTES_TOTAL);
    return openmetrics_end(m);
}
