/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of several images at one moment, without an error for their writers. librbd's own group
 * snapshots pause the writers, but before Ceph 19 nothing can be cloned from one; and a lock taken
 * with rbd_lock_acquire() makes a writer's next write fail (EROFS). So a thread for each image
 * takes its snapshot, for which librbd does this:
 *
 *     take the exclusive lock → notify all quiesce watchers → take the snapshot
 *
 * This process is a watcher of every image, and lets none of the snapshots continue before all of
 * them have reached the notification: then all locks are held at once, and no write is under way. A
 * writer that wants its lock back has to wait, because the lock is released only after the
 * snapshot. librbd takes the lock itself only when this client has it already, and otherwise lets
 * the owner take the snapshot. So a write without effect (it compares with random bytes first) is
 * begun just before, to get the lock; an image whose lock was lost again starts over.
 *
 * hearthd never gives up its lock. It pauses when it is notified, and notes that in the image's
 * metadata, which serves as well as the lock (cache/origin/rbd/quiet.c).
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "driver/backend/rbd/internal.h"

/* Writers wait no longer than this. */
#define HOLD_US (10 * G_USEC_PER_SEC)
#define MAX_TRIES 50
#define SECTOR 512
/* hearthd's notes: "CLIENT ADDRESS" of the lock's owner; a new text for each pause, while it lasts.
 */
#define HOLDER_NOTE "hearth.holder"
#define PAUSED_NOTE "hearth.paused"
#define PAUSE_US (2 * G_USEC_PER_SEC)
#define CHECK_US (5 * 1000)

typedef struct Group Group;

typedef struct Member {
    Group *group;
    const char *name, *snapshot;
    rbd_image_t image;
    uint64_t watch;
    gboolean open, watched, started;
    char *old_pause; /* left by a hearthd that died, or NULL */
    pthread_t thread;
    gboolean quiet, done; /* guarded by the group's lock, as rc */
    int rc;
} Member;

struct Group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean over; /* the moment has come or is given up: no snapshot may begin */
    Member *members;
    guint n;
};

static void on_quiesce(void *data)
{
    Member *m = data;
    pthread_mutex_lock(&m->group->lock);
    gboolean late = m->group->over;
    if (!late)
        m->quiet = TRUE;
    pthread_cond_broadcast(&m->group->changed);
    pthread_mutex_unlock(&m->group->lock);
    if (late)
        rbd_quiesce_complete(m->image, m->watch, -ECANCELED);
}

static void on_unquiesce(void *data)
{
    (void)data;
}

static int no_progress(uint64_t done, uint64_t all, void *data)
{
    (void)done, (void)all, (void)data;
    return 0;
}

static int try_snapshot(Member *m)
{
    guint32 random[SECTOR / sizeof(guint32)];
    rbd_completion_t taken;
    uint64_t differs_at;
    for (guint i = 0; i < G_N_ELEMENTS(random); i++)
        random[i] = g_random_int();
    int rc = rbd_aio_create_completion(NULL, NULL, &taken);
    if (rc != 0)
        return rc;
    rc = rbd_aio_compare_and_write(m->image, 0, SECTOR, (const char *)random, (const char *)random,
                                   taken, &differs_at, 0);
    if (rc == 0) {
        rc = rbd_snap_create2(m->image, m->snapshot, 0, no_progress, NULL);
        rbd_aio_wait_for_complete(taken);
    }
    rbd_aio_release(taken);
    return rc;
}

static void *member_thread(void *data)
{
    Member *m = data;
    int rc = -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < MAX_TRIES; i++) {
        pthread_mutex_lock(&m->group->lock);
        gboolean over = m->group->over;
        pthread_mutex_unlock(&m->group->lock);
        rc = over ? -ECANCELED : try_snapshot(m);
    }
    pthread_mutex_lock(&m->group->lock);
    m->done = TRUE;
    m->rc = rc;
    pthread_cond_broadcast(&m->group->changed);
    pthread_mutex_unlock(&m->group->lock);
    return NULL;
}

