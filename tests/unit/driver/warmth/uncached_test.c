/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/uncached.h"
#include "driver/affinity/hints.h"
#include "driver/warmth/warmth.h"
#include "tests/unit/driver/kube/fake_api.h"

#define DRIVER "csi.hearth.dev"

/* An API server with PersistentVolumes and NodeCaches that the test tells of, and takes Events. */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    Uncached *uncached;
    Warmth *warmth;
    DatasetHints *hints;
    FakeStream volumes, caches, others;
    GPtrArray *events; /* of json_t; api.lock, as what follows */
    GHashTable *there; /* paths of those that there are */
    gboolean refused, slow;
    unsigned posts;
    gint acts; /* atomic */
    int version;
} World;

static void take_event(World *w, const FakeRequest *request, FakeReply *reply)
{
    const json_t *meta = json_object_get(request->body, "metadata");
    g_autofree char *path =
        g_strconcat(request->path, "/", json_string_value(json_object_get(meta, "name")), NULL);
    w->posts++;
    reply->wait_ms = w->slow ? 300 : 0;
    if (w->refused)
        fake_status(reply, 403, "Forbidden", "no Events here");
    else if (!g_hash_table_add(w->there, g_steal_pointer(&path)))
        fake_status(reply, 409, "AlreadyExists", "it is there");
    else
        g_ptr_array_add(w->events, json_deep_copy(request->body));
    if (!reply->text)
        reply->text = g_strdup("{}");
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    if (strcmp(request->method, "POST") == 0)
        take_event(w, request, reply);
    else if (!fake_query(request, "watch"))
        reply->text = g_strdup("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
    else if (g_str_has_suffix(request->path, "/persistentvolumes"))
        reply->stream = &w->volumes;
    else if (g_str_has_suffix(request->path, "/nodecaches"))
        reply->stream = &w->caches;
    else
        reply->stream = &w->others;
}

static gboolean may_act(void *data)
{
    World *w = data;
    return g_atomic_int_get(&w->acts);
}

static void world_new(World *w)
{
    const KubeClientOptions options = {.writes_per_second = 1000, .write_burst = 1000};
    *w = (World){.acts = TRUE, .version = 10};
    w->events = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    w->there = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    fake_stream_init(&w->volumes);
    fake_stream_init(&w->caches);
    fake_stream_init(&w->others);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, &options);
    w->uncached = uncached_new(w->client, DRIVER, may_act, w);
    const DatasetHintsOps ops = {
        .may_act = may_act, .on_volume = uncached_volume, .volume_data = w->uncached};
    w->warmth = warmth_new(w->client, may_act, w);
    warmth_on_uncached(w->warmth, uncached_report, w->uncached);
    w->hints = dataset_hints_new(w->client, DRIVER, &ops, w);
    fake_stream_await(&w->volumes, 1);
    fake_stream_await(&w->caches, 1);
}

static void world_free(World *w)
{
    fake_stream_stop(&w->volumes);
    fake_stream_stop(&w->caches);
    fake_stream_stop(&w->others);
    dataset_hints_free(w->hints);
    warmth_free(w->warmth);
    uncached_free(w->uncached);
    kube_client_free(w->client);
    fake_api_free(&w->api);
    fake_stream_clear(&w->volumes);
    fake_stream_clear(&w->caches);
    g_ptr_array_unref(w->events);
    g_hash_table_unref(w->there);
}

static void push(World *w, FakeStream *stream, const char *type, json_t *object)
{
    g_autofree char *version = g_strdup_printf("%d", w->version++);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_string(version));
    json_t *event = json_pack("{s:s, s:o}", "type", type, "object", object);
    char *text = json_dumps(event, JSON_COMPACT);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    fake_stream_push(stream, line);
    free(text);
    json_decref(event);
}

static void see_volume(World *w, const char *type, const char *name, const char *driver,
                       const char *phase, const char *uid)
{
    g_autofree char *handle = g_strconcat("handle-", name, NULL);
    push(w, &w->volumes, type,
         json_pack("{s:{s:s, s:s}, s:{s:{s:s, s:s}, s:{s:s, s:s, s:s}}, s:{s:s}}", "metadata",
                   "name", name, "uid", name, "spec", "csi", "driver", driver, "volumeHandle",
                   handle, "claimRef", "namespace", "jobs", "name", "data", "uid", uid, "status",
                   "phase", phase));
}

