/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that share threads, while some of their requests wait for long. */
#include "cache/fuse/readers.h"
#include <stdatomic.h>
#include "cache/fuse/reader_sources.h"
#include "tests/unit/cache/fuse/fake_kernel.h"
#include "cache/origin/thread_room.h"
#include "tests/unit/cache/fuse/no_threads.h"

#define THREADS 2
#define HUNG 7
#define SESSIONS 50

static unsigned n_threads = THREADS;

typedef struct World {
    Kernel kernel;
    struct fuse_session *fuse;
    Readers *readers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    gboolean let_go;
    unsigned hung; /* so far */
    _Atomic unsigned ends;
} World;

static void hangs(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    (void)fi;
    World *w = fuse_req_userdata(req);
    pthread_mutex_lock(&w->mutex);
    w->hung++;
    pthread_cond_broadcast(&w->changed);
    while (!w->let_go)
        pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    fuse_reply_err(req, ENOENT);
}

static void answers(fuse_req_t req, fuse_ino_t node, int mask)
{
    (void)node;
    (void)mask;
    fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {.getattr = hangs, .access = answers};

static void count_end(void *data)
{
    World *w = data;
    atomic_fetch_add(&w->ends, 1);
}

static void world_start(World *w)
{
    w->hung = 0;
    w->let_go = FALSE;
    atomic_store(&w->ends, 0);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    readers_set_threads(n_threads);
    w->fuse = readers_serve(&ops, w, kernel_start(&w->kernel), NULL);
    ck_assert_ptr_nonnull(w->fuse);
    g_autoptr(GError) error = NULL;
    w->readers = readers_start(w->fuse, count_end, w, &error);
    ck_assert_msg(w->readers != NULL, "%s", error ? error->message : "");
}

static void world_up(World *w)
{
    world_start(w);
    kernel_init(&w->kernel);
}

static void await_hung(World *w, unsigned n)
{
    pthread_mutex_lock(&w->mutex);
    while (w->hung < n)
        pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}

static void send_hanging(World *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        kernel_send(&w->kernel, FUSE_GETATTR, 1, &(struct fuse_getattr_in){0},
                    sizeof(struct fuse_getattr_in));
}

static void some_hang(World *w)
{
    send_hanging(w, HUNG);
    await_hung(w, HUNG);
}

static void let_all_go(World *w)
{
    pthread_mutex_lock(&w->mutex);
    w->let_go = TRUE;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static void world_stop(World *w)
{
    readers_stop(w->readers);
    fuse_session_unmount(w->fuse);
    fuse_session_destroy(w->fuse);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
}

static void world_down(World *w)
{
    world_stop(w);
    close(w->kernel.fd);
}

static void call(World *w, unsigned times)
{
    struct fuse_access_in in = {0};
    for (unsigned i = 0; i < times; i++)
        ck_assert_int_eq(kernel_call(&w->kernel, FUSE_ACCESS, 1, &in, sizeof(in))->error, 0);
}

START_TEST(requests_behind_those_that_hang_are_served)
{
    World w;
    world_up(&w);
    some_hang(&w);
    call(&w, 100);
    let_all_go(&w);
    world_stop(&w);
    close(w.kernel.fd);
    ck_assert_uint_eq(atomic_load(&w.ends), 0);
}
END_TEST

START_TEST(the_end_of_the_connection_is_told_once_all_have_returned)
{
    World w;
    world_up(&w);
    some_hang(&w);
    shutdown(w.kernel.fd, SHUT_RDWR);
    g_usleep(50000);
    ck_assert_uint_eq(atomic_load(&w.ends), 0);
    let_all_go(&w);
    for (int i = 0; i < 1000 && !atomic_load(&w.ends); i++)
        g_usleep(10000);
    world_down(&w);
    ck_assert_uint_eq(atomic_load(&w.ends), 1);
}
END_TEST

START_TEST(the_end_of_a_busy_connection_is_told_once)
{
    World w;
    world_up(&w);
    call(&w, 300);
    shutdown(w.kernel.fd, SHUT_RDWR);
    while (!atomic_load(&w.ends))
        g_usleep(1000);
    world_down(&w);
    ck_assert_uint_eq(atomic_load(&w.ends), 1);
}
END_TEST

START_TEST(no_end_is_told_behind_a_stop)
{
    for (int i = 0; i < 100; i++) {
        World w;
        world_up(&w);
        call(&w, i % 2 ? 0 : 40);
        shutdown(w.kernel.fd, SHUT_RDWR);
        world_down(&w);
        const unsigned ends = atomic_load(&w.ends);
        ck_assert_uint_le(ends, 1);
        g_usleep(100);
        ck_assert_uint_eq(atomic_load(&w.ends), ends);
    }
}
END_TEST

START_TEST(sessions_share_threads)
{
    static World worlds[SESSIONS];
    world_up(&worlds[0]);
    call(&worlds[0], 1);
    const unsigned before = harness_threads();
    for (int i = 1; i < SESSIONS; i++) {
        world_up(&worlds[i]);
        call(&worlds[i], 1);
    }
    ck_assert_uint_eq(harness_threads(), before);
    for (int i = 0; i < SESSIONS; i++)
        world_down(&worlds[i]);
}
END_TEST

START_TEST(requests_of_another_session_that_hang_delay_neither_a_request_nor_a_stop)
{
    World hung, other;
    world_up(&hung);
    world_up(&other);
    send_hanging(&hung, READER_SOURCE_STUCK_MAX + 6);
    await_hung(&hung, READER_SOURCE_STUCK_MAX);
    call(&other, 100);
    world_down(&other);
    world_up(&other);
    call(&other, 100);
    world_down(&other);
    let_all_go(&hung);
    world_down(&hung);
}
END_TEST

/* The bound, and those that were read before they were found to be stuck. */
static unsigned await_bound(World *w)
{
    await_hung(w, READER_SOURCE_STUCK_MAX);
    unsigned before = 0, now = READER_SOURCE_STUCK_MAX;
    while (now != before) {
        g_usleep(200000);
        before = now;
        pthread_mutex_lock(&w->mutex);
        now = w->hung;
        pthread_mutex_unlock(&w->mutex);
    }
    return now;
}

START_TEST(a_session_at_its_bound_does_nothing_until_a_request_returns)
{
    World w;
    world_up(&w);
    const unsigned sent = READER_SOURCE_STUCK_MAX + 40;
    send_hanging(&w, sent);
    ck_assert_uint_le(await_bound(&w), READER_SOURCE_STUCK_MAX + THREADS + READER_SOURCE_STAY_MAX);
    const uint64_t events = readers_events(w.readers);
    const clock_t cpu = clock();
    g_usleep(300000);
    ck_assert_uint_eq(readers_events(w.readers), events);
    ck_assert_int_lt(clock() - cpu, CLOCKS_PER_SEC / 10);
    let_all_go(&w);
    await_hung(&w, sent);
    world_down(&w);
}
END_TEST

START_TEST(sessions_that_all_hang_leave_threads_for_another)
{
    static World worlds[12];
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        world_up(&worlds[i]);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        send_hanging(&worlds[i], READER_SOURCE_STUCK_MAX);
    /* Twelve and the share that is free have the same. */
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        await_hung(&worlds[i], READER_STUCK_MAX / 14);
    World other;
    world_up(&other);
    call(&other, 100);
    world_down(&other);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        let_all_go(&worlds[i]);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        world_down(&worlds[i]);
}
END_TEST

/* Its requests take all threads but one; those of the others are served by that one. */
START_TEST(a_session_that_hangs_leaves_the_last_thread_when_no_more_can_be_made)
{
    World hung, others[3];
    thread_room_set_most(1);
    world_up(&hung);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        world_up(&others[i]);
    send_hanging(&hung, 4 * THREADS);
    await_hung(&hung, THREADS - 1);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        call(&others[i], 100);
    pthread_mutex_lock(&hung.mutex);
    ck_assert_uint_eq(hung.hung, THREADS - 1);
    pthread_mutex_unlock(&hung.mutex);
    thread_room_set_most(0); /* and more when they can */
    call(&others[0], 1);
    await_hung(&hung, THREADS);
    let_all_go(&hung);
    await_hung(&hung, 4 * THREADS);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        world_down(&others[i]);
    world_down(&hung);
}
END_TEST

/* Some more can be made, and then none. */
START_TEST(a_session_that_hangs_leaves_one_of_the_last_threads_that_are_made)
{
    for (unsigned more = 1; more <= 6; more++) {
        World hung, other;
        uint64_t threads, most;
        n_threads = 16;
        thread_room_set_most(0);
        world_up(&hung);
        world_up(&other);
        call(&other, 1);
        thread_room_look(&threads, &most);
        thread_room_set_most((unsigned)threads + THREAD_ROOM_KEPT + more);
        send_hanging(&hung, READER_SOURCE_STUCK_MAX);
        await_hung(&hung, n_threads - 1);
        g_usleep(150000); /* it gets what it may have */
        call(&other, 100);
        let_all_go(&hung);
        world_down(&other);
        world_down(&hung);
    }
    thread_room_set_most(0);
    n_threads = THREADS;
}
END_TEST

/* With as many threads as hearthd has, a session reads many requests before one is found to be
 * stuck; and sessions that hang one after the other leave less and less. */
START_TEST(sessions_that_hang_one_after_the_other_leave_each_other_a_request)
{
    static World worlds[16];
    World other;
    n_threads = 16;
    world_up(&other);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        world_up(&worlds[i]);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++) {
        send_hanging(&worlds[i], READER_SOURCE_STUCK_MAX + 20);
        await_hung(&worlds[i], 1);
        g_usleep(200000); /* it gets what it may have */
        call(&other, 1);
    }
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        let_all_go(&worlds[i]);
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++)
        world_down(&worlds[i]);
    world_down(&other);
    n_threads = THREADS;
}
END_TEST

