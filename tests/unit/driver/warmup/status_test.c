/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/status.h"
#include <string.h>
#include "tests/unit/harness.h"

#define NOW 1704067200 /* 2024-01-01T00:00:00Z */
#define ROOT_PATH "/volumes/g/v/.snap/s/u"
#define RUN "u.3.0"

/* A CacheWarmup and its status, as it would be with each write taken; reports stay until they are
 * changed. */
typedef struct World {
    Warmup warmup;
    json_t *status;
    GHashTable *reports; /* name -> WarmupReport */
    gint64 now_s;
} World;

static void report_free(gpointer report)
{
    json_decref((json_t *)((WarmupReport *)report)->warmups);
    g_free(report);
}

static void take(World *w, json_t *status)
{
    ck_assert_ptr_nonnull(status);
    json_decref(w->status);
    w->status = status;
}

static DatasetOrigin origin_of_test(void)
{
    DatasetOrigin origin;
    json_t *context =
        json_pack("{s:s, s:s, s:s}", "clusterID", "c", "fsName", "f", "rootPath", ROOT_PATH);
    ck_assert(dataset_origin_of(context, NULL, &origin));
    json_decref(context);
    return origin;
}

#define OBJECT(w, status) (&(WarmupObject){&(w)->warmup, status})

/* With a run on `nodes`, names with "," between. */
static World *world_new(const char *nodes)
{
    World *w = g_new0(World, 1);
    const WarmupRun run = {.generation = 3};
    g_auto(GStrv) names = g_strsplit(nodes, ",", -1);
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (char **name = names; *name; name++)
        g_ptr_array_add(list, *name);
    w->warmup.uid = g_strdup("u");
    w->warmup.generation = 3;
    w->now_s = NOW;
    w->reports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, report_free);
    g_auto(DatasetOrigin) origin = origin_of_test();
    take(w, warmup_status_begin(OBJECT(w, NULL), &run, &origin, list, "", w->now_s));
    return w;
}

static void world_free(World *w)
{
    g_hash_table_unref(w->reports);
    json_decref(w->status);
    warmup_clear(&w->warmup);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static WarmupReport *report(World *w, const char *node, gint64 age_ms)
{
    WarmupReport *r = g_new0(WarmupReport, 1);
    r->age_ms = age_ms;
    g_hash_table_replace(w->reports, g_strdup(node), r);
    return r;
}

static void says_of(World *w, const char *node, const char *run, const char *state, int percent)
{
    report(w, node, 1000)->warmups =
        json_pack("[{s:s, s:s}, {s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:s}]", "run", "another.1.0",
                  "state", "Failed", "run", run, "state", state, "percent", percent, "bytes",
                  percent * 10, "totalBytes", 1000, "bytesPerSecond", 3 << 19, "etaSeconds",
                  200 - percent, "message", g_str_equal(state, "Failed") ? "no such path" : "");
}

static void says(World *w, const char *node, const char *state, int percent)
{
    says_of(w, node, RUN, state, percent);
}

static void look(World *w)
{
    take(w, warmup_status_progress(OBJECT(w, w->status), w->reports, w->now_s));
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "-";
}

static int number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return value ? (int)json_integer_value(value) : -1;
}

static const json_t *node(const World *w, size_t i)
{
    return json_array_get(json_object_get(w->status, "nodes"), i);
}

static const json_t *condition(const World *w, const char *type)
{
    const json_t *c;
    size_t i;
    json_array_foreach (json_object_get(w->status, "conditions"), i, c) {
        if (g_str_equal(text(c, "type"), type))
            return c;
    }
    ck_abort_msg("no condition %s", type);
    return NULL;
}

static void is(const World *w, const char *phase, const char *complete, const char *failed)
{
    ck_assert_str_eq(text(w->status, "phase"), phase);
    ck_assert_str_eq(text(condition(w, "Complete"), "status"), complete);
    ck_assert_str_eq(text(condition(w, "Failed"), "status"), failed);
}

