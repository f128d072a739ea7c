/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room of pools as a thousand nodes ask for it: how often the cluster is asked, and how often
 * an answer differs from the last one, which is what external-provisioner writes.
 */
#include "driver/service/controller/free_space.h"
#include <pthread.h>
#include "tests/unit/harness.h"

#define GIB (G_GINT64_CONSTANT(1) << 30)
#define TIB (GIB << 10)
#define NODES 1000
#define CLASSES 4

static const char *const pools[CLASSES] = {"a", "b", "c", "d"};

typedef struct World {
    Room *room;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gint64 available;
    int asks;
    gboolean hold, held; /* the cluster does not answer while hold; held: one waits for it */
    int code;            /* 0: it answers */
    const char *missing; /* a pool */
    gint64 bound_us;     /* the last deadline that it was given */
} World;

typedef struct Call {
    World *w;
    const char *pool;
} Call;

static gboolean ask(void *data, gint64 deadline_us, gint64 *bytes, GError **error)
{
    const Call *call = data;
    World *w = call->w;
    pthread_mutex_lock(&w->lock);
    w->asks++;
    w->bound_us = deadline_us;
    w->held = TRUE;
    pthread_cond_broadcast(&w->changed);
    while (w->hold)
        pthread_cond_wait(&w->changed, &w->lock);
    *bytes = w->available;
    const int code =
        g_strcmp0(w->missing, call->pool) == 0 ? HEARTH_ERROR_INVALID_ARGUMENT : w->code;
    pthread_mutex_unlock(&w->lock);
    if (code)
        g_set_error(error, HEARTH_ERROR, code, "the cluster does not answer");
    return code == 0;
}

static World *world_new(void)
{
    World *w = g_new0(World, 1);
    w->room = room_new();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->available = 20 * TIB;
    return w;
}

static void world_free(World *w)
{
    room_free(w->room);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    g_free(w);
}

/* The bytes told, or the code, negative. */
static gint64 told_within(World *w, const char *pool, gint64 ms)
{
    gint64 bytes = -1;
    g_autoptr(GError) error = NULL;
    Call call = {w, pool};
    const gint64 deadline_us = g_get_monotonic_time() + ms * 1000;
    const RoomPool of = {.cluster = "cluster", .name = pool, .ask = ask, .data = &call};
    return room_of(w->room, &of, deadline_us, &bytes, &error) ? bytes : -error->code;
}

static gint64 told(World *w, const char *pool)
{
    return told_within(w, pool, 60000);
}

/* A figure of Ceph's moves by some kilobytes from one look to the next. */
START_TEST(a_thousand_nodes_ask_each_pool_once_and_write_nothing)
{
    World *w = world_new();
    gint64 last[CLASSES][NODES];
    int polls = 0, writes = 0;
    memset(last, -1, sizeof(last));
    g_autoptr(GRand) noise = g_rand_new_with_seed(1);
    for (int minute = 0; minute < 60; minute++) {
        for (int node = 0; node < NODES; node++) {
            for (int class = 0; class < CLASSES; class ++, polls++) {
                w->available += g_rand_int_range(noise, -8192, 8192);
                const gint64 now = told(w, pools[class]);
                writes += now != last[class][node];
                last[class][node] = now;
            }
        }
        room_age(w->room, 60000);
    }
    ck_assert_int_eq(polls, 240000);
    ck_assert_int_eq(w->asks, 60 * CLASSES);
    /* The first ones, and one step, for the room is where one begins. */
    ck_assert_int_le(writes, 2 * NODES * CLASSES);
    world_free(w);
}
END_TEST

static void *poll_thread(void *data)
{
    const Call *call = data;
    return GINT_TO_POINTER(told(call->w, call->pool) == call->w->available);
}

START_TEST(who_asks_meanwhile_waits_for_the_answer_under_way)
{
    World *w = world_new();
    pthread_t threads[8];
    Call call = {w, "a"};
    w->hold = TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, poll_thread, &call), 0);
    pthread_mutex_lock(&w->lock);
    while (!w->held)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    /* It has its own time to wait for. */
    ck_assert_int_eq(told_within(w, "a", 20), -HEARTH_ERROR_DEADLINE_EXCEEDED);
    pthread_mutex_lock(&w->lock);
    w->hold = FALSE;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
        void *good = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &good), 0);
        ck_assert_ptr_nonnull(good);
    }
    ck_assert_int_eq(w->asks, 1);
    world_free(w);
}
END_TEST

