/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread accepts; each connection has a thread of its own, because an "open" may wait for Ceph
 * for half a minute while "status" must still be answered. Their number is bounded. A finished
 * connection's thread is joined by the accepting one, which an eventfd wakes.
 */
#include "cache/control/server.h"
#include "cache/volume/incarnation.h"
#include "cache/control/ops.h"
#include "proto/wire.h"
#include "cache/origin/origin.h"
#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

typedef struct Connection {
    ControlServer *server;
    uint64_t id;
    int fd;
    pthread_t thread;
    gboolean finished; /* ControlServer.lock */
} Connection;

struct ControlServer {
    Incarnation *incarnation;
    Datasets *datasets; /* NULL: no cache */
    ImageCache *images;
    Control control;
    char *socket_path, *cache_dir, *dir_root;
    int listener, wake;
    pthread_t acceptor;
    pthread_mutex_t lock;
    GPtrArray *connections; /* lock */
    gboolean stopping;      /* lock */
    uint64_t last_id;       /* the acceptor's own */
};

static void wake_acceptor(ControlServer *server)
{
    uint64_t one = 1;
    while (write(server->wake, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void send_error(int socket, const GError *error)
{
    json_auto_t *reply = wire_error_reply(error);
    wire_send(socket, reply, -1, NULL);
}

/* One request and its reply; FALSE at the end of the connection. */
static gboolean serve_one(Connection *connection)
{
    int fd = -1;
    hearth_autofd int reply_fd = -1;
    g_autoptr(GError) error = NULL;
    json_auto_t *request = wire_receive(connection->fd, &fd, -1, &error);
    if (!request) {
        /* The next packet is a message of its own: go on after a bad one. */
        if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA))
            return FALSE;
        send_error(connection->fd, error);
        return TRUE;
    }
    json_auto_t *reply =
        ops_dispatch(&connection->server->control, connection->id, request, fd, &reply_fd);
    gboolean sent = wire_send(connection->fd, reply, reply_fd, &error);
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE)) {
        send_error(connection->fd, error);
        return TRUE;
    }
    return sent;
}

static void *run_connection(void *data)
{
    Connection *connection = data;
    ControlServer *server = connection->server;
    while (serve_one(connection))
        ;
    volumes_connection_ended(server->control.volumes, connection->id);
    pthread_mutex_lock(&server->lock);
    connection->finished = TRUE;
    pthread_mutex_unlock(&server->lock);
    wake_acceptor(server);
    return NULL;
}

static void free_connection(Connection *connection)
{
    pthread_join(connection->thread, NULL);
    close(connection->fd);
    g_free(connection);
}

static void reap_finished(ControlServer *server)
{
    for (;;) {
        Connection *finished = NULL;
        pthread_mutex_lock(&server->lock);
        for (guint i = 0; i < server->connections->len && !finished; i++) {
            Connection *c = server->connections->pdata[i];
            if (c->finished) {
                finished = c;
                g_ptr_array_remove_index_fast(server->connections, i);
            }
        }
        pthread_mutex_unlock(&server->lock);
        if (!finished)
            return;
        free_connection(finished);
    }
}

