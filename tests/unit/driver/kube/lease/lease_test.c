/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/lease/lease.h"
#include "tests/unit/driver/kube/fake_api.h"

/* One lease, kept as an API server keeps it: a PUT with an old resourceVersion is a conflict. */
typedef struct World {
    FakeApi api;
    KubeClient *client;
    json_t *lease; /* guarded by api.lock, as is what follows */
    unsigned version;
    int status;    /* what every request is refused with; 0: none is */
    int conflicts; /* so many PUTs are made by another just before */
} World;

typedef struct Member {
    World *world;
    KubeLease *lease;
    int acting, gained, lost, troubles; /* atomic */
} Member;

static int acting_most; /* atomic */

static json_t *spec_of(World *w)
{
    return json_object_get(w->lease, "spec");
}

static void store(World *w, json_t *object)
{
    json_t *copy = json_deep_copy(object);
    json_decref(w->lease);
    w->lease = copy;
    g_autofree char *version = g_strdup_printf("%u", ++w->version);
    json_object_set_new(json_object_get(w->lease, "metadata"), "resourceVersion",
                        json_string(version));
}

static const char *version_of(const json_t *object)
{
    return json_string_value(
        json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
}

static void answer(World *w, FakeReply *reply)
{
    char *text = json_dumps(w->lease, 0);
    reply->text = g_strdup(text);
    free(text);
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    const gboolean put = g_str_equal(request->method, "PUT");
    if (put && w->lease && w->conflicts > 0) {
        w->conflicts--;
        store(w, w->lease);
    }
    if (w->status) {
        fake_status(reply, w->status, "Down", "down");
    } else if (g_str_equal(request->method, "POST")) {
        ck_assert(g_str_has_suffix(request->path, "/namespaces/ns/leases"));
        if (w->lease) {
            fake_status(reply, 409, "AlreadyExists", "there");
            return;
        }
        reply->status = 201;
        store(w, request->body);
        answer(w, reply);
    } else if (!w->lease) {
        fake_status(reply, 404, "NotFound", "none");
    } else if (put && g_strcmp0(version_of(request->body), version_of(w->lease)) != 0) {
        fake_status(reply, 409, "Conflict", "the object has been modified");
    } else {
        if (put)
            store(w, request->body);
        answer(w, reply);
    }
}

static void on_gained(void *data)
{
    Member *m = data;
    g_atomic_int_inc(&m->gained);
    g_atomic_int_set(&m->acting, 1);
    if (g_atomic_int_add(&acting_most, 1) > 0)
        ck_abort_msg("two act");
}

static void on_lost(const GError *error, void *data)
{
    Member *m = data;
    (void)error;
    g_atomic_int_add(&acting_most, -1);
    g_atomic_int_set(&m->acting, 0);
    g_atomic_int_inc(&m->lost);
}

static void on_trouble(const GError *error, void *data)
{
    Member *m = data;
    if (error)
        g_atomic_int_inc(&m->troubles);
}

static void world_new(World *w)
{
    *w = (World){0};
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, NULL);
}

static void world_free(World *w)
{
    kube_client_free(w->client);
    fake_api_free(&w->api);
    json_decref(w->lease);
}

static void join(Member *m, World *w, const char *identity)
{
    static const KubeLeaseOps ops = {on_gained, on_lost, on_trouble};
    const KubeLeaseOptions options = {.namespace = "ns",
                                      .name = "hearth",
                                      .identity = identity,
                                      .duration_s = 2,
                                      .renew_ms = 1200,
                                      .retry_ms = 100};
    *m = (Member){.world = w};
    m->lease = kube_lease_new(w->client, &options, &ops, m);
}

static void await(int *value, int wanted, gint64 ms)
{
    const gint64 end = g_get_monotonic_time() + ms * 1000;
    while (g_atomic_int_get(value) != wanted) {
        ck_assert_msg(g_get_monotonic_time() < end, "%d, not %d", g_atomic_int_get(value), wanted);
        g_usleep(5000);
    }
}

static void set_status(World *w, int status)
{
    pthread_mutex_lock(&w->api.lock);
    w->status = status;
    pthread_mutex_unlock(&w->api.lock);
}

