/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/warmth.h"
#include "driver/kube/time.h"
#include "driver/warmth/labels.h"
#include "tests/unit/driver/kube/fake_api.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"
#define UNKNOWN 12345

/* An API server with Nodes n1 and n2, and NodeCaches as the test says. */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    Warmth *warmth;
    FakeStream nodes, caches;
    json_t *listed;   /* NodeCaches; before the watch begins */
    gboolean acts;    /* api.lock, as what follows */
    json_t *patched;  /* node -> labels, merged */
    GString *deleted; /* NodeCaches */
    GString *posted;  /* Events: "PATH REASON NAME;" each */
    unsigned patches;
} World;

static void take_patch(World *w, const FakeRequest *request, FakeReply *reply)
{
    const char *node = strrchr(request->path, '/') + 1;
    json_t *labels = json_object_get(json_object_get(request->body, "metadata"), "labels");
    json_t *have = json_object_get(w->patched, node);
    const char *name;
    json_t *value;
    if (!have) {
        have = json_object();
        json_object_set_new(w->patched, node, have);
    }
    json_object_foreach (labels, name, value)
        if (json_is_null(value))
            json_object_del(have, name);
        else
            json_object_set(have, name, value);
    json_t *answer = json_pack("{s:{s:s, s:O}}", "metadata", "name", node, "labels", have);
    char *text = json_dumps(answer, 0);
    reply->text = g_strdup(text);
    free(text);
    json_decref(answer);
    w->patches++;
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    const gboolean nodes = g_str_has_suffix(request->path, "/nodes");
    if (strcmp(request->method, "PATCH") == 0) {
        take_patch(w, request, reply);
    } else if (strcmp(request->method, "DELETE") == 0) {
        g_string_append(w->deleted, strrchr(request->path, '/') + 1);
        reply->text = g_strdup("{}");
    } else if (strcmp(request->method, "POST") == 0) {
        const json_t *about = json_object_get(request->body, "involvedObject");
        g_string_append_printf(w->posted, "%s %s %s;", request->path,
                               json_string_value(json_object_get(request->body, "reason")),
                               json_string_value(json_object_get(about, "name")));
        reply->text = g_strdup("{}");
    } else if (fake_query(request, "watch")) {
        reply->stream = nodes ? &w->nodes : &w->caches;
    } else {
        json_t *items =
            nodes ? json_pack("[{s:{s:s, s:s, s:s}}, {s:{s:s, s:s, s:s}}]", "metadata", "name",
                              "n1", "uid", "1", "resourceVersion", "1", "metadata", "name", "n2",
                              "uid", "2", "resourceVersion", "1")
                  : json_incref(w->listed);
        json_t *list =
            json_pack("{s:{s:s}, s:o}", "metadata", "resourceVersion", "9", "items", items);
        char *text = json_dumps(list, 0);
        reply->text = g_strdup(text);
        free(text);
        json_decref(list);
    }
}

static gboolean may_act(void *data)
{
    World *w = data;
    pthread_mutex_lock(&w->api.lock);
    gboolean acts = w->acts;
    pthread_mutex_unlock(&w->api.lock);
    return acts;
}

/* Of one dataset, as written so long ago. */
static json_t *cache(const char *node, const char *id, json_int_t bytes, int age_s)
{
    static int version = 10;
    g_autofree char *time = kube_time_format(g_get_real_time() - (gint64)age_s * G_USEC_PER_SEC);
    g_autofree char *rv = g_strdup_printf("%d", version++);
    return json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:[{s:s, s:I, s:i}]}}", "metadata", "name", node,
                     "uid", node, "resourceVersion", rv, "status", "heartbeatTime", time,
                     "datasets", "id", id, "bytes", bytes, "totalBytes", 100);
}

static void tell(World *w, const char *type, json_t *object)
{
    json_t *event = json_pack("{s:s, s:o}", "type", type, "object", object);
    char *text = json_dumps(event, JSON_COMPACT);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    fake_stream_push(&w->caches, line);
    free(text);
    json_decref(event);
}

static void begin(World *w, json_t *listed, gboolean acts)
{
    const KubeClientOptions options = {.writes_per_second = 1000, .write_burst = 1000};
    memset(w, 0, sizeof(*w));
    w->listed = listed;
    w->acts = acts;
    w->patched = json_object();
    w->deleted = g_string_new(NULL);
    w->posted = g_string_new(NULL);
    fake_stream_init(&w->nodes);
    fake_stream_init(&w->caches);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, &options);
    w->warmth = warmth_new(w->client, may_act, w);
    fake_stream_await(&w->nodes, 1);
    fake_stream_await(&w->caches, 1);
}

static void end(World *w)
{
    fake_stream_stop(&w->nodes);
    fake_stream_stop(&w->caches);
    warmth_free(w->warmth);
    kube_client_free(w->client);
    fake_api_free(&w->api);
    json_decref(w->listed);
    json_decref(w->patched);
    g_string_free(w->deleted, TRUE);
    g_string_free(w->posted, TRUE);
}

static guint64 bytes_on(World *w, const char *id, const char *node)
{
    WarmthOf of;
    return warmth_of(w->warmth, id, node, &of) ? of.bytes : UNKNOWN;
}

static void await_bytes(World *w, const char *id, const char *node, guint64 bytes)
{
    for (int i = 0; i < 200 && bytes_on(w, id, node) != bytes; i++)
        g_usleep(10000);
    ck_assert_uint_eq(bytes_on(w, id, node), bytes);
}

