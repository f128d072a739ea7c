/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/warmup.h"
#include <string.h>
#include "common/error.h"
#include "tests/unit/harness.h"

#define UID "11111111-2222-3333-4444-555555555555"
#define CREATED 1704067200 /* 2024-01-01T00:00:00Z, a Monday */
#define HOUR 3600

static json_t *object_of(const char *spec)
{
    json_error_t error;
    json_t *parsed = json_loads(spec, 0, &error);
    ck_assert_msg(parsed != NULL, "%s: %s", spec, error.text);
    return json_pack("{s:{s:s, s:s, s:s, s:i, s:s}, s:o}", "metadata", "namespace", "team", "name",
                     "w", "uid", UID, "generation", 3, "creationTimestamp", "2024-01-01T00:00:00Z",
                     "spec", parsed);
}

static void read_spec(const char *spec, Warmup *warmup)
{
    json_t *object = object_of(spec);
    g_autoptr(GError) error = NULL;
    ck_assert_msg(warmup_read(object, warmup, &error), "%s: %s", spec, error ? error->message : "");
    json_decref(object);
}

START_TEST(what_is_asked_for_is_read)
{
    g_auto(Warmup) w = {0};
    read_spec("{\"persistentVolumeClaim\": \"data\", \"paths\": [\"train/0\", \"./labels//a/\"],"
              " \"rate\": \"200Mi\", \"nodes\": 2, \"schedule\": \"30 2 * * mon-fri\"}",
              &w);
    ck_assert_str_eq(w.namespace, "team");
    ck_assert_str_eq(w.name, "w");
    ck_assert_str_eq(w.uid, UID);
    ck_assert_int_eq(w.generation, 3);
    ck_assert_int_eq(w.created_s, CREATED);
    ck_assert_str_eq(w.claim, "data");
    ck_assert_str_eq(w.dataset, "");
    ck_assert_uint_eq(w.paths->len, 2);
    ck_assert_str_eq(w.paths->pdata[0], "train/0");
    ck_assert_str_eq(w.paths->pdata[1], "labels/a");
    ck_assert_uint_eq(w.rate, 200 << 20);
    ck_assert_uint_eq(w.nodes, 2);
    ck_assert(w.scheduled && !w.suspend && !w.going);
}
END_TEST

START_TEST(what_is_left_out_means_all_of_it_once_on_all_nodes)
{
    g_auto(Warmup) w = {0};
    read_spec("{\"dataset\": \"0123456789abcdef\", \"schedule\": \"\", \"suspend\": true}", &w);
    ck_assert_ptr_null(w.claim);
    ck_assert_str_eq(w.dataset, "0123456789abcdef");
    ck_assert_uint_eq(w.paths->len, 0);
    ck_assert_uint_eq(w.rate, 0);
    ck_assert_uint_eq(w.nodes, 0);
    ck_assert_uint_eq(g_hash_table_size(w.selector), 0);
    ck_assert(!w.scheduled && w.suspend);
}
END_TEST

START_TEST(the_root_among_paths_is_all_of_it)
{
    g_auto(Warmup) w = {0};
    read_spec("{\"dataset\": \"0123456789abcdef\", \"paths\": [\"a\", \"./\"],"
              " \"nodeSelector\": {\"gpu\": \"h100\"}}",
              &w);
    ck_assert_uint_eq(w.paths->len, 0);
    ck_assert_str_eq(g_hash_table_lookup(w.selector, "gpu"), "h100");
}
END_TEST

START_TEST(a_dataset_has_the_name_that_people_use)
{
    g_auto(Warmup) w = {0}, in_group = {0};
    read_spec("{\"dataset\": \"imagenet@2026-11\"}", &w);
    ck_assert_str_eq(w.dataset, "imagenet@2026-11");
    read_spec("{\"dataset\": \"team/laion@v3\"}", &in_group);
    ck_assert_str_eq(in_group.dataset, "team/laion@v3");
}
END_TEST

