/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of libcephfs (Fh), their leases, and how they end. What an answered write came to is
 * known only when a handle that was open since then is closed (file.c), and a handle is closed only
 * when no call runs with it. A read may hang for as long as an OSD is gone. So these hold (1 and 2
 * in share.c):
 *
 * 1. A read does not begin with a handle that several files have and that has writes, under way or
 *    not covered by a sync. It has one beside it, for all such reads of the inode, which ends the
 *    lease (a lease is for an inode with one handle) and is closed when a lease is wanted a moment
 *    later, when a file is closed, and behind a sync.
 * 2. A write does not begin with a handle that several files have while reads run with it. Reads
 *    that come later go beside, and it waits a moment for the others. Then the files move on to a
 *    new handle, and the old one stays with the reads that hang.
 * 3. A sync waits until each handle that was replaced while it had writes is closed (`leaving`). A
 *    write that ends with such a handle counts as one of the file's handle of then, too, where what
 *    comes of it later is noted.
 *
 * So a read that hangs holds up syncs only if its file has written by itself, with a handle that no
 * other had.
 *
 * A lease (delegation) is of a handle, and all files that have the handle have a part in it. It is
 * taken with the first part and goes back with the last. A handle that gets a successor has none by
 * then: its successor is open, and libcephfs waits in an open until delegations in its way are
 * returned.
 */
#include <errno.h>
#include <fcntl.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"

/* A lease that such reads have ended does not come back before. */
#define BESIDE_MS 100

/* A direct write of libcephfs goes past its memory and leaves there what it has replaced, for
 * readers of other handles. It looks at O_APPEND only for writes without an offset. */
int cephfs_handle_flags(int flags)
{
    flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
    return cephfs_can_write(flags) ? (flags & ~O_DIRECT) | O_APPEND : flags;
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

CephfsHandle *cephfs_handle_new(CephfsOrigin *o, struct Inode *inode, Fh *fh, int flags)
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

/* ---- handles that were left ---- */

static unsigned leaving_locked(const CephfsFiles *f, const struct Inode *inode)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(f->leaving, inode));
}

static void count_leaving_locked(CephfsFiles *f, struct Inode *inode, int change)
{
    const unsigned n = leaving_locked(f, inode) + (unsigned)change;
    if (n)
        g_hash_table_insert(f->leaving, inode, GUINT_TO_POINTER(n));
    else
        g_hash_table_remove(f->leaving, inode);
    pthread_cond_broadcast(&f->changed);
}

gboolean cephfs_handles_leave_locked(const CephfsFiles *f, const struct Inode *inode)
{
    return leaving_locked(f, inode) > 0;
}

void cephfs_handle_abandon_locked(CephfsHandle *h, GPtrArray *unused)
{
    CephfsFiles *f = &h->origin->files;
    h->abandoned = TRUE;
    h->awaited = h->written || h->writes;
    if (h->awaited)
        count_leaving_locked(f, h->inode, 1);
    if (!h->uses)
        g_ptr_array_add(unused, h);
}

/* What a handle has noted that no write went through is of writes that others report. */
static void close_abandoned(CephfsHandle *h)
{
    CephfsOrigin *o = h->origin;
    CephfsFiles *f = &o->files;
    struct Inode *inode = h->inode;
    const gboolean awaited = h->awaited, wrote = h->written != 0;
    if (atomic_load(&o->gone)) {
        cephfs_handle_free(h);
    } else {
        const uint64_t ino = wrote ? cephfs_number_of(o, inode) : 0;
        const int r = cephfs_handle_close(h);
        if (wrote)
            cephfs_report_failed_write(o, ino, r);
    }
    if (!awaited)
        return;
    pthread_mutex_lock(&f->mutex);
    count_leaving_locked(f, inode, -1);
    pthread_mutex_unlock(&f->mutex);
}

void cephfs_handles_close(const GPtrArray *abandoned)
{
    for (guint i = 0; i < abandoned->len; i++)
        close_abandoned(abandoned->pdata[i]);
}