START_TEST(a_run_begins_with_its_nodes_pending)
{
    g_autoptr(World) w = world_new("n1,n2");
    g_autofree char *key = dataset_key("c", "f", ROOT_PATH);
    is(w, "Warming", "False", "False");
    ck_assert_str_eq(text(w->status, "run"), RUN);
    ck_assert_str_eq(text(w->status, "dataset"), key);
    ck_assert_str_eq(text(json_object_get(w->status, "origin"), "rootPath"), ROOT_PATH);
    ck_assert_str_eq(text(w->status, "warmNodes"), "0/2");
    ck_assert_int_eq(number(w->status, "percent"), 0);
    ck_assert_str_eq(text(w->status, "rate"), "");
    ck_assert_int_eq(number(w->status, "observedGeneration"), 3);
    ck_assert_str_eq(text(w->status, "lastScheduleTime"), "-");
    ck_assert_str_eq(text(node(w, 1), "name"), "n2");
    ck_assert_str_eq(text(node(w, 1), "state"), "Pending");
    ck_assert_str_eq(text(node(w, 1), "since"), "2024-01-01T00:00:00Z");
}
END_TEST

START_TEST(scheduled_run_tells_its_time_and_who_is_missing)
{
    g_autoptr(World) w = world_new("n1");
    const WarmupRun run = {.generation = 3, .time_s = NOW + 60};
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_ptr_array_add(list, "n1");
    g_auto(DatasetOrigin) origin = origin_of_test();
    take(w, warmup_status_begin(OBJECT(w, w->status), &run, &origin, list, "1 of 2", NOW + 70));
    ck_assert_str_eq(text(w->status, "lastScheduleTime"), "2024-01-01T00:01:00Z");
    ck_assert_str_eq(text(condition(w, "Complete"), "message"), "1 of 2");
    says_of(w, "n1", text(w->status, "run"), "Running", 5);
    look(w);
    ck_assert_str_eq(text(condition(w, "Complete"), "message"), "1 of 2");
    ck_assert_str_eq(text(w->status, "lastScheduleTime"), "2024-01-01T00:01:00Z");
    ck_assert_int_eq(number(w->status, "percent"), 5);
}
END_TEST

START_TEST(what_nodes_say_is_told_and_summed_up)
{
    g_autoptr(World) w = world_new("n1,n2,n3");
    says(w, "n1", "Running", 50);
    says(w, "n2", "Running", 90);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Running");
    ck_assert_int_eq(number(node(w, 0), "percent"), 50);
    ck_assert_int_eq(number(node(w, 0), "bytes"), 500);
    ck_assert_int_eq(number(node(w, 0), "totalBytes"), 1000);
    ck_assert_int_eq(number(node(w, 0), "etaSeconds"), 150);
    ck_assert_str_eq(text(node(w, 2), "state"), "Pending");
    ck_assert_int_eq(number(w->status, "percent"), 46);
    ck_assert_str_eq(text(w->status, "rate"), "3.0Mi/s");
    ck_assert_str_eq(text(w->status, "eta"), "3m");
    ck_assert_str_eq(text(w->status, "warmNodes"), "0/3");
    /* One that is done has no rate. */
    says(w, "n1", "Succeeded", 99);
    look(w);
    ck_assert_int_eq(number(node(w, 0), "percent"), 100);
    ck_assert_int_eq(number(node(w, 0), "bytesPerSecond"), -1);
    ck_assert_str_eq(text(w->status, "rate"), "1.5Mi/s");
    ck_assert_str_eq(text(w->status, "warmNodes"), "1/3");
}
END_TEST

