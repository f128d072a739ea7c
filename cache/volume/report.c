/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of the volumes, without ever waiting for one that is being opened or closed; and the
 * upkeep thread, which holds volumes to their quotas and asks now and then how large they are.
 */
#include "cache/volume/internal.h"
#include <errno.h>
#include <string.h>

#define UPKEEP_SEC 5
#define MEASURE_EVERY 3 /* upkeeps */

static gint compare_ids(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The IDs for which `wanted` holds, copied, in order. */
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

static ReportVolume *report_locked(const Volume *v)
{
    ReportVolume *r = g_new0(ReportVolume, 1);
    r->volume = g_strdup(v->id);
    r->type = g_strdup(v->spec->type);
    r->cluster_id = g_strdup(v->spec->cluster_id);
    r->fs_name = g_strdup(v->spec->fs_name);
    r->root_path = g_strdup(v->spec->place);
    r->attached = volume_is_served(v) && !atomic_load(&v->ended);
    r->files_total = -1;
    r->cache = v->spec->cache;
    r->uncached = v->uncached;
    r->read_only = v->spec->read_only;
    r->bytes_total = v->bytes_total >= 0 ? v->bytes_total : v->bytes_counted;
    if (v->device)
        r->bytes_total = (int64_t)device_bytes(v->device);
    volume_stats(v, &r->session);
    r->bytes_cached = r->session.bytes_kept;
    return r;
}

/* The numbers of a dataset are those of its manifest. */
static void report_dataset(ReportVolume *r, Dataset *dataset)
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

ReportVolume *volumes_report(Volumes *vs, const char *id)
{
    pthread_mutex_lock(&vs->lock);
    const Volume *v = g_hash_table_lookup(vs->by_id, id);
    ReportVolume *r = v && volume_is_connected(v) ? report_locked(v) : NULL;
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
    char *name = v && v->device ? g_strdup(image_cache_name(v->image)) : NULL;
    pthread_mutex_unlock(&vs->lock);
    return name;
}

gboolean volumes_is_open(const Volume *v, const void *data)
{
    const char *after = data;
    return volume_is_connected(v) && (!after || strcmp(v->id, after) > 0);
}

GPtrArray *volumes_list(Volumes *vs, const char *after, guint max)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, after);
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)report_volume_free);
    for (guint i = 0; i < ids->len && list->len < max; i++) {
        ReportVolume *r = volumes_report(vs, ids->pdata[i]);
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
        g_autoptr(ReportVolume) v = volumes_report(vs, ids->pdata[i]);
        if (v && v->uncached)
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "volume", v->volume, "uncached", v->uncached));
    }
    return list;
}

/* ---- upkeep ---- */

/* CephFS keeps the size of a subtree in an attribute of its root; other origins have none. */
int64_t volumes_measure(Origin *origin)
{
    OriginNode *root;
    OriginAttr attr;
    char text[32];
    if (origin->ops->root(origin, &root, &attr) < 0)
        return -1;
    ssize_t n = origin->ops->getxattr(origin, root, "ceph.dir.rbytes", text, sizeof(text) - 1);
    origin->ops->put(origin, root);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    guint64 bytes;
    return g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &bytes, NULL) ? (int64_t)bytes : -1;
}

static void keep_quota(Volumes *vs, const Volume *v)
{
    uint64_t bytes, objects;
    uint64_t quota = volume_quota_bytes(v);
    if (!vs->store || !quota)
        return;
    g_autofree char *tag = volumes_tag(vs, v->id);
    store_tag_usage(vs->store, tag, &bytes, &objects);
    if (bytes > quota)
        store_evict_over_quota(vs->store, tag, bytes - quota);
}

/* Quotas first: measuring asks Ceph, and may wait for long. */
static void upkeep_once(Volumes *vs, gboolean measuring)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, NULL);
    for (int pass = 0; pass <= measuring; pass++) {
        for (guint i = 0; i < ids->len; i++) {
            Volume *v = volumes_pin(vs, ids->pdata[i], NULL);
            if (!v)
                continue;
            if (pass == 0) {
                keep_quota(vs, v);
            } else {
                int64_t total = volumes_measure(v->origin);
                pthread_mutex_lock(&vs->lock);
                v->bytes_total = total;
                pthread_mutex_unlock(&vs->lock);
            }
            volumes_unpin(vs, v);
        }
    }
}

void *volumes_run_upkeep(void *data)
{
    Volumes *vs = data;
    unsigned round = 0;
    pthread_mutex_lock(&vs->lock);
    while (!vs->stopping) {
        struct timespec next = deadline_after_ms(UPKEEP_SEC * 1000);
        while (!vs->stopping && pthread_cond_timedwait(&vs->changed, &vs->lock, &next) != ETIMEDOUT)
            ;
        if (vs->stopping)
            break;
        pthread_mutex_unlock(&vs->lock);
        volumes_end_refused(vs);
        upkeep_once(vs, ++round % MEASURE_EVERY == 0);
        pthread_mutex_lock(&vs->lock);
    }
    pthread_mutex_unlock(&vs->lock);
    return NULL;
}
