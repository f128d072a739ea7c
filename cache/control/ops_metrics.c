/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/datasets.h"
#include "cache/control/ops.h"
#include "cache/report/metrics.h"
#include "proto/wire_keys.h"

static json_t *all_datasets(Datasets *all)
{
    json_t *list = json_array();
    g_autofree char *after = NULL;
    for (gboolean more = TRUE; more && json_array_size(list) < METRICS_EACH_MAX;) {
        json_auto_t *page = datasets_list(all, after, &more);
        json_array_extend(list, page);
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        g_free(after);
        after = g_strdup(json_string_value(json_object_get(last, WIRE_KEY_DATASET)));
        more = more && after;
    }
    return list;
}

GBytes *ops_metrics(Control *c)
{
    StoreStats stats = {0};
    if (c->store)
        store_stats(c->store, &stats);
    g_autoptr(GPtrArray) volumes = volumes_list(c->volumes, "", G_MAXUINT);
    json_auto_t *datasets = all_datasets(c->datasets);
    MetricsSource source = {
        .uptime_sec = (g_get_monotonic_time() - c->started_us) / G_TIME_SPAN_SECOND,
        .cache_dir = c->cache_dir,
        .volumes = volumes,
        .datasets = datasets,
        .uses = ops_uses(c, &stats),
    };
    if (c->store) {
        source.store = &stats;
        source.times = store_times(c->store);
    }
    return metrics_text(&source);
}
