/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes operations that libcephfs forgets. A read, a write or (with delegations) an open waits in
 * libcephfs while a capability that it needs is being recalled and is still in use here. Two of
 * these uses end without waking the waiter: a delegation that is returned, and the cache's own read
 * ahead or read (Ceph's tracker, 65971). libcephfs expects the MDS to grant something then, but the
 * MDS does not if the client already holds it. The operation, the page that it has locked in the
 * kernel, and all that need that page then wait for ever.
 *
 * So these operations are listed while they run. If one is still there a moment after a lease of
 * its inode was returned, or after a longer time in any case, the attributes are asked for: to
 * answer, the MDS changes the state of the file's capabilities and grants them again, which wakes
 * the operation. It is not done at once, nor without a waiter, because the question takes
 * capabilities from a writer on another node that has just got them.
 *
 * The MDS may answer only when another client has returned something, and that client may itself
 * wait for an answer about another file. So each file is asked for on a thread of its own, unless
 * no thread can be made: then the watcher asks by itself.
 */
#include <time.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"
#include "cache/origin/thread_room.h"

#define LEASE_PATIENCE_MS 50
/* Until the first question; then it doubles: the wait may be for an OSD. */
#define PATIENCE_MS 300
#define PATIENCE_MAX_MS 2400
#define ASKERS_MAX 16

/* Hearth's own name, which is never set. */
#define NO_ATTRIBUTE "trusted.hearth.none"

/* The next one to ask for, among inodes that are not being asked for; NULL: none. */
static CephfsWait *next_locked(CephfsWaits *w)
{
    CephfsWait *wait, *first = NULL;
    if (g_hash_table_size(w->asked) >= ASKERS_MAX)
        return NULL;
    LIST_FOREACH (wait, &w->list, link)
        if ((!first || wait->ask_at_ms < first->ask_at_ms) &&
            !g_hash_table_contains(w->asked, wait->inode))
            first = wait;
    return first;
}

static void patience_locked(CephfsWaits *w, const struct Inode *inode)
{
    const int64_t now = monotonic_ms();
    CephfsWait *wait;
    LIST_FOREACH (wait, &w->list, link) {
        if (wait->inode != inode)
            continue;
        wait->ask_at_ms = now + wait->patience_ms;
        wait->patience_ms = MIN(wait->patience_ms * 2, PATIENCE_MAX_MS);
    }
}

typedef struct Question {
    Task task;
    CephfsOrigin *o;
    struct Inode *inode;
} Question;

/*
 * Asks for the attributes first. libcephfs answers by itself when it holds the capabilities for
 * them; the removal of an extended attribute always goes to the MDS, and takes capabilities from
 * us, but changes nothing when there is no such attribute. (A query of a lock, a sync, opening
 * again and setting a time do not wake a write.)
 */
static void ask_mds(Task *task)
{
    Question *question = (Question *)task;
    CephfsOrigin *o = question->o;
    CephfsWaits *w = &o->waits;
    struct Inode *inode = question->inode;
    struct ceph_statx stx;
    ceph_ll_getattr(o->mount, inode, &stx, CEPH_STATX_BASIC_STATS, 0, o->perms);
    ceph_ll_removexattr(o->mount, inode, NO_ATTRIBUTE, o->perms);
    pthread_mutex_lock(&w->mutex);
    g_hash_table_remove(w->asked, inode);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    ceph_ll_put(o->mount, inode);
    g_free(question);
}

static void ask_locked(CephfsOrigin *o, struct Inode *inode)
{
    CephfsWaits *w = &o->waits;
    Question *question = g_new0(Question, 1);
    *question = (Question){.task = {.run = ask_mds}, .o = o, .inode = inode};
    if (tasks_give(w->askers, &question->task))
        return;
    pthread_mutex_unlock(&w->mutex);
    ask_mds(&question->task);
    pthread_mutex_lock(&w->mutex);
}

static void *watcher(void *data)
{
    CephfsOrigin *o = data;
    CephfsWaits *w = &o->waits;
    pthread_mutex_lock(&w->mutex);
    while (!w->stopping) {
        CephfsWait *wait = next_locked(w);
        int64_t at = wait ? wait->ask_at_ms : 0;
        if (!wait) {
            w->resting = TRUE;
            pthread_cond_wait(&w->changed, &w->mutex);
            w->resting = FALSE;
        } else if (at > monotonic_ms()) {
            struct timespec until = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
            pthread_cond_timedwait(&w->changed, &w->mutex, &until);
        } else {
            /* This call does not leave libcephfs. Only under the mutex the inode certainly exists.
             */
            struct Inode *inode = cephfs_get(o, wait->inode);
            patience_locked(w, wait->inode);
            if (inode && g_hash_table_add(w->asked, inode))
                ask_locked(o, inode);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static void clear(CephfsWaits *w)
{
    tasks_free(w->askers);
    g_hash_table_unref(w->asked);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
}

gboolean cephfs_waits_start(CephfsOrigin *o)
{
    CephfsWaits *w = &o->waits;
    cond_init_monotonic(&w->changed);
    pthread_mutex_init(&w->mutex, NULL);
    LIST_INIT(&w->list);
    w->asked = g_hash_table_new(NULL, NULL);
    w->askers = tasks_new(0, ASKERS_MAX);
    tasks_set_spare(w->askers, thread_room_has_spare);
    if (pthread_create(&w->thread, NULL, watcher, o) == 0)
        return TRUE;
    clear(w);
    return FALSE;
}

void cephfs_waits_stop(CephfsOrigin *o)
{
    CephfsWaits *w = &o->waits;
    pthread_mutex_lock(&w->mutex);
    w->stopping = TRUE;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    clear(w);
}

void cephfs_wait_begin(CephfsOrigin *o, CephfsWait *wait, struct Inode *inode)
{
    *wait = (CephfsWait){
        .inode = inode, .ask_at_ms = monotonic_ms() + PATIENCE_MS, .patience_ms = 2 * PATIENCE_MS};
    pthread_mutex_lock(&o->waits.mutex);
    LIST_INSERT_HEAD(&o->waits.list, wait, link);
    if (o->waits.resting)
        pthread_cond_signal(&o->waits.changed);
    pthread_mutex_unlock(&o->waits.mutex);
}

void cephfs_wait_end(CephfsOrigin *o, CephfsWait *wait)
{
    pthread_mutex_lock(&o->waits.mutex);
    LIST_REMOVE(wait, link);
    pthread_mutex_unlock(&o->waits.mutex);
}

void cephfs_lease_returned(CephfsOrigin *o, struct Inode *inode)
{
    CephfsWait *wait;
    gboolean any = FALSE;
    const int64_t at = monotonic_ms() + LEASE_PATIENCE_MS;
    pthread_mutex_lock(&o->waits.mutex);
    LIST_FOREACH (wait, &o->waits.list, link)
        if (wait->inode == inode && wait->ask_at_ms > at) {
            wait->ask_at_ms = at;
            any = TRUE;
        }
    if (any)
        pthread_cond_signal(&o->waits.changed);
    pthread_mutex_unlock(&o->waits.mutex);
}
