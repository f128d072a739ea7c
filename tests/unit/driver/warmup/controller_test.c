/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/controller.h"
#include "common/field.h"
#include "driver/kube/time.h"
#include "tests/unit/driver/kube/fake_api.h"

#define DRIVER "csi.hearth.dev"
#define WARMUPS "/apis/csi.hearth.dev/v1alpha1/cachewarmups"
#define JOBS "/apis/csi.hearth.dev/v1alpha1/namespaces/jobs/cachewarmups/"
#define CACHES "/apis/csi.hearth.dev/v1alpha1/nodecaches"
#define NODES "/api/v1/nodes"
#define CLAIM "/api/v1/namespaces/jobs/persistentvolumeclaims/data"
#define VOLUME "/api/v1/persistentvolumes/pv"
#define ROOT "/volumes/g/v/.snap/s/1"

enum { OF_WARMUPS, OF_CACHES, OF_NODES, KINDS };
static const char *const lists[KINDS] = {WARMUPS, CACHES, NODES};

/* Objects by their paths, lists and watches of them, and merge patches, as an API server has them.
 */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    Warmth *warmth;
    Warmups *warmups;
    FakeStream streams[KINDS];
    json_t *objects[KINDS]; /* api.lock: name -> object, as what follows */
    json_t *claim, *volume;
    GString *patches; /* "NAME " of each that was patched */
    GString *posted;  /* Events: "REASON KIND NAME;" each */
    unsigned version;
    gboolean acts, refuses; /* writes */
    json_t *classes;        /* items; NULL: none */
    guint asked;            /* lists of volumes */
    const char *shown;      /* the dataset that claim "data" of namespace jobs shows */
} World;

static json_t *stamp(World *w, json_t *object)
{
    g_autofree char *version = g_strdup_printf("%u", ++w->version);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_string(version));
    return object;
}

static void push_locked(World *w, guint kind, const char *type, json_t *object)
{
    json_t *event = json_pack("{s:s, s:O}", "type", type, "object", stamp(w, object));
    char *text = json_dumps(event, JSON_COMPACT);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    fake_stream_push(&w->streams[kind], line);
    free(text);
    json_decref(event);
}

static void merge(json_t *into, json_t *patch)
{
    const char *name;
    json_t *value;
    json_object_foreach (patch, name, value) {
        json_t *have = json_object_get(into, name);
        if (json_is_null(value))
            json_object_del(into, name);
        else if (json_is_object(value) && json_is_object(have))
            merge(have, value);
        else
            json_object_set(into, name, value);
    }
}

static void answer_json(FakeReply *reply, const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    reply->text = g_strdup(text);
    free(text);
}

static void answer_list(World *w, guint kind, FakeReply *reply)
{
    json_t *items = json_array(), *value;
    const char *name;
    json_object_foreach (w->objects[kind], name, value)
        json_array_append(items, value);
    json_t *list = json_pack("{s:{s:s}, s:o}", "metadata", "resourceVersion", "1", "items", items);
    answer_json(reply, list);
    json_decref(list);
}

