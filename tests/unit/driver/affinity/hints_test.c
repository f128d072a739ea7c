/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/hints.h"
#include "driver/affinity/hint.h"
#include "tests/unit/driver/kube/fake_api.h"

#define DRIVER "csi.hearth.dev"
#define VOLUMES "/api/v1/persistentvolumes"
#define HINTS "/apis/csi.hearth.dev/v1alpha1/datasethints"
#define ROOT "/volumes/g/v/.snap/"

/*
 * The fake has volumes and hints to list, takes what is written, and shows it to who watches hints,
 * as an API server does.
 */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    DatasetHints *hints;
    FakeStream volume_stream, hint_stream;
    json_t *volumes;       /* an array; guarded by api.lock, as is what follows */
    json_t *there;         /* "namespace/name" -> DatasetHint */
    GString *writes;       /* "PATCH jobs/x " ... */
    const char *refused;   /* a claim whose hint is refused */
    int hints_list_status; /* 0: it answers */
    gboolean slow_volumes; /* its list does not come */
    unsigned version;
    gint acts;        /* atomic */
    gint asked;       /* atomic; may_act() */
    guint last_write; /* after so many it may not act any more; 0: it may */
    guint written;
    gint troubles;     /* atomic */
    gint well;         /* atomic */
    char trouble[200]; /* of the latest */
} World;

static json_t *volume(const char *name, const char *claim, const char *uid, const char *phase,
                      const char *snapshot)
{
    g_autofree char *root = g_strconcat(ROOT, snapshot, NULL);
    return json_pack(
        "{s:{s:s, s:s, s:s}, s:{s:{s:s, s:{s:s, s:s, s:s}}, s:{s:s, s:s, s:s}}, s:{s:s}}",
        "metadata", "name", name, "uid", name, "resourceVersion", "1", "spec", "csi", "driver",
        DRIVER, "volumeAttributes", "clusterID", "c", "fsName", "f", "rootPath", root, "claimRef",
        "namespace", "jobs", "name", claim, "uid", uid, "status", "phase", phase);
}

static json_t *hint_for(const char *claim, const char *uid, const char *snapshot)
{
    Hint hint = {"jobs", (char *)claim, (char *)uid, "", NULL};
    g_autofree char *root = g_strconcat(ROOT, snapshot, NULL);
    g_autofree char *key = dataset_key("c", "f", root);
    g_strlcpy(hint.dataset, key, sizeof(hint.dataset));
    json_t *object = hint_object(&hint);
    json_object_set_new(json_object_get(object, "metadata"), "uid", json_string(claim));
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string("1"));
    return object;
}

static void push(World *w, FakeStream *stream, const char *type, json_t *object)
{
    g_autofree char *version = g_strdup_printf("%u", ++w->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_string(version));
    json_t *event = json_pack("{s:s, s:O}", "type", type, "object", object);
    char *text = json_dumps(event, JSON_COMPACT);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    fake_stream_push(stream, line);
    free(text);
    json_decref(event);
}

static void answer_list(const json_t *values, FakeReply *reply)
{
    json_t *list = json_pack("{s:{s:s}, s:O}", "metadata", "resourceVersion", "1", "items", values);
    char *text = json_dumps(list, JSON_COMPACT);
    reply->text = g_strdup(text);
    free(text);
    json_decref(list);
}