START_TEST(run_is_warm_when_all_nodes_succeeded)
{
    g_autoptr(World) w = world_new("n1,n2");
    says(w, "n1", "Succeeded", 100);
    says(w, "n2", "Running", 100);
    w->now_s = NOW + 10;
    look(w);
    is(w, "Warming", "False", "False");
    says(w, "n2", "Succeeded", 100);
    w->now_s = NOW + 20;
    look(w);
    is(w, "Warm", "True", "False");
    ck_assert_int_eq(number(w->status, "percent"), 100);
    ck_assert_str_eq(text(condition(w, "Complete"), "lastTransitionTime"), "2024-01-01T00:00:20Z");
    ck_assert_str_eq(text(condition(w, "Failed"), "lastTransitionTime"), "2024-01-01T00:00:00Z");
    /* What comes later changes nothing. */
    says(w, "n2", "Failed", 3);
    w->now_s = NOW + 5000;
    json_t *after = warmup_status_progress(OBJECT(w, w->status), w->reports, w->now_s);
    ck_assert(json_equal(after, w->status));
    json_decref(after);
}
END_TEST

START_TEST(run_has_failed_when_all_have_ended_and_not_all_well)
{
    g_autoptr(World) w = world_new("n1,n2,n3");
    says(w, "n1", "Failed", 20);
    says(w, "n2", "Running", 50);
    look(w);
    is(w, "Warming", "False", "False");
    ck_assert_str_eq(text(node(w, 0), "message"), "no such path");
    says(w, "n2", "Succeeded", 100);
    says(w, "n3", "Cancelled", 0);
    look(w);
    is(w, "Failed", "False", "True");
    ck_assert_str_eq(text(condition(w, "Failed"), "reason"), "NodesFailed");
    ck_assert_str_eq(text(condition(w, "Failed"), "message"),
                     "2 of 3 nodes; n1 Failed: no such path; n3 Cancelled");
}
END_TEST

START_TEST(state_that_is_final_stays)
{
    g_autoptr(World) w = world_new("n1,n2");
    says(w, "n1", "Succeeded", 100);
    look(w);
    says(w, "n1", "Running", 10);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Succeeded");
    report(w, "n1", 1000000);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Succeeded");
}
END_TEST

START_TEST(reports_of_other_runs_do_not_count)
{
    g_autoptr(World) w = world_new("n1");
    says_of(w, "n1", "u.2.0", "Succeeded", 100);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Pending");
    ck_assert_int_eq(number(w->status, "percent"), 0);
}
END_TEST

START_TEST(silent_node_is_lost_and_may_come_back)
{
    g_autoptr(World) w = world_new("n1,n2");
    says(w, "n1", "Running", 40);
    says(w, "n2", "Succeeded", 100);
    look(w);
    ((WarmupReport *)g_hash_table_lookup(w->reports, "n1"))->age_ms = 90001;
    w->now_s = NOW + 100;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Lost");
    ck_assert_int_eq(number(node(w, 0), "percent"), 40);
    ck_assert_int_eq(number(node(w, 0), "bytesPerSecond"), -1);
    ck_assert_str_eq(text(node(w, 0), "since"), "2024-01-01T00:01:40Z");
    w->now_s = NOW + 100 + WARMUP_PATIENCE_S;
    look(w);
    is(w, "Warming", "False", "False");
    says(w, "n1", "Running", 41);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Running");
    /* It is gone, with its NodeCache. */
    g_hash_table_remove(w->reports, "n1");
    w->now_s += 91;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Lost");
    w->now_s += 5;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Lost");
    w->now_s += WARMUP_PATIENCE_S;
    look(w);
    is(w, "Failed", "False", "True");
    ck_assert_str_eq(text(condition(w, "Failed"), "message"),
                     "1 of 2 nodes; n1 Lost: it has not reported for 90 s");
}
END_TEST

START_TEST(node_that_succeeded_before_it_fell_silent_has_succeeded)
{
    g_autoptr(World) w = world_new("n1");
    says(w, "n1", "Succeeded", 100);
    ((WarmupReport *)g_hash_table_lookup(w->reports, "n1"))->age_ms = 500000;
    look(w);
    is(w, "Warm", "True", "False");
}
END_TEST