static void answer_patch(World *w, const FakeRequest *request, FakeReply *reply)
{
    const guint kind = g_str_has_prefix(request->path, CACHES) ? OF_CACHES : OF_WARMUPS;
    g_auto(GStrv) parts = g_strsplit(request->path, "/", -1);
    const guint n = g_strv_length(parts);
    const char *name = g_str_equal(parts[n - 1], "status") ? parts[n - 2] : parts[n - 1];
    json_t *object = json_object_get(w->objects[kind], name);
    if (w->refuses || !object) {
        fake_status(reply, w->refuses ? 403 : 404, w->refuses ? "Forbidden" : "NotFound", "no");
        return;
    }
    g_string_append_printf(w->patches, "%s ", name);
    /* What others hold of it stays as it is. */
    json_t *copy = json_deep_copy(object);
    merge(copy, request->body);
    json_object_set_new(w->objects[kind], name, copy);
    push_locked(w, kind, "MODIFIED", copy);
    answer_json(reply, copy);
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    if (g_str_equal(request->method, "PATCH")) {
        answer_patch(w, request, reply);
        return;
    }
    if (g_str_equal(request->method, "POST")) {
        const json_t *about = json_object_get(request->body, "involvedObject");
        g_string_append_printf(w->posted, "%s %s %s;", field_text(request->body, "reason"),
                               field_text(about, "kind"), field_text(about, "name"));
        reply->text = g_strdup("{}");
        return;
    }
    for (guint kind = 0; kind < KINDS; kind++) {
        if (!g_str_equal(request->path, lists[kind]))
            continue;
        if (fake_query(request, "watch"))
            reply->stream = &w->streams[kind];
        else
            answer_list(w, kind, reply);
        return;
    }
    w->asked += g_str_equal(request->path, "/api/v1/persistentvolumes");
    if (g_str_equal(request->path, "/apis/storage.k8s.io/v1/storageclasses")) {
        json_t *list =
            json_pack("{s:{s:s}, s:O?}", "metadata", "resourceVersion", "1", "items", w->classes);
        answer_json(reply, list);
        json_decref(list);
    } else if (g_str_equal(request->path, CLAIM) && w->claim)
        answer_json(reply, w->claim);
    else if (g_str_equal(request->path, VOLUME) && w->volume)
        answer_json(reply, w->volume);
    else
        fake_status(reply, 404, "NotFound", "none");
}

static gboolean may_act(void *data)
{
    World *w = data;
    pthread_mutex_lock(&w->api.lock);
    const gboolean acts = w->acts;
    pthread_mutex_unlock(&w->api.lock);
    return acts;
}

static void put(World *w, guint kind, const char *name, json_t *object)
{
    pthread_mutex_lock(&w->api.lock);
    const char *type = json_object_get(w->objects[kind], name) ? "MODIFIED" : "ADDED";
    json_object_set_new(w->objects[kind], name, object);
    push_locked(w, kind, type, object);
    pthread_mutex_unlock(&w->api.lock);
}

static void drop(World *w, guint kind, const char *name)
{
    pthread_mutex_lock(&w->api.lock);
    push_locked(w, kind, "DELETED", json_object_get(w->objects[kind], name));
    json_object_del(w->objects[kind], name);
    pthread_mutex_unlock(&w->api.lock);
}

static json_t *node(const char *name)
{
    return json_pack("{s:{s:s, s:s, s:s, s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata", "name", name,
                     "uid", name, "resourceVersion", "1", "labels", "kubernetes.io/hostname", name,
                     "status", "conditions", "type", "Ready", "status", "True");
}

static json_t *cache(const char *name)
{
    g_autofree char *now = kube_time_format(g_get_real_time());
    return json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:{s:s, s:i, s:I, s:I}, s:[]}}", "metadata",
                     "name", name, "uid", name, "resourceVersion", "1", "status", "heartbeatTime",
                     now, "cache", "disk", "ok", "bytes", 0, "maxBytes", (json_int_t)1 << 40,
                     "freeBytes", (json_int_t)1 << 40, "datasets");
}

static json_t *order_of(const char *name, json_int_t generation, json_t *spec)
{
    return json_pack("{s:{s:s, s:s, s:s, s:s, s:I, s:s}, s:o}", "metadata", "namespace", "jobs",
                     "name", name, "uid", name, "resourceVersion", "1", "generation", generation,
                     "creationTimestamp", "2026-01-01T00:00:00Z", "spec", spec);
}

/* What the watch of hints knows. */
static char *claim_of(void *data, const char *namespace, const char *dataset)
{
    World *w = data;
    pthread_mutex_lock(&w->api.lock);
    const gboolean shows = g_str_equal(namespace, "jobs") && g_strcmp0(w->shown, dataset) == 0;
    pthread_mutex_unlock(&w->api.lock);
    return shows ? g_strdup("data") : NULL;
}

