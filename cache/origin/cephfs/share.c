/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of an inode have which handle of libcephfs (Fh). libcephfs promises an inode to a
 * writer (a write delegation) only while the inode has one handle, and takes the promise back when
 * another is opened, although all handles are of this client. So while any file of an inode can
 * write, all of its files have one handle, and a lease on it is for all of them. Files that only
 * read have handles of their own, and read delegations.
 *
 *   a file that can write is opened   all files move to its handle, or it joins a handle that does
 *                                     what it needs (O_RDWR, O_SYNC)
 *   the last one is closed            the others get handles of their own again, soon
 *                                     (share_narrow)
 *   a sync of what was written        all files move to a new one (handle_renew)
 *   a write finds a read that hangs   the same (leave_to_reads)
 *
 * A file moves with its writes, those under way and those that no sync has covered: what comes of
 * them from then on is noted in both handles. What came of them before is noted only in the old
 * one, so a sync waits until that is closed (handle.c).
 *
 * Not guaranteed: a file whose open crosses another's may keep a handle of its own. Then no lease
 * is granted until it is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"

/* For reads that a write finds. */
#define READS_PATIENCE_MS 50

#define SYNC_FLAGS (O_SYNC | O_DSYNC)

static gboolean can_read(int flags)
{
    return (flags & O_ACCMODE) != O_WRONLY;
}

GPtrArray *cephfs_files_of_locked(CephfsFiles *f, struct Inode *inode)
{
    return g_hash_table_lookup(f->open, inode);
}

static gboolean does_for(const CephfsHandle *h, const OriginFile *file)
{
    return (!can_read(file->flags) || can_read(h->flags)) &&
           (!cephfs_can_write(file->flags) || cephfs_can_write(h->flags)) &&
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
        if (cephfs_can_write(((OriginFile *)files->pdata[i])->flags))
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

/* ---- files move ---- */

/* With its writes, so no read runs with `to` (handle.c). A handle that cannot write has none: to
 * replace it would end its lease unnoticed. TRUE: it was the last file of its old handle. */
static gboolean move_locked(OriginFile *file, CephfsHandle *to)
{
    CephfsHandle *old = file->handle;
    if (old == to)
        return FALSE;
    file->handle = to;
    to->files++;
    to->writing += file->writing;
    old->writing -= file->writing;
    if (cephfs_can_write(to->flags))
        to->written = MAX(to->written, old->written);
    return --old->files == 0;
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

/* Opens another like it, for which it is unlocked, and moves its files there. NULL: *r has why, or
 * it has no files any more. The caller uses it. */
static CephfsHandle *replace_locked(CephfsFiles *f, CephfsHandle *h, int *r)
{
    CephfsOrigin *o = h->origin;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    OriginFile *file;
    Fh *fh;
    pthread_mutex_unlock(&f->mutex);
    *r = cephfs_open_again(o, h->inode, h->flags, &fh);
    CephfsHandle *next = *r < 0 ? NULL : cephfs_handle_new(o, h->inode, fh, h->flags);
    pthread_mutex_lock(&f->mutex);
    if (!next)
        return NULL;
    if (h->files) {
        next->round = h->round;
        while ((file = one_on_locked(f, h)))
            move_locked(file, next);
        return next;
    }
    cephfs_handle_abandon_locked(next, unused);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
    pthread_mutex_lock(&f->mutex);
    return NULL;
}

/* Replaces a handle in all its files by a new one, while reads go on with it: the last of them
 * closes it. Unlocks meanwhile. */
static int leave_to_reads_locked(CephfsOrigin *o, CephfsHandle *h)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    int r;
    h->uses++;
    if (replace_locked(f, h, &r))
        cephfs_handle_abandon_locked(h, unused); /* this uses it */
    pthread_mutex_unlock(&f->mutex);
    cephfs_handle_done(o, h);
    pthread_mutex_lock(&f->mutex);
    return r;
}

/* ---- opening ---- */

static gboolean takes_all(const CephfsHandle *h, const GPtrArray *files)
{
    return !h->reads && does_for_all(h, files);
}

/* While one can write, all files of the inode have one handle, if there is one that does for all.
 */
static void gather_locked(CephfsFiles *f, CephfsHandle *best, GPtrArray *unused)
{
    GPtrArray *files = cephfs_files_of_locked(f, best->inode);
    CephfsHandle *to = takes_all(best, files) ? best : NULL;
    if (!any_writes(files))
        return;
    for (guint i = 0; !to && i < files->len; i++) {
        CephfsHandle *h = ((OriginFile *)files->pdata[i])->handle;
        to = takes_all(h, files) ? h : NULL;
    }
    for (guint i = 0; to && i < files->len; i++) {
        OriginFile *file = files->pdata[i];
        CephfsHandle *old = file->handle;
        if (move_locked(file, to))
            cephfs_handle_abandon_locked(old, unused);
    }
}

static void add_file(CephfsOrigin *o, OriginFile *file, Fh *fh, int flags)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    CephfsHandle *h = cephfs_handle_new(o, file->inode, fh, flags);
    pthread_mutex_lock(&f->mutex);
    list_locked(f, file, h);
    gather_locked(f, h, unused);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
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
        if (cephfs_can_write(h->flags) && does_for(h, file)) {
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
    if (!files || (!cephfs_can_write(flags) && !any_writes(files)))
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

/* ---- the last that can write was closed ---- */

/* A file that only reads, with a handle that can write. NULL: there is none, or a file can write.
 */
static OriginFile *one_too_wide_locked(CephfsFiles *f, struct Inode *inode)
{
    const GPtrArray *files = cephfs_files_of_locked(f, inode);
    for (guint i = 0; files && !any_writes(files) && i < files->len; i++) {
        OriginFile *file = files->pdata[i];
        if (cephfs_can_write(file->handle->flags))
            return file;
    }
    return NULL;
}

/* The same, when its handle has no lease and gets none: else the open would wait for it in
 * libcephfs, where this cannot be ended, while the end of the connection waits for this and has the
 * lease wait. NULL also when the connection ends. */
static OriginFile *one_to_narrow_locked(CephfsFiles *f, struct Inode *inode)
{
    OriginFile *file;
    while (!f->stopping && (file = one_too_wide_locked(f, inode))) {
        CephfsHandle *h = file->handle;
        h->narrows = TRUE;
        if (!h->leasing && h->lessees->len == 0)
            return file;
        if (h->lessees->len)
            cephfs_lease_recall_locked(h);
        pthread_cond_wait(&f->changed, &f->mutex);
    }
    return NULL;
}

static void narrows_no_more_locked(CephfsFiles *f, struct Inode *inode)
{
    const GPtrArray *files = cephfs_files_of_locked(f, inode);
    for (guint i = 0; files && i < files->len; i++)
        ((OriginFile *)files->pdata[i])->handle->narrows = FALSE;
}

void cephfs_share_narrow(CephfsOrigin *o, struct Inode *inode, GPtrArray *left)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    OriginFile *file;
    pthread_mutex_lock(&f->mutex);
    while ((file = one_to_narrow_locked(f, inode))) {
        const int flags = cephfs_handle_flags(file->flags);
        Fh *fh;
        pthread_mutex_unlock(&f->mutex);
        /* The file may be closed meanwhile. */
        const int r = cephfs_open_again(o, inode, flags, &fh);
        CephfsHandle *own = r < 0 ? NULL : cephfs_handle_new(o, inode, fh, flags);
        pthread_mutex_lock(&f->mutex);
        if (!own)
            break;
        file = one_too_wide_locked(f, inode);
        CephfsHandle *wide = file ? file->handle : NULL;
        if (!file || cephfs_handle_flags(file->flags) != flags) {
            cephfs_handle_abandon_locked(own, unused);
        } else if (move_locked(file, own)) {
            wide->uses++;
            g_ptr_array_add(left, wide);
        }
    }
    narrows_no_more_locked(f, inode);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
}

/* ---- behind a sync ---- */

int cephfs_handle_renew(CephfsOrigin *o, CephfsHandle *h, uint64_t mark, int *told)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    int r;
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *next = replace_locked(f, h, &r);
    const gboolean wrote = h->written || h->writes;
    if (next)
        next->written = h->written > mark ? h->written : 0;
    if (next && !wrote) /* a read may hang */
        cephfs_handle_abandon_locked(h, unused);
    if (!next || !wrote) { /* it stays, moved on meanwhile, or has nothing to tell */
        pthread_mutex_unlock(&f->mutex);
        cephfs_handle_done(o, h);
        return r;
    }
    h->uses--;
    while (h->uses)
        pthread_cond_wait(&f->changed, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
    *told = cephfs_handle_close(h);
    return 0;
}

/* ---- calls ---- */

/* Others than the file's own, which has the handle. */
static gboolean is_shared(const CephfsHandle *h)
{
    return h->files > 1;
}

int cephfs_read_begin(CephfsOrigin *o, OriginFile *file, CephfsHandle **used)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *h = file->handle;
    if (is_shared(h) && (h->written || h->writing))
        h = g_hash_table_lookup(f->beside, file->inode);
    if (h) {
        h->uses++;
        h->reads++;
    }
    pthread_mutex_unlock(&f->mutex);
    *used = h;
    return h ? 0 : cephfs_beside_use(o, file->inode, used);
}

