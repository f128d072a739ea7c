/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that fail after they were answered. When a pool is full, or an OSD refuses, libcephfs
 * drops the bytes and notes the error in each handle (Fh) that is open on the file. The low-level
 * calls report it only at the close of that handle: ceph_ll_fsync() answers 0, although nothing is
 * in Ceph.
 *
 * So after each sync of a file the handles that wrote it are replaced by new ones and closed
 * (share.c). When a file is closed before its writes were synced, another handle stays open, the
 * witness, until the next sync, or for as long as libcephfs takes to write by itself. It is opened
 * only then, and closed when the file is opened for writing again, because it prevents write
 * leases. It is opened as a directory, which the low-level calls do not check, so it needs no
 * capabilities. Where that is refused a reader's handle is used: then the MDS has to change the
 * file's state for the next client that opens the file, and that waits for its journal.
 *
 * Writes are numbered, because some arrive during a sync: writes that a sync does not cover are
 * checked after the next one.
 */
#include <errno.h>
#include <fcntl.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"
#include "cache/origin/thread_room.h"

/* libcephfs writes what is older than 5 s (client_oc_max_dirty_age). */
#define WITNESS_MS 10000
/* With this many, a close waits for its writes. */
#define WITNESSES_MAX 4096
/* How many are closed at a time: each may wait for an OSD. */
#define HEARERS_MAX 64
/* Files whose readers get handles of their own at a time: each waits for a lease. */
#define NARROWERS_MAX 16

typedef struct CephfsWitness {
    Task task; /* hear() */
    CephfsOrigin *o;
    TAILQ_ENTRY(CephfsWitness) link;
    struct Inode *inode; /* of fh, which keeps it */
    Fh *fh;
    uint64_t written; /* number of the last write it is for */
    int64_t until_ms;
} CephfsWitness;

/* Readers of an inode are to get handles of their own. */
typedef struct CephfsNarrowing {
    Task task; /* narrow() */
    CephfsOrigin *o;
    struct Inode *inode; /* a reference */
} CephfsNarrowing;

/* One thread at a time closes handles of an inode, between look_begin and look_end; its result is
 * for all that wait. */
static void look_await_locked(CephfsFiles *f, struct Inode *inode)
{
    while (g_hash_table_contains(f->looked_at, inode))
        pthread_cond_wait(&f->changed, &f->mutex);
}

static void look_begin_locked(CephfsFiles *f, struct Inode *inode)
{
    look_await_locked(f, inode);
    g_hash_table_add(f->looked_at, inode);
}

static void look_end_locked(CephfsFiles *f, struct Inode *inode)
{
    g_hash_table_remove(f->looked_at, inode);
    pthread_cond_broadcast(&f->changed);
}

/* ---- witnesses ---- */

static gboolean handle_can_write(const CephfsHandle *h)
{
    return cephfs_can_write(h->flags);
}

static void unlist_locked(CephfsFiles *f, CephfsWitness *w)
{
    TAILQ_REMOVE(&f->witnesses, w, link);
    g_hash_table_remove(f->witness_of, w->inode);
}

static int close_witness(CephfsOrigin *o, CephfsWitness *w)
{
    int r = ceph_ll_close(o->mount, w->fh);
    g_free(w);
    return r;
}

static void hear(Task *task);

static void list_locked(CephfsOrigin *o, struct Inode *inode, Fh *fh, uint64_t written)
{
    CephfsFiles *f = &o->files;
    CephfsWitness *w = g_new0(CephfsWitness, 1);
    *w = (CephfsWitness){.task = {.run = hear},
                         .o = o,
                         .inode = inode,
                         .fh = fh,
                         .written = written,
                         .until_ms = monotonic_ms() + WITNESS_MS};
    g_hash_table_insert(f->witness_of, inode, w);
    TAILQ_INSERT_TAIL(&f->witnesses, w, link);
    pthread_cond_broadcast(&f->changed);
}

/* FALSE: there is none. */
static gboolean keep_locked(CephfsFiles *f, struct Inode *inode, uint64_t written)
{
    CephfsWitness *w = g_hash_table_lookup(f->witness_of, inode);
    if (!w)
        return FALSE;
    w->written = MAX(w->written, written);
    w->until_ms = monotonic_ms() + WITNESS_MS;
    TAILQ_REMOVE(&f->witnesses, w, link);
    TAILQ_INSERT_TAIL(&f->witnesses, w, link);
    return TRUE;
}

/* For a handle that is about to be closed with writes that are not synced; no other thread uses it.
 * -errno: what they came to, as there is no witness. */
