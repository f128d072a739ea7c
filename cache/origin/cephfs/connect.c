/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to connect. libcephfs must not give up in the middle of a mount, because it aborts its
 * process then (client/abort.c). So an attempt runs on a thread of its own for as long as Ceph
 * takes, and the caller waits for a bounded time. A later caller for the same connection finds the
 * attempt that is still running, and gets its result; without a caller the attempt closes the
 * connection. So there is one attempt for each connection, and a bounded number for a file system.
 *
 * client_mount_timeout bounds each request of the mount, and authentication with the monitors too.
 * It is endless here. So a separate client asks the monitors first, and gives up in time: a wrong
 * key or address does not block an attempt.
 */
#include "cache/origin/cephfs/connect.h"
#include <gio/gio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>
#include "cache/origin/thread_room.h"
#include "common/io_error.h"
#include "common/monotonic.h"

/* For one file system at a time. */
#define ATTEMPTS_MAX 32
/* How often the wait checks for an aborted attempt. */
#define STEP_MS 250
/* Less than the caller waits, so that the caller gets the reason. */
#define TELL_MS 1000

typedef struct CephfsAttempt {
    LIST_ENTRY(CephfsAttempt) link;
    CephfsOriginConfig *config;
    int64_t until_ms;         /* when the first caller gives up */
    SessionName *name;        /* the thread's, until that is stopped; NULL: none yet */
    _Atomic gboolean aborted; /* its thread has stopped, in ceph_mount() */
    /* The lock's, as all below. */
    unsigned waiting;
    gboolean listed, done, ending;
    gboolean has_room; /* for its threads, which may not be made yet */
    Origin *origin;    /* done; taken by a caller that waits */
    GError *error;
} CephfsAttempt;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static LIST_HEAD(, CephfsAttempt) attempts = LIST_HEAD_INITIALIZER(attempts); /* lock */

static void init_changed(void)
{
    cond_init_monotonic(&changed);
}

static gboolean is_same_connection(const CephfsOriginConfig *a, const CephfsOriginConfig *b)
{
    return g_strcmp0(a->monitors, b->monitors) == 0 && g_strcmp0(a->user_id, b->user_id) == 0 &&
           g_strcmp0(a->key, b->key) == 0 && g_strcmp0(a->fs_name, b->fs_name) == 0 &&
           g_strcmp0(a->root_path, b->root_path) == 0 && g_strcmp0(a->client, b->client) == 0 &&
           cephfs_follows(a) == cephfs_follows(b) && ceph_client_same(&a->ceph, &b->ceph);
}

static CephfsAttempt *find_locked(const CephfsOriginConfig *config)
{
    CephfsAttempt *a;
    LIST_FOREACH (a, &attempts, link)
        if (!atomic_load(&a->aborted) && is_same_connection(a->config, config))
            return a;
    return NULL;
}

static gboolean may_begin_locked(const CephfsOriginConfig *config)
{
    CephfsAttempt *a;
    unsigned n = 0;
    LIST_FOREACH (a, &attempts, link)
        n += !atomic_load(&a->aborted) && strcmp(a->config->monitors, config->monitors) == 0 &&
             g_strcmp0(a->config->fs_name, config->fs_name) == 0;
    return n < ATTEMPTS_MAX;
}

static void leave_room_locked(CephfsAttempt *a)
{
    if (a->has_room)
        thread_room_give(THREAD_ROOM_CEPHFS);
    a->has_room = FALSE;
}

static void unlist_locked(CephfsAttempt *a)
{
    leave_room_locked(a);
    if (a->listed)
        LIST_REMOVE(a, link);
    a->listed = FALSE;
    if (atomic_load(&a->aborted))
        session_name_release(g_steal_pointer(&a->name));
    pthread_cond_broadcast(&changed);
}

static void attempt_free(CephfsAttempt *a)
{
    cephfs_config_free(a->config);
    session_name_release(a->name);
    g_clear_error(&a->error);
    g_free(a);
}

static gboolean take_name(CephfsAttempt *a, GError **error)
{
    if (a->name || !a->config->client)
        return TRUE;
    a->name = session_name_take(a->config->client, a->until_ms - TELL_MS);
    if (!a->name)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "earlier connections of this node to %s have not ended yet; try again",
                    a->config->root_path);
    return a->name != NULL;
}

static gboolean take_room(CephfsAttempt *a, GError **error)
{
    if (!thread_room_take(THREAD_ROOM_CEPHFS, THREAD_ROOM_WAIT_MS, error))
        return FALSE;
    pthread_mutex_lock(&lock);
    a->has_room = TRUE;
    pthread_mutex_unlock(&lock);
    return TRUE;
}

static Origin *connect_here(CephfsAttempt *a, GError **error)
{
    if (!take_room(a, error) || !ceph_client_enter_network(&a->config->ceph, error))
        return NULL;
    int r = cephfs_reach_monitors(a->config);
    if (r < 0) {
        cephfs_set_mount_error(a->config, r, error);
        return NULL;
    }
    return take_name(a, error) ? cephfs_connect(a->config, a->name, &a->aborted, error) : NULL;
}

