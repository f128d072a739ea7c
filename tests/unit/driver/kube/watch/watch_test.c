/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/watch/watch.h"
#include "tests/unit/driver/kube/fake_api.h"

/*
 * The fake keeps objects "name version", of which it lists two a page. A watch gets the stream
 * that is next. What the watch tells is a text: +a ~a -a (changes), S (synced), ! (trouble), =
 * (well).
 */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    KubeWatch *watch;
    FakeStream streams[4];
    unsigned stream;
    GPtrArray *objects; /* "name version"; guarded by api.lock, as is what follows */
    int list_status, watch_status, gone_pages;
    int gone_watches; /* so many are refused as too old */
    gint64 most_pause_ms;
    char *watched_from, *labels;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GString *told; /* guarded by lock */
    char *trouble;
} World;

static char *object_text(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, " ", 2);
    return g_strdup_printf("{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\",\"uid\":\"u-%s\","
                           "\"resourceVersion\":\"%s\"}}",
                           parts[0], parts[0], parts[1]);
}

static char *event_text(const char *type, const char *object)
{
    g_autofree char *text = object_text(object);
    return g_strdup_printf("{\"type\":\"%s\",\"object\":%s}\n", type, text);
}

static void answer_list(World *w, const FakeRequest *request, FakeReply *reply)
{
    const char *from = fake_query(request, "continue");
    if (w->list_status) {
        fake_status(reply, w->list_status, "Forbidden", "no list");
    } else if (from && w->gone_pages > 0) {
        w->gone_pages--;
        fake_status(reply, 410, "Expired", "continue token is too old");
    } else {
        guint at = from ? (guint)atoi(from) : 0, end = MIN(at + 2, w->objects->len);
        GString *items = g_string_new(NULL);
        for (guint i = at; i < end; i++) {
            g_autofree char *text = object_text(w->objects->pdata[i]);
            g_string_append_printf(items, "%s%s", i > at ? "," : "", text);
        }
        g_autofree char *more = end < w->objects->len ? g_strdup_printf("%u", end) : g_strdup("");
        reply->text = g_strdup_printf(
            "{\"metadata\":{\"resourceVersion\":\"100\",\"continue\":\"%s\"},\"items\":[%s]}", more,
            items->str);
        g_string_free(items, TRUE);
    }
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    g_free(w->labels);
    w->labels = g_strdup(fake_query(request, "labelSelector"));
    if (!fake_query(request, "watch")) {
        answer_list(w, request, reply);
        return;
    }
    ck_assert_str_eq(fake_query(request, "allowWatchBookmarks"), "true");
    g_free(w->watched_from);
    w->watched_from = g_strdup(fake_query(request, "resourceVersion"));
    if (w->watch_status || w->gone_watches-- > 0)
        fake_status(reply, w->watch_status ? w->watch_status : 410, "Expired",
                    "too old resource version");
    else if (w->stream < G_N_ELEMENTS(w->streams))
        reply->stream = &w->streams[w->stream++];
    else
        fake_status(reply, 503, "ServiceUnavailable", "no more streams");
}

static void tell(World *w, const char *text)
{
    pthread_mutex_lock(&w->lock);
    g_string_append(w->told, text);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void on_change(KubeChange change, const json_t *object, void *data)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
    g_autofree char *text = g_strdup_printf("%c%s ", "+~-"[change], name);
    tell(data, text);
}

static void on_synced(void *data)
{
    tell(data, "S ");
}

static void on_trouble(const GError *error, void *data)
{
    World *w = data;
    pthread_mutex_lock(&w->lock);
    g_free(w->trouble);
    w->trouble = error ? g_strdup(error->message) : NULL;
    pthread_mutex_unlock(&w->lock);
    tell(w, error ? "! " : "= ");
}

static void world_new(World *w, ...) G_GNUC_NULL_TERMINATED;
static void world_new(World *w, ...)
{
    va_list args;
    *w = (World){.told = g_string_new(NULL), .objects = g_ptr_array_new_with_free_func(g_free)};
    va_start(args, w);
    for (const char *object; (object = va_arg(args, const char *));)
        g_ptr_array_add(w->objects, g_strdup(object));
    va_end(args);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(w->streams); i++)
        fake_stream_init(&w->streams[i]);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, NULL);
}