static int leave_witness(CephfsOrigin *o, CephfsHandle *h)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    gboolean there = keep_locked(f, h->inode, h->written);
    gboolean many = g_hash_table_size(f->witness_of) >= WITNESSES_MAX;
    pthread_mutex_unlock(&f->mutex);
    if (there)
        return 0;
    Fh *fh = NULL;
    if (many || cephfs_open_witness(o, h->inode, &fh) < 0)
        return ceph_ll_fsync(o->mount, h->fh, 0);
    pthread_mutex_lock(&f->mutex);
    list_locked(o, h->inode, fh, h->written);
    pthread_mutex_unlock(&f->mutex);
    return 0;
}

void cephfs_file_is_witness(CephfsOrigin *o, OriginFile *file)
{
    CephfsFiles *f = &o->files;
    struct Inode *inode = file->inode;
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *h = file->handle;
    /* Not beside reads, which may hang: it goes by its time then. */
    const gboolean takes = handle_can_write(h) && !h->reads;
    CephfsWitness *w = takes ? g_hash_table_lookup(f->witness_of, inode) : NULL;
    if (!w || g_hash_table_contains(f->looked_at, inode)) {
        pthread_mutex_unlock(&f->mutex);
        return;
    }
    look_begin_locked(f, inode);
    unlist_locked(f, w);
    h->written = MAX(h->written, w->written);
    pthread_mutex_unlock(&f->mutex);
    const uint64_t ino = cephfs_number_of(o, inode);
    cephfs_report_failed_write(o, ino, close_witness(o, w));
    pthread_mutex_lock(&f->mutex);
    look_end_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
}

static void hear(Task *task)
{
    CephfsWitness *w = (CephfsWitness *)task;
    CephfsOrigin *o = w->o;
    CephfsFiles *f = &o->files;
    struct Inode *inode = w->inode; /* only compared once it is closed */
    const uint64_t ino = cephfs_number_of(o, inode);
    int synced = ceph_ll_fsync(o->mount, w->fh, 0), r = close_witness(o, w);
    cephfs_report_failed_write(o, ino, r < 0 ? r : synced);
    pthread_mutex_lock(&f->mutex);
    f->heard--;
    look_end_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
}

/* The one to close next; NULL: none now. */
static CephfsWitness *next_locked(CephfsFiles *f)
{
    CephfsWitness *w;
    if (f->heard >= HEARERS_MAX)
        return NULL;
    TAILQ_FOREACH (w, &f->witnesses, link)
        if (!g_hash_table_contains(f->looked_at, w->inode))
            return w;
    return NULL;
}

