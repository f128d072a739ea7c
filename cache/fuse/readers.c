/*
 * read(2) on /dev/fuse has no way out but a request or the end of the connection, so threads that
 * still wait at readers_stop() are interrupted with a signal.
 */
#include "cache/fuse/readers.h"
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define WAKE_SIGNAL SIGUSR2
#define MORE_MAX 64
/* Threads beside the first end when so many wait for a request. */
#define IDLE_MAX 4

enum { NO_THREAD, RUNS, HAS_ENDED };

/* A thread beside those that there always are. */
typedef struct More {
    struct Readers *readers;
    pthread_t thread;
    _Atomic int state;
} More;

struct Readers {
    struct fuse_session *fuse;
    void (*ended)(void *data);
    void *data;
    unsigned n;
    pthread_t *threads;
    pthread_mutex_t more_mutex; /* while one more is made */
    More more[MORE_MAX];
    _Atomic unsigned running;
    _Atomic unsigned waiting; /* for a request */
    _Atomic int stopping;
};

struct fuse_session *readers_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                   GError **error)
{
    char *argv[] = {(char *)"hearthd", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *fuse = fuse_session_new(&args, ops, sizeof(*ops), data);
    fuse_opt_free_args(&args);
    g_autofree char *path = g_strdup_printf("/dev/fd/%d", fuse_fd);
    if (fuse && fuse_session_mount(fuse, path) == 0)
        return fuse;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                "libfuse refuses descriptor %d: it must be a mounted /dev/fuse", fuse_fd);
    if (fuse)
        fuse_session_destroy(fuse);
    return NULL;
}

static void one_more_if_needed(Readers *r);

/* `needed`: whether to take another request; NULL: always. */
static void serve(Readers *r, gboolean (*needed)(Readers *r))
{
    struct fuse_buf buf = {.mem = NULL};
    while (!atomic_load(&r->stopping) && !fuse_session_exited(r->fuse) && (!needed || needed(r))) {
        atomic_fetch_add(&r->waiting, 1);
        int got = fuse_session_receive_buf(r->fuse, &buf);
        /* The request may wait for Ceph for long; the next one is not to wait for this. */
        if (atomic_fetch_sub(&r->waiting, 1) == 1 && got > 0)
            one_more_if_needed(r);
        if (got == -EINTR || got == -EAGAIN)
            continue;
        if (got <= 0)
            break;
        fuse_session_process_buf(r->fuse, &buf);
    }
    free(buf.mem);
    if (atomic_fetch_sub(&r->running, 1) == 1 && !atomic_load(&r->stopping) && r->ended)
        r->ended(r->data);
}

static void *reader(void *data)
{
    serve(data, NULL);
    return NULL;
}

static gboolean few_wait(Readers *r)
{
    return atomic_load(&r->waiting) < IDLE_MAX;
}

static void *one_more(void *data)
{
    More *more = data;
    serve(more->readers, few_wait);
    atomic_store(&more->state, HAS_ENDED);
    return NULL;
}

static void wake(int signal)
{
    (void)signal;
}

Readers *readers_start(struct fuse_session *fuse, unsigned n, void (*ended)(void *data), void *data)
{
    Readers *r = g_new0(Readers, 1);
    r->fuse = fuse;
    r->ended = ended;
    r->data = data;
    r->n = n;
    r->threads = g_new0(pthread_t, n);
    pthread_mutex_init(&r->more_mutex, NULL);
    struct sigaction action = {.sa_handler = wake};
    sigaction(WAKE_SIGNAL, &action, NULL);
    atomic_store(&r->running, n);
    for (unsigned i = 0; i < n; i++)
        pthread_create(&r->threads[i], NULL, reader, r);
    return r;
}

/* The signal may come between the check and the read, so it is repeated until the thread is gone.
 */
static void join_thread(pthread_t thread)
{
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20 * 1000 * 1000;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        if (pthread_timedjoin_np(thread, NULL, &until) == 0)
            return;
        pthread_kill(thread, WAKE_SIGNAL);
    }
}

static void make_one_more(Readers *r)
{
    for (int i = 0; i < MORE_MAX; i++) {
        More *more = &r->more[i];
        const int state = atomic_load(&more->state);
        if (state == RUNS)
            continue;
        if (state == HAS_ENDED)
            pthread_join(more->thread, NULL);
        more->readers = r;
        atomic_store(&more->state, RUNS);
        atomic_fetch_add(&r->running, 1);
        if (pthread_create(&more->thread, NULL, one_more, more) != 0) {
            atomic_store(&more->state, NO_THREAD);
            atomic_fetch_sub(&r->running, 1);
        }
        return;
    }
}

static void one_more_if_needed(Readers *r)
{
    pthread_mutex_lock(&r->more_mutex);
    if (atomic_load(&r->waiting) == 0 && !atomic_load(&r->stopping))
        make_one_more(r);
    pthread_mutex_unlock(&r->more_mutex);
}

void readers_stop(Readers *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->more_mutex);
    atomic_store(&r->stopping, 1);
    pthread_mutex_unlock(&r->more_mutex);
    fuse_session_exit(r->fuse);
    for (unsigned i = 0; i < r->n; i++)
        join_thread(r->threads[i]);
    for (int i = 0; i < MORE_MAX; i++)
        if (atomic_load(&r->more[i].state) != NO_THREAD)
            join_thread(r->more[i].thread);
    pthread_mutex_destroy(&r->more_mutex);
    g_free(r->threads);
    g_free(r);
}