START_TEST(first_one_acts_and_goes_on_renewing)
{
    World w;
    Member a;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    ck_assert(kube_lease_is_held(a.lease));
    g_usleep(3000000);
    ck_assert_int_eq(g_atomic_int_get(&a.gained), 1);
    ck_assert_int_eq(g_atomic_int_get(&a.lost), 0);
    ck_assert(kube_lease_is_held(a.lease));
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

START_TEST(stopped_one_gives_the_lease_back)
{
    World w;
    Member a, b;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    join(&b, &w, "b");
    g_usleep(500000);
    ck_assert_int_eq(g_atomic_int_get(&b.acting), 0);
    kube_lease_free(a.lease);
    ck_assert_int_eq(a.lost, 1);
    /* Sooner than the two seconds for which it would have been believed. */
    await(&b.acting, 1, 1500);
    pthread_mutex_lock(&w.api.lock);
    ck_assert_str_eq(json_string_value(json_object_get(spec_of(&w), "holderIdentity")), "b");
    pthread_mutex_unlock(&w.api.lock);
    kube_lease_free(b.lease);
    ck_assert_ptr_null(json_object_get(spec_of(&w), "holderIdentity"));
    world_free(&w);
}
END_TEST

START_TEST(dead_holder_is_followed_after_its_duration)
{
    World w;
    Member a;
    world_new(&w);
    w.lease = json_pack("{s:{s:s, s:s}, s:{s:s, s:i, s:s}}", "metadata", "name", "hearth",
                        "resourceVersion", "0", "spec", "holderIdentity", "dead",
                        "leaseDurationSeconds", 1, "renewTime", "2000-01-01T00:00:00.000000Z");
    const gint64 began = g_get_monotonic_time();
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    ck_assert_int_ge(g_get_monotonic_time() - began, 950000);
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

START_TEST(holder_that_cannot_renew_stops_in_time)
{
    World w;
    Member a;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    set_status(&w, 500);
    const gint64 began = g_get_monotonic_time();
    await(&a.lost, 1, 5000);
    ck_assert_int_le(g_get_monotonic_time() - began, 1600000);
    ck_assert(!kube_lease_is_held(a.lease));
    ck_assert_int_eq(g_atomic_int_get(&a.troubles), 1);
    set_status(&w, 0);
    await(&a.acting, 1, 5000);
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

START_TEST(hung_server_does_not_delay_the_loss)
{
    World w;
    Member a;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    /* Requests arrive, and are not answered. */
    pthread_mutex_lock(&w.api.lock);
    const gint64 began = g_get_monotonic_time();
    await(&a.lost, 1, 5000);
    ck_assert_int_le(g_get_monotonic_time() - began, 1700000);
    pthread_mutex_unlock(&w.api.lock);
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

START_TEST(conflict_with_ourselves_is_no_loss)
{
    World w;
    Member a;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    pthread_mutex_lock(&w.api.lock);
    w.conflicts = 3;
    pthread_mutex_unlock(&w.api.lock);
    g_usleep(1500000);
    ck_assert_int_eq(g_atomic_int_get(&a.lost), 0);
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

START_TEST(lease_taken_by_another_is_lost_at_once)
{
    World w;
    Member a;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    pthread_mutex_lock(&w.api.lock);
    json_object_set_new(spec_of(&w), "holderIdentity", json_string("thief"));
    store(&w, w.lease);
    pthread_mutex_unlock(&w.api.lock);
    await(&a.lost, 1, 800);
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

START_TEST(deleted_lease_is_made_again)
{
    World w;
    Member a;
    world_new(&w);
    join(&a, &w, "a");
    await(&a.acting, 1, 5000);
    pthread_mutex_lock(&w.api.lock);
    json_decref(g_steal_pointer(&w.lease));
    pthread_mutex_unlock(&w.api.lock);
    g_usleep(1500000);
    ck_assert_int_eq(g_atomic_int_get(&a.lost), 0);
    pthread_mutex_lock(&w.api.lock);
    ck_assert_ptr_nonnull(w.lease);
    pthread_mutex_unlock(&w.api.lock);
    kube_lease_free(a.lease);
    world_free(&w);
}
END_TEST

/* Each leader in turn goes; on_gained aborts when two act. */
START_TEST(one_of_many_acts_until_the_last)
{
    World w;
    Member members[4];
    world_new(&w);
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++)
        join(&members[i], &w, NULL);
    ck_assert_str_ne(kube_lease_identity(members[0].lease), kube_lease_identity(members[1].lease));
    for (gsize left = G_N_ELEMENTS(members); left > 0; left--) {
        await(&acting_most, 1, 5000);
        for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
            if (members[i].lease && g_atomic_int_get(&members[i].acting)) {
                kube_lease_free(g_steal_pointer(&members[i].lease));
                break;
            }
        }
    }
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++)
        kube_lease_free(members[i].lease);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/kube/lease/lease", first_one_acts_and_goes_on_renewing,
             stopped_one_gives_the_lease_back, dead_holder_is_followed_after_its_duration,
             holder_that_cannot_renew_stops_in_time, hung_server_does_not_delay_the_loss,
             conflict_with_ourselves_is_no_loss, lease_taken_by_another_is_lost_at_once,
             deleted_lease_is_made_again, one_of_many_acts_until_the_last)