static gboolean peer_is_allowed(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static gboolean admit_connection(ControlServer *server, int fd, GError **error)
{
    if (!peer_is_allowed(fd))
        return wire_fail(error, WIRE_ERROR_PERMISSION_DENIED, "only root may talk to hearthd");
    pthread_mutex_lock(&server->lock);
    gboolean full = server->connections->len >= CONTROL_MAX_CONNECTIONS;
    pthread_mutex_unlock(&server->lock);
    if (full)
        return wire_fail(error, WIRE_ERROR_UNAVAILABLE,
                         "hearthd already has %d control connections; close some",
                         CONTROL_MAX_CONNECTIONS);
    Connection *connection = g_new0(Connection, 1);
    connection->server = server;
    connection->id = ++server->last_id;
    connection->fd = fd;
    pthread_mutex_lock(&server->lock);
    int failed = pthread_create(&connection->thread, NULL, run_connection, connection);
    if (!failed)
        g_ptr_array_add(server->connections, connection);
    pthread_mutex_unlock(&server->lock);
    if (failed) {
        g_free(connection);
        return wire_fail(error, WIRE_ERROR_UNAVAILABLE, "cannot start a thread: %s",
                         g_strerror(failed));
    }
    return TRUE;
}

static void accept_one(ControlServer *server)
{
    g_autoptr(GError) error = NULL;
    hearth_autofd int fd = wire_accept(server->listener, &error);
    if (fd < 0) {
        g_warning("%s", error->message);
        /* Without free descriptors the listener stays readable: wait until a connection ends, or
         * for a second. */
        struct pollfd p = {.fd = server->wake, .events = POLLIN};
        poll(&p, 1, 1000);
        return;
    }
    if (admit_connection(server, fd, &error))
        hearth_steal_fd(&fd);
    else
        send_error(fd, error);
}

static gboolean is_stopping(ControlServer *server)
{
    pthread_mutex_lock(&server->lock);
    gboolean stopping = server->stopping;
    pthread_mutex_unlock(&server->lock);
    return stopping;
}

static void *run_acceptor(void *data)
{
    ControlServer *server = data;
    while (!is_stopping(server)) {
        struct pollfd p[2] = {{.fd = server->listener, .events = POLLIN},
                              {.fd = server->wake, .events = POLLIN}};
        if (poll(p, 2, -1) < 0)
            continue;
        uint64_t n;
        if (p[1].revents && read(server->wake, &n, sizeof(n)) < 0 && errno != EAGAIN)
            g_warning("control socket: cannot read its eventfd: %s", g_strerror(errno));
        reap_finished(server);
        if (p[0].revents && !is_stopping(server))
            accept_one(server);
    }
    return NULL;
}

ControlServer *control_server_start(const ControlServerConfig *config, GError **error)
{
    hearth_autofd int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "eventfd: %s",
                    g_strerror(errno));
        return NULL;
    }
    int listener = wire_listen(config->socket_path, error);
    if (listener < 0)
        return NULL;
    ControlServer *server = g_new0(ControlServer, 1);
    server->socket_path = g_strdup(config->socket_path);
    server->cache_dir = g_strdup(config->cache_dir);
    server->dir_root = g_strdup(config->dir_root);
    server->listener = listener;
    server->wake = hearth_steal_fd(&wake);
    pthread_mutex_init(&server->lock, NULL);
    server->connections = g_ptr_array_new();
    g_autofree char *run_path = g_strconcat(config->socket_path, ".run", NULL);
    server->incarnation = incarnation_begin(run_path);
    server->control.store = config->store;
    server->control.cache_dir = server->cache_dir;
    server->control.dir_root = server->dir_root;
    server->control.warm_rate = config->warm_rate;
    server->control.started_us = g_get_monotonic_time();
    if (config->store && config->cache_dir)
        server->datasets = datasets_new(config->store, server->cache_dir, FALSE);
    if (config->store && config->cache_dir)
        server->images =
            image_cache_new(config->store, server->cache_dir, config->image_chunk_bytes);
    server->control.images = server->images;
    server->control.datasets = server->datasets;
    const VolumesCaches caches = {config->store, server->datasets, server->images};
    server->control.volumes = volumes_new(&caches, server->incarnation, config->fuse_threads);
    server->control.jobs = jobs_new(server->control.volumes, config->store);
    int failed = pthread_create(&server->acceptor, NULL, run_acceptor, server);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return server;
}

void control_server_stop(ControlServer *server)
{
    if (!server)
        return;
    /* First the name, so that a client sees "not there" rather than a hang. */
    unlink(server->socket_path);
    pthread_mutex_lock(&server->lock);
    server->stopping = TRUE;
    pthread_mutex_unlock(&server->lock);
    wake_acceptor(server);
    pthread_join(server->acceptor, NULL);
    close(server->listener);

    jobs_cancel_all(server->control.jobs);
    /* The acceptor is gone: no other thread changes the list. */
    for (guint i = 0; i < server->connections->len; i++)
        shutdown(((Connection *)server->connections->pdata[i])->fd, SHUT_RDWR);
    for (guint i = 0; i < server->connections->len; i++)
        free_connection(server->connections->pdata[i]);
    jobs_free(server->control.jobs);
    volumes_free(server->control.volumes);
    image_cache_free(server->images);
    datasets_free(server->datasets);
    incarnation_end(server->incarnation, origin_cephfs_await_ends());
    g_ptr_array_unref(server->connections);
    close(server->wake);
    pthread_mutex_destroy(&server->lock);
    g_free(server->socket_path);
    g_free(server->cache_dir);
    g_free(server->dir_root);
    g_free(server);
}

GBytes *control_server_metrics(ControlServer *server)
{
    return ops_metrics(&server->control);
}
