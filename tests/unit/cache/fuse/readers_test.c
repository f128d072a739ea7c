/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for requests, while some of these wait for long. */
#include <stdatomic.h>
#include "cache/fuse/readers.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

#define THREADS 2
#define HUNG 7

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static gboolean let_go;
static unsigned hung;
static _Atomic unsigned ends;

static void hangs(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)node;
    (void)fi;
    pthread_mutex_lock(&mutex);
    hung++;
    pthread_cond_broadcast(&changed);
    while (!let_go)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
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
    (void)data;
    atomic_fetch_add(&ends, 1);
}

typedef struct World {
    Kernel kernel;
    struct fuse_session *fuse;
    Readers *readers;
} World;

static void world_up(World *w)
{
    hung = 0;
    let_go = FALSE;
    atomic_store(&ends, 0);
    w->fuse = readers_serve(&ops, NULL, kernel_start(&w->kernel), NULL);
    ck_assert_ptr_nonnull(w->fuse);
    w->readers = readers_start(w->fuse, THREADS, count_end, NULL);
    kernel_init(&w->kernel);
}

static void some_hang(World *w)
{
    for (int i = 0; i < HUNG; i++)
        kernel_send(&w->kernel, FUSE_GETATTR, 1, &(struct fuse_getattr_in){0},
                    sizeof(struct fuse_getattr_in));
    pthread_mutex_lock(&mutex);
    while (hung < HUNG)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void let_all_go(void)
{
    pthread_mutex_lock(&mutex);
    let_go = TRUE;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void world_down(World *w)
{
    readers_stop(w->readers);
    fuse_session_unmount(w->fuse);
    fuse_session_destroy(w->fuse);
}

START_TEST(requests_behind_those_that_hang_are_served)
{
    World w;
    world_up(&w);
    some_hang(&w);
    struct fuse_access_in in = {0};
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(kernel_call(&w.kernel, FUSE_ACCESS, 1, &in, sizeof(in))->error, 0);
    let_all_go();
    world_down(&w);
    close(w.kernel.fd);
    ck_assert_uint_eq(atomic_load(&ends), 0);
}
END_TEST

START_TEST(the_end_of_the_connection_is_told_once_all_have_returned)
{
    World w;
    world_up(&w);
    some_hang(&w);
    shutdown(w.kernel.fd, SHUT_RDWR);
    g_usleep(50000);
    ck_assert_uint_eq(atomic_load(&ends), 0);
    let_all_go();
    for (int i = 0; i < 1000 && !atomic_load(&ends); i++)
        g_usleep(10000);
    world_down(&w);
    close(w.kernel.fd);
    ck_assert_uint_eq(atomic_load(&ends), 1);
}
END_TEST

HARNESS_MAIN("cache/fuse/readers", requests_behind_those_that_hang_are_served,
             the_end_of_the_connection_is_told_once_all_have_returned)
