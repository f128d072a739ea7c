/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/task.h"
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include "common/autofd.h"
#include "proto/wire.h"
#include "common/field.h"
#include "tests/unit/harness.h"

#define WAIT_MS 10000

/* A hearthd that does what a test tells it, and notes what it was asked. */
typedef struct Hearthd {
    char *dir, *path, *config, *secrets;
    int listener;
    pthread_t thread;
    pthread_mutex_t lock;
    GString *asked; /* lock, as what follows */
    gboolean stop;
    unsigned connections;
    unsigned drops;   /* connections that end with the first job */
    unsigned builds;  /* answers before the manifest is ready */
    unsigned looks;   /* at a job, before it has ended */
    const char *ends; /* of jobs: their state */
    const char *why;
    unsigned files_failed;
    const char *refuses, *code; /* an op, and with what */
    /* Of what is told. */
    GString *states;
    WarmupDoing last;
    gboolean had_eta;
    GCancellable *cancel;
    const char *cancel_at;        /* a state, or an op */
    void (*at_look)(void *data);  /* at the first look at a job that runs */
    void (*at_build)(void *data); /* at the first answer before the manifest is ready */
    void *at_look_data;           /* of both */
} Hearthd;

static json_t *answer(Hearthd *h, const char *op, const json_t *request)
{
    if (h->cancel_at && g_str_equal(op, h->cancel_at))
        g_cancellable_cancel(h->cancel);
    if (h->refuses && g_str_equal(op, h->refuses))
        return json_pack("{s:b, s:s, s:s}", "ok", 0, "code", h->code, "error", "refused here");
    if (g_str_equal(op, "open")) {
        const json_t *origin = json_object_get(request, "origin");
        ck_assert_str_eq(field_text(origin, "rootPath"), "/volumes/g/v/.snap/s/*");
        ck_assert_str_eq(field_text(origin, "userID"), "warmer");
        ck_assert(json_is_true(json_object_get(request, "readOnly")));
        return json_pack("{s:b, s:b}", "ok", 1, "attached", 0);
    }
    if (g_str_equal(op, "manifest") && h->builds) {
        h->builds--;
        if (h->at_build)
            h->at_build(h->at_look_data);
        return json_pack("{s:b, s:s, s:i}", "ok", 1, "state", "building", "files", 7);
    }
    if (g_str_equal(op, "manifest"))
        return json_pack("{s:b, s:s, s:s, s:s, s:s, s:i}", "ok", 1, "state", "ready", "dataset",
                         "00000000000000000000000000000000", "path", "/m", "objects", "/o", "bytes",
                         200);
    if (g_str_equal(op, "warm"))
        return json_pack("{s:b, s:i}", "ok", 1, "job", 4);
    if (g_str_equal(op, "job")) {
        const gboolean ended = h->looks == 0;
        if (!ended)
            h->looks--;
        if (!ended && h->at_look)
            h->at_look(h->at_look_data);
        return json_pack("{s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:s}", "ok", 1, "state",
                         ended ? h->ends : "running", "bytesDone", ended ? 200 : 100, "bytesHeld",
                         0, "bytesTotal", 200, "filesFailed", h->files_failed, "elapsedMs", 1000,
                         "error", h->why);
    }
    return json_pack("{s:b}", "ok", 1);
}

static gboolean serve_one(Hearthd *h, int connection)
{
    json_t *request = wire_receive(connection, NULL, WAIT_MS, NULL);
    if (!request)
        return FALSE;
    pthread_mutex_lock(&h->lock);
    const char *op = field_text(request, "op");
    g_string_append_printf(h->asked, "%s%s%s ", op, *field_text(request, "path") ? ":" : "",
                           field_text(request, "path"));
    const gboolean drops = h->drops && g_str_equal(op, "job");
    if (drops)
        h->drops--;
    json_t *reply = answer(h, op, request);
    pthread_mutex_unlock(&h->lock);
    const gboolean good = !drops && wire_send(connection, reply, -1, NULL);
    json_decref(reply);
    json_decref(request);
    return good;
}

static void *hearthd_thread(void *data)
{
    Hearthd *h = data;
    for (;;) {
        hearth_autofd int connection = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_mutex_lock(&h->lock);
        const gboolean stop = h->stop;
        h->connections++;
        pthread_mutex_unlock(&h->lock);
        if (stop)
            return NULL;
        while (serve_one(h, connection))
            continue;
    }
}