static void start(World *w)
{
    static const KubeWatchOps ops = {on_change, on_synced, on_trouble};
    const KubeWatchTimes times = {.first_pause_ms = 20,
                                  .most_pause_ms = w->most_pause_ms ? w->most_pause_ms : 200,
                                  .line_max = 1000,
                                  .page = 2,
                                  .list_ms = 3000};
    const KubeSelection selection = {
        .resource = {"csi.hearth.dev", "v1", "things"}, .namespace = "n", .labels = "a=b,c"};
    w->watch = kube_watch_new(w->client, &selection, &ops, w, &times);
}

static void world_free(World *w)
{
    kube_watch_free(w->watch);
    kube_client_free(w->client);
    for (gsize i = 0; i < G_N_ELEMENTS(w->streams); i++)
        fake_stream_stop(&w->streams[i]);
    fake_api_free(&w->api);
    for (gsize i = 0; i < G_N_ELEMENTS(w->streams); i++) {
        for (char *piece; (piece = g_queue_pop_head(&w->streams[i].pieces));) {
            if (piece != FAKE_END && piece != FAKE_DROP)
                g_free(piece);
        }
    }
    g_ptr_array_unref(w->objects);
    g_string_free(w->told, TRUE);
    g_free(w->watched_from);
    g_free(w->labels);
    g_free(w->trouble);
}

/* Waits until exactly that was told, and forgets it. */
static void await(World *w, const char *wanted)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    pthread_mutex_lock(&w->lock);
    while (strlen(w->told->str) < strlen(wanted) &&
           pthread_cond_timedwait(&w->changed, &w->lock, &end) == 0)
        ;
    ck_assert_str_eq(w->told->str, wanted);
    g_string_truncate(w->told, 0);
    pthread_mutex_unlock(&w->lock);
}

static void push(World *w, unsigned stream, const char *type, const char *object)
{
    g_autofree char *text = event_text(type, object);
    fake_stream_push(&w->streams[stream], text);
}

static void set_objects(World *w, ...) G_GNUC_NULL_TERMINATED;
static void set_objects(World *w, ...)
{
    va_list args;
    pthread_mutex_lock(&w->api.lock);
    g_ptr_array_set_size(w->objects, 0);
    va_start(args, w);
    for (const char *object; (object = va_arg(args, const char *));)
        g_ptr_array_add(w->objects, g_strdup(object));
    va_end(args);
    pthread_mutex_unlock(&w->api.lock);
}

static void watched_from(World *w, const char *wanted)
{
    pthread_mutex_lock(&w->api.lock);
    ck_assert_str_eq(w->watched_from, wanted);
    pthread_mutex_unlock(&w->api.lock);
}

START_TEST(lists_pages_then_follows_changes)
{
    World w;
    world_new(&w, "a 1", "b 2", "c 3", NULL);
    start(&w);
    await(&w, "+a +b +c S ");
    push(&w, 0, "MODIFIED", "b 101");
    push(&w, 0, "ADDED", "d 102");
    push(&w, 0, "DELETED", "a 103");
    await(&w, "~b +d -a ");
    watched_from(&w, "100");
    ck_assert_str_eq(w.labels, "a=b,c");
    world_free(&w);
}
END_TEST

START_TEST(ended_watch_goes_on_where_it_was)
{
    World w;
    world_new(&w, "a 1", NULL);
    start(&w);
    await(&w, "+a S ");
    push(&w, 0, "MODIFIED", "a 105");
    fake_stream_push(&w.streams[0], FAKE_END);
    fake_stream_await(&w.streams[1], 1);
    push(&w, 1, "MODIFIED", "a 106");
    await(&w, "~a ~a ");
    watched_from(&w, "105");
    world_free(&w);
}
END_TEST

