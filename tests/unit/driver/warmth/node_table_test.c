/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/node_table.h"
#include <string.h>
#include "driver/warmth/labels.h"
#include "driver/kube/time.h"
#include "tests/unit/harness.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"
#define NOW 1000000

static void report_at(NodeTable *t, const char *node, const char *datasets, gint64 beat_us,
                      gint64 now_ms)
{
    g_auto(NodeCacheReport) r = {.node = NULL};
    g_autofree char *heartbeat = kube_time_format(beat_us);
    json_t *list = json_loads(datasets, 0, NULL);
    ck_assert_ptr_nonnull(list);
    json_t *object =
        json_pack("{s:{s:s}, s:{s:[{s:s}]}, s:{s:s, s:{s:s, s:i, s:i, s:i}, s:o, s:[{s:s}]}}",
                  "metadata", "name", node, "spec", "warmups", "run", "u.1.0", "status",
                  "heartbeatTime", heartbeat, "cache", "disk", "ok", "bytes", 400, "maxBytes", 1000,
                  "freeBytes", 500, "datasets", list, "warmups", "run", "u.1.0");
    ck_assert(node_cache_read(object, &r));
    node_table_report(t, object, &r, now_ms);
    json_decref(object);
}

static void report(NodeTable *t, const char *node, const char *datasets, gint64 now_ms)
{
    static gint64 beat_us;
    beat_us = MAX(beat_us, g_get_real_time()) + G_USEC_PER_SEC;
    report_at(t, node, datasets, beat_us, now_ms);
}

/* A controller that has just taken over sees all heartbeats for the first time. */
START_TEST(a_clock_that_is_off_costs_no_labels)
{
    static const char datasets[] = "[{\"id\": \"" A "\", \"bytes\": 100, \"totalBytes\": 100}]";
    static const gint64 off_s[] = {-540, -120, 0, 120, 3600};
    json_t *labels = json_pack("{s:s}", "warm.csi.hearth.dev/" A, "100");
    for (gsize i = 0; i < G_N_ELEMENTS(off_s); i++) {
        NodeTable *t = node_table_new();
        WarmthOf of;
        node_table_node(t, "n1", labels, NOW);
        report_at(t, "n1", datasets, g_get_real_time() + off_s[i] * G_USEC_PER_SEC, NOW);
        for (gint64 now = NOW; now < NOW + WARM_STALE_MS; now += 1000) {
            g_autoptr(GPtrArray) due = node_table_due(t, 10, TRUE, now);
            ck_assert_msg(due->len == 0, "%d s", (int)off_s[i]);
        }
        ck_assert(node_table_of(t, A, "n1", &of, NOW));
        ck_assert_uint_eq(of.bytes, 100);
        node_table_free(t);
    }
    /* No clock is as wrong as that: it is dead. */
    NodeTable *t = node_table_new();
    node_table_node(t, "n1", labels, NOW);
    report_at(t, "n1", datasets, g_get_real_time() - (gint64)3600 * G_USEC_PER_SEC, NOW);
    g_autoptr(GPtrArray) due = node_table_due(t, 10, TRUE, NOW);
    ck_assert_uint_eq(due->len, 1);
    node_table_free(t);
    json_decref(labels);
}
END_TEST

START_TEST(a_dataset_is_known_as_long_as_a_node_tells_of_it)
{
    NodeTable *t = node_table_new();
    WarmthOf of;
    report(t, "n1", "[{\"id\": \"" A "\", \"bytes\": 50, \"totalBytes\": 100}]", NOW);
    report(t, "n2", "[{\"id\": \"" A "\", \"bytes\": 1, \"totalBytes\": 90}]", NOW);
    ck_assert(node_table_of(t, A, NULL, &of, NOW));
    ck_assert_uint_eq(of.total, 100);
    report(t, "n1", "[{\"id\": \"" B "\", \"bytes\": 5, \"totalBytes\": 10}]", NOW);
    ck_assert(node_table_of(t, A, NULL, &of, NOW));
    node_table_no_report(t, "n2", NOW);
    ck_assert(!node_table_of(t, A, NULL, &of, NOW));
    ck_assert(node_table_of(t, B, NULL, &of, NOW));
    /* What is told again counts once. */
    report(t, "n1", "[{\"id\": \"" B "\", \"bytes\": 5, \"totalBytes\": 10}]", NOW);
    report(t, "n1", "[]", NOW);
    ck_assert(!node_table_of(t, B, NULL, &of, NOW));
    node_table_free(t);
}
END_TEST

