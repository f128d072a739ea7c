/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin decides; the owners' ranges are noted behind its answers. An owner is listed from its
 * first request until it closes the file, so what it may have is given back then, also if calls of
 * two of its threads crossed.
 */
#include "cache/fuse/locks/file.h"
#include <errno.h>
#include <pthread.h>

typedef struct LockOwner {
    uint64_t owner, fh;
    gboolean is_flock;
    short type; /* of an flock */
    pid_t pid;
    GArray *ranges;  /* that it has */
    unsigned asking; /* calls under way */
    gboolean unsure; /* some were so at once: it may have more than its ranges */
    gboolean left;   /* a process has closed its handle since it asked last */
} LockOwner;

/* What the origin gives locks through. */
typedef struct Keeper {
    OriginLocks *locks; /* NULL: they were lost with another process */
    uint64_t session;   /* of the origin, that they belong to */
    unsigned refs;      /* LockedFile.mutex */
} Keeper;

struct LockedFile {
    Origin *origin;
    OriginNode *node;      /* NULL: no other client can lock it */
    pthread_mutex_t mutex; /* guards all below */
    GPtrArray *owners;
    Keeper *keeper;
    unsigned giving; /* locks are going back, see give_back_locked() */
    unsigned given;  /* counts those that have gone */
};

static const LockRange all_but_flock = {0, LOCK_FLOCK_BYTE - 1};

static void owner_free(gpointer data)
{
    LockOwner *o = data;
    g_array_unref(o->ranges);
    g_free(o);
}

LockedFile *locked_file_new(Origin *origin, OriginNode *node)
{
    LockedFile *f = g_new0(LockedFile, 1);
    f->origin = origin;
    f->node = node ? origin->ops->get(origin, node) : NULL;
    f->owners = g_ptr_array_new_with_free_func(owner_free);
    pthread_mutex_init(&f->mutex, NULL);
    return f;
}

/* NULL is fine. */
static void keeper_unref(LockedFile *f, Keeper *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&f->mutex);
    const gboolean last = --k->refs == 0;
    pthread_mutex_unlock(&f->mutex);
    if (!last)
        return;
    if (k->locks)
        f->origin->ops->locks_close(f->origin, k->locks);
    g_free(k);
}

void locked_file_free(LockedFile *f)
{
    keeper_unref(f, g_steal_pointer(&f->keeper));
    if (f->node)
        f->origin->ops->put(f->origin, f->node);
    g_ptr_array_unref(f->owners);
    pthread_mutex_destroy(&f->mutex);
    g_free(f);
}

gboolean lock_request_range(const LockRequest *r, LockRange *range)
{
    const struct flock *lock = &r->lock;
    *range = (LockRange){LOCK_FLOCK_BYTE, LOCK_FLOCK_BYTE};
    if (r->is_flock)
        return TRUE;
    if (lock->l_start < 0)
        return FALSE;
    range->first = lock->l_start;
    range->last = all_but_flock.last;
    if (lock->l_len > 0 && lock->l_len - 1 < range->last - range->first)
        range->last = lock->l_start + lock->l_len - 1;
    return range->first <= range->last;
}

/* ---- owners ---- */

static LockOwner *find_locked(LockedFile *f, uint64_t owner, gboolean is_flock)
{
    for (guint i = 0; i < f->owners->len; i++) {
        LockOwner *o = g_ptr_array_index(f->owners, i);
        if (o->owner == owner && o->is_flock == is_flock)
            return o;
    }
    return NULL;
}

static LockOwner *find_or_add_locked(LockedFile *f, const LockRequest *r)
{
    LockOwner *o = find_locked(f, r->owner, r->is_flock);
    if (!o) {
        o = g_new0(LockOwner, 1);
        o->owner = r->owner;
        o->is_flock = r->is_flock;
        o->ranges = lock_ranges_new();
        g_ptr_array_add(f->owners, o);
    }
    o->fh = r->fh;
    o->pid = r->lock.l_pid;
    o->left = FALSE;
    return o;
}

static gboolean any_has_ranges_locked(const LockedFile *f)
{
    for (guint i = 0; i < f->owners->len; i++)
        if (((LockOwner *)g_ptr_array_index(f->owners, i))->ranges->len)
            return TRUE;
    return FALSE;
}