/* n1 and n2 have caches, n3 has none. */
static World *world_new(void)
{
    static const char *const names[] = {"n1", "n2", "n3"};
    const KubeClientOptions options = {.writes_per_second = 1000, .write_burst = 1000};
    World *w = g_new0(World, 1);
    const WarmupsOps ops = {.may_act = may_act,
                            .driver_name = DRIVER,
                            .claim_of = claim_of,
                            .claims = w,
                            .round_ms = 50,
                            .retry_ms = 500};
    w->acts = TRUE;
    w->version = 100;
    w->patches = g_string_new(NULL);
    w->posted = g_string_new(NULL);
    for (guint i = 0; i < KINDS; i++) {
        w->objects[i] = json_object();
        fake_stream_init(&w->streams[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        json_object_set_new(w->objects[OF_NODES], names[i], node(names[i]));
        if (i < 2)
            json_object_set_new(w->objects[OF_CACHES], names[i], cache(names[i]));
    }
    w->claim = json_pack("{s:{s:s, s:s, s:s}, s:{s:s}}", "metadata", "namespace", "jobs", "name",
                         "data", "uid", "u", "spec", "volumeName", "pv");
    w->volume = json_pack("{s:{s:s}, s:{s:{s:s, s:s, s:s}, s:{s:s, s:{s:s, s:s, s:s}}}}",
                          "metadata", "name", "pv", "spec", "claimRef", "namespace", "jobs", "name",
                          "data", "uid", "u", "csi", "driver", DRIVER, "volumeAttributes",
                          "clusterID", "c", "fsName", "f", "rootPath", ROOT);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, &options);
    w->warmth = warmth_new(w->client, may_act, w);
    w->warmups = warmups_new(w->client, w->warmth, &ops, w);
    for (guint i = 0; i < KINDS; i++)
        fake_stream_await(&w->streams[i], 1);
    return w;
}

static void world_free(World *w)
{
    for (guint i = 0; i < KINDS; i++)
        fake_stream_stop(&w->streams[i]);
    warmups_free(w->warmups);
    warmth_free(w->warmth);
    kube_client_free(w->client);
    fake_api_free(&w->api);
    for (guint i = 0; i < KINDS; i++) {
        fake_stream_clear(&w->streams[i]);
        json_decref(w->objects[i]);
    }
    json_decref(w->claim);
    json_decref(w->volume);
    json_decref(w->classes);
    g_string_free(w->patches, TRUE);
    g_string_free(w->posted, TRUE);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

/* The part of an object at a path "a.b"; a new reference, NULL: none. */
static json_t *part_of(World *w, guint kind, const char *name, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    pthread_mutex_lock(&w->api.lock);
    json_t *at = json_object_get(w->objects[kind], name);
    for (char **part = parts; *part; part++)
        at = json_object_get(at, *part);
    at = at ? json_deep_copy(at) : NULL;
    pthread_mutex_unlock(&w->api.lock);
    return at;
}

static void await_phase(World *w, const char *name, const char *phase)
{
    for (int i = 0;; i++) {
        json_t *status = part_of(w, OF_WARMUPS, name, "status");
        const gboolean is = g_str_equal(field_text(status, "phase"), phase);
        ck_assert_msg(i < 2000, "%s is %s, not %s", name, field_text(status, "phase"), phase);
        json_decref(status);
        if (is)
            return;
        g_usleep(10000);
    }
}

/* Waits until the node has so many orders; the first, a new reference. */
static json_t *await_orders(World *w, const char *node_name, size_t count)
{
    for (int i = 0; i < 1500; i++) {
        json_t *orders = part_of(w, OF_CACHES, node_name, "spec.warmups");
        json_t *first = json_incref(json_array_get(orders, 0));
        const gboolean is = json_array_size(orders) == count;
        json_decref(orders);
        if (is)
            return first;
        json_decref(first);
        g_usleep(10000);
    }
    ck_abort_msg("%s has not %zu orders", node_name, count);
}

static void says(World *w, const char *node_name, const char *run, const char *state)
{
    g_autofree char *now = kube_time_format(g_get_real_time());
    json_t *object = cache(node_name);
    json_t *spec = part_of(w, OF_CACHES, node_name, "spec");
    json_t *status = json_object_get(object, "status");
    if (spec)
        json_object_set_new(object, "spec", spec);
    json_object_set_new(status, "warmups",
                        json_pack("[{s:s, s:s, s:s, s:s, s:i}]", "namespace", "jobs", "name", "w",
                                  "run", run, "state", state, "percent", 50));
    put(w, OF_CACHES, node_name, object);
}

static json_t *spec_of(int nodes)
{
    return json_pack("{s:s, s:i}", "persistentVolumeClaim", "data", "nodes", nodes);
}

START_TEST(a_run_goes_to_nodes_and_ends_with_them)
{
    g_autoptr(World) w = world_new();
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(2)));
    await_phase(w, "w", "Warming");
    json_t *first = await_orders(w, "n1", 1), *second = await_orders(w, "n2", 1);
    ck_assert(json_equal(first, second));
    ck_assert_str_eq(field_text(first, "run"), "w.1.0");
    ck_assert_str_eq(field_text(json_object_get(first, "origin"), "rootPath"), ROOT);
    says(w, "n1", "w.1.0", "Succeeded");
    json_decref(await_orders(w, "n1", 0));
    says(w, "n2", "w.1.0", "Succeeded");
    await_phase(w, "w", "Warm");
    json_decref(await_orders(w, "n2", 0));
    pthread_mutex_lock(&w->api.lock);
    ck_assert_str_eq(w->posted->str,
                     "Started CacheWarmup w;NodeWarm CacheWarmup w;NodeWarm CacheWarmup w;"
                     "Completed CacheWarmup w;");
    pthread_mutex_unlock(&w->api.lock);
    json_decref(first);
    json_decref(second);
}
END_TEST

