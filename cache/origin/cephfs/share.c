/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of libcephfs (Fh), and which files have them. libcephfs promises an inode to a writer (a
 * write delegation) only while the inode has one handle, and takes the promise back when another is
 * opened, although all handles are of this client. So while any file of an inode can write, all of
 * its files have one handle, and a lease on it is for all of them: it is taken once, recalled once
 * for each file, and goes back with the last. Files that only read have handles of their own, and
 * read delegations.
 *
 *   a file that can write is opened   all files move to its handle, or it joins a handle that does
 *                                     what it needs (O_RDWR, O_SYNC)
 *   the last one is closed            the others get handles of their own again, soon
 *                                     (share_narrow)
 *
 * A handle that is replaced is closed when its last call has returned. Its replacement is opened
 * before, so an error of a write is noted in one of them (file.c), and `written` moves with files.
 *
 * Not guaranteed: a file whose open crosses another's may keep a handle of its own. Then no lease
 * is granted until it is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include "cache/origin/cephfs/internal.h"

#define SYNC_FLAGS (O_SYNC | O_DSYNC)

static gboolean can_read(int flags)
{
    return (flags & O_ACCMODE) != O_WRONLY;
}

static gboolean can_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

/* A direct write of libcephfs goes past its memory and leaves there what it has replaced, for
 * readers of other handles. It looks at O_APPEND only for writes without an offset. */
int cephfs_handle_flags(int flags)
{
    flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
    return can_write(flags) ? (flags & ~O_DIRECT) | O_APPEND : flags;
}

int cephfs_open_again(CephfsOrigin *o, struct Inode *inode, int flags, Fh **fh)
{
    *fh = NULL; /* libcephfs lists what is there as open, also when the open failed */
    return CEPHFS_LISTED(o, inode, ceph_ll_open(o->mount, inode, flags, fh, o->perms));
}

void cephfs_report_failed_write(CephfsOrigin *o, uint64_t ino, int r)
{
    if (r == 0 || r == -ENOTCONN || r == -ESHUTDOWN)
        return;
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.inode_failed)
        o->listener.inode_failed(o->listener.data, ino, r);
    pthread_mutex_unlock(&o->listener_mutex);
}

uint64_t cephfs_number_of(CephfsOrigin *o, struct Inode *inode)
{
    struct ceph_statx stx = {0};
    ceph_ll_getattr(o->mount, inode, &stx, CEPH_STATX_INO, AT_STATX_DONT_SYNC, o->perms);
    return stx.stx_ino;
}

static CephfsHandle *handle_new(CephfsOrigin *o, struct Inode *inode, Fh *fh, int flags)
{
    CephfsHandle *h = g_new0(CephfsHandle, 1);
    h->origin = o;
    h->inode = inode;
    h->fh = fh;
    h->flags = flags;
    h->lessees = g_ptr_array_new();
    return h;
}

int cephfs_handle_close(CephfsHandle *h)
{
    CephfsOrigin *o = h->origin;
    struct Inode *inode = h->inode; /* only compared once it is closed: it may be gone */
    const int r = ceph_ll_close(o->mount, h->fh);
    cephfs_lease_returned(o, inode);
    cephfs_handle_free(h);
    return r;
}

void cephfs_handle_free(CephfsHandle *h)
{
    g_ptr_array_unref(h->lessees);
    g_free(h);
}

/* One that no file has any more, and no call uses. */
static void close_replaced(CephfsHandle *h)
{
    CephfsOrigin *o = h->origin;
    if (atomic_load(&o->gone)) {
        cephfs_handle_free(h);
        return;
    }
    const uint64_t ino = cephfs_number_of(o, h->inode);
    const int r = cephfs_handle_close(h);
    cephfs_report_failed_write(o, ino, r);
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
    const gboolean last = --handle->uses == 0;
    const gboolean close = last && handle->abandoned;
    if (last && !close && handle->files == 0)
        pthread_cond_broadcast(&o->files.changed);
    pthread_mutex_unlock(&o->files.mutex);
    if (close)
        close_replaced(handle);
}

/* ---- which files have which handle ---- */

GPtrArray *cephfs_files_of_locked(CephfsFiles *f, struct Inode *inode)
{
    return g_hash_table_lookup(f->open, inode);
}