START_TEST(a_candidate_has_room_for_what_may_be_evicted)
{
    NodeTable *t = node_table_new();
    WarmthCache c;
    report(t, "n1", "[{\"id\": \"" A "\", \"bytes\": 150, \"totalBytes\": 200}]", NOW);
    node_table_cache(t, A, "n1", &c, NOW + 7);
    ck_assert_str_eq(c.disk, "ok");
    ck_assert_uint_eq(c.bytes, 150);
    ck_assert_uint_eq(c.room, 500 + 250); /* the disk's, and of other datasets */
    ck_assert_int_eq(c.age_ms, 7);
    node_table_cache(t, A, "n2", &c, NOW);
    ck_assert_int_lt(c.age_ms, 0);
    ck_assert_uint_eq(c.room, 0);
    node_table_free(t);
}
END_TEST

START_TEST(what_is_ordered_and_said_of_it_is_kept)
{
    NodeTable *t = node_table_new();
    WarmthRuns runs;
    ck_assert(!node_table_runs(t, "n1", &runs, NOW));
    report(t, "n1", "[]", NOW);
    ck_assert(node_table_runs(t, "n1", &runs, NOW));
    ck_assert_uint_eq(json_array_size(runs.orders), 1);
    ck_assert_uint_eq(json_array_size(runs.reports), 1);
    json_decref(runs.orders);
    json_decref(runs.reports);
    GPtrArray *ordered = node_table_ordered(t);
    ck_assert_uint_eq(ordered->len, 1);
    ck_assert_str_eq(ordered->pdata[0], "n1");
    g_ptr_array_unref(ordered);
    node_table_no_report(t, "n1", NOW);
    ordered = node_table_ordered(t);
    ck_assert_uint_eq(ordered->len, 0);
    g_ptr_array_unref(ordered);
    node_table_free(t);
}
END_TEST

START_TEST(the_report_of_a_node_that_is_gone_is_to_be_deleted)
{
    NodeTable *t = node_table_new();
    report(t, "n1", "[]", NOW);
    const gint64 later = NOW + WARM_STALE_MS + 60000;
    GPtrArray *due = node_table_due(t, 10, FALSE, later);
    ck_assert_uint_eq(due->len, 0); /* not all Nodes have been seen */
    g_ptr_array_unref(due);
    due = node_table_due(t, 10, TRUE, later);
    ck_assert_uint_eq(due->len, 1);
    ck_assert_ptr_null(((NodeWrite *)due->pdata[0])->patch);
    g_ptr_array_unref(due);
    due = node_table_due(t, 10, TRUE, later);
    ck_assert_uint_eq(due->len, 0); /* it is given time */
    g_ptr_array_unref(due);
    node_table_free(t);
}
END_TEST

/* What a controller sees that has just begun: either may come first. */
static void label_stays(gboolean cache_first)
{
    NodeTable *t = node_table_new();
    json_t *labels = json_pack("{s:s}", WARM_LABEL_PREFIX A, "50");
    const char *held = "[{\"id\": \"" A "\", \"bytes\": 46, \"totalBytes\": 100}]";
    if (cache_first)
        report(t, "n1", held, NOW);
    node_table_node(t, "n1", labels, NOW);
    if (!cache_first)
        report(t, "n1", held, NOW);
    GPtrArray *due = node_table_due(t, 10, TRUE, NOW + WARM_PATCH_MS);
    ck_assert_uint_eq(due->len, 0); /* 46 % is near enough to 50 */
    g_ptr_array_unref(due);
    report(t, "n1", "[{\"id\": \"" A "\", \"bytes\": 36, \"totalBytes\": 100}]", NOW);
    due = node_table_due(t, 10, TRUE, NOW + WARM_PATCH_MS);
    ck_assert_uint_eq(due->len, 1);
    g_ptr_array_unref(due);
    json_decref(labels);
    node_table_free(t);
}

START_TEST(a_label_outlives_the_controller)
{
    label_stays(FALSE);
    label_stays(TRUE);
}
END_TEST

HARNESS_MAIN("driver/warmth/node_table", a_clock_that_is_off_costs_no_labels,
             a_dataset_is_known_as_long_as_a_node_tells_of_it,
             a_candidate_has_room_for_what_may_be_evicted, what_is_ordered_and_said_of_it_is_kept,
             the_report_of_a_node_that_is_gone_is_to_be_deleted, a_label_outlives_the_controller)
