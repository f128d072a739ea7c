/*
 * The life of a session: libfuse on a descriptor that somebody else mounted, and the threads that
 * read requests from it. The threads end by themselves when the kernel has unmounted (ENODEV);
 * session_stop() interrupts those that still wait with a signal, because read(2) on /dev/fuse has
 * no other way out.
 */
#include "cache/fuse/session.h"
#include <errno.h>
#include <gio/gio.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cache/fuse/session_internal.h"

#define DEFAULT_THREADS 8
/* A receive buffer is 1 MiB plus a page: header and a full write fit. */
#define MAX_WRITE ((1u << 20) - 4096)
#define MAX_READAHEAD (1u << 20)
#define WAKE_SIGNAL SIGUSR2

static void op_init(void *data, struct fuse_conn_info *conn)
{
    (void)data;
    /* Pages are dropped by versions and leases, not by comparing times. */
    conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
                              FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    conn->max_write = MAX_WRITE;
    conn->max_readahead = MAX_READAHEAD;
    conn->max_background = 64;
    conn->congestion_threshold = 48;
    conn->time_gran = 1;
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino ? ino : FUSE_ROOT_ID);
    struct statvfs st = {0};
    int r = s->origin->ops->statfs(s->origin, node->origin, &st);
    nodes_done(s->nodes, node);
    if (r < 0)
        fuse_reply_err(req, -r);
    else
        fuse_reply_statfs(req, &st);
}

static void *worker(void *data)
{
    Session *s = data;
    struct fuse_buf buf = {.mem = NULL};
    while (!atomic_load(&s->stopping) && !fuse_session_exited(s->fuse)) {
        int r = fuse_session_receive_buf(s->fuse, &buf);
        if (r == -EINTR || r == -EAGAIN)
            continue;
        if (r <= 0)
            break;
        fuse_session_process_buf(s->fuse, &buf);
    }
    free(buf.mem);
    if (atomic_fetch_sub(&s->running, 1) == 1 && !atomic_load(&s->stopping) && s->ended)
        s->ended(s->ended_data);
    return NULL;
}

static void wake(int signal)
{
    (void)signal;
}

static gboolean open_fuse(Session *s, int *fd, GError **error)
{
    struct fuse_lowlevel_ops ops = {.init = op_init, .statfs = op_statfs};
    names_ops(&ops);
    attrs_ops(&ops);
    files_ops(&ops);
    dirs_ops(&ops);
    char *argv[] = {(char *)"hearthd", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    s->fuse = fuse_session_new(&args, &ops, sizeof(ops), s);
    fuse_opt_free_args(&args);
    g_autofree char *path = g_strdup_printf("/dev/fd/%d", *fd);
    if (!s->fuse || fuse_session_mount(s->fuse, path) != 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "libfuse refuses descriptor %d: it must be a mounted /dev/fuse", *fd);
        return FALSE;
    }
    *fd = -1; /* libfuse closes it from now on */
    return TRUE;
}

static void session_free(Session *s)
{
    if (s->fuse)
        fuse_session_destroy(s->fuse);
    nodes_free(s->nodes);
    pthread_mutex_destroy(&s->open_mutex);
    g_free(s->threads);
    g_free(s->volume);
    g_free(s);
}

Session *session_start(const SessionConfig *config, int fuse_fd, void (*ended)(void *data),
                       void *data, GError **error)
{
    Session *s = g_new0(Session, 1);
    s->origin = config->origin;
    s->store = config->store;
    s->volume = g_strdup(config->volume);
    s->read_only = config->read_only;
    s->ended = ended;
    s->ended_data = data;
    pthread_mutex_init(&s->open_mutex, NULL);
    OriginNode *root;
    OriginAttr attr;
    int r = s->origin->ops->root(s->origin, &root, &attr);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot read the root of volume %s: %s",
                    config->volume, g_strerror(-r));
        goto fail;
    }
    s->nodes = nodes_new(s->origin, root, &attr);
    if (!open_fuse(s, &fuse_fd, error))
        goto fail;
    s->notifier = notifier_start(s);
    notifier_listen(s->notifier, s->origin);

    struct sigaction action = {.sa_handler = wake};
    sigaction(WAKE_SIGNAL, &action, NULL);
    s->n_threads = config->threads ? config->threads : DEFAULT_THREADS;
    s->threads = g_new0(pthread_t, s->n_threads);
    atomic_store(&s->running, s->n_threads);
    for (unsigned i = 0; i < s->n_threads; i++)
        pthread_create(&s->threads[i], NULL, worker, s);
    return s;
fail:
    if (fuse_fd >= 0)
        close(fuse_fd);
    session_free(s);
    return NULL;
}

int session_fd(Session *session)
{
    return fuse_session_fd(session->fuse);
}

void session_stats(Session *s, SessionStats *stats)
{
    SessionCounters *c = &s->counters;
    *stats = (SessionStats){
        .opens = atomic_load(&c->opens),
        .hits = atomic_load(&c->hits),
        .misses = atomic_load(&c->misses),
        .bytes_store = atomic_load(&c->bytes_store),
        .bytes_fill = atomic_load(&c->bytes_fill),
        .bytes_origin = atomic_load(&c->bytes_origin),
        .bytes_written = atomic_load(&c->bytes_written),
        .nodes = nodes_count(s->nodes),
    };
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

void session_stop(Session *s)
{
    if (!s)
        return;
    atomic_store(&s->stopping, 1);
    fuse_session_exit(s->fuse);
    for (unsigned i = 0; i < s->n_threads; i++)
        join_thread(s->threads[i]);
    dirs_close_all(s);
    handles_close_all(s);
    if (s->origin->ops->listen)
        s->origin->ops->listen(s->origin, NULL);
    notifier_stop(s->notifier);
    session_free(s);
}
