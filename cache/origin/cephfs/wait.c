/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking those whom libcephfs forgets. A read, a write or (with delegations) an open waits there
 * while a capability that it wants is being taken back and somebody here still uses it. Two of
 * these uses end without a word to who waits: a delegation that is returned, and the cache's own
 * read ahead or read (Ceph's tracker, 65971). It counts on the MDS to grant something, which the
 * MDS need not, when what it would grant is held already. The waiter, a page locked in the kernel
 * and whoever wants that page then wait for ever.
 *
 * So these are listed while they run, and one that is still there a moment after a lease of its
 * inode went back, or after a long one anyhow, has the attributes asked for: to answer, the MDS
 * takes the file's capabilities to another state and grants them anew, which wakes. Not at once and
 * not for nobody, as asking takes from the writer elsewhere what it has just been given.
 *
 * The MDS may answer only when another client has given something back, which may wait for that
 * client's question about another file. So each file's is asked on a thread of its own.
 */
#include <time.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"

#define LEASE_PATIENCE_MS 50
/* Until the first question; then twice of it, and so on: an OSD may be what is waited for. */
#define PATIENCE_MS 300
#define PATIENCE_MAX_MS 2400
#define ASKERS_MAX 16

/* Hearth's own and never set. */
#define NO_ATTRIBUTE "trusted.hearth.none"

/* The one to ask for first, of inodes that are not asked for; NULL: none. */
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

/*
 * For its attributes first. libcephfs answers by itself when it holds the capabilities for them;
 * the removal of an extended attribute always goes to the MDS, and takes capabilities from us, but
 * changes nothing when there is none of that name. (Of what else was tried, a lock's query, syncing
 * and opening again do not wake the write; setting a time does not either.)
 */
static void ask_mds(gpointer data, gpointer origin)
{
    CephfsOrigin *o = origin;
    CephfsWaits *w = &o->waits;
    struct Inode *inode = data;
    struct ceph_statx stx;
    ceph_ll_getattr(o->mount, inode, &stx, CEPH_STATX_BASIC_STATS, 0, o->perms);
    ceph_ll_removexattr(o->mount, inode, NO_ATTRIBUTE, o->perms);
    pthread_mutex_lock(&w->mutex);
    g_hash_table_remove(w->asked, inode);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    ceph_ll_put(o->mount, inode);
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
            /* Local to libcephfs; only under the mutex is the inode certain to be there. */
            struct Inode *inode = cephfs_get(o, wait->inode);
            patience_locked(w, wait->inode);
            if (inode && g_hash_table_add(w->asked, inode))
                g_thread_pool_push(w->askers, inode, NULL);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

void cephfs_waits_start(CephfsOrigin *o)
{
    CephfsWaits *w = &o->waits;
    cond_init_monotonic(&w->changed);
    pthread_mutex_init(&w->mutex, NULL);
    LIST_INIT(&w->list);
    w->asked = g_hash_table_new(NULL, NULL);
    w->askers = g_thread_pool_new(ask_mds, o, ASKERS_MAX, FALSE, NULL);
    pthread_create(&w->thread, NULL, watcher, o);
}

void cephfs_waits_stop(CephfsOrigin *o)
{
    CephfsWaits *w = &o->waits;
    pthread_mutex_lock(&w->mutex);
    w->stopping = TRUE;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    g_thread_pool_free(w->askers, FALSE, TRUE);
    g_hash_table_unref(w->asked);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
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
