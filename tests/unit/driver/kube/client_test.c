/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/driver/kube/fake_api.h"

typedef struct World {
    FakeApi api;
    KubeClient *client;
    const char *accepted; /* token; NULL: any */
    FakeReply replies[4]; /* in turn; the last one again */
    unsigned prepared;
    char *method, *query, *type;
    json_t *body;
} World;

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    if (w->accepted && g_strcmp0(request->token, w->accepted) != 0) {
        fake_status(reply, 401, "Unauthorized", "Unauthorized");
        return;
    }
    if (w->prepared) {
        *reply = w->replies[MIN(request->number, w->prepared) - 1];
        reply->text = g_strdup(reply->text);
    }
    g_free(w->method);
    g_free(w->query);
    g_free(w->type);
    json_decref(w->body);
    w->method = g_strdup(request->method);
    w->query = g_strdup(fake_query(request, "a b"));
    w->type = g_strdup(request->content_type);
    w->body = json_incref(request->body);
    if (!reply->text)
        reply->text = g_strdup("{\"kind\":\"Thing\",\"n\":1}");
}

static void world_new(World *w, const KubeClientOptions *options)
{
    *w = (World){0};
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, options);
}

static void world_free(World *w)
{
    kube_client_free(w->client);
    fake_api_free(&w->api);
    g_free(w->method);
    g_free(w->query);
    g_free(w->type);
    json_decref(w->body);
}

static void prepare(World *w, FakeReply reply)
{
    ck_assert_uint_lt(w->prepared, G_N_ELEMENTS(w->replies));
    w->replies[w->prepared++] = reply;
}

static KubeRequest get(gint64 timeout_ms)
{
    return (KubeRequest){.method = "GET", .path = "/api/v1/things", .timeout_ms = timeout_ms};
}

static gint64 now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void expect(World *w, const KubeRequest *r, int code, const char *why)
{
    g_autoptr(GError) error = NULL;
    json_t *answer;
    ck_assert(!kube_request(w->client, r, &answer, &error));
    ck_assert_ptr_null(answer);
    ck_assert_msg(g_error_matches(error, KUBE_ERROR, code), "%d: %s", error->code, error->message);
    ck_assert_msg(strstr(error->message, why) != NULL, "%s", error->message);
    ck_assert_ptr_null(strstr(error->message, "sesame"));
}

START_TEST(request_carries_token_query_and_body)
{
    World w;
    world_new(&w, NULL);
    w.accepted = "sesame";
    const char *const query[] = {"a b", "c&d=e/é", NULL};
    json_t *body = json_pack("{s:s}", "x", "y"), *answer;
    const KubeRequest r = {.method = "PATCH",
                           .path = "/api/v1/nodes/n",
                           .query = query,
                           .body = body,
                           .body_type = KUBE_BODY_MERGE_PATCH};
    g_autoptr(GError) error = NULL;
    ck_assert_msg(kube_request(w.client, &r, &answer, &error), "%s", error ? error->message : "");
    ck_assert_str_eq(w.method, "PATCH");
    ck_assert_str_eq(w.query, "c&d=e/é");
    ck_assert_str_eq(w.type, "application/merge-patch+json");
    ck_assert(json_equal(w.body, body));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "n")), 1);
    json_decref(answer);
    json_decref(body);
    world_free(&w);
}
END_TEST

START_TEST(apply_names_its_manager)
{
    World w;
    world_new(&w, NULL);
    json_t *object = json_pack("{s:s}", "kind", "Thing");
    const KubeRequest r = {.path = "/apis/g/v1/things/t", .body = object, .timeout_ms = 1000};
    ck_assert(kube_apply(w.client, &r, "hearth", TRUE, NULL, NULL));
    ck_assert_str_eq(w.type, "application/apply-patch+yaml");
    json_decref(object);
    world_free(&w);
}
END_TEST