static gboolean does_for(const CephfsHandle *h, const OriginFile *file)
{
    return (!can_read(file->flags) || can_read(h->flags)) &&
           (!can_write(file->flags) || can_write(h->flags)) &&
           !(file->flags & ~h->flags & SYNC_FLAGS);
}

static gboolean does_for_all(const CephfsHandle *h, const GPtrArray *files)
{
    for (guint i = 0; i < files->len; i++)
        if (!does_for(h, files->pdata[i]))
            return FALSE;
    return TRUE;
}

static gboolean any_writes(const GPtrArray *files)
{
    for (guint i = 0; files && i < files->len; i++)
        if (can_write(((OriginFile *)files->pdata[i])->flags))
            return TRUE;
    return FALSE;
}

static void list_locked(CephfsFiles *f, OriginFile *file, CephfsHandle *h)
{
    GPtrArray *files = cephfs_files_of_locked(f, file->inode);
    if (!files) {
        files = g_ptr_array_new();
        g_hash_table_insert(f->open, file->inode, files);
    }
    g_ptr_array_add(files, file);
    file->handle = h;
    h->files++;
}

CephfsHandle *cephfs_file_unlist_locked(CephfsFiles *f, OriginFile *file)
{
    GPtrArray *files = cephfs_files_of_locked(f, file->inode);
    g_ptr_array_remove_fast(files, file);
    if (files->len == 0) {
        g_hash_table_remove(f->open, file->inode);
        g_ptr_array_unref(files);
    }
    file->handle->files--;
    return file->handle;
}

gboolean cephfs_files_write_locked(CephfsFiles *f, struct Inode *inode)
{
    return any_writes(cephfs_files_of_locked(f, inode));
}

/* TRUE: it was the last file of its old handle. Writes are looked at by handles that can write: to
 * replace another would end its lease unnoticed. */
static gboolean move_locked(OriginFile *file, CephfsHandle *to)
{
    CephfsHandle *old = file->handle;
    if (old == to)
        return FALSE;
    file->handle = to;
    to->files++;
    if (can_write(to->flags))
        to->written = MAX(to->written, old->written);
    return --old->files == 0;
}

/* A replaced handle: closed now, if it is not in use, by being added; else behind its last call. */
static void abandon_locked(CephfsHandle *h, GPtrArray *unused)
{
    if (h->uses)
        h->abandoned = TRUE;
    else
        g_ptr_array_add(unused, h);
}

/* While one can write, all files of the inode have one handle, if there is one that does for all.
 */
static void gather_locked(CephfsFiles *f, CephfsHandle *best, GPtrArray *unused)
{
    GPtrArray *files = cephfs_files_of_locked(f, best->inode);
    CephfsHandle *to = does_for_all(best, files) ? best : NULL;
    if (!any_writes(files))
        return;
    for (guint i = 0; !to && i < files->len; i++) {
        CephfsHandle *h = ((OriginFile *)files->pdata[i])->handle;
        to = does_for_all(h, files) ? h : NULL;
    }
    for (guint i = 0; to && i < files->len; i++) {
        OriginFile *file = files->pdata[i];
        CephfsHandle *old = file->handle;
        if (move_locked(file, to))
            abandon_locked(old, unused);
    }
}

static void close_all(const GPtrArray *unused)
{
    for (guint i = 0; i < unused->len; i++)
        close_replaced(unused->pdata[i]);
}

static void add_file(CephfsOrigin *o, OriginFile *file, Fh *fh, int flags)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    CephfsHandle *h = handle_new(o, file->inode, fh, flags);
    pthread_mutex_lock(&f->mutex);
    list_locked(f, file, h);
    gather_locked(f, h, unused);
    pthread_mutex_unlock(&f->mutex);
    close_all(unused);
}

static OriginFile *file_new(struct Inode *inode, int flags)
{
    OriginFile *file = g_new0(OriginFile, 1);
    file->inode = inode;
    file->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    return file;
}

OriginFile *cephfs_file_new(CephfsOrigin *o, Fh *fh, struct Inode *inode, int flags)
{
    OriginFile *file = file_new(inode, flags);
    add_file(o, file, fh, cephfs_handle_flags(flags));
    return file;
}

