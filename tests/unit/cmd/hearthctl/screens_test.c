/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmd/hearthctl/golden.h"
#include "cmd/hearthctl/bench/bench.h"
#include "cmd/hearthctl/client/mounts.h"
#include "cmd/hearthctl/report/finding.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/why/answer.h"
#include "driver/node/mount/publications.h"
#include <string.h>

static json_t *member(const json_t *answers, const char *name)
{
    return json_object_get(answers, name);
}

static RatesLook look_of(const json_t *answers)
{
    return (RatesLook){.status = member(answers, "status"),
                       .volumes = member(answers, "volumes"),
                       .datasets = member(answers, "datasets"),
                       .at_us = json_integer_value(member(answers, "seconds")) * G_USEC_PER_SEC};
}

/* ---- warm, jobs ---- */

static char **bar_lines(const json_t *answers, const View *view)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new();
    const json_t *jobs = member(answers, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++)
        g_ptr_array_add(lines, progress_bar(json_array_get(jobs, i), view->columns));
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_steal(lines, NULL);
}

START_TEST(bar_of_a_job)
{
    json_auto_t *answers = golden_answers("jobs.json");
    golden_check("warm.txt", answers, bar_lines);
}
END_TEST

START_TEST(bar_never_reaches_the_last_column)
{
    json_auto_t *answers = golden_answers("jobs.json");
    for (unsigned columns = 2; columns <= 300; columns++) {
        const View view = {.columns = columns};
        g_auto(GStrv) lines = bar_lines(answers, &view);
        for (char **line = lines; *line; line++)
            ck_assert_msg(g_utf8_strlen(*line, -1) < (glong)columns, "%u: %s", columns, *line);
        ck_assert(columns < 6 || strchr(lines[1], '%'));
    }
}
END_TEST

static char **jobs_lines(const json_t *answers, const View *view)
{
    json_auto_t *volumes =
        json_pack("[{s:s, s:s}]", "volume", "dataset-0f3c11d2aa34bb900f3c11d2aa34bb90", "name",
                  "imagenet@2026-11");
    return view_jobs(member(answers, "jobs"), volumes, json_integer_value(member(answers, "now")),
                     view);
}

START_TEST(jobs_of_a_node)
{
    json_auto_t *answers = golden_answers("jobs.json");
    golden_check("jobs.txt", answers, jobs_lines);
    ck_assert_uint_eq(view_jobs_running(member(answers, "jobs")), 3);
}
END_TEST

/* ---- status, datasets ---- */

static char **status_lines(const json_t *answers, const View *view)
{
    const RatesLook before = look_of(member(answers, "before")), now = look_of(answers);
    json_auto_t *jobs = golden_answers("jobs.json");
    LostMount one = {.volume = (char *)"h1~cephfs~955aba63-f154-4ea1-b2f2-0242ac110002~eval",
                     .point = (char *)"/var/lib/kubelet/pods/0a1b2c3d-6d1e-4a5b-9c3f-2f1e0d9c8b7a/"
                                      "volumes/kubernetes.io~csi/pvc-eval/mount"};
    LostMount other = {.volume = (char *)"dataset-0f3c11d2aa34bb900f3c11d2aa34bb90",
                       .point = (char *)"/var/lib/kubelet/pods/uid-3/volumes/"
                                        "kubernetes.io~csi/pvc-set/mount",
                       .pod = (char *)"uid-3"};
    char *heals[] = {(char *)"uid-1=false",
                     (char *)"uid-3=kubectl --context=prod -n train delete pod train-0", NULL};
    g_autoptr(GPtrArray) lost = g_ptr_array_new();
    g_ptr_array_add(lost, &one);
    g_ptr_array_add(lost, &other);
    Publication uses[] = {
        {(char *)"dataset-0f3c11d2aa34bb900f3c11d2aa34bb90-2", (char *)"/a", (char *)"uid-1"},
        {(char *)"dataset-0f3c11d2aa34bb900f3c11d2aa34bb90", (char *)"/b", (char *)"uid-2"},
        {(char *)"dataset-0f3c11d2aa34bb900f3c11d2aa34bb90", (char *)"/c", (char *)"uid-2"}};
    g_autoptr(GPtrArray) pods = g_ptr_array_new();
    for (guint i = 0; i < G_N_ELEMENTS(uses); i++)
        g_ptr_array_add(pods, &uses[i]);
    const ViewStatus status = {.before = &before,
                               .now = &now,
                               .jobs = member(jobs, "jobs"),
                               .lost = lost,
                               .pods = pods,
                               .heals = heals,
                               .now_ms = json_integer_value(member(answers, "now"))};
    return view_status(&status, view);
}