static void *attempt_thread(void *data)
{
    CephfsAttempt *a = data;
    GError *error = NULL;
    Origin *origin = connect_here(a, &error);
    pthread_mutex_lock(&lock);
    leave_room_locked(a);
    a->done = TRUE;
    a->origin = origin;
    a->error = error;
    gboolean wanted = a->waiting > 0;
    a->ending = !wanted;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (wanted)
        return NULL;
    origin_close(origin);
    pthread_mutex_lock(&lock);
    unlist_locked(a);
    pthread_mutex_unlock(&lock);
    attempt_free(a);
    return NULL;
}

static CephfsAttempt *begin_locked(const CephfsOriginConfig *config, int64_t until_ms)
{
    CephfsAttempt *a = g_new0(CephfsAttempt, 1);
    pthread_t thread;
    a->config = cephfs_config_copy(config);
    a->until_ms = until_ms;
    /* The caller has that name, and may release it before there is an answer. */
    a->name = cephfs_follows(config) ? session_name_again(config->client) : NULL;
    if (pthread_create(&thread, NULL, attempt_thread, a) != 0) {
        attempt_free(a);
        return NULL;
    }
    pthread_detach(thread);
    a->listed = TRUE;
    LIST_INSERT_HEAD(&attempts, a, link);
    return a;
}

/* The attempt for that connection, unless it is ending; NULL: there is none before the end of the
 * wait. */
static CephfsAttempt *enter_locked(const CephfsOriginConfig *config, int64_t until_ms)
{
    for (;;) {
        CephfsAttempt *a = find_locked(config);
        if (a && !a->ending)
            return a;
        if (!a && may_begin_locked(config))
            return begin_locked(config, until_ms);
        if (monotonic_ms() >= until_ms)
            return NULL;
        const struct timespec next = deadline_after_ms(STEP_MS);
        pthread_cond_timedwait(&changed, &lock, &next);
    }
}

static void await_locked(CephfsAttempt *a, int64_t until_ms)
{
    while (!a->done && !atomic_load(&a->aborted)) {
        if (monotonic_ms() >= until_ms)
            return;
        const struct timespec next = deadline_after_ms(STEP_MS);
        pthread_cond_timedwait(&changed, &lock, &next);
    }
}

/* Gives up a waiting caller's reference. TRUE: *origin or *error is the result. */
static gboolean leave_locked(CephfsAttempt *a, Origin **origin, GError **error)
{
    gboolean mine = a->done && a->listed;
    a->waiting--;
    if (mine) {
        *origin = g_steal_pointer(&a->origin);
        *error = g_steal_pointer(&a->error);
    }
    if (mine || atomic_load(&a->aborted))
        unlist_locked(a);
    if (a->done && a->waiting == 0)
        attempt_free(a);
    return mine;
}

/* Those without a caller. */
static void unlist_aborted_locked(void)
{
    CephfsAttempt *a = LIST_FIRST(&attempts), *next;
    for (; a; a = next) {
        next = LIST_NEXT(a, link);
        if (atomic_load(&a->aborted) && a->waiting == 0)
            unlist_locked(a);
    }
}

/* The time is over. `asked`: there was an attempt, with room for its threads. */
static void set_unanswered(const CephfsOriginConfig *config, gboolean asked, GError **error)
{
    if (asked)
        cephfs_set_mount_error(config, -ETIMEDOUT, error);
    else
        io_fail(error, G_IO_ERROR_TIMED_OUT,
                "connecting to file system %s did not begin within %u s: up to %d other "
                "connections to it are being made on this node, and they wait for Ceph or for "
                "room for their threads; check `ceph fs status`, and hearthd's pids.max",
                config->fs_name ? config->fs_name : "(default)", cephfs_timeout_sec(config),
                ATTEMPTS_MAX);
}

Origin *cephfs_attempt(const CephfsOriginConfig *config, unsigned extra_sec, GError **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_changed);
    const int64_t until_ms =
        monotonic_ms() + (int64_t)(cephfs_timeout_sec(config) + extra_sec) * 1000;
    Origin *origin = NULL;
    GError *failure = NULL;
    gboolean over = FALSE, asked = FALSE;
    pthread_mutex_lock(&lock);
    unlist_aborted_locked();
    while (!over) {
        CephfsAttempt *a = enter_locked(config, until_ms);
        if (!a)
            break;
        a->waiting++;
        await_locked(a, until_ms);
        /* Another caller took the result: try again, if there is time. */
        over = !a->done;
        asked = a->has_room || a->done;
        over = leave_locked(a, &origin, &failure) || over;
    }
    pthread_mutex_unlock(&lock);
    if (failure)
        g_propagate_error(error, failure);
    else if (!origin)
        set_unanswered(config, asked, error);
    return origin;
}