START_TEST(a_session_that_was_busy_gives_its_threads_back)
{
    World w;
    world_up(&w);
    call(&w, 1000);
    /* Without threads of its own, each request takes an event from epoll. */
    for (int in_a_row = 0; in_a_row < 5;) {
        const uint64_t events = readers_events(w.readers);
        g_usleep(50000);
        call(&w, 1);
        in_a_row = readers_events(w.readers) > events ? in_a_row + 1 : 0;
    }
    world_down(&w);
}
END_TEST

START_TEST(a_busy_session_is_stopped_at_once)
{
    for (int i = 0; i < 50; i++) {
        World w;
        world_up(&w);
        call(&w, 60);
        world_down(&w);
        ck_assert_uint_eq(atomic_load(&w.ends), 0);
    }
}
END_TEST

START_TEST(without_a_thread_a_session_is_not_started)
{
    World w = {.ends = 0};
    allow_threads(FALSE);
    struct fuse_session *fuse = readers_serve(&ops, &w, kernel_start(&w.kernel), NULL);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(readers_start(fuse, count_end, &w, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "pids.max"));
    fuse_session_destroy(fuse);
    close(w.kernel.fd);
    allow_threads(TRUE);
    world_up(&w);
    allow_threads(FALSE);
    send_hanging(&w, HUNG);
    await_hung(&w, 1);
    World other; /* the threads are there already */
    world_start(&other);
    world_down(&other);
    let_all_go(&w);
    await_hung(&w, HUNG);
    world_down(&w);
    allow_threads(TRUE); /* who looks for leaks makes one */
}
END_TEST

