/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories. A listing brings attributes that another client may have changed without having sent
 * them to the MDS yet, so the attributes of each entry are asked for; where a capability covers
 * them, that costs no request.
 *
 * The MDS answers for a file that was just written only once its journal is on disk, up to
 * mds_tick_interval (5 s) later, and for one file after another. A snapshot taken right after the
 * writes is full of such files. Nothing changes in a snapshot, so entries there are looked up
 * ahead, many at a time, and a sync of the connection makes the MDS write its journal.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"
#include "cache/origin/thread_room.h"

#define AHEAD 256
/* Looked up at a time, of one connection. */
#define LOOKERS_MAX 32
/* How long one looks alone, before others help. */
#define ALONE_MS 5
/* The first sync; each further one after twice as long. An MDS that does not answer is sent few. */
#define SYNC_AFTER_MS 10
#define SYNC_AFTER_MAX_MS 5000

typedef struct Ahead {
    int64_t from; /* where the next entry was listed: this, then the one before's `next` */
    guint used, n;
    OriginEntry entries[AHEAD];
} Ahead;

struct OriginDir {
    struct ceph_dir_result *result;
    struct Inode *inode; /* result keeps it */
    int64_t position;    /* of result */
    gboolean in_snapshot;
    Ahead *ahead; /* in a snapshot, once attributes were asked for */
};

int cephfs_opendir(Origin *origin, OriginNode *node, OriginDir **dir)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    struct Inode *inode = (struct Inode *)node;
    struct ceph_dir_result *result;
    struct ceph_statx stx = {.stx_dev = CEPHFS_NOSNAP};
    int r = ceph_ll_opendir(o->mount, inode, &result, o->perms);
    if (r < 0)
        return r;
    ceph_ll_getattr(o->mount, inode, &stx, CEPH_STATX_INO, AT_STATX_DONT_SYNC, o->perms);
    *dir = g_new(OriginDir, 1);
    **dir = (OriginDir){
        .result = result, .inode = inode, .in_snapshot = cephfs_snapshot(stx.stx_dev) != 0};
    return 0;
}

/* The next entry; its attributes and its node, in *inode, where that is not NULL. As readdir. */
static int next_entry(CephfsOrigin *o, OriginDir *dir, int64_t off, OriginEntry *entry,
                      struct Inode **inode)
{
    struct dirent de;
    struct ceph_statx stx;
    if (off != dir->position)
        ceph_seekdir(o->mount, dir->result, off);
    int r = ceph_readdirplus_r(o->mount, dir->result, &de, &stx, inode ? CEPHFS_WANT : 0,
                               inode ? 0 : AT_STATX_DONT_SYNC, inode);
    dir->position = r > 0 ? de.d_off : -1;
    if (r <= 0)
        return r;
    g_strlcpy(entry->name, de.d_name, sizeof(entry->name));
    entry->ino = de.d_ino;
    entry->type = DTTOIF(de.d_type);
    entry->next = de.d_off;
    entry->node = NULL;
    return 1;
}

static int next_live(CephfsOrigin *o, OriginDir *dir, int64_t off, OriginEntry *entry)
{
    struct Inode *inode = NULL;
    struct ceph_statx stx;
    int r = next_entry(o, dir, off, entry, &inode);
    if (r <= 0 || !inode)
        return r;
    if (ceph_ll_getattr(o->mount, inode, &stx, CEPHFS_WANT, 0, o->perms) < 0) {
        ceph_ll_put(o->mount, inode);
        return 1;
    }
    entry->node = (OriginNode *)inode;
    cephfs_fill_attr(&entry->attr, &stx);
    return 1;
}

/* ---- in a snapshot ---- */

typedef struct Looker {
    Task task;
    struct Looks *looks;
} Looker;

/* Entries that are looked up by some threads, each the next one. */
typedef struct Looks {
    CephfsOrigin *o;
    struct Inode *dir;
    OriginEntry *entries;
    guint n;
    _Atomic guint next;
    _Atomic int lost; /* -errno: with the connection; the entries must be read again */
    pthread_mutex_t mutex;
    pthread_cond_t done;
    guint lookers; /* mutex */
    Looker first, others[LOOKERS_MAX];
} Looks;

/* A lookup waits for what other clients hold; ceph_ll_getattr() never asks for a snapshot's inode.
 */
static void look_up(Looks *l, OriginEntry *entry)
{
    CephfsOrigin *o = l->o;
    struct Inode *inode;
    struct ceph_statx stx;
    if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
        return;
    int r = ceph_ll_lookup(o->mount, l->dir, entry->name, &inode, &stx, CEPHFS_WANT, 0, o->perms);
    if (r == -ENOTCONN || r == -ESHUTDOWN)
        atomic_store(&l->lost, r);
    if (r < 0)
        return;
    entry->node = (OriginNode *)inode;
    cephfs_fill_attr(&entry->attr, &stx);
}