/* The caller's; NULL when there is none. */
static char *read_note(rbd_image_t image, const char *name)
{
    char text[512];
    size_t length = sizeof(text);
    if (rbd_metadata_get(image, name, text, &length) < 0)
        return NULL;
    return g_strndup(text, MIN(length, sizeof(text)));
}

static gboolean is_hearthds(rbd_image_t image)
{
    g_autofree char *holder = read_note(image, HOLDER_NOTE);
    const char *address = holder ? strchr(holder, ' ') : NULL;
    rbd_lock_mode_t mode;
    char *owners[2];
    size_t n = G_N_ELEMENTS(owners);
    if (!address || rbd_lock_get_owners(image, &mode, owners, &n) != 0)
        return FALSE;
    gboolean same = n > 0 && strcmp(owners[0], address + 1) == 0;
    rbd_lock_get_owners_cleanup(owners, n);
    return same;
}

/* Whether the lock's owner is a hearthd that has paused; it is notified when we are. */
static gboolean has_paused(const Member *m)
{
    if (!is_hearthds(m->image))
        return FALSE;
    gint64 until_us = g_get_monotonic_time() + PAUSE_US;
    for (;;) {
        g_autofree char *pause = read_note(m->image, PAUSED_NOTE);
        if (pause && g_strcmp0(pause, m->old_pause) != 0)
            return TRUE;
        if (g_get_monotonic_time() > until_us)
            return FALSE;
        g_usleep(CHECK_US);
    }
}

/* Sends members back whose lock another client has. TRUE: all hold their lock, and keep it. */
static gboolean check_locks(Group *g)
{
    gboolean all = TRUE;
    for (guint i = 0; i < g->n; i++) {
        Member *m = &g->members[i];
        int owner = 0;
        if (rbd_is_exclusive_lock_owner(m->image, &owner) == 0 && (owner || has_paused(m)))
            continue;
        all = FALSE;
        pthread_mutex_lock(&g->lock);
        m->quiet = FALSE;
        pthread_mutex_unlock(&g->lock);
        rbd_quiesce_complete(m->image, m->watch, -EAGAIN);
    }
    return all;
}

/* Waits until all are quiet. FALSE: one has failed, or it takes too long. */
static gboolean await_quiet(Group *g, gint64 until_us)
{
    struct timespec until = {.tv_sec = until_us / G_USEC_PER_SEC,
                             .tv_nsec = until_us % G_USEC_PER_SEC * 1000};
    gboolean all = FALSE, lost = FALSE;
    pthread_mutex_lock(&g->lock);
    while (!all && !lost) {
        all = TRUE;
        for (guint i = 0; i < g->n; i++) {
            lost = lost || g->members[i].done;
            all = all && g->members[i].quiet;
        }
        if (!all && !lost)
            lost = pthread_cond_timedwait(&g->changed, &g->lock, &until) == ETIMEDOUT;
    }
    pthread_mutex_unlock(&g->lock);
    return all && !lost;
}

/* Lets all members continue, with their snapshots, or without them when rc is an error. */
static void release_members(Group *g, int rc)
{
    pthread_mutex_lock(&g->lock);
    g->over = TRUE;
    pthread_mutex_unlock(&g->lock);
    for (guint i = 0; i < g->n; i++) {
        if (g->members[i].quiet)
            rbd_quiesce_complete(g->members[i].image, g->members[i].watch, rc);
    }
}