static void answer_write(World *w, const FakeRequest *request, FakeReply *reply)
{
    const char *name = strrchr(request->path, '/') + 1;
    g_autofree char *key = g_strconcat("jobs/", name, NULL);
    json_t *was = json_object_get(w->there, key);
    /* An event that is older than a deletion may have it repeated, which changes nothing. */
    if (!was && g_str_equal(request->method, "DELETE")) {
        fake_status(reply, 404, "NotFound", "none");
        return;
    }
    g_string_append_printf(w->writes, "%s %s ", request->method, key);
    if (++w->written == w->last_write)
        g_atomic_int_set(&w->acts, FALSE);
    if (g_strcmp0(w->refused, name) == 0) {
        fake_status(reply, 403, "Forbidden", "it is being terminated");
        return;
    }
    if (g_str_equal(request->method, "PATCH")) {
        ck_assert_str_eq(fake_query(request, "fieldManager"), HINT_FIELD_MANAGER);
        ck_assert_str_eq(request->content_type, "application/apply-patch+yaml");
        json_object_set_new(json_object_get(request->body, "metadata"), "uid", json_string(name));
        json_object_set(w->there, key, request->body);
        push(w, &w->hint_stream, "MODIFIED", request->body);
    } else {
        push(w, &w->hint_stream, "DELETED", was);
        json_object_del(w->there, key);
    }
    reply->text = g_strdup("{}");
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    const gboolean volumes = g_str_equal(request->path, VOLUMES);
    if (!g_str_equal(request->method, "GET")) {
        answer_write(w, request, reply);
    } else if (fake_query(request, "watch")) {
        reply->stream = volumes ? &w->volume_stream : &w->hint_stream;
    } else if (volumes) {
        if (w->slow_volumes)
            fake_status(reply, 503, "ServiceUnavailable", "not now");
        else
            answer_list(w->volumes, reply);
    } else if (w->hints_list_status) {
        fake_status(reply, w->hints_list_status, "NotFound", "no such kind");
    } else {
        ck_assert_str_eq(fake_query(request, "labelSelector"), HINT_SELECTOR);
        json_t *array = json_array(), *one;
        const char *key;
        json_object_foreach (w->there, key, one)
            json_array_append(array, one);
        answer_list(array, reply);
        json_decref(array);
    }
}

static gboolean may_act(void *data)
{
    World *w = data;
    g_atomic_int_inc(&w->asked);
    return g_atomic_int_get(&w->acts);
}

static void on_trouble(const GError *error, void *data)
{
    World *w = data;
    if (error)
        g_strlcpy(w->trouble, error->message, sizeof(w->trouble));
    g_atomic_int_inc(error ? &w->troubles : &w->well);
}

static void world_new(World *w)
{
    *w = (World){.volumes = json_array(),
                 .there = json_object(),
                 .writes = g_string_new(NULL),
                 .version = 100,
                 .acts = TRUE};
    fake_stream_init(&w->volume_stream);
    fake_stream_init(&w->hint_stream);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, NULL);
}

static void start(World *w)
{
    static const DatasetHintsOps ops = {.may_act = may_act, .on_trouble = on_trouble};
    w->hints = dataset_hints_new(w->client, DRIVER, &ops, w);
}

static void stream_clear(FakeStream *s)
{
    for (char *piece; (piece = g_queue_pop_head(&s->pieces));) {
        if (piece != FAKE_END && piece != FAKE_DROP)
            g_free(piece);
    }
}

static void world_free(World *w)
{
    dataset_hints_free(w->hints);
    kube_client_free(w->client);
    fake_stream_stop(&w->volume_stream);
    fake_stream_stop(&w->hint_stream);
    fake_api_free(&w->api);
    stream_clear(&w->volume_stream);
    stream_clear(&w->hint_stream);
    json_decref(w->volumes);
    json_decref(w->there);
    g_string_free(w->writes, TRUE);
}

static void have_volume(World *w, json_t *object)
{
    json_array_append_new(w->volumes, object);
}

static void have_hint(World *w, const char *claim, json_t *object)
{
    g_autofree char *key = g_strconcat("jobs/", claim, NULL);
    json_object_set_new(w->there, key, object);
}

static void see_volume(World *w, const char *type, json_t *object)
{
    pthread_mutex_lock(&w->api.lock);
    push(w, &w->volume_stream, type, object);
    pthread_mutex_unlock(&w->api.lock);
    json_decref(object);
}

static gboolean wrote(World *w, const char *wanted)
{
    pthread_mutex_lock(&w->api.lock);
    const gboolean same = g_str_equal(w->writes->str, wanted);
    pthread_mutex_unlock(&w->api.lock);
    return same;
}

/* Exactly these writes, after which all is right; forgets them. */
static void await(World *w, const char *wanted)
{
    for (guint i = 0; i < 2000 && !(wrote(w, wanted) && dataset_hints_pending(w->hints) == 0); i++)
        g_usleep(10000);
    pthread_mutex_lock(&w->api.lock);
    ck_assert_str_eq(w->writes->str, wanted);
    g_string_truncate(w->writes, 0);
    pthread_mutex_unlock(&w->api.lock);
    ck_assert_uint_eq(dataset_hints_pending(w->hints), 0);
}