START_TEST(deleting_takes_the_orders_back)
{
    g_autoptr(World) w = world_new();
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(1)));
    await_phase(w, "w", "Warming");
    json_t *status = part_of(w, OF_WARMUPS, "w", "status");
    g_autofree char *chosen =
        g_strdup(field_text(json_array_get(json_object_get(status, "nodes"), 0), "name"));
    json_decref(status);
    json_decref(await_orders(w, chosen, 1));
    drop(w, OF_WARMUPS, "w");
    json_decref(await_orders(w, chosen, 0));
}
END_TEST

START_TEST(suspending_takes_the_orders_back_until_it_may_again)
{
    g_autoptr(World) w = world_new();
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(2)));
    json_decref(await_orders(w, "n1", 1));
    json_t *status = part_of(w, OF_WARMUPS, "w", "status"), *spec = spec_of(2);
    json_object_set_new(spec, "suspend", json_true());
    json_t *suspended = order_of("w", 2, spec);
    json_object_set(suspended, "status", status);
    put(w, OF_WARMUPS, "w", suspended);
    await_phase(w, "w", "Suspended");
    json_decref(await_orders(w, "n1", 0));
    put(w, OF_WARMUPS, "w", order_of("w", 3, spec_of(2)));
    json_t *order = await_orders(w, "n1", 1);
    ck_assert_str_eq(field_text(order, "run"), "w.3.0");
    json_decref(order);
    json_decref(status);
}
END_TEST

START_TEST(what_is_missing_is_waited_for)
{
    g_autoptr(World) w = world_new();
    pthread_mutex_lock(&w->api.lock);
    json_t *claim = g_steal_pointer(&w->claim);
    pthread_mutex_unlock(&w->api.lock);
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(1)));
    await_phase(w, "w", "Pending");
    json_t *conditions = part_of(w, OF_WARMUPS, "w", "status.conditions");
    ck_assert_str_eq(field_text(json_array_get(conditions, 0), "message"),
                     "there is no claim data in namespace jobs");
    json_decref(conditions);
    pthread_mutex_lock(&w->api.lock);
    w->claim = claim;
    pthread_mutex_unlock(&w->api.lock);
    await_phase(w, "w", "Warming");
}
END_TEST

static char *waits_for(World *w, const char *name)
{
    await_phase(w, name, "Pending");
    json_t *conditions = part_of(w, OF_WARMUPS, name, "status.conditions");
    char *message = g_strdup(field_text(json_array_get(conditions, 0), "message"));
    json_decref(conditions);
    return message;
}

static void check_that_a_claim_shows_nothing(const char *field, const char *of_volume)
{
    g_autoptr(World) w = world_new();
    json_t *ref = json_object_get(json_object_get(w->volume, "spec"), "claimRef");
    pthread_mutex_lock(&w->api.lock);
    if (of_volume)
        json_object_set_new(ref, field, json_string(of_volume));
    else
        json_object_del(ref, field);
    pthread_mutex_unlock(&w->api.lock);
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(1)));
    g_autofree char *message = waits_for(w, "w");
    ck_assert_str_eq(message, "claim data is not bound to the volume pv that it names");
}

