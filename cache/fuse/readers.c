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

struct Readers {
    struct fuse_session *fuse;
    void (*ended)(void *data);
    void *data;
    unsigned n;
    pthread_t *threads;
    _Atomic unsigned running;
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

static void *reader(void *data)
{
    Readers *r = data;
    struct fuse_buf buf = {.mem = NULL};
    while (!atomic_load(&r->stopping) && !fuse_session_exited(r->fuse)) {
        int got = fuse_session_receive_buf(r->fuse, &buf);
        if (got == -EINTR || got == -EAGAIN)
            continue;
        if (got <= 0)
            break;
        fuse_session_process_buf(r->fuse, &buf);
    }
    free(buf.mem);
    if (atomic_fetch_sub(&r->running, 1) == 1 && !atomic_load(&r->stopping) && r->ended)
        r->ended(r->data);
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

void readers_stop(Readers *r)
{
    if (!r)
        return;
    atomic_store(&r->stopping, 1);
    fuse_session_exit(r->fuse);
    for (unsigned i = 0; i < r->n; i++)
        join_thread(r->threads[i]);
    g_free(r->threads);
    g_free(r);
}