START_TEST(refusals_tell_status_and_reason)
{
    static const struct {
        int status;
        const char *reason;
        int code;
    } cases[] = {
        {400, "BadRequest", KUBE_ERROR_INVALID},
        {403, "Forbidden", KUBE_ERROR_FORBIDDEN},
        {404, "NotFound", KUBE_ERROR_NOT_FOUND},
        {409, "Conflict", KUBE_ERROR_CONFLICT},
        {409, "AlreadyExists", KUBE_ERROR_ALREADY_EXISTS},
        {410, "Expired", KUBE_ERROR_GONE},
        {418, "Teapot", KUBE_ERROR_REFUSED},
        {422, "Invalid", KUBE_ERROR_INVALID},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w;
        world_new(&w, NULL);
        FakeReply reply = {0};
        fake_status(&reply, cases[i].status, cases[i].reason, "because");
        prepare(&w, reply);
        const KubeRequest r = get(5000);
        g_autoptr(GError) error = NULL;
        ck_assert(!kube_request(w.client, &r, NULL, &error));
        ck_assert_int_eq(error->code, cases[i].code);
        ck_assert_int_eq(kube_error_status(error), cases[i].status);
        ck_assert_str_eq(kube_error_reason(error), cases[i].reason);
        ck_assert_ptr_nonnull(strstr(error->message, "because"));
        g_autoptr(GError) copy = g_error_copy(error);
        ck_assert_str_eq(kube_error_reason(copy), cases[i].reason);
        /* None of these is worth another try. */
        ck_assert_uint_eq(fake_api_requests(&w.api), 1);
        g_free(reply.text);
        world_free(&w);
    }
}
END_TEST

START_TEST(busy_server_is_asked_again_after_its_delay)
{
    World w;
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 429, .text = (char *)"slow down", .retry_after = "1"});
    prepare(&w, (FakeReply){.status = 200});
    const KubeRequest r = get(10000);
    const gint64 began = now_ms();
    json_t *answer;
    ck_assert(kube_request(w.client, &r, &answer, NULL));
    ck_assert_int_ge(now_ms() - began, 1000);
    ck_assert_uint_eq(fake_api_requests(&w.api), 2);
    json_decref(answer);
    world_free(&w);
}
END_TEST

START_TEST(delay_beyond_the_deadline_is_not_waited_for)
{
    World w;
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 429, .text = (char *)"slow down", .retry_after = "30"});
    const KubeRequest r = get(5000);
    const gint64 began = now_ms();
    expect(&w, &r, KUBE_ERROR_TOO_MANY_REQUESTS, "slow down");
    ck_assert_int_lt(now_ms() - began, 2000);
    world_free(&w);
}
END_TEST

START_TEST(server_errors_are_tried_again_but_not_for_post)
{
    World w;
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 500, .text = (char *)"etcd"});
    prepare(&w, (FakeReply){.status = 200});
    const KubeRequest r = get(10000);
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    world_free(&w);

    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 500, .text = (char *)"etcd"});
    json_t *body = json_object();
    KubeRequest post = {.method = "POST", .path = "/p", .body = body, .timeout_ms = 10000};
    expect(&w, &post, KUBE_ERROR_SERVER, "etcd");
    ck_assert_uint_eq(fake_api_requests(&w.api), 1);
    world_free(&w);

    /* It has said that it did nothing. */
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 503, .text = (char *)"starting", .retry_after = "0"});
    prepare(&w, (FakeReply){.status = 201});
    ck_assert(kube_request(w.client, &post, NULL, NULL));
    json_decref(body);
    world_free(&w);
}
END_TEST

static void *start_later(void *data)
{
    g_usleep(700000);
    fake_api_start(data);
    return NULL;
}

