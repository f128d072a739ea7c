/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files, and writes that fail after they were answered. When a pool is full, or an OSD
 * refuses, libcephfs drops the bytes and notes the error in each handle (Fh) that is open on the
 * file. The low-level calls report it only at the close of that handle: ceph_ll_fsync() answers 0,
 * although nothing is in Ceph.
 *
 * So after each sync of a file the handles that wrote it are replaced by new ones and closed. When
 * a file is closed before its writes were synced, another handle stays open, the witness, until the
 * next sync, or for as long as libcephfs takes to write by itself. It is opened only then, because
 * it prevents write leases. It is opened as a directory, which the low-level calls do not check, so
 * it needs no capabilities. Where that is refused a reader's handle is used: then the MDS has to
 * change the file's state for the next client that opens the file, and that waits for its journal.
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

typedef struct CephfsWitness {
    Task task; /* hear() */
    CephfsOrigin *o;
    TAILQ_ENTRY(CephfsWitness) link;
    struct Inode *inode; /* of fh, which keeps it */
    Fh *fh;
    uint64_t written; /* number of the last write it is for */
    int64_t until_ms;
} CephfsWitness;

static int open_again(CephfsOrigin *o, struct Inode *inode, int flags, Fh **fh)
{
    *fh = NULL;
    return CEPHFS_LISTED(o, inode, ceph_ll_open(o->mount, inode, flags, fh, o->perms));
}

/* Reports the error of a close to the listener. A lost session is reported elsewhere. */
static void report_failed_write(CephfsOrigin *o, uint64_t ino, int r)
{
    if (r == 0 || r == -ENOTCONN || r == -ESHUTDOWN)
        return;
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.inode_failed)
        o->listener.inode_failed(o->listener.data, ino, r);
    pthread_mutex_unlock(&o->listener_mutex);
}

static uint64_t number_of(CephfsOrigin *o, struct Inode *inode)
{
    struct ceph_statx stx = {0};
    ceph_ll_getattr(o->mount, inode, &stx, CEPH_STATX_INO, AT_STATX_DONT_SYNC, o->perms);
    return stx.stx_ino;
}

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

/* ---- handles ---- */

static gboolean can_write(const OriginFile *file)
{
    return (file->flags & O_ACCMODE) != O_RDONLY;
}

OriginFile *cephfs_file_new(CephfsOrigin *o, Fh *fh, struct Inode *inode, int flags)
{
    CephfsFiles *f = &o->files;
    OriginFile *file = g_new0(OriginFile, 1);
    file->handle = g_new0(CephfsHandle, 1);
    file->handle->fh = fh;
    file->inode = inode;
    file->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    if (!can_write(file))
        return file;
    pthread_mutex_lock(&f->mutex);
    GPtrArray *writers = g_hash_table_lookup(f->writers, inode);
    if (!writers) {
        writers = g_ptr_array_new();
        g_hash_table_insert(f->writers, inode, writers);
    }
    g_ptr_array_add(writers, file);
    pthread_mutex_unlock(&f->mutex);
    return file;
}

static void unlist_writer_locked(CephfsFiles *f, OriginFile *file)
{
    GPtrArray *writers = g_hash_table_lookup(f->writers, file->inode);
    g_ptr_array_remove_fast(writers, file);
    if (writers->len)
        return;
    g_hash_table_remove(f->writers, file->inode);
    g_ptr_array_unref(writers);
}

CephfsHandle *cephfs_file_use(CephfsOrigin *o, OriginFile *file)
{
    pthread_mutex_lock(&o->files.mutex);
    CephfsHandle *handle = file->handle;
    handle->uses++;
    pthread_mutex_unlock(&o->files.mutex);
    return handle;
}

void cephfs_file_done(CephfsOrigin *o, CephfsHandle *handle)
{
    pthread_mutex_lock(&o->files.mutex);
    if (--handle->uses == 0 && handle->replaced)
        pthread_cond_broadcast(&o->files.changed);
    pthread_mutex_unlock(&o->files.mutex);
}

/* *told: the result of closing the old handle. -errno: there is no new one. */
static int renew(CephfsOrigin *o, OriginFile *file, int *told)
{
    CephfsFiles *f = &o->files;
    CephfsHandle *handle = g_new0(CephfsHandle, 1);
    int r = open_again(o, file->inode, file->flags, &handle->fh);
    if (r < 0) {
        g_free(handle);
        return r;
    }
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *old = file->handle;
    file->handle = handle;
    old->replaced = TRUE;
    while (old->uses)
        pthread_cond_wait(&f->changed, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
    *told = ceph_ll_close(o->mount, old->fh);
    cephfs_lease_returned(o, file->inode);
    g_free(old);
    return 0;
}

/* ---- witnesses ---- */

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

/* For a file that is about to be closed with writes that are not synced; no other thread uses it.
 * -errno: what they came to, as there is no witness. */
static int leave_witness(CephfsOrigin *o, OriginFile *file, uint64_t written)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    gboolean there = keep_locked(f, file->inode, written);
    gboolean many = g_hash_table_size(f->witness_of) >= WITNESSES_MAX;
    pthread_mutex_unlock(&f->mutex);
    if (there)
        return 0;
    Fh *fh = NULL;
    if (many || cephfs_open_witness(o, file->inode, &fh) < 0)
        return ceph_ll_fsync(o->mount, file->handle->fh, 0);
    pthread_mutex_lock(&f->mutex);
    list_locked(o, file->inode, fh, written);
    pthread_mutex_unlock(&f->mutex);
    return 0;
}