START_TEST(node_that_never_takes_it_up_fails_after_ten_minutes)
{
    g_autoptr(World) w = world_new("n1");
    report(w, "n1", 1000);
    w->now_s = NOW + WARMUP_PATIENCE_S;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Pending");
    /* One that has it in a queue may take its time. */
    says(w, "n1", "Pending", 0);
    w->now_s = NOW + 10 * WARMUP_PATIENCE_S;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Pending");
    report(w, "n1", 1000);
    look(w);
    is(w, "Failed", "False", "True");
}
END_TEST

START_TEST(plugin_that_restarted_has_time_to_take_it_up_again)
{
    g_autoptr(World) w = world_new("n1");
    says(w, "n1", "Running", 40);
    look(w);
    report(w, "n1", 1000);
    w->now_s = NOW + 10 * WARMUP_PATIENCE_S;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Pending");
    ck_assert_int_eq(number(node(w, 0), "percent"), 40);
    w->now_s += WARMUP_PATIENCE_S;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Pending");
    says(w, "n1", "Running", 42);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Running");
}
END_TEST

START_TEST(suspending_cancels_what_has_not_ended)
{
    g_autoptr(World) w = world_new("n1,n2");
    says(w, "n1", "Succeeded", 100);
    says(w, "n2", "Running", 50);
    look(w);
    take(w, warmup_status_idle(OBJECT(w, w->status), WARMUP_SUSPENDED, "", NOW + 9));
    is(w, "Suspended", "False", "False");
    ck_assert_str_eq(text(node(w, 0), "state"), "Succeeded");
    ck_assert_str_eq(text(node(w, 1), "state"), "Cancelled");
    ck_assert_str_eq(text(w->status, "run"), RUN);
    ck_assert_str_eq(text(w->status, "rate"), "");
}
END_TEST

START_TEST(refused_spec_and_waiting_are_told)
{
    g_autoptr(World) w = world_new("n1");
    take(w, warmup_status_idle(OBJECT(w, NULL), WARMUP_REFUSED, "spec.rate is none", NOW));
    is(w, "Failed", "False", "True");
    ck_assert_str_eq(text(condition(w, "Failed"), "message"), "spec.rate is none");
    ck_assert_int_eq(number(w->status, "observedGeneration"), 3);
    ck_assert_str_eq(text(w->status, "warmNodes"), "0/0");
    take(w, warmup_status_idle(OBJECT(w, w->status), WARMUP_WAITING, "no node can", NOW + 5));
    is(w, "Pending", "False", "False");
    ck_assert_str_eq(text(condition(w, "Complete"), "message"), "no node can");
    ck_assert_str_eq(text(condition(w, "Failed"), "message"), "");
}
END_TEST

/* Whether that, `since_ms` after the last write, is worth another. */
static gboolean worth(World *w, gint64 since_ms)
{
    json_t *after = warmup_status_progress(OBJECT(w, w->status), w->reports, w->now_s);
    const gboolean is_worth = warmup_status_is_worth(w->status, after, since_ms);
    json_decref(after);
    return is_worth;
}