void cephfs_read_end(CephfsOrigin *o, CephfsHandle *used)
{
    CephfsFiles *f = &o->files;
    pthread_mutex_lock(&f->mutex);
    if (--used->reads == 0 && used->writing)
        pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handle_done(o, used);
}

static gboolean waits_for_reads(const CephfsHandle *h)
{
    return is_shared(h) && h->reads;
}

static void await_reads_locked(CephfsFiles *f, const OriginFile *file)
{
    const struct timespec until = deadline_after_ms(READS_PATIENCE_MS);
    int r = 0;
    while (waits_for_reads(file->handle) && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&f->changed, &f->mutex, &until);
}

int cephfs_write_begin(CephfsOrigin *o, OriginFile *file, CephfsHandle **used)
{
    CephfsFiles *f = &o->files;
    int r = 0;
    pthread_mutex_lock(&f->mutex);
    file->writing++;
    file->handle->writing++;
    await_reads_locked(f, file);
    while (r == 0 && waits_for_reads(file->handle))
        r = leave_to_reads_locked(o, file->handle);
    CephfsHandle *h = file->handle;
    if (r < 0) {
        file->writing--;
        h->writing--;
    } else {
        h->uses++;
        h->writes++;
        *used = h;
    }
    pthread_mutex_unlock(&f->mutex);
    return r;
}

void cephfs_write_end(CephfsOrigin *o, OriginFile *file, CephfsHandle *used, gboolean wrote)
{
    CephfsFiles *f = &o->files;
    const uint64_t number = wrote ? atomic_fetch_add(&f->writes, 1) + 1 : 0;
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *h = file->handle; /* of now */
    file->writing--;
    h->writing--;
    h->written = MAX(h->written, number);
    used->writes--;
    used->written = MAX(used->written, number);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handle_done(o, used);
}