static char **datasets_lines(const json_t *answers, const View *view)
{
    return view_datasets(member(answers, "datasets"), view);
}

START_TEST(status_of_a_node)
{
    json_auto_t *answers = golden_answers("node.json");
    golden_check("status.txt", answers, status_lines);
}
END_TEST

START_TEST(status_of_a_disk_that_fails)
{
    json_auto_t *answers = golden_answers("node.json");
    json_t *cache = member(member(answers, "status"), "cache");
    json_object_set_new(cache, "disk", json_string("bypass"));
    json_object_set_new(cache, "diskErrors", json_integer(3));
    const View view = {.columns = 120, .colour = TRUE};
    g_auto(GStrv) lines = status_lines(answers, &view);
    g_autofree char *text = g_strjoinv("\n", lines);
    ck_assert_ptr_nonnull(strstr(text, "disk \033[1;31mBYPASS, reads go to Ceph\033[0m"));
    ck_assert_ptr_nonnull(strstr(text, "\033[33msince start:\033[0m 3 disk errors"));
}
END_TEST

START_TEST(details_are_shown_where_nothing_has_to_fit)
{
    json_auto_t *answers = golden_answers("node.json");
    const View view = {.details = TRUE};
    g_auto(GStrv) lines = status_lines(answers, &view);
    g_autofree char *text = g_strjoinv("\n", lines);
    ck_assert_ptr_nonnull(strstr(text, "61 threads of 8192, 2 connections to CephFS"));
    ck_assert_ptr_nonnull(strstr(text, "scrub: 10.0 GiB verified, ended 1h0m ago"));
    ck_assert_ptr_nonnull(strstr(text, "\ntrain/scratch "));
    ck_assert_ptr_nonnull(strstr(text, "csi-vol-pvc-0a1b2c3d\n"));
    ck_assert_ptr_null(strchr(text, '\033'));
}
END_TEST

START_TEST(datasets_of_a_node)
{
    json_auto_t *answers = golden_answers("node.json");
    golden_check("datasets.txt", answers, datasets_lines);
}
END_TEST

/* ---- top ---- */

static char **top_sorted(const json_t *answers, const View *view, RatesSort by)
{
    const RatesLook before = look_of(member(answers, "before")), now = look_of(answers);
    g_autoptr(Rates) rates = rates_between(&before, &now);
    rates_sort(rates, by);
    const ViewTop top = {
        .now = &now, .rates = rates, .by = by, .interval_us = 2 * G_USEC_PER_SEC, .mark = TRUE};
    return view_top(&top, view);
}

static char **top_lines(const json_t *answers, const View *view)
{
    return top_sorted(answers, view, RATES_BY_CEPH);
}

static char **stream_lines(const json_t *answers, const View *view)
{
    const RatesLook before = look_of(member(answers, "before")), now = look_of(answers);
    g_autoptr(Rates) rates = rates_between(&before, &now);
    const ViewTop top = {.now = &now, .rates = rates};
    char **lines = g_new0(char *, 3);
    lines[0] = view_stream_heading(view);
    lines[1] = view_stream(&top, "14:31:07", view);
    return lines;
}

START_TEST(top_of_a_node)
{
    json_auto_t *answers = golden_answers("node.json");
    golden_check("top.txt", answers, top_lines);
    golden_check("stream.txt", answers, stream_lines);
}
END_TEST

