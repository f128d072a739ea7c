/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection is watched (EPOLLONESHOT) or has a request under way, never both. Its event comes
 * once, and the thread that got the event owns the connection until it is watched again.
 */
#include "cache/control/connections.h"
#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/monotonic.h"
#include "common/tasks.h"
#include "proto/wire.h"

#define EVENTS 64

typedef struct Connection {
    Task task;                   /* first */
    LIST_ENTRY(Connection) link; /* Connections.lock */
    Connections *all;
    ConnectionPeer peer;
    int fd;
} Connection;

struct Connections {
    const ConnectionsOps *ops;
    void *data;
    char *path;
    int listener, epoll, wake;
    pthread_t thread;
    gboolean serving;
    Tasks *threads;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t idle;  /* busy is 0 */
    LIST_HEAD(, Connection) list;
    unsigned n, busy;
    gboolean closing;
    uint64_t last_id; /* the thread's own */
};

/* What an event is about that is not a connection. */
static const char LISTENER, WAKE;

static void send_error(int socket, const GError *error)
{
    json_auto_t *reply = wire_error_reply(error);
    wire_send(socket, reply, -1, NULL);
}

/* One request and its reply; FALSE at the end of the connection. */
static gboolean serve_one(Connection *connection)
{
    const Connections *all = connection->all;
    int fd = -1;
    hearth_autofd int reply_fd = -1;
    g_autoptr(GError) error = NULL;
    json_auto_t *request = wire_receive(connection->fd, &fd, 0, &error);
    if (!request) {
        /* The next packet is a message of its own: go on after a bad one. */
        if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
            return TRUE;
        if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA))
            return FALSE;
        send_error(connection->fd, error);
        return TRUE;
    }
    json_auto_t *reply = all->ops->serve(all->data, &connection->peer, request, fd, &reply_fd);
    gboolean sent = wire_send(connection->fd, reply, reply_fd, &error);
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE)) {
        send_error(connection->fd, error);
        return TRUE;
    }
    return sent;
}

static void remove_connection(Connection *connection)
{
    Connections *all = connection->all;
    pthread_mutex_lock(&all->lock);
    LIST_REMOVE(connection, link);
    all->n--;
    pthread_mutex_unlock(&all->lock);
    close(connection->fd);
    g_free(connection);
}

static gboolean watch(const Connection *connection, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
                                .data.ptr = (void *)connection};
    return epoll_ctl(connection->all->epoll, operation, connection->fd, &event) == 0;
}

static gboolean is_closing(Connections *all)
{
    pthread_mutex_lock(&all->lock);
    gboolean closing = all->closing;
    pthread_mutex_unlock(&all->lock);
    return closing;
}

static void count_done(Connections *all)
{
    pthread_mutex_lock(&all->lock);
    if (--all->busy == 0)
        pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->lock);
}

static void end_connection(Connection *connection)
{
    Connections *all = connection->all;
    if (!is_closing(all))
        all->ops->ended(all->data, connection->peer.connection);
    remove_connection(connection);
}

/* Under the lock, which who removes the connection takes: its next event may come before
 * epoll_ctl() has returned here. */
static gboolean watch_again(Connection *connection)
{
    Connections *all = connection->all;
    pthread_mutex_lock(&all->lock);
    const gboolean watched = watch(connection, EPOLL_CTL_MOD);
    pthread_mutex_unlock(&all->lock);
    return watched;
}

static void serve(Task *task)
{
    Connection *connection = (Connection *)task;
    Connections *all = connection->all;
    if (is_closing(all) || !serve_one(connection) || !watch_again(connection))
        end_connection(connection);
    count_done(all);
}

/* ---- the thread that waits ---- */

static gboolean peer_is_allowed(int fd, ConnectionPeer *peer)
{
    struct ucred who;
    socklen_t length = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
        return FALSE;
    peer->pid = who.pid;
    peer->uid = who.uid;
    return who.uid == 0 || who.uid == geteuid();
}

static gboolean admit(Connections *all, int fd, GError **error)
{
    ConnectionPeer peer;
    if (!peer_is_allowed(fd, &peer))
        return wire_fail(error, WIRE_ERROR_PERMISSION_DENIED, "only root may talk to hearthd");
    pthread_mutex_lock(&all->lock);
    const gboolean full = all->n >= CONTROL_MAX_CONNECTIONS;
    pthread_mutex_unlock(&all->lock);
    if (full)
        return wire_fail(error, WIRE_ERROR_UNAVAILABLE,
                         "hearthd already has %d control connections; close some",
                         CONTROL_MAX_CONNECTIONS);
    Connection *connection = g_new0(Connection, 1);
    peer.connection = ++all->last_id;
    *connection = (Connection){.all = all, .peer = peer, .fd = fd};
    pthread_mutex_lock(&all->lock);
    LIST_INSERT_HEAD(&all->list, connection, link);
    all->n++;
    pthread_mutex_unlock(&all->lock);
    if (watch(connection, EPOLL_CTL_ADD))
        return TRUE;
    const int failed = errno;
    remove_connection(connection);
    return wire_fail(error, WIRE_ERROR_UNAVAILABLE, "cannot watch a connection: %s",
                     g_strerror(failed));
}