static gboolean join_locked(CephfsFiles *f, OriginFile *file)
{
    const GPtrArray *files = cephfs_files_of_locked(f, file->inode);
    if (!any_writes(files))
        return FALSE;
    for (guint i = 0; i < files->len; i++) {
        CephfsHandle *h = ((OriginFile *)files->pdata[i])->handle;
        if (can_write(h->flags) && does_for(h, file)) {
            list_locked(f, file, h);
            return TRUE;
        }
    }
    return FALSE;
}

/* Of the handle for a new file, and for the others if one of them can write. */
static int flags_for_all_locked(CephfsFiles *f, const OriginFile *file)
{
    const GPtrArray *files = cephfs_files_of_locked(f, file->inode);
    int flags = file->flags;
    if (!files || (!can_write(flags) && !any_writes(files)))
        return cephfs_handle_flags(flags);
    gboolean read = can_read(flags);
    for (guint i = 0; i < files->len; i++) {
        const OriginFile *other = files->pdata[i];
        read |= can_read(other->flags);
        flags |= other->flags & SYNC_FLAGS;
    }
    return cephfs_handle_flags((flags & ~O_ACCMODE) | (read ? O_RDWR : O_WRONLY));
}

int cephfs_file_open(CephfsOrigin *o, struct Inode *inode, int flags, OriginFile **opened)
{
    CephfsFiles *f = &o->files;
    OriginFile *file = file_new(inode, flags);
    pthread_mutex_lock(&f->mutex);
    const gboolean joined = !(flags & O_TRUNC) && join_locked(f, file);
    int wanted = joined ? 0 : flags_for_all_locked(f, file);
    pthread_mutex_unlock(&f->mutex);
    if (!joined) {
        Fh *fh;
        int r = cephfs_open_again(o, inode, wanted | (flags & O_TRUNC), &fh);
        if (r < 0 && wanted != cephfs_handle_flags(flags)) {
            wanted = cephfs_handle_flags(flags);
            r = cephfs_open_again(o, inode, wanted | (flags & O_TRUNC), &fh);
        }
        if (r < 0) {
            g_free(file);
            return r;
        }
        add_file(o, file, fh, wanted);
    }
    *opened = file;
    return 0;
}

/* A file that has that handle; NULL: none. */
static OriginFile *one_on_locked(CephfsFiles *f, const CephfsHandle *h)
{
    const GPtrArray *files = cephfs_files_of_locked(f, h->inode);
    for (guint i = 0; files && i < files->len; i++) {
        OriginFile *file = files->pdata[i];
        if (file->handle == h)
            return file;
    }
    return NULL;
}

/* A file that only reads, with a handle that can write. NULL: there is none, or a file can write.
 */
static OriginFile *one_too_wide_locked(CephfsFiles *f, struct Inode *inode)
{
    const GPtrArray *files = cephfs_files_of_locked(f, inode);
    for (guint i = 0; files && !any_writes(files) && i < files->len; i++) {
        OriginFile *file = files->pdata[i];
        if (can_write(file->handle->flags))
            return file;
    }
    return NULL;
}

void cephfs_share_narrow(CephfsOrigin *o, struct Inode *inode, GPtrArray *left)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    OriginFile *file;
    pthread_mutex_lock(&f->mutex);
    while ((file = one_too_wide_locked(f, inode))) {
        const int flags = cephfs_handle_flags(file->flags);
        Fh *fh;
        pthread_mutex_unlock(&f->mutex);
        /* The lease is recalled, and goes back, in this. The file may be closed meanwhile. */
        const int r = cephfs_open_again(o, inode, flags, &fh);
        CephfsHandle *own = r < 0 ? NULL : handle_new(o, inode, fh, flags);
        pthread_mutex_lock(&f->mutex);
        if (!own)
            break;
        file = one_too_wide_locked(f, inode);
        CephfsHandle *wide = file ? file->handle : NULL;
        if (!file || cephfs_handle_flags(file->flags) != flags) {
            g_ptr_array_add(unused, own);
        } else if (move_locked(file, own)) {
            wide->uses++;
            g_ptr_array_add(left, wide);
        }
    }
    pthread_mutex_unlock(&f->mutex);
    close_all(unused);
}

/* ---- behind a sync ---- */

