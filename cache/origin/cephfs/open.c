/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CephFS as an origin that connects again: connections that follow one another, each made with the
 * monitors and the key that Ceph accepted last. origin_cephfs_open() is what hearthd calls.
 */
#include "cache/origin/thread_room.h"
#include "cache/origin/cephfs/client/monitors.h"
#include "cache/origin/cephfs/connect.h"
#include "cache/origin/cephfs/internal.h"
#include "cache/origin/reconnect/reconnect.h"
#include "common/io_error.h"
#include <errno.h>

/* libcephfs aborts when it is ended while OSDs have yet to answer, or refuse, what it had sent them
 * (Inode.cc, oset.objects.empty()): they have this long. */
#define QUIET_MS 20000
#define WAIT_MS 30000
/* A monitor that answers needs about a second. */
#define CEPHFS_SHUT_OUT_SEC 10
/* kubelet looks at each volume of a pod once a minute. */
#define REST_MS 90000

/* How the next connection is made: with what Ceph accepted last. */
typedef struct Way {
    pthread_mutex_t mutex; /* a leaf */
    CephfsOriginConfig *config;
    char *client;      /* which the names of sessions are made from; NULL: none */
    SessionName *name; /* of the last one, and of config; NULL: none */
    CephfsMonitors *monitors;
} Way;

static void set_reach(void *data, const char *monitors, const char *key, unsigned timeout_sec)
{
    Way *way = data;
    pthread_mutex_lock(&way->mutex);
    CephfsOriginConfig *old = way->config, changed = *old;
    changed.monitors = monitors;
    changed.key = key;
    changed.timeout_sec = timeout_sec;
    way->config = cephfs_config_copy(&changed);
    pthread_mutex_unlock(&way->mutex);
    cephfs_config_free(old);
}

static CephfsOriginConfig *current_way(void *data)
{
    Way *way = data;
    pthread_mutex_lock(&way->mutex);
    CephfsOriginConfig *config = cephfs_config_copy(way->config);
    pthread_mutex_unlock(&way->mutex);
    return config;
}

static void way_free(void *data)
{
    Way *way = data;
    cephfs_config_free(way->config);
    session_name_release(way->name);
    g_free(way->client);
    cephfs_monitors_unref(way->monitors);
    pthread_mutex_destroy(&way->mutex);
    g_free(way);
}

static gboolean new_client_is_answered(void *data)
{
    CephfsOriginConfig *own = current_way(data), config = *own;
    config.client = config.dead_client = NULL;
    g_autoptr(Origin) other = cephfs_attempt(&config, 0, NULL);
    cephfs_config_free(own);
    return other != NULL;
}

static uint64_t monitors_silent_ms(void *data)
{
    Way *way = data;
    CephfsOriginConfig *config = current_way(way);
    const uint64_t ms = cephfs_monitors_silent_ms(way->monitors, config);
    cephfs_config_free(config);
    return ms;
}

static gboolean end_own_session(void *data)
{
    if (!thread_room_take(THREAD_ROOM_QUESTION, 0, NULL))
        return FALSE;
    CephfsOriginConfig *config = current_way(data);
    struct ceph_mount_info *mount = config->client ? cephfs_configured(config, NULL) : NULL;
    const int r =
        mount ? cephfs_reclaim(mount, &config->ceph, config->client, CEPHFS_RECLAIM_SEC) : -EPERM;
    cephfs_config_free(config);
    thread_room_give(THREAD_ROOM_QUESTION);
    return r == 0 || r == -ENOENT;
}

static gboolean end_calls(void *data, Origin *connection)
{
    CephfsOriginConfig *config = current_way(data);
    const int r = cephfs_shut_out(((CephfsOrigin *)connection)->mount, config, CEPHFS_SHUT_OUT_SEC);
    if (r == -EACCES || r == -EPERM)
        g_warning("calls wait in a session that Ceph has ended, until the MDS restarts: user "
                  "client.%s may not put its own client on the blocklist; give it the monitors' "
                  "profile rbd: ceph auth caps, with mon 'allow r, profile rbd'",
                  config->user_id);
    else if (r < 0)
        g_message("calls wait in a session that Ceph has ended: the monitors have not put it on "
                  "the blocklist yet: %s",
                  g_strerror(-r));
    cephfs_config_free(config);
    return r == 0;
}

static void release_name(Way *way)
{
    pthread_mutex_lock(&way->mutex);
    SessionName *name = g_steal_pointer(&way->name);
    pthread_mutex_unlock(&way->mutex);
    session_name_release(name);
}

/* Connections that follow this one after a loss have its session's name. */
static void follow(Way *way, Origin *origin)
{
    const SessionName *name = ((CephfsOrigin *)origin)->name;
    if (!name)
        return;
    pthread_mutex_lock(&way->mutex);
    CephfsOriginConfig *old = way->config, changed = *old;
    SessionName *old_name = way->name;
    changed.client = session_name(name);
    way->config = cephfs_config_copy(&changed);
    way->name = session_name_again(changed.client);
    pthread_mutex_unlock(&way->mutex);
    cephfs_config_free(old);
    session_name_release(old_name);
}

static Origin *connect_again(void *data, gboolean after_loss, GError **error)
{
    Way *way = data;
    CephfsOriginConfig *own = current_way(way), config = *own;
    config.dead_client = after_loss ? config.client : NULL;
    /* The session of one at rest may not have ended yet: it has its name as long as it needs it. */
    if (!after_loss) {
        config.client = way->client;
        release_name(way);
    }
    Origin *origin = cephfs_attempt(&config, after_loss ? CEPHFS_RECLAIM_SEC : 0, error);
    cephfs_config_free(own);
    if (origin && !after_loss)
        follow(way, origin);
    return origin;
}

gboolean origin_cephfs_await_ends(unsigned timeout_ms)
{
    return session_names_await_none(timeout_ms);
}

unsigned origin_cephfs_connections(void)
{
    return reconnect_connections();
}

Origin *origin_cephfs_open(const CephfsOriginConfig *config, GError **error)
{
    static const ReconnectOps ops = {
        .reach = set_reach,
        .connect = connect_again,
        .check = cephfs_canary_check,
        .answers = new_client_is_answered,
        .monitors_silent_ms = monitors_silent_ms,
        .fence = end_own_session,
        .end_calls = end_calls,
        .abandon = cephfs_abandon,
        .quiet_ms = QUIET_MS,
        .wait_ms = WAIT_MS,
        .rest_ms = REST_MS,
        .free_data = way_free,
    };
    Origin *first =
        cephfs_attempt(config, config->dead_client ? SESSION_NAMES * CEPHFS_RECLAIM_SEC : 0, error);
    if (!first)
        return NULL;
    Way *way = g_new0(Way, 1);
    pthread_mutex_init(&way->mutex, NULL);
    way->monitors = cephfs_monitors_new();
    way->config = cephfs_config_copy(config);
    way->client = g_strdup(config->client);
    follow(way, first);
    Origin *origin = origin_reconnect_new(first, &ops, way);
    if (!origin)
        io_fail(error, G_IO_ERROR_FAILED,
                "cannot start a thread: too many are running; see "
                "pids.max of hearthd's container");
    return origin;
}
