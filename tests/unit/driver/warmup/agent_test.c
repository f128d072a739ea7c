/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/agent.h"
#include "common/field.h"
#include "tests/unit/driver/kube/fake_api.h"

#define ORIGIN "{\"clusterID\": \"c\", \"fsName\": \"f\", \"rootPath\": \"/volumes/g/v/.snap/s\"}"
#define ORDER(run)                                                                                 \
    "{\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"" run "\", \"origin\": " ORIGIN "}"

/* The NodeCache of n1, whose orders the test changes; there is no hearthd. */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    FakeStream stream;
    WarmupAgent *agent;
    char *selected; /* api.lock: what was asked for */
    unsigned version;
} World;

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    g_free(w->selected);
    w->selected = g_strdup(fake_query(request, "fieldSelector"));
    if (fake_query(request, "watch"))
        reply->stream = &w->stream;
    else
        reply->text = g_strdup("{\"metadata\": {\"resourceVersion\": \"1\"}, \"items\": []}");
}

static World *world_new(void)
{
    const WarmupConfig config = {.hearthd_socket = "/nowhere/hearthd.sock",
                                 .cluster_config = "/nowhere",
                                 .first_pause_ms = 10};
    World *w = g_new0(World, 1);
    fake_stream_init(&w->stream);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, NULL);
    w->agent = warmup_agent_new(w->client, "n1", &config);
    fake_stream_await(&w->stream, 1);
    return w;
}

static void world_free(World *w)
{
    fake_stream_stop(&w->stream);
    warmup_agent_free(w->agent);
    kube_client_free(w->client);
    fake_api_free(&w->api);
    fake_stream_clear(&w->stream);
    g_free(w->selected);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static void order(World *w, const char *type, const char *orders)
{
    g_autofree char *line = g_strdup_printf(
        "{\"type\": \"%s\", \"object\": {\"metadata\": {\"name\": \"n1\", \"uid\": \"1\", "
        "\"resourceVersion\": \"%u\"}, \"spec\": {\"warmups\": [%s]}}}\n",
        type, ++w->version + 1, orders);
    fake_stream_push(&w->stream, line);
}

/* Waits until it reports so many, all in this state (NULL: any); a new reference. */
static json_t *await(World *w, size_t count, const char *state)
{
    for (int i = 0; i < 1000; i++) {
        json_t *report = warmup_agent_report(w->agent);
        gboolean is = json_array_size(report) == count;
        for (size_t k = 0; state && k < json_array_size(report); k++)
            is &= g_str_equal(field_text(json_array_get(report, k), "state"), state);
        if (is)
            return report;
        json_decref(report);
        g_usleep(10000);
    }
    ck_abort_msg("it does not report %zu %s", count, state ? state : "");
}

START_TEST(it_looks_at_its_own_NodeCache_alone)
{
    g_autoptr(World) w = world_new();
    pthread_mutex_lock(&w->api.lock);
    ck_assert_str_eq(w->selected, "metadata.name=n1");
    pthread_mutex_unlock(&w->api.lock);
    json_decref(await(w, 0, NULL));
}
END_TEST

START_TEST(what_is_ordered_is_reported_until_it_is_not)
{
    g_autoptr(World) w = world_new();
    order(w, "ADDED", ORDER("u.1.0") ", " ORDER("v.1.0"));
    json_t *report = await(w, 2, "Failed"); /* there is no user to do it as */
    ck_assert_ptr_nonnull(strstr(field_text(json_array_get(report, 0), "message"), "--secret-dir"));
    json_decref(report);
    order(w, "MODIFIED", ORDER("v.1.0"));
    report = await(w, 1, "Failed");
    ck_assert_str_eq(field_text(json_array_get(report, 0), "run"), "v.1.0");
    json_decref(report);
    order(w, "MODIFIED", "");
    json_decref(await(w, 0, NULL));
}
END_TEST

START_TEST(when_the_NodeCache_goes_nothing_is_ordered)
{
    g_autoptr(World) w = world_new();
    order(w, "ADDED", ORDER("u.1.0"));
    json_decref(await(w, 1, NULL));
    order(w, "DELETED", ORDER("u.1.0"));
    json_decref(await(w, 0, NULL));
}
END_TEST

START_TEST(orders_that_are_none_are_passed_over)
{
    g_autoptr(World) w = world_new();
    order(w, "ADDED", "1, {}, {\"run\": []}, " ORDER("") ", " ORDER("u.1.0") ", " ORDER("u.1.0"));
    json_t *report = await(w, 1, NULL);
    ck_assert_str_eq(field_text(json_array_get(report, 0), "run"), "u.1.0");
    json_decref(report);
}
END_TEST

START_TEST(not_more_orders_are_taken_than_a_report_has_room_for)
{
    g_autoptr(World) w = world_new();
    g_autoptr(GString) many = g_string_new(ORDER("x.1.0"));
    for (int i = 0; i < 100; i++)
        g_string_append_printf(many,
                               ", {\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"u.%d.0\", "
                               "\"origin\": " ORIGIN "}",
                               i);
    order(w, "ADDED", many->str);
    json_decref(await(w, WARMUP_ORDERS_MAX, "Failed"));
}
END_TEST

HARNESS_MAIN("driver/warmup/agent", it_looks_at_its_own_NodeCache_alone,
             what_is_ordered_is_reported_until_it_is_not,
             when_the_NodeCache_goes_nothing_is_ordered, orders_that_are_none_are_passed_over,
             not_more_orders_are_taken_than_a_report_has_room_for)