START_TEST(only_what_is_worth_it_is_written)
{
    g_autoptr(World) w = world_new("n1,n2");
    says(w, "n1", "Running", 40);
    ck_assert(worth(w, -1));
    ck_assert(worth(w, WARMUP_WRITE_MS));
    ck_assert(!worth(w, WARMUP_WRITE_MS - 1));
    look(w);
    w->now_s += 20;
    ck_assert(!worth(w, WARMUP_WRITE_MS));
    /* Bytes, rate and ETA alone. */
    json_t *entry = json_array_get(
        (json_t *)((WarmupReport *)g_hash_table_lookup(w->reports, "n1"))->warmups, 1);
    json_object_set_new(entry, "bytes", json_integer(405));
    json_object_set_new(entry, "bytesPerSecond", json_integer(1 << 30));
    json_object_set_new(entry, "etaSeconds", json_integer(7));
    ck_assert(!worth(w, WARMUP_REFRESH_MS - 1));
    ck_assert(worth(w, WARMUP_REFRESH_MS));
    ck_assert(worth(w, -1));
    json_object_set_new(entry, "percent", json_integer(41));
    ck_assert(worth(w, WARMUP_WRITE_MS));
    json_object_set_new(entry, "percent", json_integer(40));
    json_object_set_new(entry, "message", json_string("slow"));
    ck_assert(worth(w, WARMUP_WRITE_MS));
    json_object_set_new(entry, "message", json_string(""));
    ck_assert(!worth(w, WARMUP_WRITE_MS));
    json_object_set_new(entry, "state", json_string("Succeeded"));
    ck_assert(worth(w, WARMUP_WRITE_MS));
    ck_assert(!worth(w, 0));
    ck_assert(warmup_status_is_worth(NULL, w->status, -1));
}
END_TEST

START_TEST(status_of_many_nodes_is_written_less_often)
{
    g_autoptr(GString) names = g_string_new("n0");
    for (int i = 1; i < 1000; i++)
        g_string_append_printf(names, ",n%d", i);
    g_autoptr(World) w = world_new(names->str);
    says(w, "n7", "Running", 40);
    ck_assert(!worth(w, 9999));
    ck_assert(worth(w, 10000));
    ck_assert(worth(w, -1));
}
END_TEST

START_TEST(condition_moves_only_when_its_status_does)
{
    g_autoptr(World) w = world_new("n1");
    w->now_s = NOW + 60;
    says(w, "n1", "Failed", 1);
    look(w);
    take(w, warmup_status_idle(OBJECT(w, w->status), WARMUP_REFUSED, "bad", NOW + 120));
    ck_assert_str_eq(text(condition(w, "Failed"), "lastTransitionTime"), "2024-01-01T00:01:00Z");
    ck_assert_str_eq(text(condition(w, "Complete"), "lastTransitionTime"), "2024-01-01T00:00:00Z");
    take(w, warmup_status_idle(OBJECT(w, w->status), WARMUP_WAITING, "", NOW + 180));
    ck_assert_str_eq(text(condition(w, "Failed"), "lastTransitionTime"), "2024-01-01T00:03:00Z");
}
END_TEST

static const char *order(const World *w, const char *name)
{
    g_autoptr(GPtrArray) parts = warmup_status_parts(OBJECT(w, w->status));
    const gboolean has = g_ptr_array_find_with_equal_func(parts, (gpointer)name, g_str_equal, NULL);
    return has ? text(w->status, "run") : "-";
}

START_TEST(node_has_a_part_while_the_run_is_under_way)
{
    g_autoptr(World) w = world_new("n1,n2");
    ck_assert_str_eq(order(w, "n1"), RUN);
    ck_assert_str_eq(order(w, "n3"), "-");
    says(w, "n1", "Succeeded", 100);
    look(w);
    ck_assert_str_eq(order(w, "n1"), "-");
    ck_assert_str_eq(order(w, "n2"), RUN);
    /* Before the controller says so. */
    w->warmup.suspend = TRUE;
    ck_assert_str_eq(order(w, "n2"), "-");
    w->warmup.suspend = FALSE;
    w->warmup.going = TRUE;
    ck_assert_str_eq(order(w, "n2"), "-");
    w->warmup.going = FALSE;
    w->warmup.generation = 4;
    ck_assert_str_eq(order(w, "n2"), "-");
    w->warmup.generation = 3;
    take(w, warmup_status_idle(OBJECT(w, w->status), WARMUP_SUSPENDED, "", NOW));
    ck_assert_str_eq(order(w, "n2"), "-");
}
END_TEST