static void *witness_thread(void *data)
{
    CephfsOrigin *o = data;
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    while (!f->stopping) {
        CephfsWitness *w = next_locked(f);
        const int64_t left = w ? w->until_ms - monotonic_ms() : 0;
        if (!w) {
            pthread_cond_wait(&f->changed, &f->mutex);
        } else if (left > 0) {
            const struct timespec until = deadline_after_ms((unsigned)left);
            pthread_cond_timedwait(&f->changed, &f->mutex, &until);
        } else {
            unlist_locked(f, w);
            look_begin_locked(f, w->inode);
            f->heard++;
            if (tasks_give(f->hearers, &w->task))
                continue;
            /* No thread can be made, and a sync waits for those that are heard. */
            pthread_mutex_unlock(&f->mutex);
            hear(&w->task);
            pthread_mutex_lock(&f->mutex);
        }
    }
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

/* ---- behind syncs, and at the close ---- */

uint64_t cephfs_files_mark(CephfsOrigin *o)
{
    return atomic_load(&o->files.writes);
}

/* A handle of the inode that has writes, or any that can write, and was not looked at in this
 * round; NULL: none. */
static CephfsHandle *not_looked_at_locked(CephfsFiles *f, struct Inode *inode, uint64_t round,
                                          gboolean any)
{
    const GPtrArray *files = cephfs_files_of_locked(f, inode);
    for (guint i = 0; files && i < files->len; i++) {
        CephfsHandle *h = ((OriginFile *)files->pdata[i])->handle;
        if (h->round != round && (h->written || (any && handle_can_write(h))))
            return h;
    }
    return NULL;
}

/* Of those that wrote. An error is noted in the others as well, where it is not to be found again.
 */
static int renew_handles(CephfsOrigin *o, struct Inode *inode, uint64_t mark, int *told)
{
    CephfsFiles *f = &o->files;
    CephfsHandle *h;
    int failed = 0;
    pthread_mutex_lock(&f->mutex);
    const uint64_t round = ++f->looks;
    while ((h = not_looked_at_locked(f, inode, round, *told < 0))) {
        h->round = round;
        h->uses++;
        pthread_mutex_unlock(&f->mutex);
        int one = 0;
        const int r = cephfs_handle_renew(o, h, mark, &one);
        failed = r < 0 ? r : failed;
        *told = one < 0 ? one : *told;
        pthread_mutex_lock(&f->mutex);
    }
    pthread_mutex_unlock(&f->mutex);
    return failed;
}

/* Closes it, for the next one where the sync did not cover all of its writes. *told: what the close
 * has. -errno: there is no next one, and this one stays. */
static int hear_witness(CephfsOrigin *o, CephfsWitness *w, uint64_t mark, int *told)
{
    CephfsFiles *f = &o->files;
    if (w->written > mark) {
        Fh *next;
        int r = cephfs_open_witness(o, w->inode, &next);
        pthread_mutex_lock(&f->mutex);
        list_locked(o, w->inode, r < 0 ? w->fh : next, w->written);
        pthread_mutex_unlock(&f->mutex);
        if (r < 0) {
            g_free(w);
            return r;
        }
    }
    *told = close_witness(o, w);
    return 0;
}

/* The handles that were replaced while they had writes have reported. */
static void await_leaving_locked(CephfsFiles *f, struct Inode *inode)
{
    while (cephfs_handles_leave_locked(f, inode))
        pthread_cond_wait(&f->changed, &f->mutex);
}

int cephfs_files_look(CephfsOrigin *o, struct Inode *inode, uint64_t mark)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    pthread_mutex_lock(&f->mutex);
    look_await_locked(f, inode);
    CephfsWitness *w = g_hash_table_lookup(f->witness_of, inode);
    if (!w && !not_looked_at_locked(f, inode, f->looks + 1, FALSE)) {
        await_leaving_locked(f, inode);
        pthread_mutex_unlock(&f->mutex);
        return 0;
    }
    look_begin_locked(f, inode);
    if (w)
        unlist_locked(f, w);
    pthread_mutex_unlock(&f->mutex);
    const uint64_t ino = cephfs_number_of(o, inode);
    int told = 0, failed = renew_handles(o, inode, mark, &told);
    int by_witness = 0;
    int heard = w ? hear_witness(o, w, mark, &by_witness) : 0;
    cephfs_report_failed_write(o, ino, told < 0 ? told : by_witness);
    pthread_mutex_lock(&f->mutex);
    await_leaving_locked(f, inode);
    cephfs_beside_drop_locked(f, inode, unused);
    look_end_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
    return heard < 0 ? heard : failed;
}

int cephfs_files_look_at_closed(CephfsOrigin *o, uint64_t mark)
{
    CephfsFiles *f = &o->files;
    int failed = 0;
    pthread_mutex_lock(&f->mutex);
    g_autoptr(GList) inodes = g_hash_table_get_keys(f->witness_of);
    pthread_mutex_unlock(&f->mutex);
    for (const GList *i = inodes; i; i = i->next) {
        int r = cephfs_files_look(o, i->data, mark);
        failed = r < 0 ? r : failed;
    }
    /* Those that are closed by their time report by themselves. */
    pthread_mutex_lock(&f->mutex);
    while (f->heard)
        pthread_cond_wait(&f->changed, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
    return failed;
}

/* The last file that had it is closed, and the caller uses it. 0, or that there is no connection
 * any more. */
static int close_handle(CephfsOrigin *o, CephfsHandle *h)
{
    CephfsFiles *f = &o->files;
    /* The end of the connection writes all that is left; a lost one is reported elsewhere. */
    const gboolean wrote = h->written && !atomic_load(&o->gone);
    const uint64_t ino = wrote ? cephfs_number_of(o, h->inode) : 0;
    int synced = wrote ? leave_witness(o, h) : 0;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    pthread_mutex_lock(&f->mutex);
    const gboolean close = --h->uses == 0;
    if (!close)
        cephfs_handle_abandon_locked(h, unused); /* another call closes it */
    pthread_mutex_unlock(&f->mutex);
    int r = close ? cephfs_handle_close(h) : 0;
    if (r == -ENOTCONN || r == -ESHUTDOWN)
        return r;
    /* Errors of other handles' writes are reported when those are closed. */
    if (ino)
        cephfs_report_failed_write(o, ino, r < 0 ? r : synced);
    return 0;
}

/* Of a mount that is no more: nothing is closed. */
static void forget(CephfsFiles *f, OriginFile *file)
{
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    pthread_mutex_lock(&f->mutex);
    if (file->leased)
        g_ptr_array_remove_fast(file->leased->lessees, file);
    cephfs_beside_drop_locked(f, file->inode, unused);
    CephfsHandle *h = cephfs_file_unlist_locked(f, file);
    if (h->files == 0)
        cephfs_handle_abandon_locked(h, unused);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused); /* frees them */
    g_free(file);
}