START_TEST(what_is_told_is_3_percent_less_at_most_and_never_more)
{
    for (gint64 bytes = 1; bytes < G_MAXINT64 / 3; bytes = bytes * 2 + bytes / 7 + 1) {
        const gint64 step = room_step(bytes, -1);
        ck_assert_int_le(step, bytes);
        ck_assert_int_le(bytes - step, bytes / 32);
    }
    ck_assert_int_eq(room_step(10 * GIB, -1), 10 * GIB);
    ck_assert_int_eq(room_step(0, 5), 0);
    ck_assert_int_eq(room_step(-1, -1), 0);
    ck_assert_int_gt(room_step(G_MAXINT64, -1), 0);
}
END_TEST

START_TEST(room_that_moves_around_a_step_tells_one_value)
{
    const gint64 lower = room_step(20 * TIB - 1, -1), step = 20 * TIB - lower;
    ck_assert_int_eq(step, TIB / 2);
    /* Less is told at once, more when it is half a step above. */
    ck_assert_int_eq(room_step(20 * TIB - 1, 20 * TIB), lower);
    ck_assert_int_eq(room_step(20 * TIB, lower), lower);
    ck_assert_int_eq(room_step(20 * TIB + step / 2 - 1, lower), lower);
    ck_assert_int_eq(room_step(20 * TIB + step / 2, lower), 20 * TIB);
    ck_assert_int_eq(room_step(40 * TIB, lower), 40 * TIB);
}
END_TEST

START_TEST(a_pool_that_is_missing_has_none_and_others_go_on)
{
    World *w = world_new();
    w->missing = "b";
    ck_assert_int_eq(told(w, "a"), 20 * TIB);
    ck_assert_int_eq(told(w, "b"), 0);
    ck_assert_int_eq(told(w, "b"), 0);
    ck_assert_int_eq(told(w, "c"), 20 * TIB);
    ck_assert_int_eq(w->asks, 3);
    w->missing = NULL;
    room_age(w->room, ROOM_FRESH_MS);
    ck_assert_int_eq(told(w, "b"), 20 * TIB);
    world_free(w);
}
END_TEST

START_TEST(a_silent_cluster_is_asked_rarely_and_what_was_known_is_told)
{
    World *w = world_new();
    ck_assert_int_eq(told(w, "a"), 20 * TIB);
    w->code = HEARTH_ERROR_UNAVAILABLE;
    room_age(w->room, ROOM_FRESH_MS);
    for (int i = 0; i < NODES; i++) {
        ck_assert_int_eq(told(w, "a"), 20 * TIB);
        ck_assert_int_eq(told(w, "b"), -HEARTH_ERROR_UNAVAILABLE);
    }
    ck_assert_int_eq(w->asks, 2);
    ck_assert_int_le(w->bound_us, g_get_monotonic_time() + ROOM_ASK_MS * 1000);
    room_age(w->room, ROOM_FAILED_MS);
    ck_assert_int_eq(told(w, "b"), -HEARTH_ERROR_UNAVAILABLE);
    ck_assert_int_eq(w->asks, 3);
    room_age(w->room, ROOM_KNOWN_MS);
    ck_assert_int_eq(told(w, "a"), -HEARTH_ERROR_UNAVAILABLE);
    w->code = 0;
    room_age(w->room, ROOM_FAILED_MS);
    ck_assert_int_eq(told(w, "a"), 20 * TIB);
    world_free(w);
}
END_TEST

START_TEST(a_refusal_is_told_though_room_was_known)
{
    World *w = world_new();
    ck_assert_int_eq(told(w, "a"), 20 * TIB);
    w->code = HEARTH_ERROR_UNAUTHENTICATED;
    room_age(w->room, ROOM_FRESH_MS);
    ck_assert_int_eq(told(w, "a"), -HEARTH_ERROR_UNAUTHENTICATED);
    ck_assert_int_eq(told(w, "a"), -HEARTH_ERROR_UNAUTHENTICATED);
    ck_assert_int_eq(w->asks, 2);
    world_free(w);
}
END_TEST

START_TEST(a_caller_in_a_hurry_says_nothing_of_the_cluster)
{
    World *w = world_new();
    w->code = HEARTH_ERROR_DEADLINE_EXCEEDED;
    ck_assert_int_eq(told_within(w, "a", 1000), -HEARTH_ERROR_DEADLINE_EXCEEDED);
    w->code = 0;
    ck_assert_int_eq(told(w, "a"), 20 * TIB);
    world_free(w);
}
END_TEST

HARNESS_MAIN("driver/service/controller/free_space",
             a_thousand_nodes_ask_each_pool_once_and_write_nothing,
             who_asks_meanwhile_waits_for_the_answer_under_way,
             what_is_told_is_3_percent_less_at_most_and_never_more,
             room_that_moves_around_a_step_tells_one_value,
             a_pool_that_is_missing_has_none_and_others_go_on,
             a_silent_cluster_is_asked_rarely_and_what_was_known_is_told,
             a_refusal_is_told_though_room_was_known,
             a_caller_in_a_hurry_says_nothing_of_the_cluster)