START_TEST(sorted_column_of_top_stays_at_any_width)
{
    static const char *const headings[] = {"VOLUME▲", "WARM%▼",   "HITS▼",
                                           "MISSES▼", "OPENS/S▼", "CACHE/S▼",
                                           "FILL/S▼", "CEPH/S▼",  "WRITTEN/S▼"};
    json_auto_t *answers = golden_answers("node.json");
    for (unsigned columns = 30; columns <= 200; columns++)
        for (int by = 0; by < RATES_SORTS; by++) {
            const View view = {.columns = columns};
            g_auto(GStrv) lines = top_sorted(answers, &view, (RatesSort)by);
            ck_assert_msg(strstr(lines[VIEW_TOP_HEAD_LINES + 1], headings[by]) != NULL,
                          "%u columns: %s", columns, lines[VIEW_TOP_HEAD_LINES + 1]);
        }
}
END_TEST

/* ---- doctor, bench ---- */

#define BENCH_BYTES 2684354560

static char **doctor_lines(const json_t *answers, const View *view)
{
    (void)answers;
    g_autoptr(Findings) findings = findings_new();
    findings_add(findings, FINDING_OK, "hearthd", NULL, "version 0.1.0, pid 4321, up 2d3h");
    findings_add(findings, FINDING_BAD, "Ceph gone",
                 "check the monitors in the cluster file, and the network from this node to them",
                 "no monitor answers: 127.0.0.1 port 1: Connection refused");
    findings_add(findings, FINDING_WARN, "cache speed", "use an NVMe disk for the cache",
                 "the disk reads 120.0 MiB/s, which is less than Ceph may give over the network");
    findings_add(findings, FINDING_UNKNOWN, "native datasets", NULL, "needs root");
    return findings_lines(findings, view);
}

START_TEST(findings_of_doctor)
{
    golden_check("doctor.txt", NULL, doctor_lines);
    const View view = {.columns = 80, .colour = TRUE};
    g_auto(GStrv) lines = doctor_lines(NULL, &view);
    ck_assert(g_str_has_prefix(lines[1], "\033[32mok\033[0m       hearthd"));
    ck_assert_str_eq(lines[g_strv_length(lines) - 1], "\033[1;31mbad:\033[0m Ceph gone");
}
END_TEST

static void add_pass(GArray *passes, const char *state, const char *order, guint threads,
                     gint64 took_us, gint64 ceph_bytes)
{
    const guint32 latencies[] = {120, 450, 1800};
    BenchPass pass = {.state = state, .order = order, .threads = threads, .ceph_bytes = ceph_bytes};
    reading_init(&pass.reading);
    g_array_append_vals(pass.reading.latencies_us, latencies, G_N_ELEMENTS(latencies));
    pass.reading.files = 5000;
    pass.reading.bytes = BENCH_BYTES;
    pass.reading.took_us = took_us;
    g_array_append_val(passes, pass);
}

static void clear_pass(void *pass)
{
    reading_clear(&((BenchPass *)pass)->reading);
}

static char **bench_screen(const json_t *answers, const View *view)
{
    (void)answers;
    Bench b = {.path = "/mnt/imagenet", .threads = 8, .need = 800000000};
    b.need_text = (char *)"800M", b.volume = (char *)"dataset-0f3c11d2aa34bb900f3c11d2aa34bb90";
    b.files = (BenchFiles){.paths = g_ptr_array_new(), .bytes = BENCH_BYTES};
    g_ptr_array_set_size(b.files.paths, 5000);
    b.passes = g_array_new(FALSE, FALSE, sizeof(BenchPass));
    g_array_set_clear_func(b.passes, clear_pass);
    add_pass(b.passes, "cold", "random", 8, 12 * G_USEC_PER_SEC, BENCH_BYTES);
    add_pass(b.passes, "warm", "sequential", 1, 3 * G_USEC_PER_SEC, 0);
    add_pass(b.passes, "warm", "random", 8, G_USEC_PER_SEC, -1);
    char **lines = bench_lines(&b, view);
    g_array_unref(b.passes);
    g_ptr_array_unref(b.files.paths);
    return lines;
}

START_TEST(table_of_bench)
{
    golden_check("bench.txt", NULL, bench_screen);
}
END_TEST

/* ---- why ---- */