START_TEST(a_claim_that_names_anothers_volume_shows_nothing)
{
    check_that_a_claim_shows_nothing("namespace", "others");
    check_that_a_claim_shows_nothing("name", "other");
}
END_TEST

/* A volume that was released keeps the name of the claim that it had. */
START_TEST(nor_does_one_that_has_the_name_of_a_claim_that_has_gone)
{
    check_that_a_claim_shows_nothing("uid", "of the claim before");
    check_that_a_claim_shows_nothing("uid", NULL);
}
END_TEST

START_TEST(a_dataset_is_for_namespaces_of_which_a_claim_shows_it)
{
    g_autoptr(World) w = world_new();
    g_autofree char *key = dataset_key("c", "f", "/volumes/g/v/.snap/s");
    json_t *spec = json_pack("{s:s}", "dataset", key);
    put(w, OF_WARMUPS, "other", order_of("other", 1, spec));
    put(w, OF_WARMUPS, "none",
        order_of("none", 1, json_pack("{s:s}", "dataset", "0123456789abcdef")));
    g_autofree char *other = waits_for(w, "other"), *none = waits_for(w, "none");
    /* Whether there is such a dataset is not told. */
    g_autofree char *as_other =
        g_strdup_printf("no claim of namespace jobs shows dataset %s;", key);
    ck_assert(g_str_has_prefix(other, as_other));
    ck_assert(g_str_has_prefix(none, "no claim of namespace jobs shows dataset 0123456789abcdef;"));
    pthread_mutex_lock(&w->api.lock);
    w->shown = key;
    pthread_mutex_unlock(&w->api.lock);
    await_phase(w, "other", "Warming");
    pthread_mutex_lock(&w->api.lock);
    ck_assert_uint_eq(w->asked, 0); /* PersistentVolumes are not listed for it */
    w->shown = NULL;
    pthread_mutex_unlock(&w->api.lock);
}
END_TEST

START_TEST(or_that_a_class_of_it_names)
{
    static const char *const named[] = {"others", "others, jobs", "*"};
    for (gsize i = 0; i < G_N_ELEMENTS(named); i++) {
        g_autoptr(World) w = world_new();
        g_autofree char *key = dataset_key("c", "f", "/volumes/csi/v/.snap/s");
        pthread_mutex_lock(&w->api.lock);
        w->classes =
            json_pack("[{s:{s:s, s:{s:s}}, s:s, s:{s:s, s:s, s:s}}]", "metadata", "name", "models",
                      "annotations", WARMUP_NAMESPACES, named[i], "provisioner", DRIVER,
                      "parameters", "clusterID", "c", "fsName", "f", "dataset", "v@s");
        pthread_mutex_unlock(&w->api.lock);
        put(w, OF_WARMUPS, "w", order_of("w", 1, json_pack("{s:s}", "dataset", key)));
        put(w, OF_WARMUPS, "named", order_of("named", 1, json_pack("{s:s}", "dataset", "v@s")));
        await_phase(w, "w", i == 0 ? "Pending" : "Warming");
        await_phase(w, "named", i == 0 ? "Pending" : "Warming");
    }
}
END_TEST

START_TEST(a_spec_that_cannot_be_done_says_so)
{
    g_autoptr(World) w = world_new();
    put(w, OF_WARMUPS, "w",
        order_of("w", 1, json_pack("{s:s, s:s}", "dataset", "x", "schedule", "never")));
    await_phase(w, "w", "Failed");
    put(w, OF_WARMUPS, "w", order_of("w", 2, spec_of(1)));
    await_phase(w, "w", "Warming");
    pthread_mutex_lock(&w->api.lock);
    ck_assert(g_str_has_prefix(w->posted->str, "Failed CacheWarmup w;"));
    pthread_mutex_unlock(&w->api.lock);
}
END_TEST

START_TEST(who_may_not_act_writes_nothing_and_goes_on_when_it_may)
{
    g_autoptr(World) w = world_new();
    pthread_mutex_lock(&w->api.lock);
    w->acts = FALSE;
    pthread_mutex_unlock(&w->api.lock);
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(1)));
    g_usleep(300 * 1000);
    pthread_mutex_lock(&w->api.lock);
    ck_assert_uint_eq(w->patches->len, 0);
    w->acts = TRUE;
    pthread_mutex_unlock(&w->api.lock);
    await_phase(w, "w", "Warming");
}
END_TEST

