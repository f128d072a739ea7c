/* SPDX-License-Identifier: Apache-2.0 */
/* What hearthd consists of beside its store, and the order in which it begins and ends. */
#include "cache/control/server.h"
#include "cache/volume/incarnation.h"
#include "cache/control/connections.h"
#include "cache/control/ops.h"
#include "cache/origin/origin.h"
#include "common/monotonic.h"

/* Of the time to stop, kept for sessions with Ceph to end. */
#define ENDS_MS 1500

struct ControlServer {
    Incarnation *incarnation;
    Datasets *datasets; /* NULL: no cache */
    ImageCache *images;
    Control control;
    char *cache_dir, *dir_root;
    Connections *connections;
};

static json_t *serve(void *data, const ConnectionPeer *peer, json_t *request, int fd, int *reply_fd)
{
    ControlServer *server = data;
    return ops_dispatch(&server->control, peer, request, fd, reply_fd);
}

static void connection_ended(void *data, uint64_t connection)
{
    ControlServer *server = data;
    volumes_connection_ended(server->control.volumes, connection);
}

static const ConnectionsOps connection_ops = {.serve = serve, .ended = connection_ended};

static unsigned left_ms(int64_t until_ms)
{
    const int64_t now = (int64_t)monotonic_ms();
    return until_ms > now ? (unsigned)(until_ms - now) : 0;
}

/* All volumes are detached. */
static void server_free(ControlServer *server, int64_t until_ms)
{
    connections_free(server->connections);
    jobs_free(server->control.jobs);
    volumes_free(server->control.volumes);
    image_cache_free(server->images);
    datasets_free(server->datasets);
    incarnation_end(server->incarnation, origin_cephfs_await_ends(left_ms(until_ms)));
    g_free(server->cache_dir);
    g_free(server->dir_root);
    g_free(server);
}

ControlServer *control_server_start(const ControlServerConfig *config, GError **error)
{
    Connections *connections = connections_listen(config->socket_path, error);
    if (!connections)
        return NULL;
    ControlServer *server = g_new0(ControlServer, 1);
    server->connections = connections;
    server->cache_dir = g_strdup(config->cache_dir);
    server->dir_root = g_strdup(config->dir_root);
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
    server->control.volumes = volumes_new(&caches, server->incarnation);
    server->control.jobs = jobs_new(server->control.volumes, config->store);
    if (connections_serve(connections, &connection_ops, server, error))
        return server;
    server_free(server, 0);
    return NULL;
}

gboolean control_server_stop(ControlServer *server, gint64 timeout_ms)
{
    if (!server)
        return TRUE;
    const int64_t until_ms = (int64_t)monotonic_ms() + timeout_ms;
    connections_close(server->connections);
    jobs_cancel_all(server->control.jobs);
    /* A job has a use of its volume, so it has ended with it. */
    const gint64 detach_ms = timeout_ms > 2 * ENDS_MS ? timeout_ms - ENDS_MS : timeout_ms / 2;
    const gboolean detached = volumes_detach_all(server->control.volumes, detach_ms);
    if (detached && connections_await_idle(server->connections, left_ms(until_ms))) {
        server_free(server, until_ms);
        return TRUE;
    }
    /* Those that were detached may still write. */
    origin_cephfs_await_ends(left_ms(until_ms));
    return FALSE;
}

GBytes *control_server_metrics(ControlServer *server)
{
    return ops_metrics(&server->control);
}