/* On a thread of its own: the lease that goes back meanwhile may be behind the close that has this
 * done. The mount is there: its end waits for this, in cephfs_files_stop(). */
static void narrow(Task *task)
{
    g_autofree CephfsNarrowing *n = (CephfsNarrowing *)task;
    CephfsOrigin *o = n->o;
    CephfsFiles *f = &o->files;
    struct Inode *inode = n->inode;
    pthread_mutex_lock(&f->mutex);
    look_begin_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
    g_autoptr(GPtrArray) left = g_ptr_array_new();
    if (!atomic_load(&o->gone))
        cephfs_share_narrow(o, inode, left);
    for (guint i = 0; i < left->len; i++)
        close_handle(o, left->pdata[i]);
    pthread_mutex_lock(&f->mutex);
    look_end_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
    ceph_ll_put(o->mount, inode);
}

/* Without a thread they keep the handle that can write. */
static void narrow_soon(CephfsOrigin *o, struct Inode *inode)
{
    struct Inode *kept = cephfs_get(o, inode); /* the caller's node is there */
    if (!kept)
        return;
    CephfsNarrowing *n = g_new0(CephfsNarrowing, 1);
    *n = (CephfsNarrowing){.task.run = narrow, .o = o, .inode = kept};
    if (tasks_give(o->files.narrowers, &n->task))
        return;
    ceph_ll_put(o->mount, kept);
    g_free(n);
}

int cephfs_file_close(CephfsOrigin *o, OriginFile *file)
{
    CephfsFiles *f = &o->files;
    struct Inode *inode = file->inode;
    const gboolean gone = atomic_load(&o->gone);
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    int r = 0;
    /* A thread that hangs in libcephfs may still use it. */
    if (gone && atomic_load(&o->left))
        return -ENOTCONN;
    if (gone) {
        forget(f, file);
        return -ENOTCONN;
    }
    cephfs_lease_give(o, file);
    pthread_mutex_lock(&f->mutex);
    /* A sync of the file waits for the result of the close, or for the witness. Of a handle that
     * other files have, nothing is closed, and nothing waits: it could be for a lease of theirs,
     * which goes back on this thread. */
    const gboolean looks =
        file->handle->files == 1 && (handle_can_write(file->handle) || file->handle->written);
    if (looks)
        look_begin_locked(f, inode);
    cephfs_beside_drop_locked(f, inode, unused);
    CephfsHandle *h = cephfs_file_unlist_locked(f, file);
    const gboolean last = h->files == 0;
    const gboolean narrows = !last && handle_can_write(h) && !cephfs_files_write_locked(f, inode);
    if (last)
        h->uses++;
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
    if (last)
        r = close_handle(o, h);
    if (narrows)
        narrow_soon(o, inode);
    if (looks) {
        pthread_mutex_lock(&f->mutex);
        look_end_locked(f, inode);
        pthread_mutex_unlock(&f->mutex);
    }
    g_free(file);
    return r;
}

gboolean cephfs_files_start(CephfsOrigin *o)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_init(&f->mutex, NULL);
    cond_init_monotonic(&f->changed);
    f->open = g_hash_table_new(NULL, NULL);
    f->beside = g_hash_table_new(NULL, NULL);
    f->leaving = g_hash_table_new(NULL, NULL);
    f->looked_at = g_hash_table_new(NULL, NULL);
    f->witness_of = g_hash_table_new(NULL, NULL);
    TAILQ_INIT(&f->witnesses);
    f->hearers = tasks_new(0, HEARERS_MAX);
    tasks_set_spare(f->hearers, thread_room_has_spare);
    f->narrowers = tasks_new(0, NARROWERS_MAX);
    tasks_set_spare(f->narrowers, thread_room_has_spare);
    if (pthread_create(&f->thread, NULL, witness_thread, o) == 0)
        return TRUE;
    tasks_free(f->hearers);
    tasks_free(f->narrowers);
    return FALSE;
}

void cephfs_files_stop(CephfsOrigin *o, gboolean lost)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    f->stopping = TRUE;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
    pthread_join(f->thread, NULL);
    tasks_free(f->hearers);
    tasks_free(f->narrowers);
    CephfsWitness *w;
    while ((w = TAILQ_FIRST(&f->witnesses))) {
        unlist_locked(f, w);
        if (lost)
            g_free(w);
        else
            close_witness(o, w);
    }
}

void cephfs_files_clear(CephfsFiles *f)
{
    if (!f->open)
        return;
    g_hash_table_unref(f->open);
    g_hash_table_unref(f->beside);
    g_hash_table_unref(f->leaving);
    g_hash_table_unref(f->looked_at);
    g_hash_table_unref(f->witness_of);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
}