static gboolean is_stale_locked(const LockedFile *f)
{
    return f->keeper && f->keeper->session != origin_session(f->origin);
}

static void note_locked(LockOwner *o, short type, LockRange range)
{
    if (type == F_UNLCK) {
        lock_ranges_remove(o->ranges, range);
        return;
    }
    lock_ranges_add(o->ranges, range);
    o->type = type;
}

/* Another's flock that excludes this one. */
static LockOwner *flock_in_the_way_locked(LockedFile *f, const LockRequest *r)
{
    for (guint i = 0; r->is_flock && i < f->owners->len; i++) {
        LockOwner *o = g_ptr_array_index(f->owners, i);
        if (o->is_flock && o->owner != r->owner && o->ranges->len &&
            (o->type == F_WRLCK || r->lock.l_type == F_WRLCK))
            return o;
    }
    return NULL;
}

/* ---- asking the origin ---- */

/* One more user of the keeper of the current session; NULL with *r. `o`: who asks, NULL: who only
 * wants to know. Gives up the mutex meanwhile. */
static Keeper *keeper_use_locked(LockedFile *f, const LockOwner *o, int *r)
{
    Keeper *stale = NULL, *mine = NULL;
    const uint64_t session = origin_session(f->origin);
    if (is_stale_locked(f) && any_has_ranges_locked(f)) {
        *r = !o || o->ranges->len ? -EIO : -EAGAIN;
        return NULL;
    }
    if (is_stale_locked(f))
        stale = g_steal_pointer(&f->keeper);
    if (!f->keeper) {
        pthread_mutex_unlock(&f->mutex);
        keeper_unref(f, stale);
        mine = g_new0(Keeper, 1);
        mine->session = session;
        mine->refs = 1;
        *r = f->origin->ops->locks_open(f->origin, f->node, &mine->locks);
        if (*r < 0)
            g_clear_pointer(&mine, g_free);
        pthread_mutex_lock(&f->mutex);
    }
    if (mine && !f->keeper)
        f->keeper = g_steal_pointer(&mine);
    Keeper *k = f->keeper;
    if (k)
        k->refs++;
    if (mine) {
        pthread_mutex_unlock(&f->mutex);
        keeper_unref(f, mine);
        pthread_mutex_lock(&f->mutex);
    }
    return k;
}

static int origin_set(LockedFile *f, Keeper *k, const LockRequest *r, short type, LockRange range)
{
    const struct flock lock = {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = range.first,
        .l_len = range.last - range.first + 1,
        .l_pid = r->lock.l_pid,
    };
    int result = f->origin->ops->lock_set(f->origin, k->locks, &lock, r->owner);
    if (result == 0 && type != F_UNLCK && origin_session(f->origin) != k->session)
        return -EIO;
    return result == -EACCES ? -EAGAIN : result;
}

/* Of a file that only this node can lock. */
static int set_here_locked(LockedFile *f, LockOwner *o, const LockRequest *r)
{
    LockRange range;
    if (!r->is_flock)
        return 0; /* only for reading */
    if (r->lock.l_type != F_UNLCK && flock_in_the_way_locked(f, r)) {
        g_array_set_size(o->ranges, 0);
        return -EAGAIN;
    }
    lock_request_range(r, &range);
    note_locked(o, r->lock.l_type, range);
    return 0;
}

/* The owner is counted as asking. */
static int ask_locked(LockedFile *f, LockOwner *o, const LockRequest *r, LockRange range)
{
    const short type = r->lock.l_type;
    int result = 0;
    if (type == F_UNLCK && (is_stale_locked(f) || !f->keeper)) {
        note_locked(o, type, range); /* gives up what was lost */
        return 0;
    }
    if (type == F_UNLCK && !o->ranges->len && !o->unsure)
        return 0;
    Keeper *k = keeper_use_locked(f, o, &result);
    if (!k)
        return result;
    const gboolean had_flock = r->is_flock && o->ranges->len;
    pthread_mutex_unlock(&f->mutex);
    result = origin_set(f, k, r, type, range);
    const gboolean drop =
        result == -EAGAIN && had_flock && origin_set(f, k, r, F_UNLCK, range) == 0;
    keeper_unref(f, k);
    pthread_mutex_lock(&f->mutex);
    if (result == 0 || drop)
        note_locked(o, drop ? F_UNLCK : type, range);
    return result;
}