START_TEST(what_is_refused_names_field_value_and_fix)
{
#define OF "\"dataset\": \"0123456789abcdef\", "
    static const struct {
        const char *spec, *field, *value, *fix;
    } cases[] = {
        {"{}", "what is to be warm", "", "spec.dataset"},
        {"{" OF "\"persistentVolumeClaim\": \"data\"}", "spec.dataset", "\"data\"", "leave one"},
        {"{\"dataset\": \"train\"}", "spec.dataset", "\"train\"", "16 hex digits"},
        {"{\"dataset\": \"0123456789ABCDEF\"}", "spec.dataset", "ABCDEF", "16 hex digits"},
        {"{\"dataset\": \"imagenet@\"}", "spec.dataset", "\"imagenet@\"", "imagenet@2026-11"},
        {"{\"dataset\": 7}", "spec.dataset", "", "quotes"},
        {"{" OF "\"rate\": \"fast\"}", "spec.rate", "\"fast\"", "200Mi"},
        {"{" OF "\"rate\": \"0\"}", "spec.rate", "\"0\"", "above 0"},
        {"{" OF "\"rate\": \"1\"}", "spec.rate", "\"1\"", "256Ki"},
        {"{" OF "\"rate\": \"1.5Gi\"}", "spec.rate", "\"1.5Gi\"", "whole bytes"},
        {"{" OF "\"rate\": 100}", "spec.rate", "", "quotes"},
        {"{" OF "\"paths\": [\"ok\", \"/data\"]}", "spec.paths[1]", "\"/data\"", "write \"data\""},
        {"{" OF "\"paths\": [\"a/../../b\"]}", "spec.paths[0]", "\"a/../../b\"", "root"},
        {"{" OF "\"paths\": [\"..\"]}", "spec.paths[0]", "\"..\"", "root"},
        {"{" OF "\"paths\": [\"\"]}", "spec.paths[0]", "", "name a file"},
        {"{" OF "\"paths\": \"a\"}", "spec.paths", "", "list"},
        {"{" OF "\"nodes\": 0}", "spec.nodes", "0", "1 to"},
        {"{" OF "\"nodes\": -1}", "spec.nodes", "-1", "1 to"},
        {"{" OF "\"nodes\": \"two\"}", "spec.nodes", "two", "1 to"},
        {"{" OF "\"nodes\": 1, \"nodeSelector\": {\"a\": \"b\"}}", "spec.nodes 1", "", "leave one"},
        {"{" OF "\"nodeSelector\": {\"a\": true}}", "spec.nodeSelector", "\"a\"", "quotes"},
        {"{" OF "\"schedule\": \"0 25 * * *\"}", "spec.schedule: hour", "\"25\"", "0 to 23"},
        {"{" OF "\"schedule\": \"@often\"}", "spec.schedule", "@often", "@daily"},
    };
#undef OF
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Warmup) w = {0};
        g_autoptr(GError) error = NULL;
        json_t *object = object_of(cases[i].spec);
        ck_assert_msg(!warmup_read(object, &w, &error), "%s", cases[i].spec);
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_msg(strstr(error->message, cases[i].field) &&
                          strstr(error->message, cases[i].value) &&
                          strstr(error->message, cases[i].fix),
                      "%s", error->message);
        /* Whose condition it becomes is known. */
        ck_assert_str_eq(w.uid, UID);
        ck_assert_int_eq(w.generation, 3);
        json_decref(object);
    }
}
END_TEST

START_TEST(a_run_is_known_by_its_name_and_uid)
{
    const WarmupRun run = {.generation = 3, .time_s = CREATED};
    WarmupRun other;
    g_autofree char *name = warmup_run_name(UID, &run);
    ck_assert(warmup_run_parse(UID, name, &other));
    ck_assert_int_eq(other.generation, 3);
    ck_assert_int_eq(other.time_s, CREATED);
    ck_assert(!warmup_run_parse("another", name, &other));
    ck_assert(!warmup_run_parse("", ".1.2", &other));
    ck_assert(!warmup_run_parse(UID, UID ".1", &other));
    ck_assert(!warmup_run_parse(UID, UID ".1.x", &other));
    ck_assert(!warmup_run_parse(UID, UID ".1.9000000000000000000", &other));
    ck_assert(!warmup_run_parse(UID, "", &other));
}
END_TEST

/* Of a run of `generation` for `time_s`, in `phase`. */
static void done_of(const Warmup *w, gint64 generation, gint64 time_s, const char *phase,
                    WarmupDone *done)
{
    const WarmupRun run = {generation, time_s};
    g_autofree char *name = warmup_run_name(w->uid, &run);
    json_t *status = json_pack("{s:s, s:s}", "run", name, "phase", phase);
    if (time_s) {
        g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(time_s);
        g_autofree char *text = g_date_time_format(at, "%Y-%m-%dT%H:%M:%SZ");
        json_object_set_new(status, "lastScheduleTime", json_string(text));
    }
    warmup_done_read(w, status, done);
    json_decref(status);
}

START_TEST(once_is_due_at_once_and_again_when_the_spec_changed)
{
    g_auto(Warmup) w = {0};
    WarmupDone done;
    WarmupRun run;
    read_spec("{\"persistentVolumeClaim\": \"data\"}", &w);
    warmup_done_read(&w, NULL, &done);
    ck_assert(warmup_due(&w, &done, CREATED, &run));
    ck_assert_int_eq(run.generation, 3);
    ck_assert_int_eq(run.time_s, 0);
    static const char *const phases[] = {"Warming", "Warm", "Failed"};
    for (gsize i = 0; i < G_N_ELEMENTS(phases); i++) {
        done_of(&w, 3, 0, phases[i], &done);
        ck_assert(!warmup_due(&w, &done, CREATED + HOUR, &run));
        done_of(&w, 2, 0, phases[i], &done);
        ck_assert(warmup_due(&w, &done, CREATED + HOUR, &run));
        ck_assert_int_eq(done.under_way, i == 0);
    }
}
END_TEST