static void hear(Task *task)
{
    CephfsWitness *w = (CephfsWitness *)task;
    CephfsOrigin *o = w->o;
    CephfsFiles *f = &o->files;
    struct Inode *inode = w->inode; /* only compared once it is closed */
    const uint64_t ino = number_of(o, inode);
    int synced = ceph_ll_fsync(o->mount, w->fh, 0), r = close_witness(o, w);
    report_failed_write(o, ino, r < 0 ? r : synced);
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

void cephfs_file_wrote(CephfsOrigin *o, OriginFile *file)
{
    const uint64_t number = atomic_fetch_add(&o->files.writes, 1) + 1;
    uint64_t last = atomic_load(&file->written);
    while (last < number && !atomic_compare_exchange_weak(&file->written, &last, number)) {
    }
}

uint64_t cephfs_files_mark(CephfsOrigin *o)
{
    return atomic_load(&o->files.writes);
}

static gboolean written_locked(const GPtrArray *writers)
{
    for (guint i = 0; writers && i < writers->len; i++)
        if (atomic_load(&((OriginFile *)writers->pdata[i])->written))
            return TRUE;
    return FALSE;
}

/* Of those that wrote. An error is noted in the others as well, where it is not to be found again.
 */
static int renew_writers(CephfsOrigin *o, const GPtrArray *writers, uint64_t mark, int *told)
{
    int failed = 0;
    for (guint i = 0; i < writers->len; i++) {
        OriginFile *file = writers->pdata[i];
        int one = 0;
        uint64_t written = atomic_load(&file->written);
        if (!written)
            continue;
        int r = renew(o, file, &one);
        if (r == 0 && written <= mark)
            atomic_compare_exchange_strong(&file->written, &written, 0);
        failed = r < 0 ? r : failed;
        *told = one < 0 ? one : *told;
    }
    for (guint i = 0; i < writers->len && *told < 0; i++) {
        int again = 0;
        renew(o, writers->pdata[i], &again);
    }
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

int cephfs_files_look(CephfsOrigin *o, struct Inode *inode, uint64_t mark)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    look_await_locked(f, inode);
    const GPtrArray *listed = g_hash_table_lookup(f->writers, inode);
    CephfsWitness *w = g_hash_table_lookup(f->witness_of, inode);
    if (!w && !written_locked(listed)) {
        pthread_mutex_unlock(&f->mutex);
        return 0;
    }
    look_begin_locked(f, inode);
    g_autoptr(GPtrArray) writers = g_ptr_array_new();
    for (guint i = 0; listed && i < listed->len; i++)
        g_ptr_array_add(writers, listed->pdata[i]);
    if (w)
        unlist_locked(f, w);
    pthread_mutex_unlock(&f->mutex);
    const uint64_t ino = number_of(o, inode);
    int told = 0, failed = renew_writers(o, writers, mark, &told);
    int by_witness = 0;
    int heard = w ? hear_witness(o, w, mark, &by_witness) : 0;
    report_failed_write(o, ino, told < 0 ? told : by_witness);
    pthread_mutex_lock(&f->mutex);
    look_end_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
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

/* 0, or that there is no connection any more. */
static int close_handle(CephfsOrigin *o, OriginFile *file)
{
    struct Inode *inode = file->inode; /* only compared once it is closed: it may be gone */
    const uint64_t written = atomic_load(&file->written);
    const uint64_t ino = written ? number_of(o, inode) : 0;
    int synced = written ? leave_witness(o, file, written) : 0;
    int r = ceph_ll_close(o->mount, file->handle->fh);
    cephfs_lease_returned(o, inode);
    if (r == -ENOTCONN || r == -ESHUTDOWN)
        return r;
    /* Errors of other handles' writes are reported when those are closed. */
    if (written)
        report_failed_write(o, ino, r < 0 ? r : synced);
    return 0;
}

int cephfs_file_close(CephfsOrigin *o, OriginFile *file)
{
    CephfsFiles *f = &o->files;
    struct Inode *inode = file->inode;
    const gboolean gone = atomic_load(&o->gone);
    /* A thread that hangs in libcephfs may still use it. */
    if (gone && atomic_load(&o->left))
        return -ENOTCONN;
    if (can_write(file)) {
        pthread_mutex_lock(&f->mutex);
        /* A sync of the file waits for the result of the close, or for the witness. */
        look_begin_locked(f, inode);
        unlist_writer_locked(f, file);
        pthread_mutex_unlock(&f->mutex);
    }
    int r = gone ? -ENOTCONN : close_handle(o, file);
    if (can_write(file)) {
        pthread_mutex_lock(&f->mutex);
        look_end_locked(f, inode);
        pthread_mutex_unlock(&f->mutex);
    }
    g_free(file->handle);
    g_free(file);
    return r;
}

gboolean cephfs_files_start(CephfsOrigin *o)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_init(&f->mutex, NULL);
    cond_init_monotonic(&f->changed);
    f->writers = g_hash_table_new(NULL, NULL);
    f->looked_at = g_hash_table_new(NULL, NULL);
    f->witness_of = g_hash_table_new(NULL, NULL);
    TAILQ_INIT(&f->witnesses);
    f->hearers = tasks_new(0, HEARERS_MAX);
    tasks_set_spare(f->hearers, thread_room_has_spare);
    if (pthread_create(&f->thread, NULL, witness_thread, o) == 0)
        return TRUE;
    tasks_free(f->hearers);
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
    if (!f->writers)
        return;
    g_hash_table_unref(f->writers);
    g_hash_table_unref(f->looked_at);
    g_hash_table_unref(f->witness_of);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->mutex);
}