static Hearthd *hearthd_new(void)
{
    Hearthd *h = g_new0(Hearthd, 1);
    h->dir = harness_tmpdir();
    h->path = g_build_filename(h->dir, "hearthd.sock", NULL);
    h->config = g_build_filename(h->dir, "config.json", NULL);
    h->secrets = g_build_filename(h->dir, "own", NULL);
    g_autofree char *user = g_build_filename(h->secrets, "userID", NULL),
                    *key = g_build_filename(h->secrets, "userKey", NULL);
    ck_assert_int_eq(g_mkdir(h->secrets, 0700), 0);
    g_file_set_contents(user, "warmer", -1, NULL);
    g_file_set_contents(key, "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==", -1, NULL);
    g_file_set_contents(h->config, "[{\"clusterID\": \"c\", \"monitors\": [\"v2:127.0.0.1:1/0\"]}]",
                        -1, NULL);
    h->listener = wire_listen(h->path, NULL);
    ck_assert_int_ge(h->listener, 0);
    pthread_mutex_init(&h->lock, NULL);
    h->asked = g_string_new(NULL);
    h->states = g_string_new(NULL);
    h->cancel = g_cancellable_new();
    h->ends = "done";
    h->why = "";
    ck_assert_int_eq(pthread_create(&h->thread, NULL, hearthd_thread, h), 0);
    return h;
}

static void hearthd_free(Hearthd *h)
{
    pthread_mutex_lock(&h->lock);
    h->stop = TRUE;
    pthread_mutex_unlock(&h->lock);
    const int wake = wire_connect(h->path, NULL);
    pthread_join(h->thread, NULL);
    close(wake);
    close(h->listener);
    g_free(h->last.message);
    g_string_free(h->asked, TRUE);
    g_string_free(h->states, TRUE);
    g_object_unref(h->cancel);
    g_free(h->path);
    g_free(h->config);
    g_free(h->secrets);
    harness_remove(h->dir);
    g_free(h);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hearthd, hearthd_free)

static void take(const WarmupDoing *doing, void *data)
{
    Hearthd *h = data;
    pthread_mutex_lock(&h->lock);
    g_free(h->last.message);
    h->last = *doing;
    h->last.message = g_strdup(doing->message);
    h->had_eta |= doing->bytes_per_second > 0;
    if (!g_str_has_suffix(h->states->str, doing->state))
        g_string_append_printf(h->states, " %s", doing->state);
    pthread_mutex_unlock(&h->lock);
}

static void run_with(Hearthd *h, const char *paths, const WarmupConfig *config)
{
    g_auto(WarmupOrder) order = {.run = NULL};
    json_t *json = json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:s, s:s}}", "namespace", "jobs", "name",
                             "w", "run", "u.1.0", "paths", json_loads(paths, 0, NULL), "origin",
                             "clusterID", "c", "fsName", "f", "rootPath", "/volumes/g/v/.snap/s/*");
    ck_assert(warmup_order_read(json, &order));
    json_decref(json);
    warmup_task_run(&order, config, h->cancel, take, h);
}

static void run_paths(Hearthd *h, const char *paths)
{
    const WarmupConfig config = {.hearthd_socket = h->path,
                                 .cluster_config = h->config,
                                 .secret_dir = h->secrets,
                                 .first_pause_ms = 10,
                                 .patience_s = 5};
    run_with(h, paths, &config);
}

START_TEST(a_dataset_is_opened_listed_and_fetched)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->looks = 1;
    h->builds = 2;
    run_paths(h, "[]");
    ck_assert_str_eq(h->asked->str, "open manifest manifest manifest warm job job ");
    ck_assert_str_eq(h->states->str, " Running Succeeded");
    ck_assert_uint_eq(h->last.bytes, 200);
    ck_assert_uint_eq(h->last.total, 200);
    ck_assert(h->had_eta);
}
END_TEST

START_TEST(paths_are_fetched_one_after_another)
{
    g_autoptr(Hearthd) h = hearthd_new();
    run_paths(h, "[\"a\", \"b/c\"]");
    ck_assert_str_eq(h->asked->str, "open manifest warm:a job warm:b/c job ");
    ck_assert_uint_eq(h->last.bytes, 400);
    ck_assert_str_eq(h->last.state, "Succeeded");
}
END_TEST

START_TEST(what_was_cut_off_is_done_again)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->drops = 2;
    run_paths(h, "[]");
    ck_assert_str_eq(h->last.state, "Succeeded");
    ck_assert_uint_eq(h->connections, 3);
    ck_assert_uint_eq(h->last.bytes, 200);
}
END_TEST

START_TEST(what_will_not_pass_fails_at_once)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->refuses = "warm";
    h->code = "NOT_FOUND";
    run_paths(h, "[\"a\"]");
    ck_assert_str_eq(h->last.state, "Failed");
    ck_assert_ptr_nonnull(strstr(h->last.message, "refused here"));
    ck_assert_uint_eq(h->connections, 1);
}
END_TEST

