/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on volumes. They never wait for a volume that is being opened or closed. */
#include "cache/volume/internal.h"
#include "common/volume_name.h"
#include "proto/wire_keys.h"

void volume_report_free(VolumeReport *report)
{
    if (!report)
        return;
    g_free(report->volume);
    g_free(report->cluster_id);
    g_free(report->fs_name);
    g_free(report->root_path);
    g_free(report->name);
    g_free(report->claim);
    g_free(report->pv);
    g_free(report->dataset);
    g_free(report);
}

static char *name_of(const Volume *v)
{
    const VolumeSpec *spec = v->spec;
    const VolumeNames names = {.id = v->id,
                               .claim = spec->claim,
                               .pv = spec->pv,
                               .cluster_id = spec->cluster_id,
                               .fs_name = spec->fs_name,
                               .root_path = spec->root_path};
    return volume_name(&names);
}

static VolumeReport *report_locked(const Volume *v)
{
    VolumeReport *r = g_new0(VolumeReport, 1);
    r->volume = g_strdup(v->id);
    r->name = name_of(v);
    r->claim = g_strdup(v->spec->claim);
    r->pv = g_strdup(v->spec->pv);
    r->type = v->spec->kind->type;
    r->cluster_id = g_strdup(v->spec->cluster_id);
    r->fs_name = g_strdup(v->spec->fs_name);
    r->root_path = g_strdup(v->spec->location);
    r->mounted = volume_is_served(v);
    r->attached = volume_is_served(v) && !atomic_load(&v->ended);
    r->rests = v->content == CONTENT_TREE && v->origin && origin_rests(v->origin);
    r->files_total = -1;
    r->cache = v->spec->cache;
    r->uncached = v->uncached;
    r->read_only = v->spec->read_only;
    r->bytes_total = v->bytes_total >= 0 ? v->bytes_total : v->bytes_counted;
    if (v->server == SERVER_DEVICE)
        r->bytes_total = (int64_t)device_bytes(v->device);
    volume_stats(v, &r->served);
    r->bytes_cached = r->served.bytes_kept;
    return r;
}

/* The numbers of a dataset are those of its manifest. */
static void report_dataset(VolumeReport *r, Dataset *dataset)
{
    DatasetReport report;
    dataset_report(dataset, &report);
    if (!report.ready)
        return;
    r->dataset = g_strdup(report.id);
    r->files_total = (int64_t)report.files;
    r->bytes_total = (int64_t)MIN(report.bytes, (uint64_t)G_MAXINT64);
    r->bytes_cached = report.cached_bytes;
    r->objects = report.cached_files;
}

VolumeReport *volumes_report(Volumes *vs, const char *id)
{
    pthread_mutex_lock(&vs->lock);
    const Volume *v = g_hash_table_lookup(vs->by_id, id);
    VolumeReport *r = v && volume_is_connected(v) ? report_locked(v) : NULL;
    Dataset *dataset = r && v->dataset ? dataset_ref(v->dataset) : NULL;
    pthread_mutex_unlock(&vs->lock);
    if (r && vs->store) {
        g_autofree char *tag = volumes_tag(vs, id);
        uint64_t bytes;
        store_tag_usage(vs->store, tag, &bytes, &r->objects);
        r->bytes_cached += bytes;
        r->pinned = store_is_pinned(vs->store, tag);
    }
    if (dataset) {
        report_dataset(r, dataset);
        dataset_unref(dataset);
    }
    return r;
}

char *volumes_image_name(Volumes *vs, const char *id)
{
    pthread_mutex_lock(&vs->lock);
    const Volume *v = g_hash_table_lookup(vs->by_id, id);
    char *name = v && v->server == SERVER_DEVICE ? g_strdup(image_cache_name(v->image)) : NULL;
    pthread_mutex_unlock(&vs->lock);
    return name;
}

GPtrArray *volumes_list(Volumes *vs, const char *after, guint max)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, after);
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)volume_report_free);
    for (guint i = 0; i < ids->len && list->len < max; i++) {
        VolumeReport *r = volumes_report(vs, ids->pdata[i]);
        if (r)
            g_ptr_array_add(list, r);
    }
    return list;
}

guint volumes_count(Volumes *vs)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, NULL);
    return ids->len;
}

static gboolean is_uncached(const Volume *v, const void *data)
{
    (void)data;
    return volume_is_connected(v) && v->uncached;
}

json_t *volumes_uncached(Volumes *vs)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, is_uncached, NULL);
    json_t *list = json_array();
    for (guint i = 0; i < MIN(ids->len, VOLUMES_UNCACHED_MAX); i++) {
        g_autoptr(VolumeReport) v = volumes_report(vs, ids->pdata[i]);
        if (v && v->uncached)
            json_array_append_new(list, json_pack("{s:s, s:s}", WIRE_KEY_VOLUME, v->volume,
                                                  WIRE_KEY_UNCACHED, v->uncached));
    }
    return list;
}