START_TEST(absent_server_is_waited_for)
{
    World w;
    pthread_t thread;
    world_new(&w, NULL);
    fake_api_stop(&w.api);
    pthread_create(&thread, NULL, start_later, &w.api);
    json_t *body = json_object();
    const KubeRequest r = {.method = "POST", .path = "/p", .body = body, .timeout_ms = 10000};
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    pthread_join(thread, NULL);
    json_decref(body);
    world_free(&w);
}
END_TEST

START_TEST(absent_server_is_named_at_the_deadline)
{
    World w;
    world_new(&w, NULL);
    fake_api_stop(&w.api);
    const KubeRequest r = get(600);
    const gint64 began = now_ms();
    expect(&w, &r, KUBE_ERROR_UNREACHABLE, "http://127.0.0.1:");
    ck_assert_int_lt(now_ms() - began, 1500);
    world_free(&w);
}
END_TEST

START_TEST(kept_connection_survives_server_restart)
{
    World w;
    world_new(&w, NULL);
    const KubeRequest r = get(5000);
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    fake_api_stop(&w.api);
    fake_api_start(&w.api);
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    world_free(&w);
}
END_TEST

START_TEST(slow_answer_ends_at_the_deadline)
{
    World w;
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 200, .text = (char *)"{          }", .slow_ms = 300});
    const KubeRequest r = get(700);
    const gint64 began = now_ms();
    expect(&w, &r, KUBE_ERROR_DEADLINE, "did not answer");
    ck_assert_int_lt(now_ms() - began, 1200);
    world_free(&w);
}
END_TEST

static void *cancel_later(void *data)
{
    g_usleep(200000);
    g_cancellable_cancel(data);
    return NULL;
}

START_TEST(cancelled_request_ends_at_once)
{
    World w;
    world_new(&w, NULL);
    pthread_t thread;
    g_autoptr(GCancellable) cancel = g_cancellable_new();
    prepare(&w, (FakeReply){.status = 200, .text = (char *)"{}", .wait_ms = 2000});
    KubeRequest r = get(20000);
    r.cancel = cancel;
    const gint64 began = now_ms();
    pthread_create(&thread, NULL, cancel_later, cancel);
    expect(&w, &r, KUBE_ERROR_CANCELLED, "cancelled");
    ck_assert_int_lt(now_ms() - began, 600);
    pthread_join(thread, NULL);
    world_free(&w);
}
END_TEST

START_TEST(large_and_senseless_answers_are_refused)
{
    World w;
    const KubeClientOptions options = {.answer_max = 1000};
    g_autofree char *large = g_strnfill(1001, ' ');
    const KubeRequest r = get(5000);
    world_new(&w, &options);
    prepare(&w, (FakeReply){.status = 200, .text = large});
    expect(&w, &r, KUBE_ERROR_MALFORMED, "larger than 1000");
    world_free(&w);
    world_new(&w, &options);
    prepare(&w, (FakeReply){.status = 200, .text = (char *)"<html>"});
    expect(&w, &r, KUBE_ERROR_MALFORMED, "no JSON");
    world_free(&w);
    /* What a proxy says is quoted, and fit to be logged. */
    world_new(&w, &options);
    prepare(&w, (FakeReply){.status = 403, .text = (char *)"no\nway\xff"});
    expect(&w, &r, KUBE_ERROR_FORBIDDEN, "no way\uFFFD");
    world_free(&w);
}
END_TEST

START_TEST(redirect_is_not_followed)
{
    World w;
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 302, .text = (char *)"elsewhere"});
    const KubeRequest r = get(5000);
    expect(&w, &r, KUBE_ERROR_REFUSED, "302");
    world_free(&w);
}
END_TEST