static char *label_of(World *w, const char *node)
{
    pthread_mutex_lock(&w->api.lock);
    char *label = g_strdup(
        json_string_value(json_object_get(json_object_get(w->patched, node), WARM_LABEL_PREFIX A)));
    pthread_mutex_unlock(&w->api.lock);
    return label ? label : g_strdup("-");
}

static void await_label(World *w, const char *node, const char *label)
{
    g_autofree char *have = label_of(w, node);
    for (int i = 0; i < 400 && strcmp(have, label) != 0; i++) {
        g_usleep(10000);
        g_free(have);
        have = label_of(w, node);
    }
    ck_assert_str_eq(have, label);
}

START_TEST(it_knows_what_is_warm_on_which_node)
{
    World w;
    WarmthOf of;
    begin(&w, json_pack("[o, o]", cache("n1", A, 80, 0), cache("n2", A, 20, 0)), FALSE);
    await_bytes(&w, A, "n1", 80);
    await_bytes(&w, A, "n2", 20);
    ck_assert(warmth_of(w.warmth, A, "n3", &of));
    ck_assert_uint_eq(of.bytes, 0);
    ck_assert_uint_eq(of.total, 100);
    ck_assert(warmth_of(w.warmth, A, NULL, &of));
    ck_assert(!warmth_of(w.warmth, B, "n1", &of));
    tell(&w, "MODIFIED", cache("n1", B, 50, 0));
    await_bytes(&w, B, "n1", 50);
    ck_assert_uint_eq(bytes_on(&w, A, "n1"), 0);
    tell(&w, "DELETED", cache("n1", B, 50, 0));
    await_bytes(&w, B, "n1", UNKNOWN); /* nobody tells of it any more */
    end(&w);
}
END_TEST

START_TEST(a_node_that_does_not_report_has_nothing)
{
    World w;
    begin(&w, json_pack("[o, o]", cache("n1", A, 80, 691), cache("n2", A, 20, 80)), FALSE);
    await_bytes(&w, A, "n2", 20);
    ck_assert_uint_eq(bytes_on(&w, A, "n1"), 0);
    /* A clock that is late is believed once it has moved. */
    tell(&w, "MODIFIED", cache("n1", A, 80, 3600));
    await_bytes(&w, A, "n1", 80);
    end(&w);
}
END_TEST

START_TEST(nodes_are_labelled)
{
    World w;
    begin(&w, json_pack("[o, o]", cache("n1", A, 80, 0), cache("n2", A, 10, 0)), TRUE);
    await_label(&w, "n1", "75");
    g_autofree char *other = label_of(&w, "n2");
    ck_assert_str_eq(other, "-");
    tell(&w, "DELETED", cache("n1", A, 80, 0));
    await_label(&w, "n1", "-");
    ck_assert_uint_eq(w.patches, 2);
    end(&w);
}
END_TEST

START_TEST(who_may_not_act_writes_nothing)
{
    World w;
    begin(&w, json_pack("[o, o]", cache("n1", A, 80, 0), cache("gone", A, 10, 700)), FALSE);
    await_bytes(&w, A, "n1", 80);
    g_usleep(2500000);
    ck_assert_uint_eq(w.patches, 0);
    ck_assert_str_eq(w.deleted->str, "");
    pthread_mutex_lock(&w.api.lock);
    w.acts = TRUE;
    pthread_mutex_unlock(&w.api.lock);
    await_label(&w, "n1", "75");
    end(&w);
}
END_TEST

START_TEST(the_NodeCache_of_a_node_that_is_gone_is_deleted)
{
    World w;
    begin(&w,
          json_pack("[o, o, o]", cache("n1", A, 80, 700), cache("gone", A, 10, 700),
                    cache("new", A, 10, 0)),
          TRUE);
    for (int i = 0; i < 400; i++) {
        pthread_mutex_lock(&w.api.lock);
        gboolean done = w.deleted->len > 0;
        pthread_mutex_unlock(&w.api.lock);
        if (done)
            break;
        g_usleep(10000);
    }
    g_usleep(1500000);
    ck_assert_str_eq(w.deleted->str, "gone");
    end(&w);
}
END_TEST

/* A NodeCache whose disk is in this state. */
static json_t *with_disk(const char *node, const char *disk)
{
    json_t *object = cache(node, A, 80, 0);
    json_object_set_new(json_object_get(object, "status"), "cache",
                        json_pack("{s:s}", "disk", disk));
    return object;
}

#define OF(node) "/api/v1/namespaces/default/events CacheBypassed " node ";"

START_TEST(a_node_that_bypasses_its_disk_gets_an_Event)
{
    World w;
    begin(&w, json_pack("[o, o]", with_disk("n1", "bypass"), with_disk("n2", "ok")), TRUE);
    for (int i = 0; i < 10; i++)
        tell(&w, "MODIFIED", with_disk("n1", "bypass"));
    tell(&w, "MODIFIED", with_disk("n2", "bypass"));
    gboolean done = FALSE;
    for (int i = 0; i < 6000 && !done; i++) {
        g_usleep(10000);
        pthread_mutex_lock(&w.api.lock);
        done = strstr(w.posted->str, OF("n1")) && strstr(w.posted->str, OF("n2"));
        pthread_mutex_unlock(&w.api.lock);
    }
    ck_assert_uint_eq(w.posted->len, strlen(OF("n1") OF("n2"))); /* one each */
    end(&w);
}
END_TEST

HARNESS_MAIN("driver/warmth/warmth", it_knows_what_is_warm_on_which_node,
             a_node_that_does_not_report_has_nothing, nodes_are_labelled,
             who_may_not_act_writes_nothing, the_NodeCache_of_a_node_that_is_gone_is_deleted,
             a_node_that_bypasses_its_disk_gets_an_Event)