/* A run of another controller's: n1, if it has a part, is at it, n2 has not begun. */
static json_t *run_under_way(gboolean on_n1)
{
    g_autofree char *key = dataset_key("c", "f", ROOT);
    g_autofree char *now = kube_time_format(g_get_real_time());
    json_t *object = order_of("w", 1, spec_of(1));
    json_t *nodes = json_pack("[{s:s, s:s, s:s}]", "name", "n2", "state", "Pending", "since", now);
    if (on_n1)
        json_array_append_new(
            nodes, json_pack("{s:s, s:s, s:s}", "name", "n1", "state", "Running", "since", now));
    json_object_set_new(object, "status",
                        json_pack("{s:s, s:s, s:i, s:s, s:o}", "phase", "Warming", "run", "w.1.0",
                                  "observedGeneration", 1, "dataset", key, "nodes", nodes));
    return object;
}

static void set_acts(World *w, gboolean acts)
{
    pthread_mutex_lock(&w->api.lock);
    w->acts = acts;
    pthread_mutex_unlock(&w->api.lock);
}

static void no_claim(World *w)
{
    pthread_mutex_lock(&w->api.lock);
    json_decref(w->claim);
    w->claim = NULL;
    pthread_mutex_unlock(&w->api.lock);
}

static void has_order(World *w, const char *node_name, const char *root)
{
    json_t *object = cache(node_name);
    json_object_set_new(object, "spec",
                        json_pack("{s:[{s:s, s:s, s:s, s:{s:s, s:s, s:s}}]}", "warmups",
                                  "namespace", "jobs", "name", "w", "run", "w.1.0", "origin",
                                  "clusterID", "c", "fsName", "f", "rootPath", root));
    put(w, OF_CACHES, node_name, object);
}

static void is_ordered(World *w, const char *node_name, const char *root)
{
    json_t *order = await_orders(w, node_name, 1);
    ck_assert_str_eq(field_text(json_object_get(order, "origin"), "rootPath"), root);
    json_decref(order);
}

START_TEST(another_controllers_run_is_gone_on_with)
{
    g_autoptr(World) w = world_new();
    json_t *object = run_under_way(FALSE);
    /* One of an earlier release told a place, which nobody believes any more. */
    json_object_set_new(json_object_get(object, "status"), "origin",
                        json_pack("{s:s, s:s, s:s}", "clusterID", "c", "fsName", "f", "rootPath",
                                  "/volumes/g/other/.snap/s/1"));
    put(w, OF_WARMUPS, "w", object);
    is_ordered(w, "n2", ROOT);
    says(w, "n2", "w.1.0", "Succeeded");
    await_phase(w, "w", "Warm");
    ck_assert_ptr_null(part_of(w, OF_WARMUPS, "w", "status.origin"));
}
END_TEST

START_TEST(also_from_its_orders_when_the_claim_is_gone)
{
    g_autoptr(World) w = world_new();
    /* It begins when both are there, as after its first lists. */
    set_acts(w, FALSE);
    no_claim(w);
    has_order(w, "n1", ROOT);
    put(w, OF_WARMUPS, "w", run_under_way(TRUE));
    g_usleep(500 * 1000);
    set_acts(w, TRUE);
    is_ordered(w, "n2", ROOT);
    is_ordered(w, "n1", ROOT);
}
END_TEST

START_TEST(but_not_from_one_for_another_place)
{
    g_autoptr(World) w = world_new();
    /* It begins when both are there, as after its first lists. */
    set_acts(w, FALSE);
    has_order(w, "n1", "/volumes/g/secret/.snap/s/1");
    put(w, OF_WARMUPS, "w", run_under_way(TRUE));
    g_usleep(500 * 1000);
    set_acts(w, TRUE);
    is_ordered(w, "n2", ROOT);
    for (int i = 0; i < 500; i++) {
        json_t *order = await_orders(w, "n1", 1);
        const gboolean right =
            g_str_equal(field_text(json_object_get(order, "origin"), "rootPath"), ROOT);
        json_decref(order);
        if (right)
            return;
        g_usleep(10000);
    }
    ck_abort_msg("n1 still has the other place");
}
END_TEST