START_TEST(patience_ends)
{
    g_autoptr(Hearthd) h = hearthd_new();
    const WarmupConfig config = {.hearthd_socket = h->path,
                                 .cluster_config = h->config,
                                 .secret_dir = h->secrets,
                                 .first_pause_ms = 100,
                                 .patience_s = 1};
    h->refuses = "open";
    h->code = "UNAVAILABLE";
    run_with(h, "[]", &config);
    ck_assert_str_eq(h->last.state, "Failed");
    ck_assert_uint_gt(h->connections, 2);
}
END_TEST

START_TEST(a_job_that_failed_says_why)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->ends = "failed";
    h->why = "the disk is full";
    run_paths(h, "[]");
    ck_assert_str_eq(h->last.state, "Failed");
    ck_assert_str_eq(h->last.message, "the disk is full");
}
END_TEST

START_TEST(files_that_could_not_be_fetched_are_a_failure)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->files_failed = 3;
    h->why = "a/b: Input/output error";
    run_paths(h, "[]");
    ck_assert_str_eq(h->last.state, "Failed");
    ck_assert_str_eq(h->last.message,
                     "3 files could not be fetched; the first: a/b: Input/output error");
}
END_TEST

START_TEST(cancelling_cancels_its_job)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->looks = 1000;
    h->cancel_at = "job";
    run_paths(h, "[\"a\", \"b\"]");
    ck_assert_str_eq(h->last.state, "Cancelled");
    ck_assert_str_eq(h->asked->str, "open manifest warm:a job cancel ");
}
END_TEST

START_TEST(cancelled_while_it_is_listed_it_begins_no_job)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->builds = 1000;
    h->cancel_at = "manifest";
    run_paths(h, "[]");
    ck_assert_str_eq(h->last.state, "Cancelled");
    ck_assert_str_eq(h->asked->str, "open manifest ");
}
END_TEST

START_TEST(without_a_user_it_says_what_to_do)
{
    g_autoptr(Hearthd) h = hearthd_new();
    const WarmupConfig config = {.hearthd_socket = h->path, .cluster_config = h->config};
    run_with(h, "[]", &config);
    ck_assert_str_eq(h->last.state, "Failed");
    ck_assert_ptr_nonnull(strstr(h->last.message, "warmth.secretName"));
    ck_assert_ptr_nonnull(strstr(h->last.message, "--secret-dir"));
    ck_assert_str_eq(h->asked->str, "");
}
END_TEST

/* Waits for a place as another namespace, and gives it back at once. */
static void *take_a_turn(void *places)
{
    ck_assert(warmup_places_take(places, "others", NULL));
    warmup_places_leave(places, "others");
    return NULL;
}

static pthread_t waiting;

static void begin_to_wait(void *places)
{
    ck_assert_int_eq(pthread_create(&waiting, NULL, take_a_turn, places), 0);
    while (warmup_places_waiting(places) < 1)
        g_usleep(1000);
}

/* With one place, for which another namespace begins to wait meanwhile. */
static void gives_up_its_place(Hearthd *h, const char *asked)
{
    WarmupPlaces *places = warmup_places_new(1, 0);
    const WarmupConfig config = {.hearthd_socket = h->path,
                                 .cluster_config = h->config,
                                 .secret_dir = h->secrets,
                                 .places = places};
    h->at_look_data = places;
    run_with(h, "[]", &config);
    pthread_join(waiting, NULL);
    ck_assert_str_eq(h->asked->str, asked);
    ck_assert_str_eq(h->last.state, "Succeeded");
    warmup_places_free(places);
}

START_TEST(a_place_is_given_up_for_another_namespace_and_the_rest_is_done_after_it)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->looks = 1;
    h->at_look = begin_to_wait;
    gives_up_its_place(h, "open manifest warm job cancel open manifest warm job ");
}
END_TEST

START_TEST(a_place_is_given_up_while_the_tree_is_read)
{
    g_autoptr(Hearthd) h = hearthd_new();
    h->builds = 1;
    h->at_build = begin_to_wait;
    gives_up_its_place(h, "open manifest open manifest warm job ");
}
END_TEST

HARNESS_MAIN("driver/warmup/task", a_dataset_is_opened_listed_and_fetched,
             paths_are_fetched_one_after_another, what_was_cut_off_is_done_again,
             what_will_not_pass_fails_at_once, patience_ends, a_job_that_failed_says_why,
             files_that_could_not_be_fetched_are_a_failure, cancelling_cancels_its_job,
             cancelled_while_it_is_listed_it_begins_no_job, without_a_user_it_says_what_to_do,
             a_place_is_given_up_for_another_namespace_and_the_rest_is_done_after_it,
             a_place_is_given_up_while_the_tree_is_read)