START_TEST(bookmark_moves_on_without_a_change)
{
    World w;
    world_new(&w, "a 1", NULL);
    start(&w);
    fake_stream_push(&w.streams[0], "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":"
                                    "{\"resourceVersion\":\"5000\"}}}\n");
    fake_stream_push(&w.streams[0], FAKE_DROP);
    fake_stream_await(&w.streams[1], 1);
    watched_from(&w, "5000");
    await(&w, "+a S ");
    world_free(&w);
}
END_TEST

START_TEST(stream_dropped_in_mid_line_loses_and_repeats_nothing)
{
    World w;
    world_new(&w, "a 1", NULL);
    start(&w);
    await(&w, "+a S ");
    push(&w, 0, "ADDED", "b 101");
    g_autofree char *text = event_text("ADDED", "c 102");
    text[strlen(text) / 2] = '\0';
    fake_stream_push(&w.streams[0], text);
    fake_stream_push(&w.streams[0], FAKE_DROP);
    fake_stream_await(&w.streams[1], 1);
    watched_from(&w, "101");
    /* Servers may tell the last one again. */
    push(&w, 1, "ADDED", "b 101");
    push(&w, 1, "ADDED", "c 102");
    await(&w, "+b +c ");
    world_free(&w);
}
END_TEST

START_TEST(gone_in_watch_lists_again_and_tells_the_difference)
{
    World w;
    world_new(&w, "a 1", "b 2", "c 3", NULL);
    start(&w);
    await(&w, "+a +b +c S ");
    set_objects(&w, "a 1", "c 7", "d 8", NULL);
    fake_stream_push(&w.streams[0],
                     "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                     "\"reason\":\"Expired\",\"message\":\"too old\"}}\n");
    await(&w, "~c +d -b S ");
    push(&w, 1, "ADDED", "e 9");
    await(&w, "+e ");
    world_free(&w);
}
END_TEST

START_TEST(gone_as_status_of_watch_lists_again)
{
    World w;
    world_new(&w, "a 1", NULL);
    w.watch_status = 410;
    start(&w);
    await(&w, "+a S S ");
    pthread_mutex_lock(&w.api.lock);
    w.watch_status = 0;
    pthread_mutex_unlock(&w.api.lock);
    fake_stream_await(&w.streams[0], 1);
    pthread_mutex_lock(&w.lock);
    g_string_truncate(w.told, 0);
    pthread_mutex_unlock(&w.lock);
    push(&w, 0, "ADDED", "e 9");
    await(&w, "+e ");
    world_free(&w);
}
END_TEST

START_TEST(gone_between_pages_begins_anew)
{
    World w;
    world_new(&w, "a 1", "b 2", "c 3", NULL);
    w.gone_pages = 1;
    start(&w);
    await(&w, "+a +b +c S ");
    world_free(&w);
}
END_TEST

START_TEST(server_that_restarts_is_come_back_to)
{
    World w;
    world_new(&w, "a 1", NULL);
    start(&w);
    await(&w, "+a S ");
    fake_stream_await(&w.streams[0], 1);
    fake_stream_push(&w.streams[0], FAKE_DROP);
    fake_stream_stop(&w.streams[0]);
    fake_api_stop(&w.api);
    await(&w, "! ");
    g_usleep(300000);
    set_objects(&w, "b 2", NULL);
    fake_api_start(&w.api);
    await(&w, "= ");
    push(&w, w.stream - 1, "ADDED", "c 300");
    await(&w, "+c ");
    world_free(&w);
}
END_TEST

/* How long the server was away must not count for what it says when it is back. */
START_TEST(resourceversion_that_outage_made_old_is_renewed_at_once)
{
    World w;
    world_new(&w, "a 1", NULL);
    w.most_pause_ms = 60000;
    start(&w);
    await(&w, "+a S ");
    fake_stream_await(&w.streams[0], 1);
    fake_stream_stop(&w.streams[0]);
    fake_api_stop(&w.api);
    await(&w, "! ");
    g_usleep(1500000);
    set_objects(&w, "a 2", NULL);
    pthread_mutex_lock(&w.api.lock);
    w.gone_watches = 1;
    pthread_mutex_unlock(&w.api.lock);
    fake_api_start(&w.api);
    while (fake_api_requests(&w.api) < 3)
        g_usleep(1000);
    const gint64 back = g_get_monotonic_time();
    await(&w, "~a S = ");
    ck_assert_int_lt(g_get_monotonic_time() - back, 500000);
    world_free(&w);
}
END_TEST

