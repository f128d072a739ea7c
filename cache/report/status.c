/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/status.h"
#include <sys/statvfs.h>
#include <unistd.h>

/* JSON has no unsigned 64 bits; nothing counted here gets there. */
static json_int_t count(uint64_t n)
{
    return (json_int_t)MIN(n, (uint64_t)G_MAXINT64);
}

json_t *report_volume(const VolumeReport *v)
{
    const FuseStats *s = &v->served;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:I, s:s, s:I, s:b, s:s}",
        "volume", v->volume, "type", v->type, "clusterID", v->cluster_id, "fsName", v->fs_name,
        "rootPath", v->root_path, "attached", v->attached, "cache", v->cache, "readOnly",
        v->read_only, "bytesCached", count(v->bytes_cached), "bytesTotal",
        (json_int_t)v->bytes_total, "objects", count(v->objects), "opens", count(s->opens), "hits",
        count(s->hits), "misses", count(s->misses), "bytesStore", count(s->bytes_store),
        "bytesFill", count(s->bytes_fill), "bytesOrigin", count(s->bytes_origin), "bytesWritten",
        count(s->bytes_written), "nodes", count(s->nodes), "dataset", v->dataset ? v->dataset : "",
        "filesTotal", (json_int_t)v->files_total, "pinned", v->pinned, "uncached",
        v->uncached ? v->uncached : "");
}

static const char *disk_name(const StoreStats *store)
{
    if (!store)
        return "off";
    switch (store->disk) {
    case STORE_DISK_OK:
        return "ok";
    case STORE_DISK_SUSPECT:
        return "suspect";
    case STORE_DISK_BYPASS:
        break;
    }
    return "bypass";
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
        json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "volume", p->volume, "bytes",
                                              count(p->bytes), "objects", count(p->objects)));
    }
    return list;
}

json_t *report_status(const ReportStatus *status)
{
    static const StoreStats none;
    const StoreStats *s = status->store ? status->store : &none;
    json_t *daemon =
        json_pack("{s:s, s:i, s:I, s:b}", "version", HEARTH_VERSION, "pid", (int)getpid(),
                  "uptimeSec", (json_int_t)status->uptime_sec, "ioFlusher", status->io_flusher);
    json_t *cache = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "dir",
        status->cache_dir ? status->cache_dir : "", "disk", disk_name(status->store), "objects",
        count(s->objects), "bytes", count(s->bytes), "maxBytes", count(s->max_bytes), "maxInodes",
        count(s->max_inodes), "freeBytes", count(free_bytes(status->cache_dir)), "evictedObjects",
        count(s->evicted_objects), "evictedBytes", count(s->evicted_bytes), "originBytes",
        count(s->origin_bytes), "fillsActive", count(s->fills_active), "fillsCompleted",
        count(s->fills_completed), "fillsFailed", count(s->fills_failed), "diskErrors",
        count(s->disk_errors));
    json_object_set_new(cache, "verity",
                        json_string(s->verity          ? "on"
                                    : s->verity_wanted ? "unavailable"
                                                       : "off"));
    json_object_set_new(cache, "highPercent", json_integer(count(s->high_percent)));
    json_object_set_new(cache, "lowPercent", json_integer(count(s->low_percent)));
    json_object_set_new(cache, "badObjects", json_integer(count(s->bad_objects)));
    json_object_set_new(cache, "scrub",
                        json_pack("{s:I, s:I, s:I, s:I}", "bytesPerSec", count(s->scrub_rate),
                                  "objects", count(s->scrub_objects), "bytes",
                                  count(s->scrub_bytes), "endedMs", count(s->scrub_ended_ms)));
    json_object_set_new(cache, "pins", report_pins(status->pins));
    return json_pack("{s:o, s:o, s:I}", "daemon", daemon, "cache", cache, "volumes",
                     count(status->volumes));
}