START_TEST(rotated_token_is_read_when_the_old_is_refused)
{
    World w;
    world_new(&w, NULL);
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "token", NULL);
    g_file_set_contents(path, "old", -1, NULL);
    g_autofree char *text = g_strdup_printf(
        "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],"
        " clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%d'}}],"
        " users: [{name: u, user: {tokenFile: %s}}]}",
        w.api.port, path);
    kube_client_free(w.client);
    w.client = kube_client_new(kube_config_parse(text, strlen(text), "test", NULL), NULL);
    const KubeRequest r = get(5000);
    w.accepted = "old";
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    g_file_set_contents(path, "new", -1, NULL);
    pthread_mutex_lock(&w.api.lock);
    w.accepted = "new";
    pthread_mutex_unlock(&w.api.lock);
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    pthread_mutex_lock(&w.api.lock);
    w.accepted = "another";
    pthread_mutex_unlock(&w.api.lock);
    expect(&w, &r, KUBE_ERROR_UNAUTHORIZED, "not accepted");
    harness_remove(dir);
    world_free(&w);
}
END_TEST

START_TEST(writes_are_held_to_their_rate)
{
    World w;
    const KubeClientOptions options = {.writes_per_second = 10, .write_burst = 2};
    world_new(&w, &options);
    KubeRequest r = {.method = "DELETE", .path = "/d", .timeout_ms = 5000};
    const gint64 began = now_ms();
    for (int i = 0; i < 5; i++)
        ck_assert(kube_request(w.client, &r, NULL, NULL));
    ck_assert_int_ge(now_ms() - began, 250);
    world_free(&w);
}
END_TEST

START_TEST(write_that_would_come_too_late_is_not_sent)
{
    World w;
    const KubeClientOptions options = {.writes_per_second = 0.1, .write_burst = 1};
    world_new(&w, &options);
    KubeRequest r = {.method = "DELETE", .path = "/d", .timeout_ms = 5000};
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    expect(&w, &r, KUBE_ERROR_DEADLINE, "rate");
    ck_assert_uint_eq(fake_api_requests(&w.api), 1);
    r.urgent = TRUE;
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    world_free(&w);
}
END_TEST

static void sum(const char *method, int status, guint64 count, void *data)
{
    g_string_append_printf(data, "%s %d %d\n", method, status, (int)count);
}

START_TEST(requests_are_counted_by_method_and_status)
{
    World w;
    world_new(&w, NULL);
    prepare(&w, (FakeReply){.status = 200});
    prepare(&w, (FakeReply){.status = 404});
    const KubeRequest r = get(5000);
    ck_assert(kube_request(w.client, &r, NULL, NULL));
    ck_assert(!kube_request(w.client, &r, NULL, NULL));
    ck_assert(!kube_request(w.client, &r, NULL, NULL));
    g_autoptr(GString) counts = g_string_new(NULL);
    kube_client_each_count(w.client, sum, counts);
    ck_assert_str_eq(counts->str, "GET 200 1\nGET 404 2\n");
    world_free(&w);
}
END_TEST

static void *ask_many(void *data)
{
    World *w = data;
    const KubeRequest r = get(20000);
    for (int i = 0; i < 50; i++)
        ck_assert(kube_request(w->client, &r, NULL, NULL));
    return NULL;
}

START_TEST(threads_share_a_client)
{
    World w;
    pthread_t threads[12];
    world_new(&w, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_create(&threads[i], NULL, ask_many, &w);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(fake_api_requests(&w.api), 600);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/kube/client", request_carries_token_query_and_body, apply_names_its_manager,
             refusals_tell_status_and_reason, busy_server_is_asked_again_after_its_delay,
             delay_beyond_the_deadline_is_not_waited_for,
             server_errors_are_tried_again_but_not_for_post, absent_server_is_waited_for,
             absent_server_is_named_at_the_deadline, kept_connection_survives_server_restart,
             slow_answer_ends_at_the_deadline, cancelled_request_ends_at_once,
             large_and_senseless_answers_are_refused, redirect_is_not_followed,
             rotated_token_is_read_when_the_old_is_refused, writes_are_held_to_their_rate,
             write_that_would_come_too_late_is_not_sent, requests_are_counted_by_method_and_status,
             threads_share_a_client)