/* Until both have been listed and are watched. */
static void await_watches(World *w)
{
    fake_stream_await(&w->volume_stream, 1);
    fake_stream_await(&w->hint_stream, 1);
    g_usleep(100000);
}

static char *dataset_of(World *w, const char *claim)
{
    g_autofree char *key = g_strconcat("jobs/", claim, NULL);
    pthread_mutex_lock(&w->api.lock);
    const json_t *spec = json_object_get(json_object_get(w->there, key), "spec");
    char *dataset = g_strdup(json_string_value(json_object_get(spec, "dataset")));
    pthread_mutex_unlock(&w->api.lock);
    return dataset;
}

START_TEST(hint_comes_when_the_claim_is_bound_and_goes_when_it_is_released)
{
    World w;
    world_new(&w);
    start(&w);
    await_watches(&w);
    see_volume(&w, "ADDED", volume("pv1", "x", "u1", "Pending", "s1"));
    see_volume(&w, "MODIFIED", volume("pv1", "x", "u1", "Bound", "s1"));
    await(&w, "PATCH jobs/x ");
    g_autofree char *got = dataset_of(&w, "x");
    g_autofree char *wanted = dataset_key("c", "f", ROOT "s1");
    ck_assert_str_eq(got, wanted);
    see_volume(&w, "MODIFIED", volume("pv1", "x", "u1", "Released", "s1"));
    await(&w, "DELETE jobs/x ");
    see_volume(&w, "ADDED", volume("pv2", "y", "u2", "Bound", "s1"));
    await(&w, "PATCH jobs/y ");
    see_volume(&w, "DELETED", volume("pv2", "y", "u2", "Bound", "s1"));
    await(&w, "DELETE jobs/y ");
    world_free(&w);
}
END_TEST

START_TEST(start_writes_only_what_is_wrong)
{
    World w;
    world_new(&w);
    have_volume(&w, volume("pv1", "right", "u1", "Bound", "s1"));
    have_volume(&w, volume("pv2", "other", "u2", "Bound", "s2"));
    have_hint(&w, "right", hint_for("right", "u1", "s1"));
    have_hint(&w, "other", hint_for("other", "u2", "s1"));
    start(&w);
    await(&w, "PATCH jobs/other ");
    dataset_hints_free(w.hints);
    start(&w);
    fake_stream_await(&w.hint_stream, 2);
    g_usleep(300000);
    await(&w, "");
    world_free(&w);
}
END_TEST

START_TEST(hint_of_a_volume_that_went_meanwhile_is_deleted)
{
    World w;
    world_new(&w);
    have_hint(&w, "old", hint_for("old", "u1", "s1"));
    start(&w);
    await(&w, "DELETE jobs/old ");
    world_free(&w);
}
END_TEST

START_TEST(nothing_is_written_before_all_volumes_are_known)
{
    World w;
    world_new(&w);
    have_volume(&w, volume("pv1", "x", "u1", "Bound", "s1"));
    have_hint(&w, "x", hint_for("x", "u1", "s1"));
    w.slow_volumes = TRUE;
    start(&w);
    fake_stream_await(&w.hint_stream, 1);
    g_usleep(500000);
    ck_assert(wrote(&w, ""));
    ck_assert_uint_eq(dataset_hints_pending(w.hints), 1);
    pthread_mutex_lock(&w.api.lock);
    w.slow_volumes = FALSE;
    pthread_mutex_unlock(&w.api.lock);
    fake_stream_await(&w.volume_stream, 1);
    await(&w, "");
    world_free(&w);
}
END_TEST

START_TEST(one_who_may_not_act_keeps_up_and_writes_nothing)
{
    World w;
    world_new(&w);
    have_volume(&w, volume("pv1", "x", "u1", "Bound", "s1"));
    w.acts = FALSE;
    start(&w);
    await_watches(&w);
    see_volume(&w, "ADDED", volume("pv2", "y", "u2", "Bound", "s1"));
    see_volume(&w, "ADDED", volume("pv3", "z", "u3", "Bound", "s1"));
    g_usleep(1500000);
    ck_assert(wrote(&w, ""));
    ck_assert_int_le(g_atomic_int_get(&w.asked), 5);
    /* Who may act has done one of them. */
    pthread_mutex_lock(&w.api.lock);
    json_t *object = hint_for("x", "u1", "s1");
    push(&w, &w.hint_stream, "ADDED", object);
    json_decref(object);
    pthread_mutex_unlock(&w.api.lock);
    see_volume(&w, "DELETED", volume("pv3", "z", "u3", "Bound", "s1"));
    while (dataset_hints_pending(w.hints) != 1)
        g_usleep(10000);
    g_atomic_int_set(&w.acts, TRUE);
    await(&w, "PATCH jobs/y ");
    world_free(&w);
}
END_TEST