START_TEST(a_status_of_another_object_says_nothing)
{
    g_auto(Warmup) w = {0};
    WarmupDone done;
    WarmupRun run;
    read_spec("{\"persistentVolumeClaim\": \"data\"}", &w);
    json_t *status = json_pack("{s:s, s:s}", "run", "another.3.0", "phase", "Warming");
    warmup_done_read(&w, status, &done);
    ck_assert(!done.any && !done.under_way);
    ck_assert(warmup_due(&w, &done, CREATED, &run));
    json_decref(status);
}
END_TEST

START_TEST(a_schedule_is_due_at_its_times)
{
    g_auto(Warmup) w = {0};
    WarmupDone done;
    WarmupRun run;
    read_spec("{\"persistentVolumeClaim\": \"data\", \"schedule\": \"@hourly\"}", &w);
    warmup_done_read(&w, NULL, &done);
    /* Not for the time it was made at, nor before. */
    ck_assert(!warmup_due(&w, &done, CREATED, &run));
    ck_assert(!warmup_due(&w, &done, CREATED + HOUR - 1, &run));
    ck_assert_int_eq(warmup_next_s(&w, CREATED), CREATED + HOUR);
    ck_assert(warmup_due(&w, &done, CREATED + HOUR + 5, &run));
    ck_assert_int_eq(run.time_s, CREATED + HOUR);
    done_of(&w, 3, CREATED + HOUR, "Warm", &done);
    ck_assert(!warmup_due(&w, &done, CREATED + 2 * HOUR - 1, &run));
    ck_assert(warmup_due(&w, &done, CREATED + 2 * HOUR, &run));
    /* A change of the spec alone makes none. */
    done_of(&w, 2, CREATED + HOUR, "Warm", &done);
    ck_assert(!warmup_due(&w, &done, CREATED + HOUR + 5, &run));
}
END_TEST

START_TEST(of_missed_times_the_latest_is_done)
{
    g_auto(Warmup) w = {0};
    WarmupDone done;
    WarmupRun run;
    read_spec("{\"persistentVolumeClaim\": \"data\", \"schedule\": \"@hourly\"}", &w);
    done_of(&w, 3, CREATED + HOUR, "Failed", &done);
    ck_assert(warmup_due(&w, &done, CREATED + 1000 * HOUR + 59, &run));
    ck_assert_int_eq(run.time_s, CREATED + 1000 * HOUR);
    done_of(&w, 3, run.time_s, "Warm", &done);
    ck_assert(!warmup_due(&w, &done, CREATED + 1000 * HOUR + 60, &run));
}
END_TEST

START_TEST(never_two_runs_at_a_time)
{
    g_auto(Warmup) w = {0};
    WarmupDone done;
    WarmupRun run;
    read_spec("{\"persistentVolumeClaim\": \"data\", \"schedule\": \"@hourly\"}", &w);
    done_of(&w, 3, CREATED + HOUR, "Warming", &done);
    ck_assert(!warmup_due(&w, &done, CREATED + 5 * HOUR, &run));
    done_of(&w, 3, CREATED + HOUR, "Warm", &done);
    ck_assert(warmup_due(&w, &done, CREATED + 5 * HOUR, &run));
    /* Another spec takes its place, for its time. */
    done_of(&w, 2, CREATED + HOUR, "Warming", &done);
    ck_assert(warmup_due(&w, &done, CREATED + 5 * HOUR, &run));
    ck_assert(done.under_way);
    ck_assert_int_eq(run.generation, 3);
    ck_assert_int_eq(run.time_s, CREATED + HOUR);
}
END_TEST

START_TEST(suspended_and_deleted_ones_begin_nothing)
{
    g_auto(Warmup) w = {0};
    WarmupDone done;
    WarmupRun run;
    read_spec("{\"persistentVolumeClaim\": \"data\", \"schedule\": \"@hourly\"}", &w);
    warmup_done_read(&w, NULL, &done);
    for (int scheduled = 0; scheduled < 2; scheduled++) {
        w.scheduled = scheduled;
        w.suspend = TRUE;
        ck_assert(!warmup_due(&w, &done, CREATED + 5 * HOUR, &run));
        ck_assert_int_eq(warmup_next_s(&w, CREATED), -1);
        w.suspend = FALSE;
        w.going = TRUE;
        ck_assert(!warmup_due(&w, &done, CREATED + 5 * HOUR, &run));
        w.going = FALSE;
        ck_assert(warmup_due(&w, &done, CREATED + 5 * HOUR, &run));
    }
    ck_assert_int_eq(run.time_s, CREATED + 5 * HOUR);
}
END_TEST

HARNESS_MAIN("driver/warmup/warmup", what_is_asked_for_is_read,
             what_is_left_out_means_all_of_it_once_on_all_nodes, the_root_among_paths_is_all_of_it,
             a_dataset_has_the_name_that_people_use, what_is_refused_names_field_value_and_fix,
             a_run_is_known_by_its_name_and_uid,
             once_is_due_at_once_and_again_when_the_spec_changed,
             a_status_of_another_object_says_nothing, a_schedule_is_due_at_its_times,
             of_missed_times_the_latest_is_done, never_two_runs_at_a_time,
             suspended_and_deleted_ones_begin_nothing)