/* ---- calls ---- */

void cephfs_handle_done(CephfsOrigin *o, CephfsHandle *h)
{
    pthread_mutex_lock(&o->files.mutex);
    const gboolean last = --h->uses == 0, close = last && h->abandoned;
    if (last && !close && h->files == 0)
        pthread_cond_broadcast(&o->files.changed);
    pthread_mutex_unlock(&o->files.mutex);
    if (close)
        close_abandoned(h);
}

/* The inode's handle for reads beside writes, used for one more. */
int cephfs_beside_use(CephfsOrigin *o, struct Inode *inode, CephfsHandle **used)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    Fh *fh;
    const int r = cephfs_open_again(o, inode, O_RDONLY, &fh);
    if (r < 0)
        return r;
    CephfsHandle *own = cephfs_handle_new(o, inode, fh, O_RDONLY);
    own->opened_ms = monotonic_ms();
    pthread_mutex_lock(&f->mutex);
    *used = g_hash_table_lookup(f->beside, inode);
    if (*used) {
        cephfs_handle_abandon_locked(own, unused);
    } else {
        g_hash_table_insert(f->beside, inode, own);
        *used = own;
    }
    (*used)->uses++;
    (*used)->reads++;
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
    return 0;
}

void cephfs_beside_drop_locked(CephfsFiles *f, struct Inode *inode, GPtrArray *unused)
{
    CephfsHandle *h = g_hash_table_lookup(f->beside, inode);
    if (!h)
        return;
    g_hash_table_remove(f->beside, inode);
    cephfs_handle_abandon_locked(h, unused);
}

gboolean cephfs_beside_is_new_locked(const CephfsFiles *f, struct Inode *inode)
{
    const CephfsHandle *h = g_hash_table_lookup(f->beside, inode);
    return h && monotonic_ms() < h->opened_ms + BESIDE_MS;
}

/* ---- leases ---- */

void cephfs_lease_recall_locked(CephfsHandle *h)
{
    if (h->recalled)
        return;
    h->recalled = TRUE;
    for (guint i = 0; i < h->lessees->len; i++) {
        OriginFile *file = h->lessees->pdata[i];
        file->recall(file, file->data);
    }
}

/* Under locks of libcephfs, which nothing asks for while it holds this mutex. */
static void recalled(Fh *fh, void *data)
{
    (void)fh;
    CephfsHandle *h = data;
    CephfsFiles *f = &h->origin->files;
    pthread_mutex_lock(&f->mutex);
    cephfs_lease_recall_locked(h);
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
    cephfs_handle_done(o, h);
    cephfs_lease_returned(o, file->inode);
}

static int lease_take(CephfsOrigin *o, OriginFile *file, OriginLease kind)
{
    CephfsFiles *f = &o->files;
    g_autoptr(GPtrArray) unused = g_ptr_array_new();
    int r = 0;
    pthread_mutex_lock(&f->mutex);
    if (cephfs_beside_is_new_locked(f, file->inode)) {
        pthread_mutex_unlock(&f->mutex);
        return -EAGAIN;
    }
    cephfs_beside_drop_locked(f, file->inode, unused);
    pthread_mutex_unlock(&f->mutex);
    cephfs_handles_close(unused);
    pthread_mutex_lock(&f->mutex);
    CephfsHandle *h = file->handle;
    h->uses++;
    await_leasing_locked(f, h);
    if (h->recalled || h->narrows || file->leased || file->handle != h)
        r = -EAGAIN;
    else if (h->lessees->len == 0)
        r = delegate_locked(f, h,
                            kind == ORIGIN_LEASE_WRITE || cephfs_can_write(h->flags)
                                ? CEPH_DELEGATION_WR
                                : CEPH_DELEGATION_RD);
    if (r == 0) {
        g_ptr_array_add(h->lessees, file);
        file->leased = h;
        if (h->recalled)
            file->recall(file, file->data);
    }
    pthread_mutex_unlock(&f->mutex);
    cephfs_handle_done(o, h);
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