START_TEST(one_who_may_not_act_any_more_stops_at_once)
{
    World w;
    world_new(&w);
    w.last_write = 2;
    have_volume(&w, volume("pv1", "x", "u1", "Bound", "s1"));
    have_volume(&w, volume("pv2", "y", "u2", "Bound", "s1"));
    have_volume(&w, volume("pv3", "z", "u3", "Bound", "s1"));
    start(&w);
    while (g_atomic_int_get(&w.acts))
        g_usleep(10000);
    g_usleep(500000);
    pthread_mutex_lock(&w.api.lock);
    ck_assert_uint_eq(w.written, 2);
    pthread_mutex_unlock(&w.api.lock);
    world_free(&w);
}
END_TEST

START_TEST(one_that_is_refused_does_not_hold_up_others)
{
    World w;
    world_new(&w);
    w.refused = "x";
    start(&w);
    await_watches(&w);
    see_volume(&w, "ADDED", volume("pv1", "x", "u1", "Bound", "s1"));
    while (g_atomic_int_get(&w.troubles) == 0)
        g_usleep(10000);
    ck_assert_ptr_nonnull(strstr(w.trouble, "jobs/x"));
    ck_assert_ptr_nonnull(strstr(w.trouble, "being terminated"));
    see_volume(&w, "ADDED", volume("pv2", "y", "u2", "Bound", "s1"));
    g_autofree char *there = NULL;
    while (!(there = dataset_of(&w, "y")))
        g_usleep(10000);
    /* It is tried again, not over and over, and told once. */
    g_usleep(3000000);
    pthread_mutex_lock(&w.api.lock);
    ck_assert_uint_le(strlen(w.writes->str), 7 * strlen("PATCH jobs/x "));
    ck_assert_uint_ge(strlen(w.writes->str), 3 * strlen("PATCH jobs/x "));
    pthread_mutex_unlock(&w.api.lock);
    ck_assert_int_eq(g_atomic_int_get(&w.troubles), 1);
    ck_assert_int_eq(g_atomic_int_get(&w.well), 0);
    see_volume(&w, "DELETED", volume("pv1", "x", "u1", "Bound", "s1"));
    while (g_atomic_int_get(&w.well) == 0)
        g_usleep(10000);
    world_free(&w);
}
END_TEST

START_TEST(cluster_without_the_resource_is_told_once)
{
    World w;
    world_new(&w);
    w.hints_list_status = 404;
    have_volume(&w, volume("pv1", "x", "u1", "Bound", "s1"));
    start(&w);
    while (g_atomic_int_get(&w.troubles) == 0)
        g_usleep(10000);
    g_usleep(1000000);
    ck_assert_int_eq(g_atomic_int_get(&w.troubles), 1);
    pthread_mutex_lock(&w.api.lock);
    w.hints_list_status = 0;
    pthread_mutex_unlock(&w.api.lock);
    await(&w, "PATCH jobs/x ");
    /* The watch tells it on a thread of its own. */
    while (g_atomic_int_get(&w.well) == 0)
        g_usleep(10000);
    ck_assert_int_eq(g_atomic_int_get(&w.well), 1);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/affinity/hints",
             hint_comes_when_the_claim_is_bound_and_goes_when_it_is_released,
             start_writes_only_what_is_wrong, hint_of_a_volume_that_went_meanwhile_is_deleted,
             nothing_is_written_before_all_volumes_are_known,
             one_who_may_not_act_keeps_up_and_writes_nothing,
             one_who_may_not_act_any_more_stops_at_once,
             one_that_is_refused_does_not_hold_up_others, cluster_without_the_resource_is_told_once)
