/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of which something is locked or asked for, and the requests that wait. Those are asked
 * again, the oldest first, when this node gives something back, and otherwise after times that grow
 * up to RETRY_MAX_MS: the origin does not say when another node gives a lock back.
 */
#include "cache/fuse/locks/locks.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "common/monotonic.h"

#define RETRY_MIN_MS 5
#define RETRY_MAX_MS 250
/* For how long LOCK_NB waits for the release of a handle that a process has closed: the kernel does
 * not wait for that in close(2). */
#define LEAVING_MS 200

typedef struct Entry {
    uint64_t id;
    LockedFile *file;
    unsigned uses; /* Locks.mutex */
} Entry;

typedef struct Waiter {
    TAILQ_ENTRY(Waiter) link;
    Locks *locks;
    Entry *entry; /* used */
    LockRequest request;
    fuse_req_t req;
    int64_t since_ms;
    int64_t due_ms;     /* Locks.mutex, as the next */
    gboolean signalled; /* a signal ends the wait */
} Waiter;

struct Locks {
    Origin *origin;
    void (*granted)(void *data, uint64_t id);
    void *data;
    _Atomic unsigned files; /* entries */
    pthread_mutex_t mutex;  /* guards all below */
    pthread_cond_t changed;
    GHashTable *entries; /* &id -> Entry */
    TAILQ_HEAD(, Waiter) waiters;
    gboolean runs; /* the thread */
    gboolean stopping;
    pthread_t thread;
};

/* ---- files ---- */

static void entry_free(gpointer data)
{
    Entry *e = data;
    locked_file_free(e->file);
    g_free(e);
}

static Entry *entry_use(Locks *l, LocksFile file)
{
    pthread_mutex_lock(&l->mutex);
    Entry *e = g_hash_table_lookup(l->entries, &file.id);
    if (!e) {
        e = g_new0(Entry, 1);
        e->id = file.id;
        e->file = locked_file_new(l->origin, file.node);
        g_hash_table_insert(l->entries, &e->id, e);
        atomic_fetch_add(&l->files, 1);
    }
    e->uses++;
    pthread_mutex_unlock(&l->mutex);
    return e;
}

/* NULL: nothing is known of it. */
static Entry *entry_find(Locks *l, uint64_t id)
{
    if (!atomic_load(&l->files))
        return NULL;
    pthread_mutex_lock(&l->mutex);
    Entry *e = g_hash_table_lookup(l->entries, &id);
    if (e)
        e->uses++;
    pthread_mutex_unlock(&l->mutex);
    return e;
}

static void entry_done(Locks *l, Entry *e)
{
    pthread_mutex_lock(&l->mutex);
    const gboolean last = --e->uses == 0 && locked_file_is_idle(e->file);
    if (last) {
        g_hash_table_steal(l->entries, &e->id);
        atomic_fetch_sub(&l->files, 1);
    }
    pthread_mutex_unlock(&l->mutex);
    if (last)
        entry_free(e);
}

/* ---- waiting ---- */