static Answer cold_job(void)
{
    return (Answer){
        .who = "train-0",
        .volume = "dataset-0f3c11d2aa34bb900f3c11d2aa34bb90",
        .none = "no pod of this node has train/imagenet mounted",
        .name = "train/imagenet",
        .command = "kubectl hearth",
        .heal = "kubectl -n train delete pod train-0",
        .facts = {.seconds = 10,
                  .wait = 0.38,
                  .running = 2.5,
                  .waiting = 1.5,
                  .cpus = 2.1,
                  .kinds = {0.9, 0, 0.1},
                  .native = TRUE,
                  .warm = 0.61,
                  .bytes_cached = 104152956928,
                  .bytes_total = 171798691840,
                  .from_fills = 4300000000,
                  .ceph_reads = 1024,
                  .ceph_us = 1024 * 31000,
                  .ceph_bytes = 4365000000,
                  .cache_bytes = 338102501376,
                  .cache_most = 536870912000},
    };
}

static char **why_lines(const json_t *answers, const View *view)
{
    (void)answers;
    Lines *all = lines_new();
    Answer answers_of[] = {cold_job(), cold_job(), cold_job(), cold_job(), cold_job(),
                           cold_job(), cold_job(), cold_job(), cold_job()};
    answers_of[1].facts.lost = TRUE;
    answers_of[2].facts.wait = 0.02;
    answers_of[3].facts.ceph_us = 1024 * 900000;
    answers_of[3].facts.ceph_bytes = 8 << 20;
    answers_of[4].facts.evicted_bytes = 3 << 20;
    answers_of[4].facts.filled = 40;
    answers_of[4].facts.refetched = 38;
    answers_of[4].facts.cache_bytes = answers_of[4].facts.cache_most / 10 * 9;
    answers_of[5].volume = NULL;
    answers_of[6].facts.native = FALSE;
    answers_of[6].facts.from_ceph = 5000000000;
    answers_of[7].facts.image = answers_of[7].facts.ended = TRUE;
    answers_of[8].facts = (WhyFacts){.seconds = 10, .wait = WHY_UNKNOWN, .other = WHY_UNKNOWN};
    for (guint i = 0; i < G_N_ELEMENTS(answers_of); i++) {
        g_autofree char **lines = answer_lines(&answers_of[i], view);
        for (char **line = lines; *line; line++)
            lines_add_taken(all, *line);
        lines_add(all, view, "%s", "");
    }
    return lines_end(all);
}

START_TEST(answers_of_why)
{
    golden_check("why.txt", NULL, why_lines);
    const Answer answer = cold_job();
    json_auto_t *json = answer_json(&answer);
    ck_assert_str_eq(json_string_value(member(json, "cause")), "cold");
    ck_assert_str_eq(json_string_value(member(json, "reason")),
                     "train/imagenet is 60% warm (97 of 160 GiB)");
    ck_assert_str_eq(json_string_value(member(json, "fix")),
                     "`kubectl hearth warm train/imagenet` would take 2m35s");
    ck_assert_int_eq(json_integer_value(member(json, "warmUpSeconds")), 155);
    ck_assert_double_eq_tol(json_real_value(member(json, "waitPercent")), 38, 0.001);
}
END_TEST

START_TEST(rate_of_the_last_warm_up_counts_when_it_is_more)
{
    Answer answer = cold_job();
    answer.warm_rate = 4365000000;
    json_auto_t *fast = answer_json(&answer);
    ck_assert_int_eq(json_integer_value(member(fast, "warmUpSeconds")), 16);
    answer.warm_rate = answer.facts.ceph_bytes = 0;
    json_auto_t *unknown = answer_json(&answer);
    ck_assert(json_is_null(member(unknown, "warmUpSeconds")));
    ck_assert_str_eq(json_string_value(member(unknown, "fix")),
                     "`kubectl hearth warm train/imagenet` before the job starts");
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/screens", bar_of_a_job, bar_never_reaches_the_last_column,
             jobs_of_a_node, status_of_a_node, status_of_a_disk_that_fails,
             details_are_shown_where_nothing_has_to_fit, datasets_of_a_node, top_of_a_node,
             sorted_column_of_top_stays_at_any_width, findings_of_doctor, table_of_bench,
             answers_of_why, rate_of_the_last_warm_up_counts_when_it_is_more)