START_TEST(rate_and_eta_are_short)
{
    static const struct {
        gint64 rate, eta_s;
        const char *rate_text, *eta;
    } cases[] = {{0, 0, "", ""},
                 {900, 59, "900/s", "59s"},
                 {1536, 60, "1.5Ki/s", "1m"},
                 {250LL << 20, 61, "250Mi/s", "2m"},
                 {1288490189, 3600, "1.2Gi/s", "1h0m"},
                 {2LL << 40, 7860, "2.0Ti/s", "2h11m"},
                 {5LL << 50, 270000, "5.0Pi/s", "3d3h"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) w = world_new("n1");
        report(w, "n1", 0)->warmups =
            json_pack("[{s:s, s:s, s:I, s:I}]", "run", RUN, "state", "Running", "bytesPerSecond",
                      (json_int_t)cases[i].rate, "etaSeconds", (json_int_t)cases[i].eta_s);
        look(w);
        ck_assert_str_eq(text(w->status, "rate"), cases[i].rate_text);
        ck_assert_str_eq(text(w->status, "eta"), cases[i].eta);
    }
}
END_TEST

START_TEST(nonsense_of_a_node_is_bounded)
{
    g_autoptr(World) w = world_new("n1");
    g_autofree char *long_message = g_strnfill(5000, 'x');
    report(w, "n1", 0)->warmups =
        json_pack("[i, {s:s, s:s, s:i, s:i, s:i, s:s}]", 7, "run", RUN, "state", "Cosy", "percent",
                  900, "bytes", -5, "etaSeconds", -1, "message", long_message);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Running");
    ck_assert_int_eq(number(node(w, 0), "percent"), 100);
    ck_assert_int_eq(number(node(w, 0), "bytes"), -1);
    ck_assert_uint_eq(strlen(text(node(w, 0), "message")), 200);
    json_object_set_new(
        json_array_get((json_t *)((WarmupReport *)g_hash_table_lookup(w->reports, "n1"))->warmups,
                       1),
        "etaSeconds", json_integer(G_MAXINT64));
    look(w);
    ck_assert_str_eq(text(w->status, "eta"), "1157d9h");
    /* Nor has one of our own status that someone emptied an end that is good. */
    json_object_set_new(w->status, "nodes", json_array());
    look(w);
    is(w, "Failed", "False", "True");
}
END_TEST

START_TEST(a_part_that_takes_longer_than_a_day_gives_its_place_back)
{
    g_autoptr(World) w = world_new("n1,n2");
    says(w, "n1", "Running", 1);
    says(w, "n2", "Running", 99);
    look(w);
    w->now_s = NOW + WARMUP_DEADLINE_S;
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Running");
    w->now_s++;
    says(w, "n2", "Succeeded", 100);
    look(w);
    ck_assert_str_eq(text(node(w, 0), "state"), "Failed");
    ck_assert_str_eq(text(node(w, 0), "message"), "it was not done within 24 hours");
    ck_assert_str_eq(text(node(w, 1), "state"), "Succeeded");
    ck_assert_str_eq(text(w->status, "phase"), "Failed");
}
END_TEST

HARNESS_MAIN("driver/warmup/status", a_part_that_takes_longer_than_a_day_gives_its_place_back,
             a_run_begins_with_its_nodes_pending, scheduled_run_tells_its_time_and_who_is_missing,
             what_nodes_say_is_told_and_summed_up, run_is_warm_when_all_nodes_succeeded,
             run_has_failed_when_all_have_ended_and_not_all_well, state_that_is_final_stays,
             reports_of_other_runs_do_not_count, silent_node_is_lost_and_may_come_back,
             node_that_succeeded_before_it_fell_silent_has_succeeded,
             node_that_never_takes_it_up_fails_after_ten_minutes,
             plugin_that_restarted_has_time_to_take_it_up_again,
             suspending_cancels_what_has_not_ended, refused_spec_and_waiting_are_told,
             only_what_is_worth_it_is_written, status_of_many_nodes_is_written_less_often,
             condition_moves_only_when_its_status_does, node_has_a_part_while_the_run_is_under_way,
             rate_and_eta_are_short, nonsense_of_a_node_is_bounded)