static void wake(Locks *l, const Entry *e)
{
    Waiter *w;
    gboolean any = FALSE;
    pthread_mutex_lock(&l->mutex);
    TAILQ_FOREACH (w, &l->waiters, link)
        if (w->entry == e) {
            w->due_ms = 0;
            any = TRUE;
        }
    if (any)
        pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

/* *leaving: as LockEffect has it; may be NULL. */
static int ask(Locks *l, Entry *e, const LockRequest *r, gboolean *leaving)
{
    LockEffect effect;
    int result = locked_file_set(e->file, r, &effect);
    if (effect.freed)
        wake(l, e);
    if (leaving)
        *leaving = effect.leaving;
    return result;
}

static void answer(Locks *l, fuse_req_t req, const Entry *e, const LockRequest *r, int result)
{
    if (result == 0 && r->lock.l_type != F_UNLCK)
        l->granted(l->data, e->id);
    fuse_reply_err(req, -result);
}

static int64_t next_ask_ms(const Waiter *w, int64_t now)
{
    return now + CLAMP((now - w->since_ms) / 4, RETRY_MIN_MS, RETRY_MAX_MS);
}

/* Nothing but the time to ask again can be won by asking for `w`, which wants all that `refused`
 * wants, and for itself alone. Its own locks may be what is in the way of that one. */
static gboolean is_behind(const Waiter *w, const Waiter *refused)
{
    LockRange wants, was_refused;
    if (w->entry != refused->entry || w->request.lock.l_type != F_WRLCK ||
        !lock_request_range(&w->request, &wants) ||
        !lock_request_range(&refused->request, &was_refused))
        return FALSE;
    return wants.first <= was_refused.first && wants.last >= was_refused.last &&
           !locked_file_is_owner(w->entry->file, &w->request);
}

static void put_off_locked(Waiter *refused, int64_t now)
{
    refused->due_ms = next_ask_ms(refused, now);
    for (Waiter *w = TAILQ_NEXT(refused, link); w; w = TAILQ_NEXT(w, link))
        if (!w->signalled && w->due_ms <= now && is_behind(w, refused))
            w->due_ms = refused->due_ms;
}

static void end_wait(Locks *l, Waiter *w, int result)
{
    fuse_req_interrupt_func(w->req, NULL, NULL); /* waits for one that runs */
    answer(l, w->req, w->entry, &w->request, result);
    entry_done(l, w->entry);
    g_free(w);
}

/* Of one that is due; TRUE: *result is its answer. */
static gboolean ask_again(Locks *l, Waiter *w, gboolean signalled, int *result)
{
    const gboolean late = !w->request.waits && monotonic_ms() - w->since_ms >= LEAVING_MS;
    *result = signalled ? -EINTR : ask(l, w->entry, &w->request, NULL);
    return *result != -EAGAIN || late;
}

/* The oldest that is due; else NULL, and when the next one is. */
static Waiter *due_locked(Locks *l, int64_t now, int64_t *next_ms)
{
    Waiter *w;
    *next_ms = INT64_MAX;
    TAILQ_FOREACH (w, &l->waiters, link) {
        if (w->due_ms <= now || w->signalled)
            return w;
        *next_ms = MIN(*next_ms, w->due_ms);
    }
    return NULL;
}

static void *asker(void *data)
{
    Locks *l = data;
    int64_t next_ms;
    int result;
    pthread_mutex_lock(&l->mutex);
    while (!l->stopping) {
        const int64_t now = monotonic_ms();
        Waiter *w = due_locked(l, now, &next_ms);
        if (!w && next_ms == INT64_MAX) {
            pthread_cond_wait(&l->changed, &l->mutex);
            continue;
        }
        if (!w) {
            const struct timespec until = deadline_after_ms((uint64_t)(next_ms - now));
            pthread_cond_timedwait(&l->changed, &l->mutex, &until);
            continue;
        }
        const gboolean signalled = w->signalled;
        w->due_ms = INT64_MAX; /* something given back meanwhile sets it */
        pthread_mutex_unlock(&l->mutex);
        const gboolean ends = ask_again(l, w, signalled, &result);
        pthread_mutex_lock(&l->mutex);
        if (!ends) {
            if (w->due_ms == INT64_MAX)
                put_off_locked(w, monotonic_ms());
            continue;
        }
        TAILQ_REMOVE(&l->waiters, w, link);
        pthread_mutex_unlock(&l->mutex);
        end_wait(l, w, result);
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* libfuse holds a lock of the request, which an answer needs. */
static void interrupted(fuse_req_t req, void *data)
{
    (void)req;
    Waiter *w = data;
    pthread_mutex_lock(&w->locks->mutex);
    w->signalled = TRUE;
    pthread_cond_signal(&w->locks->changed);
    pthread_mutex_unlock(&w->locks->mutex);
}

static gboolean start_locked(Locks *l)
{
    if (l->stopping) /* who waits now is answered, or not, at the end */
        return TRUE;
    if (!l->runs)
        l->runs = pthread_create(&l->thread, NULL, asker, l) == 0;
    return l->runs;
}

/* Takes over the use of the entry. */
static void begin_wait(Locks *l, fuse_req_t req, Entry *e, const LockRequest *r)
{
    Waiter *w = g_new0(Waiter, 1);
    w->locks = l;
    w->entry = e;
    w->request = *r;
    w->req = req;
    w->since_ms = monotonic_ms();
    w->due_ms = w->since_ms + RETRY_MIN_MS;
    /* Before it is listed: from then on it may be answered. */
    fuse_req_interrupt_func(req, interrupted, w);
    pthread_mutex_lock(&l->mutex);
    const gboolean runs = start_locked(l);
    if (runs) {
        TAILQ_INSERT_TAIL(&l->waiters, w, link);
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->mutex);
    if (!runs)
        end_wait(l, w, -ENOLCK);
}

/* ---- requests ---- */

void locks_set(Locks *l, fuse_req_t req, LocksFile file, const LockRequest *r)
{
    gboolean leaving;
    Entry *e = entry_use(l, file);
    const int result = ask(l, e, r, &leaving);
    if (result == -EAGAIN && (r->waits || leaving)) {
        begin_wait(l, req, e, r);
        return;
    }
    answer(l, req, e, r, result);
    entry_done(l, e);
}

void locks_get(Locks *l, fuse_req_t req, LocksFile file, const LockRequest *r)
{
    struct flock lock;
    Entry *e = entry_use(l, file);
    const int result = locked_file_get(e->file, r, &lock);
    if (result < 0)
        fuse_reply_err(req, -result);
    else
        fuse_reply_lock(req, &lock);
    entry_done(l, e);
}

void locks_flush(Locks *l, uint64_t id, uint64_t fh, uint64_t owner)
{
    Entry *e = entry_find(l, id);
    if (!e)
        return;
    if (locked_file_flush(e->file, fh, owner))
        wake(l, e);
    entry_done(l, e);
}

void locks_release(Locks *l, uint64_t id, uint64_t fh)
{
    Entry *e = entry_find(l, id);
    if (!e)
        return;
    if (locked_file_release(e->file, fh))
        wake(l, e);
    entry_done(l, e);
}

gboolean locks_lost(Locks *l, uint64_t id)
{
    Entry *e = entry_find(l, id);
    if (!e)
        return FALSE;
    const gboolean lost = locked_file_is_lost(e->file);
    entry_done(l, e);
    return lost;
}

/* ---- life ---- */

Locks *locks_new(Origin *origin, void (*granted)(void *data, uint64_t id), void *data)
{
    Locks *l = g_new0(Locks, 1);
    l->origin = origin;
    l->granted = granted;
    l->data = data;
    pthread_mutex_init(&l->mutex, NULL);
    cond_init_monotonic(&l->changed);
    l->entries = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, entry_free);
    TAILQ_INIT(&l->waiters);
    return l;
}

void locks_stop_asking(Locks *l)
{
    pthread_mutex_lock(&l->mutex);
    l->stopping = TRUE;
    const gboolean runs = l->runs;
    l->runs = FALSE;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    if (runs)
        pthread_join(l->thread, NULL);
}

/* Its request is sent to the next process again. */
static void leave_wait(Locks *l, Waiter *w)
{
    fuse_req_interrupt_func(w->req, NULL, NULL);
    fuse_reply_none(w->req);
    entry_done(l, w->entry);
    g_free(w);
}

static void end_waits(Locks *l, gboolean answered)
{
    Waiter *w;
    while ((w = TAILQ_FIRST(&l->waiters))) {
        TAILQ_REMOVE(&l->waiters, w, link);
        if (answered)
            end_wait(l, w, -EINTR);
        else
            leave_wait(l, w);
    }
}

json_t *locks_leave(Locks *l)
{
    json_t *lost = json_array();
    GHashTableIter iter;
    gpointer entry;
    locks_stop_asking(l);
    end_waits(l, FALSE);
    g_hash_table_iter_init(&iter, l->entries);
    while (g_hash_table_iter_next(&iter, NULL, &entry))
        locked_file_leave(((const Entry *)entry)->file, ((const Entry *)entry)->id, lost);
    locks_free(l);
    return lost;
}

void locks_add_lost(Locks *l, LocksFile file, const json_t *lost)
{
    Entry *e = entry_use(l, file);
    locked_file_add_lost(e->file, lost);
    entry_done(l, e);
}

void locks_free(Locks *l)
{
    if (!l)
        return;
    locks_stop_asking(l);
    end_waits(l, TRUE);
    g_hash_table_unref(l->entries);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
    g_free(l);
}