START_TEST(pauses_of_an_outage_do_not_count_for_the_next)
{
    World w;
    world_new(&w, "a 1", NULL);
    w.most_pause_ms = 60000;
    start(&w);
    await(&w, "+a S ");
    fake_stream_await(&w.streams[0], 1);
    fake_stream_stop(&w.streams[0]);
    fake_api_stop(&w.api);
    await(&w, "! ");
    g_usleep(1500000);
    fake_api_start(&w.api);
    await(&w, "= ");
    fake_stream_stop(&w.streams[1]);
    fake_api_stop(&w.api);
    await(&w, "! ");
    fake_api_start(&w.api);
    const gint64 back = g_get_monotonic_time();
    await(&w, "= ");
    ck_assert_int_lt(g_get_monotonic_time() - back, 500000);
    world_free(&w);
}
END_TEST

START_TEST(trouble_is_told_once_and_its_end)
{
    World w;
    world_new(&w, "a 1", NULL);
    w.list_status = 403;
    start(&w);
    await(&w, "! ");
    while (fake_api_requests(&w.api) < 4)
        g_usleep(10000);
    pthread_mutex_lock(&w.lock);
    ck_assert_str_eq(w.told->str, "");
    ck_assert_ptr_nonnull(strstr(w.trouble, "no list"));
    pthread_mutex_unlock(&w.lock);
    pthread_mutex_lock(&w.api.lock);
    w.list_status = 0;
    pthread_mutex_unlock(&w.api.lock);
    await(&w, "+a S = ");
    world_free(&w);
}
END_TEST

START_TEST(malformed_and_oversize_events_list_again)
{
    World w;
    world_new(&w, "a 1", NULL);
    start(&w);
    await(&w, "+a S ");
    fake_stream_push(&w.streams[0], "{\"type\":\"ADDED\",\"object\":{}}\n");
    await(&w, "! S = ");
    g_autofree char *large = g_strnfill(2000, ' ');
    fake_stream_push(&w.streams[1], large);
    await(&w, "! S = ");
    world_free(&w);
}
END_TEST

START_TEST(refused_watches_do_not_storm)
{
    World w;
    world_new(&w, "a 1", NULL);
    w.watch_status = 410;
    start(&w);
    g_usleep(1000000);
    /* Each round is a list and a watch; pauses grow to 200 ms. */
    ck_assert_uint_le(fake_api_requests(&w.api), 40);
    world_free(&w);
}
END_TEST

START_TEST(free_stops_at_once_whatever_it_does)
{
    World w;
    world_new(&w, "a 1", NULL);
    start(&w);
    fake_stream_await(&w.streams[0], 1);
    gint64 began = g_get_monotonic_time();
    kube_watch_free(g_steal_pointer(&w.watch));
    ck_assert_int_lt(g_get_monotonic_time() - began, 500000);
    pthread_mutex_lock(&w.api.lock);
    w.list_status = 500;
    pthread_mutex_unlock(&w.api.lock);
    start(&w);
    g_usleep(200000);
    began = g_get_monotonic_time();
    kube_watch_free(g_steal_pointer(&w.watch));
    ck_assert_int_lt(g_get_monotonic_time() - began, 500000);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/kube/watch/watch", lists_pages_then_follows_changes,
             ended_watch_goes_on_where_it_was, bookmark_moves_on_without_a_change,
             stream_dropped_in_mid_line_loses_and_repeats_nothing,
             gone_in_watch_lists_again_and_tells_the_difference,
             gone_as_status_of_watch_lists_again, gone_between_pages_begins_anew,
             server_that_restarts_is_come_back_to,
             resourceversion_that_outage_made_old_is_renewed_at_once,
             pauses_of_an_outage_do_not_count_for_the_next, trouble_is_told_once_and_its_end,
             malformed_and_oversize_events_list_again, refused_watches_do_not_storm,
             free_stops_at_once_whatever_it_does)