/* An flock in the way was taken through a handle that a process has closed since: if that was the
 * last one, its release is on the way, under way, or was so since `given`. */
static gboolean is_leaving_locked(LockedFile *f, const LockRequest *r, unsigned given)
{
    const LockOwner *o = flock_in_the_way_locked(f, r);
    return r->is_flock && ((o && o->left) || f->giving || f->given != given);
}

int locked_file_set(LockedFile *f, const LockRequest *r, LockEffect *effect)
{
    LockRange range;
    *effect = (LockEffect){0};
    if (!lock_request_range(r, &range))
        return -EOVERFLOW;
    pthread_mutex_lock(&f->mutex);
    const unsigned given = f->given;
    LockOwner *o = find_or_add_locked(f, r);
    const guint before = o->ranges->len;
    o->unsure = o->unsure || o->asking;
    o->asking++;
    int result = f->node ? ask_locked(f, o, r, range) : set_here_locked(f, o, r);
    o->asking--;
    effect->freed = before && (r->lock.l_type != F_WRLCK || result < 0);
    effect->leaving = result == -EAGAIN && is_leaving_locked(f, r, given);
    pthread_mutex_unlock(&f->mutex);
    return result;
}

/* Whether the lock that the origin names is one of this node's. */
static gboolean is_ours_locked(LockedFile *f, const struct flock *lock)
{
    const LockRequest named = {.lock = *lock};
    LockRange range;
    if (!lock_request_range(&named, &range))
        return FALSE;
    for (guint i = 0; i < f->owners->len; i++) {
        const LockOwner *o = g_ptr_array_index(f->owners, i);
        if (!o->is_flock && o->pid == lock->l_pid && lock_ranges_overlap(o->ranges, range))
            return TRUE;
    }
    return FALSE;
}

int locked_file_get(LockedFile *f, const LockRequest *r, struct flock *lock)
{
    LockRange range;
    int result = 0;
    *lock = (struct flock){.l_type = F_UNLCK};
    if (!lock_request_range(r, &range))
        return -EOVERFLOW;
    if (!f->node)
        return 0;
    pthread_mutex_lock(&f->mutex);
    Keeper *k = keeper_use_locked(f, NULL, &result);
    pthread_mutex_unlock(&f->mutex);
    if (!k)
        return result;
    *lock = r->lock;
    lock->l_whence = SEEK_SET;
    lock->l_start = range.first;
    lock->l_len = range.last - range.first + 1;
    result = f->origin->ops->lock_get(f->origin, k->locks, lock, r->owner);
    keeper_unref(f, k);
    if (result < 0 || lock->l_type == F_UNLCK)
        return result;
    pthread_mutex_lock(&f->mutex);
    if (!is_ours_locked(f, lock))
        lock->l_pid = 0;
    pthread_mutex_unlock(&f->mutex);
    if (lock->l_len && lock->l_start + lock->l_len - 1 >= all_but_flock.last)
        lock->l_len = 0; /* to the end */
    return 0;
}

/* ---- giving back ---- */

/* Takes the owner from the list, which is last in it. Gives up the mutex meanwhile. */
static gboolean give_back_locked(LockedFile *f, LockOwner *o)
{
    const LockRequest r = {.owner = o->owner};
    const LockRange range =
        o->is_flock ? (LockRange){LOCK_FLOCK_BYTE, LOCK_FLOCK_BYTE} : all_but_flock;
    const gboolean has = o->ranges->len || o->unsure || o->asking;
    Keeper *k = has && !is_stale_locked(f) ? f->keeper : NULL;
    g_array_set_size(o->ranges, 0);
    o->unsure = o->asking > 0;
    if (!o->asking)
        g_ptr_array_remove_fast(f->owners, o);
    if (!k)
        return has;
    k->refs++;
    f->giving++;
    pthread_mutex_unlock(&f->mutex);
    origin_set(f, k, &r, F_UNLCK, range);
    keeper_unref(f, k);
    pthread_mutex_lock(&f->mutex);
    f->giving--;
    f->given++;
    return has;
}