START_TEST(one_whose_dataset_is_nowhere_has_failed)
{
    g_autoptr(World) w = world_new();
    no_claim(w);
    put(w, OF_WARMUPS, "w", run_under_way(FALSE));
    await_phase(w, "w", "Failed");
    json_t *conditions = part_of(w, OF_WARMUPS, "w", "status.conditions");
    ck_assert_str_eq(field_text(json_array_get(conditions, 1), "reason"), "DatasetLost");
    ck_assert_ptr_nonnull(
        strstr(field_text(json_array_get(conditions, 1), "message"), "there is no claim data"));
    json_decref(conditions);
}
END_TEST

START_TEST(status_tells_no_place)
{
    g_autoptr(World) w = world_new();
    put(w, OF_WARMUPS, "w", order_of("w", 1, spec_of(1)));
    await_phase(w, "w", "Warming");
    json_t *status = part_of(w, OF_WARMUPS, "w", "status");
    g_autofree char *node_name =
        g_strdup(field_text(json_array_get(json_object_get(status, "nodes"), 0), "name"));
    json_decref(status);
    json_decref(await_orders(w, node_name, 1));
    /* A node of an earlier release, or one that wants to. */
    json_t *object = cache(node_name);
    json_object_set_new(object, "spec", part_of(w, OF_CACHES, node_name, "spec"));
    json_object_set_new(json_object_get(object, "status"), "warmups",
                        json_pack("[{s:s, s:s, s:s, s:s, s:s}]", "namespace", "jobs", "name", "w",
                                  "run", "w.1.0", "state", "Failed", "message",
                                  "cannot open " ROOT ": No such file or directory"));
    put(w, OF_CACHES, node_name, object);
    await_phase(w, "w", "Failed");
    status = part_of(w, OF_WARMUPS, "w", "status");
    char *text = json_dumps(status, 0);
    ck_assert_msg(!strstr(text, "/volumes"), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "cannot open (path): No such file or directory"));
    ck_assert_ptr_null(json_object_get(status, "origin"));
    ck_assert_uint_eq(strlen(field_text(status, "dataset")), 16);
    free(text);
    json_decref(status);
}
END_TEST

START_TEST(orders_that_nobody_gives_are_taken_back)
{
    g_autoptr(World) w = world_new();
    json_t *object = cache("n1");
    json_object_set_new(object, "spec", json_pack("{s:[{s:s}]}", "warmups", "run", "x.1.0"));
    put(w, OF_CACHES, "n1", object);
    json_decref(await_orders(w, "n1", 0));
}
END_TEST

START_TEST(writes_that_are_refused_are_tried_again)
{
    g_autoptr(World) w = world_new();
    pthread_mutex_lock(&w->api.lock);
    w->refuses = TRUE;
    pthread_mutex_unlock(&w->api.lock);
    put(w, OF_WARMUPS, "w", order_of("w", 1, json_pack("{s:s}", "dataset", "x")));
    g_usleep(300 * 1000);
    pthread_mutex_lock(&w->api.lock);
    w->refuses = FALSE;
    pthread_mutex_unlock(&w->api.lock);
    await_phase(w, "w", "Failed");
}
END_TEST

HARNESS_MAIN("driver/warmup/controller", a_claim_that_names_anothers_volume_shows_nothing,
             nor_does_one_that_has_the_name_of_a_claim_that_has_gone,
             a_dataset_is_for_namespaces_of_which_a_claim_shows_it, or_that_a_class_of_it_names,
             a_run_goes_to_nodes_and_ends_with_them, deleting_takes_the_orders_back,
             suspending_takes_the_orders_back_until_it_may_again, what_is_missing_is_waited_for,
             a_spec_that_cannot_be_done_says_so,
             who_may_not_act_writes_nothing_and_goes_on_when_it_may,
             another_controllers_run_is_gone_on_with, also_from_its_orders_when_the_claim_is_gone,
             but_not_from_one_for_another_place, one_whose_dataset_is_nowhere_has_failed,
             status_tells_no_place, orders_that_nobody_gives_are_taken_back,
             writes_that_are_refused_are_tried_again)
