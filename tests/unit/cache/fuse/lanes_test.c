/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes with runs that block for as long as the test wants. */
#include "cache/fuse/lanes.h"
#include <pthread.h>
#include <stdatomic.h>
#include "tests/unit/cache/fuse/no_threads.h"
#include "tests/unit/harness.h"

enum { MOVABLE, FIXED };

typedef struct World {
    Lanes *lanes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean open;          /* lock: none blocks any more */
    unsigned blocked, done; /* lock */
    GHashTable *free_keys;  /* keys whose runs do not block; lock */
    gboolean first_only;    /* lock: only first tries block */
    _Atomic unsigned state;
    gboolean same_state; /* until the test changes it */
    unsigned pieces;     /* lock: of work, in what was done */
} World;

/* Work is the number of pieces that were merged. */
static void *merge(void *work, void *more)
{
    return GUINT_TO_POINTER(GPOINTER_TO_UINT(work) + GPOINTER_TO_UINT(more));
}

static void *aim(void *data, const LaneKey *key, const void *work)
{
    (void)data, (void)work;
    return key->kind == MOVABLE ? GUINT_TO_POINTER(1) : NULL;
}

static unsigned state(void *data, const LaneKey *key, const void *work)
{
    (void)key, (void)work;
    World *w = data;
    return w->same_state ? atomic_load(&w->state) : atomic_fetch_add(&w->state, 1);
}