gboolean locked_file_flush(LockedFile *f, uint64_t fh, uint64_t owner)
{
    pthread_mutex_lock(&f->mutex);
    for (guint i = 0; i < f->owners->len; i++) {
        LockOwner *o = g_ptr_array_index(f->owners, i);
        o->left = o->left || (o->is_flock && o->fh == fh);
    }
    LockOwner *o = find_locked(f, owner, FALSE);
    const gboolean had = o && give_back_locked(f, o);
    pthread_mutex_unlock(&f->mutex);
    return had;
}

static LockOwner *of_handle_locked(LockedFile *f, uint64_t fh)
{
    for (guint i = 0; i < f->owners->len; i++) {
        LockOwner *o = g_ptr_array_index(f->owners, i);
        if (o->fh == fh && !o->asking)
            return o;
    }
    return NULL;
}

gboolean locked_file_release(LockedFile *f, uint64_t fh)
{
    gboolean had = FALSE;
    LockOwner *o;
    pthread_mutex_lock(&f->mutex);
    while ((o = of_handle_locked(f, fh)))
        had = give_back_locked(f, o) || had;
    pthread_mutex_unlock(&f->mutex);
    return had;
}

/* ---- questions ---- */

gboolean locked_file_is_owner(LockedFile *f, const LockRequest *r)
{
    pthread_mutex_lock(&f->mutex);
    const LockOwner *o = find_locked(f, r->owner, r->is_flock);
    const gboolean is = o && o->ranges->len;
    pthread_mutex_unlock(&f->mutex);
    return is;
}

gboolean locked_file_is_lost(LockedFile *f)
{
    Keeper *stale = NULL;
    pthread_mutex_lock(&f->mutex);
    const gboolean lost = is_stale_locked(f) && any_has_ranges_locked(f);
    if (is_stale_locked(f) && !lost)
        stale = g_steal_pointer(&f->keeper);
    pthread_mutex_unlock(&f->mutex);
    keeper_unref(f, stale);
    return lost;
}

gboolean locked_file_is_idle(LockedFile *f)
{
    pthread_mutex_lock(&f->mutex);
    const gboolean idle = f->owners->len == 0;
    pthread_mutex_unlock(&f->mutex);
    return idle;
}

/* ---- over processes ---- */

/* No origin has it. */
#define NO_SESSION UINT64_MAX

void locked_file_leave(LockedFile *f, uint64_t id, json_t *lost)
{
    for (guint i = 0; i < f->owners->len; i++) {
        const LockOwner *o = g_ptr_array_index(f->owners, i);
        for (guint k = 0; k < o->ranges->len; k++) {
            const LockRange *r = &g_array_index(o->ranges, LockRange, k);
            json_array_append_new(lost, json_pack("[I, I, I, i, i, i, I, I]", (json_int_t)id,
                                                  (json_int_t)o->fh, (json_int_t)o->owner,
                                                  o->is_flock, o->pid, o->type,
                                                  (json_int_t)r->first, (json_int_t)r->last));
        }
    }
}

void locked_file_add_lost(LockedFile *f, const json_t *lost)
{
    json_int_t n[8];
    for (size_t i = 0; i < G_N_ELEMENTS(n); i++)
        n[i] = json_integer_value(json_array_get(lost, i));
    const LockRequest r = {.fh = (uint64_t)n[1],
                           .owner = (uint64_t)n[2],
                           .is_flock = n[3] != 0,
                           .lock = {.l_pid = (pid_t)n[4]}};
    const LockRange range = {n[6], n[7]};
    if (range.first < 0 || range.last < range.first)
        return;
    pthread_mutex_lock(&f->mutex);
    note_locked(find_or_add_locked(f, &r), (short)n[5], range);
    if (!f->keeper) {
        f->keeper = g_new0(Keeper, 1);
        *f->keeper = (Keeper){.session = NO_SESSION, .refs = 1};
    }
    pthread_mutex_unlock(&f->mutex);
}