/* What a node says; handles with spaces between. */
static void report(World *w, const char *node, const char *handles)
{
    g_auto(GStrv) list = g_strsplit(handles, " ", -1);
    json_t *uncached = json_array();
    for (gsize i = 0; list[i]; i++)
        json_array_append_new(uncached, json_pack("{s:s, s:s}", "volumeHandle", list[i], "message",
                                                  "<b>what a node wrote</b>"));
    push(w, &w->caches, "MODIFIED",
         json_pack("{s:{s:s, s:s}, s:{s:s, s:o}}", "metadata", "name", node, "uid", node, "status",
                   "heartbeatTime", "2026-11-23T00:00:00Z", "uncached", uncached));
}

static guint posts(World *w)
{
    pthread_mutex_lock(&w->api.lock);
    const guint n = w->posts;
    pthread_mutex_unlock(&w->api.lock);
    return n;
}

static guint told(World *w)
{
    pthread_mutex_lock(&w->api.lock);
    const guint n = w->events->len;
    pthread_mutex_unlock(&w->api.lock);
    return n;
}

/* Reports until so many Events are there: the two watches are two threads. */
static void report_until(World *w, const char *handles, guint events)
{
    for (int i = 0; i < 500 && told(w) < events; i++) {
        report(w, "n1", handles);
        g_usleep(10000);
    }
    ck_assert_uint_eq(told(w), events);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

START_TEST(claim_is_told_once_however_often_it_is_staged)
{
    World w;
    world_new(&w);
    see_volume(&w, "ADDED", "pv1", DRIVER, "Bound", "uid-1");
    report_until(&w, "handle-pv1", 1);
    pthread_mutex_lock(&w.api.lock);
    json_t *event = json_incref(w.events->pdata[0]);
    pthread_mutex_unlock(&w.api.lock);
    const json_t *about = json_object_get(event, "involvedObject");
    ck_assert_str_eq(text_of(about, "kind"), "PersistentVolumeClaim");
    ck_assert_str_eq(text_of(about, "namespace"), "jobs");
    ck_assert_str_eq(text_of(about, "name"), "data");
    ck_assert_str_eq(text_of(about, "uid"), "uid-1");
    ck_assert_str_eq(text_of(event, "type"), "Warning");
    ck_assert_str_eq(text_of(event, "reason"), UNCACHED_REASON);
    ck_assert_ptr_nonnull(strstr(text_of(event, "message"), "pv1 has no exclusive-lock"));
    ck_assert_ptr_null(strstr(text_of(event, "message"), "<b>"));
    ck_assert_str_eq(text_of(json_object_get(event, "metadata"), "namespace"), "jobs");
    json_decref(event);
    /* Staged again, on others, and changed. */
    for (int i = 0; i < 20; i++) {
        report(&w, "n2", "handle-pv1");
        report(&w, "n1", "handle-pv1");
        see_volume(&w, "MODIFIED", "pv1", DRIVER, "Bound", "uid-1");
    }
    /* Behind all of that in both streams. */
    see_volume(&w, "ADDED", "pv2", DRIVER, "Bound", "uid-2");
    report_until(&w, "handle-pv1 handle-pv2", 2);
    ck_assert_uint_eq(posts(&w), 2);
    world_free(&w);
}
END_TEST

START_TEST(only_bound_volumes_of_ours_are_told_of)
{
    World w;
    world_new(&w);
    see_volume(&w, "ADDED", "others", "ebs.csi.aws.com", "Bound", "uid-1");
    see_volume(&w, "ADDED", "free", DRIVER, "Available", "uid-2");
    see_volume(&w, "ADDED", "released", DRIVER, "Bound", "uid-3");
    see_volume(&w, "MODIFIED", "released", DRIVER, "Released", "uid-3");
    see_volume(&w, "ADDED", "gone", DRIVER, "Bound", "uid-4");
    see_volume(&w, "DELETED", "gone", DRIVER, "Bound", "uid-4");
    see_volume(&w, "ADDED", "ours", DRIVER, "Bound", "uid-5");
    report_until(&w, "nothing handle-others handle-free handle-released handle-gone handle-ours",
                 1);
    ck_assert_uint_eq(posts(&w), 1);
    /* The next claim of a volume is another. */
    see_volume(&w, "MODIFIED", "ours", DRIVER, "Bound", "uid-6");
    report_until(&w, "handle-ours", 2);
    world_free(&w);
}
END_TEST

START_TEST(one_that_cannot_be_written_comes_with_a_later_report)
{
    World w;
    world_new(&w);
    w.refused = TRUE;
    see_volume(&w, "ADDED", "pv1", DRIVER, "Bound", "uid-1");
    for (int i = 0; i < 500 && posts(&w) < 2; i++) {
        report(&w, "n1", "handle-pv1");
        g_usleep(10000);
    }
    ck_assert_uint_ge(posts(&w), 2);
    pthread_mutex_lock(&w.api.lock);
    w.refused = FALSE;
    pthread_mutex_unlock(&w.api.lock);
    report_until(&w, "handle-pv1", 1);
    world_free(&w);
}
END_TEST

START_TEST(who_has_no_lease_writes_nothing_and_what_was_told_counts)
{
    World w;
    world_new(&w);
    g_atomic_int_set(&w.acts, FALSE);
    see_volume(&w, "ADDED", "pv1", DRIVER, "Bound", "uid-1");
    for (int i = 0; i < 20; i++) {
        report(&w, "n1", "handle-pv1");
        g_usleep(10000);
    }
    ck_assert_uint_eq(posts(&w), 0);
    /* The controller before has told it. */
    pthread_mutex_lock(&w.api.lock);
    g_hash_table_add(w.there, g_strdup("/api/v1/namespaces/jobs/events/hearth-not-cached-uid-1"));
    pthread_mutex_unlock(&w.api.lock);
    g_atomic_int_set(&w.acts, TRUE);
    see_volume(&w, "ADDED", "pv2", DRIVER, "Bound", "uid-2");
    report_until(&w, "handle-pv1 handle-pv2", 1);
    ck_assert_uint_eq(posts(&w), 2);
    world_free(&w);
}
END_TEST

START_TEST(queue_is_bounded_and_nothing_is_lost)
{
    World w;
    GString *handles = g_string_new("first");
    const guint n = UNCACHED_QUEUE_MAX + 50;
    world_new(&w);
    w.slow = TRUE;
    for (guint i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("pv%u", i), *uid = g_strdup_printf("uid-%u", i);
        see_volume(&w, "ADDED", name, DRIVER, "Bound", uid);
        /* A NodeCache has 64. */
        if (i % 60 == 0)
            g_string_append_printf(handles, "|handle-pv%u", i);
        else
            g_string_append_printf(handles, " handle-pv%u", i);
    }
    g_auto(GStrv) nodes = g_strsplit(handles->str, "|", -1);
    see_volume(&w, "ADDED", "seen", DRIVER, "Bound", "seen");
    report_until(&w, "handle-seen", 1);
    for (guint i = 0; nodes[i]; i++)
        report(&w, "n1", nodes[i]);
    pthread_mutex_lock(&w.api.lock);
    w.slow = FALSE;
    pthread_mutex_unlock(&w.api.lock);
    for (int round = 0; round < 200 && told(&w) < n + 1; round++) {
        for (guint i = 0; nodes[i]; i++)
            report(&w, "n1", nodes[i]);
        g_usleep(50000);
    }
    ck_assert_uint_eq(told(&w), n + 1);
    ck_assert_uint_eq(posts(&w), n + 1);
    g_string_free(handles, TRUE);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/warmth/uncached", claim_is_told_once_however_often_it_is_staged,
             only_bound_volumes_of_ours_are_told_of,
             one_that_cannot_be_written_comes_with_a_later_report,
             who_has_no_lease_writes_nothing_and_what_was_told_counts,
             queue_is_bounded_and_nothing_is_lost)
