/* SPDX-License-Identifier: Apache-2.0 */
/* What others write into objects of Kubernetes: CacheWarmups, NodeCaches and their orders. One JSON
 * object is taken for each of them, and its status for what was, what nodes say, and what is
 * ordered. */
#include "tests/fuzz/fuzz.h"
#include "driver/warmth/node_cache.h"
#include "driver/warmup/order.h"
#include "driver/warmup/status.h"

#define NOW 1700000000

static void try_order(const json_t *object)
{
    g_auto(WarmupOrder) order = {.run = NULL};
    if (!warmup_order_read(object, &order))
        return;
    const WarmupDoing doing = {.state = "Running", .bytes = 1, .total = 2, .percent = -1};
    json_t *entry = warmup_doing_json(&order, &doing);
    g_assert(entry);
    json_decref(entry);
}

static void try_status(const Warmup *warmup, const json_t *status)
{
    WarmupReport report = {.age_ms = 5, .warmups = json_object_get(status, "warmups")};
    g_autoptr(GHashTable) reports = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(reports, (gpointer) "n1", &report);
    json_t *next = warmup_status_progress(&(WarmupObject){warmup, status}, reports, NOW);
    const WarmupObject after = {warmup, next};
    json_t *idle = warmup_status_idle(&after, WARMUP_SUSPENDED, "", NOW);
    json_t *order = warmup_order_json(warmup, next);
    g_assert(next && idle);
    warmup_status_is_worth(status, next, -1);
    g_autoptr(GPtrArray) parts = warmup_status_parts(&after);
    try_order(order);
    json_decref(order);
    json_decref(idle);
    json_decref(next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = json_loadb((const char *)data, size, 0, NULL);
    g_auto(Warmup) warmup = {.uid = NULL};
    g_auto(NodeCacheReport) report = {.node = NULL};
    WarmupDone done;
    WarmupRun run;
    if (!object)
        return 0;
    warmup_read(object, &warmup, NULL);
    warmup_done_read(&warmup, json_object_get(object, "status"), &done);
    warmup_due(&warmup, &done, NOW, &run);
    try_status(&warmup, json_object_get(object, "status"));
    try_order(json_object_get(object, "spec"));
    node_cache_read(object, &report);
    node_cache_is_news(json_object_get(object, "status"), json_object_get(object, "spec"));
    json_decref(object);
    return 0;
}