int cephfs_handle_renew(CephfsOrigin *o, CephfsHandle *h, uint64_t mark, int *told)
{
    CephfsFiles *f = &o->files;
    struct Inode *inode = h->inode;
    Fh *fh;
    const int r = cephfs_open_again(o, inode, h->flags, &fh);
    CephfsHandle *next = r < 0 ? NULL : handle_new(o, inode, fh, h->flags);
    pthread_mutex_lock(&f->mutex);
    if (!next || h->files == 0) { /* moved on meanwhile: its close reports */
        pthread_mutex_unlock(&f->mutex);
        cephfs_file_done(o, h);
        if (next)
            close_replaced(next);
        return r;
    }
    const uint64_t round = h->round;
    OriginFile *file;
    while ((file = one_on_locked(f, h)))
        move_locked(file, next);
    next->round = round;
    next->written = 0;
    h->uses--;
    while (h->uses)
        pthread_cond_wait(&f->changed, &f->mutex);
    /* Writes that the sync does not cover are looked at behind the next one. */
    const GPtrArray *files = cephfs_files_of_locked(f, inode);
    for (guint i = 0; h->written > mark && files && i < files->len; i++) {
        CephfsHandle *of_file = ((OriginFile *)files->pdata[i])->handle;
        of_file->written = MAX(of_file->written, h->written);
    }
    pthread_mutex_unlock(&f->mutex);
    *told = cephfs_handle_close(h);
    return 0;
}

/* ---- leases ---- */

/* Under locks of libcephfs, which nothing asks for while it holds this mutex. */
static void recalled(Fh *fh, void *data)
{
    (void)fh;
    CephfsHandle *h = data;
    CephfsFiles *f = &h->origin->files;
    pthread_mutex_lock(&f->mutex);
    h->recalled = TRUE;
    for (guint i = 0; i < h->lessees->len; i++) {
        OriginFile *file = h->lessees->pdata[i];
        file->recall(file, file->data);
    }
    pthread_mutex_unlock(&f->mutex);
}

/* Only one thread at a time asks libcephfs about a handle's lease. */
static int delegate_locked(CephfsFiles *f, CephfsHandle *h, unsigned command)
{
    h->leasing = TRUE;
    pthread_mutex_unlock(&f->mutex);
    const int r = ceph_ll_delegation(h->origin->mount, h->fh, command, recalled, h);
    pthread_mutex_lock(&f->mutex);
    h->leasing = FALSE;
    pthread_cond_broadcast(&f->changed);
    return r;
}

static void await_leasing_locked(CephfsFiles *f, const CephfsHandle *h)
{
    while (h->leasing)
        pthread_cond_wait(&f->changed, &f->mutex);
}

void cephfs_lease_give(CephfsOrigin *o, OriginFile *file)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *h = file->leased;
    if (!h) {
        pthread_mutex_unlock(&f->mutex);
        return;
    }
    h->uses++;
    await_leasing_locked(f, h);
    file->leased = NULL;
    g_ptr_array_remove_fast(h->lessees, file);
    if (h->lessees->len == 0) {
        delegate_locked(f, h, CEPH_DELEGATION_NONE);
        h->recalled = FALSE;
    }
    pthread_mutex_unlock(&f->mutex);
    cephfs_file_done(o, h);
    cephfs_lease_returned(o, file->inode);
}

static int lease_take(CephfsOrigin *o, OriginFile *file, OriginLease kind)
{
    CephfsFiles *f = &o->files;
    int r = 0;
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *h = file->handle;
    h->uses++;
    await_leasing_locked(f, h);
    if (h->recalled || file->leased || file->handle != h)
        r = -EAGAIN;
    else if (h->lessees->len == 0)
        r = delegate_locked(f, h,
                            kind == ORIGIN_LEASE_WRITE || can_write(h->flags) ? CEPH_DELEGATION_WR
                                                                              : CEPH_DELEGATION_RD);
    if (r == 0) {
        g_ptr_array_add(h->lessees, file);
        file->leased = h;
        if (h->recalled)
            file->recall(file, file->data);
    }
    pthread_mutex_unlock(&f->mutex);
    cephfs_file_done(o, h);
    return r;
}

int cephfs_lease(Origin *origin, OriginFile *file, OriginLease kind, OriginRecall recall,
                 void *data)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    if (!o->leases)
        return -EOPNOTSUPP;
    if (kind == ORIGIN_LEASE_NONE) {
        cephfs_lease_give(o, file);
        return 0;
    }
    file->recall = recall;
    file->data = data;
    return lease_take(o, file, kind);
}