static gboolean open_member(RbdCall *call, Member *m)
{
    guint64 features = 0;
    g_free(call->image);
    call->image = g_strdup(m->name);
    int rc = rbd_open(call->io, m->name, &m->image, NULL);
    if (rc == -ENOENT)
        return rbd_call_missing(call);
    if (rc != 0)
        return rbd_call_fail(call, rc, "opening");
    m->open = TRUE;
    rc = rbd_get_features(m->image, &features);
    if (rc == 0 && !(features & RBD_FEATURE_EXCLUSIVE_LOCK))
        return rbd_call_refuse(call, HEARTH_ERROR_FAILED_PRECONDITION,
                               "image %s has no exclusive-lock feature, so its writers cannot be "
                               "made to wait for a group snapshot; enable it with `rbd feature "
                               "enable`, and have it in imageFeatures",
                               m->name);
    m->old_pause = read_note(m->image, PAUSED_NOTE);
    if (rc == 0)
        rc = rbd_quiesce_watch(m->image, on_quiesce, on_unquiesce, m, &m->watch);
    m->watched = rc == 0;
    return rc == 0 || rbd_call_fail(call, rc, "watching");
}

/* Takes the snapshots of all, or sets the call's error. */
static void take_snapshots(RbdCall *call, Group *g)
{
    gint64 until_us = MIN(call->deadline_us, g_get_monotonic_time() + HOLD_US);
    gboolean good = TRUE;
    for (guint i = 0; good && i < g->n; i++) {
        Member *m = &g->members[i];
        good = pthread_create(&m->thread, NULL, member_thread, m) == 0;
        m->started = good;
    }
    do
        good = good && await_quiet(g, until_us);
    while (good && !check_locks(g));
    release_members(g, good ? 0 : -ECANCELED);
    const Member *failed = NULL;
    for (guint i = 0; i < g->n; i++) {
        Member *m = &g->members[i];
        if (m->started)
            pthread_join(m->thread, NULL);
        if (m->rc != 0 && (!failed || failed->rc == -ECANCELED))
            failed = m;
    }
    for (guint i = 0; failed && i < g->n; i++) {
        Member *m = &g->members[i];
        if (m->started && m->rc == 0)
            rbd_snap_remove(m->image, m->snapshot);
    }
    if (failed && failed->rc != -ECANCELED && failed->rc != -EAGAIN) {
        g_free(call->image);
        call->image = g_strdup(failed->name);
        rbd_call_fail(call, failed->rc, "taking a snapshot of");
    } else if (failed || !good) {
        rbd_call_refuse(call, HEARTH_ERROR_ABORTED,
                        "the writers of the group's images could not be made to wait all at once "
                        "within %d s; try again",
                        (int)(HOLD_US / G_USEC_PER_SEC));
    }
}

static void group_run(RbdCall *call)
{
    Group g = {.n = g_strv_length(call->images)};
    g.members = g_new0(Member, g.n);
    pthread_mutex_init(&g.lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    gboolean good = TRUE;
    for (guint i = 0; good && i < g.n; i++) {
        Member *m = &g.members[i];
        *m = (Member){.group = &g, .name = call->images[i], .snapshot = call->snapshots[i]};
        good = open_member(call, m);
    }
    if (good)
        take_snapshots(call, &g);
    for (guint i = 0; i < g.n; i++) {
        Member *m = &g.members[i];
        if (m->watched)
            rbd_quiesce_unwatch(m->image, m->watch);
        if (m->open)
            rbd_close(m->image);
        g_free(m->old_pause);
    }
    pthread_cond_destroy(&g.changed);
    pthread_mutex_destroy(&g.lock);
    g_free(g.members);
}

gboolean rbd_snapshot_create_group(void *session, const VolumeId *const *volumes,
                                   const char *const *snapshots, gsize n, gint64 deadline_us,
                                   GError **error)
{
    RbdCall *call = rbd_call_new(session, NULL, NULL);
    call->images = g_new0(char *, n + 1);
    call->snapshots = g_new0(char *, n + 1);
    for (gsize i = 0; i < n; i++) {
        call->images[i] = g_strdup(volumes[i]->name);
        call->snapshots[i] = g_strdup(snapshots[i]);
    }
    return rbd_call_do(call, "taking a group snapshot in", group_run, RBD_CHANGE_MS, deadline_us,
                       error);
}