static void run(void *data, const LaneKey *key, void *aim_or_work, unsigned tries)
{
    (void)aim_or_work;
    World *w = data;
    pthread_mutex_lock(&w->lock);
    w->blocked++;
    pthread_cond_broadcast(&w->changed);
    while (!w->open && !g_hash_table_contains(w->free_keys, GSIZE_TO_POINTER(key->a)) &&
           !(tries && w->first_only))
        pthread_cond_wait(&w->changed, &w->lock);
    w->blocked--;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void done(void *data, const LaneKey *key, void *work)
{
    (void)key;
    World *w = data;
    pthread_mutex_lock(&w->lock);
    w->done++;
    w->pieces += GPOINTER_TO_UINT(work);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void world_up(World *w, unsigned threads_max)
{
    const LaneOps ops = {.merge = merge,
                         .state = state,
                         .aim = aim,
                         .run = run,
                         .done = done,
                         .threads_max = threads_max};
    *w = (World){.free_keys = g_hash_table_new(NULL, NULL)};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->lanes = lanes_start(&ops, w, NULL);
}

static void let_all_go(World *w)
{
    pthread_mutex_lock(&w->lock);
    w->open = TRUE;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void world_down(World *w)
{
    let_all_go(w);
    lanes_stop(w->lanes);
    g_hash_table_unref(w->free_keys);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

static void add(World *w, uint64_t kind, uint64_t key)
{
    lanes_add(w->lanes, &(LaneKey){kind, key, 0}, GUINT_TO_POINTER(1));
}

static void allow(World *w, uint64_t key)
{
    pthread_mutex_lock(&w->lock);
    g_hash_table_add(w->free_keys, GSIZE_TO_POINTER(key));
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* The harness ends a test that waits for ever. */
static void await(World *w, const unsigned *number, unsigned wanted)
{
    pthread_mutex_lock(&w->lock);
    while (*number != wanted)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

START_TEST(a_blocked_lane_delays_no_other)
{
    World w;
    world_up(&w, 64);
    for (uint64_t key = 1; key <= 20; key++)
        add(&w, FIXED, key);
    await(&w, &w.blocked, 20);
    allow(&w, 99);
    add(&w, FIXED, 99);
    await(&w, &w.done, 1);
    ck_assert_uint_eq(w.blocked, 20);
    world_down(&w);
}
END_TEST

START_TEST(a_key_has_one_lane_with_one_piece_of_work_that_waits)
{
    World w;
    world_up(&w, 64);
    add(&w, FIXED, 1);
    await(&w, &w.blocked, 1);
    for (int i = 0; i < 10000; i++)
        add(&w, FIXED, 1);
    ck_assert_uint_eq(lanes_count(w.lanes), 1);
    ck_assert_uint_eq(w.blocked, 1);
    let_all_go(&w);
    await(&w, &w.done, 2);
    ck_assert_uint_eq(w.pieces, 10001);
    world_down(&w);
}
END_TEST

START_TEST(a_blocked_run_is_overtaken_and_its_work_is_done_once)
{
    World w;
    world_up(&w, 64);
    w.first_only = TRUE;
    add(&w, MOVABLE, 1);
    await(&w, &w.done, 1);
    ck_assert_uint_eq(w.blocked, 1); /* the first still is */
    let_all_go(&w);
    await(&w, &w.blocked, 0);
    while (lanes_count(w.lanes))
        g_usleep(1000);
    ck_assert_uint_eq(w.done, 1);
    ck_assert_uint_eq(w.pieces, 1);
    world_down(&w);
}
END_TEST

START_TEST(work_behind_a_run_that_was_overtaken_is_done)
{
    World w;
    world_up(&w, 64);
    w.same_state = TRUE;
    w.first_only = TRUE;
    add(&w, MOVABLE, 1);
    await(&w, &w.blocked, 1);
    atomic_store(&w.state, 1); /* now there is a way around */
    await(&w, &w.done, 1);
    add(&w, MOVABLE, 1);
    await(&w, &w.done, 2);
    ck_assert_uint_eq(w.blocked, 1); /* the first still is */
    world_down(&w);
}
END_TEST

START_TEST(runs_of_a_lane_have_a_bound)
{
    World w;
    world_up(&w, 64);
    add(&w, MOVABLE, 1);
    await(&w, &w.blocked, LANE_RUNS_MAX);
    ck_assert_uint_eq(lanes_threads(), LANE_RUNS_MAX + 1);
    add(&w, MOVABLE, 1);
    allow(&w, 2);
    add(&w, MOVABLE, 2);
    await(&w, &w.done, 1);
    ck_assert_uint_eq(w.blocked, LANE_RUNS_MAX);
    let_all_go(&w);
    await(&w, &w.pieces, 3);
    world_down(&w);
}
END_TEST

START_TEST(blocked_lanes_take_no_threads_from_others_while_nothing_has_changed)
{
    World w;
    world_up(&w, 24);
    w.same_state = TRUE;
    for (uint64_t key = 1; key <= 20; key++)
        add(&w, MOVABLE, key);
    await(&w, &w.blocked, 20);
    g_usleep(300000); /* so long would each have been overtaken several times */
    ck_assert_uint_eq(w.blocked, 20);
    allow(&w, 99);
    add(&w, FIXED, 99);
    await(&w, &w.done, 1);
    world_down(&w);
}
END_TEST

START_TEST(at_the_bound_of_threads_work_waits_and_nothing_is_done_unrun)
{
    World w;
    world_up(&w, 4);
    for (uint64_t key = 1; key <= 4; key++)
        add(&w, FIXED, key);
    await(&w, &w.blocked, 4);
    allow(&w, 99);
    add(&w, FIXED, 99);
    ck_assert_uint_eq(lanes_threads(), 5); /* and one for others */
    ck_assert_uint_eq(w.done, 0);
    ck_assert_uint_eq(lanes_count(w.lanes), 5);
    allow(&w, 1); /* one of those that are blocked */
    await(&w, &w.done, 2);
    world_down(&w);
}
END_TEST

START_TEST(threads_end_when_they_are_not_needed)
{
    World w;
    world_up(&w, 64);
    for (uint64_t key = 1; key <= 30; key++)
        add(&w, FIXED, key);
    await(&w, &w.blocked, 30);
    let_all_go(&w);
    await(&w, &w.done, 30);
    while (lanes_threads() > 4)
        g_usleep(10000);
    ck_assert_uint_eq(lanes_count(w.lanes), 0);
    world_down(&w);
}
END_TEST

START_TEST(lanes_of_the_process_share_threads)
{
    static World worlds[50];
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++) {
        world_up(&worlds[i], 64);
        allow(&worlds[i], 1);
        add(&worlds[i], FIXED, 1);
        await(&worlds[i], &worlds[i].done, 1);
    }
    while (lanes_threads() > 4)
        g_usleep(10000);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        world_down(&worlds[i]);
    ck_assert_uint_eq(lanes_threads(), 0);
}
END_TEST

START_TEST(lanes_at_their_bound_keep_no_thread_from_others)
{
    World blocked, other;
    world_up(&blocked, 4);
    world_up(&other, 4);
    for (uint64_t key = 1; key <= 20; key++)
        add(&blocked, FIXED, key);
    await(&blocked, &blocked.blocked, 4);
    for (uint64_t key = 1; key <= 20; key++) {
        allow(&other, key);
        add(&other, MOVABLE, key);
    }
    await(&other, &other.done, 20);
    ck_assert_uint_eq(blocked.blocked, 4);
    world_down(&other);
    ck_assert_uint_eq(lanes_count(blocked.lanes), 20);
    world_down(&blocked);
    ck_assert_uint_eq(blocked.done, 20);
}
END_TEST

START_TEST(work_waits_for_a_thread_that_cannot_be_made)
{
    World w;
    allow_threads(TRUE);
    world_up(&w, 64);
    allow_threads(FALSE);
    for (uint64_t key = 1; key <= 5; key++)
        add(&w, FIXED, key);
    await(&w, &w.blocked, 3);
    ck_assert_uint_eq(lanes_threads(), 4);
    World other; /* has the last one */
    world_up(&other, 64);
    allow(&other, 1);
    add(&other, FIXED, 1);
    await(&other, &other.done, 1);
    world_down(&other);
    ck_assert_uint_eq(w.blocked, 3);
    allow_threads(TRUE);
    await(&w, &w.blocked, 5);
    world_down(&w);
    ck_assert_uint_eq(w.done, 5);
}
END_TEST

START_TEST(without_a_thread_there_are_no_lanes)
{
    const LaneOps ops = {.threads_max = 1};
    g_autoptr(GError) error = NULL;
    allow_threads(FALSE);
    ck_assert_ptr_null(lanes_start(&ops, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "pids.max"));
    allow_threads(TRUE);
    World w;
    world_up(&w, 1);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/lanes", a_blocked_lane_delays_no_other,
             a_key_has_one_lane_with_one_piece_of_work_that_waits,
             a_blocked_run_is_overtaken_and_its_work_is_done_once,
             work_behind_a_run_that_was_overtaken_is_done, runs_of_a_lane_have_a_bound,
             blocked_lanes_take_no_threads_from_others_while_nothing_has_changed,
             at_the_bound_of_threads_work_waits_and_nothing_is_done_unrun,
             threads_end_when_they_are_not_needed, lanes_of_the_process_share_threads,
             lanes_at_their_bound_keep_no_thread_from_others,
             work_waits_for_a_thread_that_cannot_be_made, without_a_thread_there_are_no_lanes)