static _Atomic gboolean enough;

static void *start_and_stop(void *data)
{
    (void)data;
    while (!atomic_load(&enough)) {
        World w;
        world_start(&w);
        send_hanging(&w, 1); /* not served: the first request is to be INIT */
        world_down(&w);
    }
    return NULL;
}

START_TEST(sessions_come_and_go_while_others_are_served)
{
    World one, two;
    world_up(&one);
    world_up(&two);
    some_hang(&one);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, start_and_stop, NULL);
    for (int i = 0; i < 500; i++) {
        call(&one, 10);
        call(&two, 3);
    }
    atomic_store(&enough, TRUE);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    let_all_go(&one);
    world_down(&one);
    world_down(&two);
}
END_TEST

HARNESS_MAIN("cache/fuse/readers", requests_behind_those_that_hang_are_served,
             the_end_of_the_connection_is_told_once_all_have_returned,
             the_end_of_a_busy_connection_is_told_once, no_end_is_told_behind_a_stop,
             sessions_share_threads,
             requests_of_another_session_that_hang_delay_neither_a_request_nor_a_stop,
             a_session_at_its_bound_does_nothing_until_a_request_returns,
             sessions_that_all_hang_leave_threads_for_another,
             a_session_that_hangs_leaves_the_last_thread_when_no_more_can_be_made,
             a_session_that_hangs_leaves_one_of_the_last_threads_that_are_made,
             sessions_that_hang_one_after_the_other_leave_each_other_a_request,
             a_session_that_was_busy_gives_its_threads_back, a_busy_session_is_stopped_at_once,
             without_a_thread_a_session_is_not_started,
             sessions_come_and_go_while_others_are_served)