static void accept_one(Connections *all)
{
    g_autoptr(GError) error = NULL;
    int fd = wire_accept(all->listener, &error);
    if (fd < 0) {
        g_warning("%s", error->message);
        /* Without free descriptors the listener stays readable: rest for a moment. */
        struct pollfd p = {.fd = all->wake, .events = POLLIN};
        poll(&p, 1, 1000);
        return;
    }
    if (!admit(all, fd, &error)) {
        send_error(fd, error);
        close(fd);
    }
}

static void serve_soon(Connections *all, Connection *connection)
{
    pthread_mutex_lock(&all->lock);
    all->busy++;
    pthread_mutex_unlock(&all->lock);
    connection->task.run = serve;
    if (tasks_give(all->threads, &connection->task))
        return;
    g_autoptr(GError) error = NULL;
    wire_fail(&error, WIRE_ERROR_UNAVAILABLE,
              "no thread can be made for a request: check pids.max and memory");
    send_error(connection->fd, error);
    end_connection(connection);
    count_done(all);
}

static void *run(void *data)
{
    Connections *all = data;
    struct epoll_event events[EVENTS];
    while (!is_closing(all)) {
        int n = epoll_wait(all->epoll, events, EVENTS, -1);
        for (int i = 0; i < n && !is_closing(all); i++) {
            if (events[i].data.ptr == &LISTENER)
                accept_one(all);
            else if (events[i].data.ptr != &WAKE)
                serve_soon(all, events[i].data.ptr);
        }
    }
    return NULL;
}

/* ---- life ---- */

static gboolean watch_for(Connections *all, int fd, const char *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)what};
    return epoll_ctl(all->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

Connections *connections_listen(const char *socket_path, GError **error)
{
    int listener = wire_listen(socket_path, error);
    if (listener < 0)
        return NULL;
    Connections *all = g_new0(Connections, 1);
    all->path = g_strdup(socket_path);
    all->listener = listener;
    all->epoll = epoll_create1(EPOLL_CLOEXEC);
    all->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&all->lock, NULL);
    cond_init_monotonic(&all->idle);
    LIST_INIT(&all->list);
    if (all->epoll >= 0 && all->wake >= 0 && watch_for(all, listener, &LISTENER) &&
        watch_for(all, all->wake, &WAKE))
        return all;
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "control socket: %s",
                g_strerror(errno));
    connections_free(all);
    return NULL;
}

gboolean connections_serve(Connections *all, const ConnectionsOps *ops, void *data, GError **error)
{
    all->ops = ops;
    all->data = data;
    all->threads = tasks_new(0, CONTROL_MAX_CONNECTIONS);
    const int failed = pthread_create(&all->thread, NULL, run, all);
    all->serving = failed == 0;
    if (failed)
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(failed), "cannot start a thread: %s",
                    g_strerror(failed));
    return all->serving;
}

void connections_close(Connections *all)
{
    Connection *connection;
    uint64_t one = 1;
    /* First the name, so that a client sees "not there" rather than a hang. Only once: another
     * hearthd may have made it since. */
    if (!is_closing(all))
        unlink(all->path);
    pthread_mutex_lock(&all->lock);
    all->closing = TRUE;
    LIST_FOREACH (connection, &all->list, link)
        shutdown(connection->fd, SHUT_RDWR);
    pthread_mutex_unlock(&all->lock);
    while (write(all->wake, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    if (all->serving)
        pthread_join(all->thread, NULL);
    all->serving = FALSE;
}

gboolean connections_await_idle(Connections *all, gint64 timeout_ms)
{
    const struct timespec until = deadline_after_ms(timeout_ms);
    int r = 0;
    pthread_mutex_lock(&all->lock);
    while (all->busy && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&all->idle, &all->lock, &until);
    const gboolean idle = all->busy == 0;
    pthread_mutex_unlock(&all->lock);
    return idle;
}

void connections_free(Connections *all)
{
    if (!all)
        return;
    connections_close(all);
    tasks_free(all->threads);
    while (!LIST_EMPTY(&all->list))
        remove_connection(LIST_FIRST(&all->list));
    close(all->listener);
    close(all->epoll);
    close(all->wake);
    pthread_cond_destroy(&all->idle);
    pthread_mutex_destroy(&all->lock);
    g_free(all->path);
    g_free(all);
}