static void look_up_rest(Looks *l)
{
    guint i;
    while ((i = atomic_fetch_add(&l->next, 1)) < l->n)
        look_up(l, &l->entries[i]);
}

static void run_looker(Task *task)
{
    Looks *l = ((Looker *)task)->looks;
    look_up_rest(l);
    pthread_mutex_lock(&l->mutex);
    if (--l->lookers == 0)
        pthread_cond_signal(&l->done);
    pthread_mutex_unlock(&l->mutex);
}

/* FALSE: there is no thread for it. */
static gboolean add_looker_locked(Looks *l, Looker *looker)
{
    *looker = (Looker){.task = {.run = run_looker}, .looks = l};
    const gboolean given = tasks_give(l->o->lookers, &looker->task);
    l->lookers += given;
    return given;
}

/* FALSE: some still look. */
static gboolean await_locked(Looks *l, unsigned ms)
{
    const struct timespec until = deadline_after_ms(ms);
    while (l->lookers && pthread_cond_timedwait(&l->done, &l->mutex, &until) == 0) {
    }
    return l->lookers == 0;
}

/* FALSE: no thread looks. *done: all were looked up already. */
static gboolean begin_locked(Looks *l, gboolean *done)
{
    *done = FALSE;
    if (!add_looker_locked(l, &l->first))
        return FALSE;
    *done = await_locked(l, ALONE_MS);
    /* No thread is free, and none can be made. */
    if (!*done && tasks_take_back(l->o->lookers, &l->first.task)) {
        l->lookers = 0;
        return FALSE;
    }
    return TRUE;
}

static void look_up_all(Looks *l)
{
    gboolean done;
    pthread_mutex_init(&l->mutex, NULL);
    cond_init_monotonic(&l->done);
    pthread_mutex_lock(&l->mutex);
    const gboolean begun = begin_locked(l, &done);
    const guint next = atomic_load(&l->next);
    for (guint i = 0; begun && !done && i < LOOKERS_MAX && next + i < l->n; i++)
        add_looker_locked(l, &l->others[i]);
    for (unsigned ms = SYNC_AFTER_MS; !await_locked(l, ms); ms = MIN(2 * ms, SYNC_AFTER_MAX_MS)) {
        pthread_mutex_unlock(&l->mutex);
        ceph_sync_fs(l->o->mount);
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    if (!begun)
        look_up_rest(l);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->mutex);
}

static void put_ahead(CephfsOrigin *o, Ahead *ahead)
{
    for (; ahead->used < ahead->n; ahead->used++)
        if (ahead->entries[ahead->used].node)
            ceph_ll_put(o->mount, (struct Inode *)ahead->entries[ahead->used].node);
}

/* As readdir, of the first of them. */
static int read_ahead(CephfsOrigin *o, OriginDir *dir, int64_t off)
{
    Ahead *ahead = dir->ahead;
    int r = 1;
    ahead->from = off;
    ahead->used = ahead->n = 0;
    while (ahead->n < AHEAD) {
        r = next_entry(o, dir, off, &ahead->entries[ahead->n], NULL);
        if (r <= 0)
            break;
        off = ahead->entries[ahead->n++].next;
    }
    Looks looks = {.o = o, .dir = dir->inode, .entries = ahead->entries, .n = ahead->n};
    look_up_all(&looks);
    int lost = atomic_load(&looks.lost);
    if (lost < 0) {
        put_ahead(o, ahead);
        return lost;
    }
    return ahead->n ? 1 : r;
}

static int next_in_snapshot(CephfsOrigin *o, OriginDir *dir, int64_t off, OriginEntry *entry)
{
    if (!dir->ahead)
        dir->ahead = g_new0(Ahead, 1);
    Ahead *ahead = dir->ahead;
    if (ahead->used == ahead->n || ahead->from != off) {
        put_ahead(o, ahead);
        int r = read_ahead(o, dir, off);
        if (r <= 0)
            return r;
    }
    *entry = ahead->entries[ahead->used++];
    ahead->from = entry->next;
    return 1;
}

int cephfs_readdir(Origin *origin, OriginDir *dir, int64_t off, gboolean with_attr,
                   OriginEntry *entry)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    if (!with_attr)
        return next_entry(o, dir, off, entry, NULL);
    return dir->in_snapshot ? next_in_snapshot(o, dir, off, entry) : next_live(o, dir, off, entry);
}

int cephfs_closedir(Origin *origin, OriginDir *dir)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    const gboolean gone = atomic_load(&o->gone);
    if (!gone && dir->ahead)
        put_ahead(o, dir->ahead);
    int r = gone ? -ENOTCONN : ceph_ll_releasedir(o->mount, dir->result);
    g_free(dir->ahead);
    g_free(dir);
    return r;
}

void cephfs_lookers_start(CephfsOrigin *o)
{
    o->lookers = tasks_new(0, LOOKERS_MAX);
    tasks_set_spare(o->lookers, thread_room_has_spare);
}

void cephfs_lookers_stop(CephfsOrigin *o)
{
    tasks_free(o->lookers);
}
