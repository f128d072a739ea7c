/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcephfs as far as open files need it, in the place of the library: handles (Fh) with the errors
 * that are noted in them, and delegations by the rules of src/client/Delegation.cc. Calls can be
 * held. One inode.
 */
#ifndef HEARTH_TESTS_FAKE_CEPHFS_H
#define HEARTH_TESTS_FAKE_CEPHFS_H

#include <errno.h>
#include "cache/origin/cephfs/internal.h"
#include "tests/unit/harness.h"

enum { READS, WRITES, CLOSES, CALLS };

struct Inode {
    int unused;
};

struct Fh {
    int flags, error;
    unsigned lease; /* CEPH_DELEGATION_... */
    gboolean recalled;
    ceph_deleg_cb_t recall;
    void *data;
};

static struct {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    GPtrArray *open;
    unsigned opens;       /* so many so far */
    int refused;          /* O_ACCMODE that cannot be opened; 0: none */
    int sync_error;       /* of the next sync */
    gboolean hold[CALLS]; /* calls of that kind */
    unsigned held[CALLS]; /* that are held now */
    const Fh *only;       /* the handle whose calls are held; NULL: of all */
    unsigned reported;    /* failures that the listener was told */
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct Inode the_inode;

static inline void hold_here_locked(int call, const Fh *fh)
{
    if (!fake.hold[call] || (fake.only && fake.only != fh))
        return;
    fake.held[call]++;
    pthread_cond_broadcast(&fake.changed);
    while (fake.hold[call])
        pthread_cond_wait(&fake.changed, &fake.lock);
    fake.held[call]--;
}

static inline void hold(int call, gboolean on)
{
    pthread_mutex_lock(&fake.lock);
    fake.hold[call] = on;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

static inline void await_held(int call, unsigned n)
{
    pthread_mutex_lock(&fake.lock);
    while (fake.held[call] != n)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

static inline void await_opens(unsigned n)
{
    pthread_mutex_lock(&fake.lock);
    while (fake.opens < n)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

static inline unsigned open_now(void)
{
    pthread_mutex_lock(&fake.lock);
    const unsigned n = fake.open->len;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static inline unsigned reported_now(void)
{
    pthread_mutex_lock(&fake.lock);
    const unsigned n = fake.reported;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

/* What was written before is lost: noted in each handle that is open. */
static inline void writes_fail(int error)
{
    pthread_mutex_lock(&fake.lock);
    for (guint i = 0; i < fake.open->len; i++)
        ((Fh *)fake.open->pdata[i])->error = error;
    pthread_mutex_unlock(&fake.lock);
}

static inline gboolean is_in_the_way(const Fh *other, int flags)
{
    return other->lease == CEPH_DELEGATION_WR ||
           (other->lease == CEPH_DELEGATION_RD && cephfs_can_write(flags));
}

static inline gboolean recall_locked(const Fh *own, int flags)
{
    gboolean any = FALSE;
    for (guint i = 0; i < fake.open->len; i++) {
        Fh *fh = fake.open->pdata[i];
        if (fh == own || !is_in_the_way(fh, flags))
            continue;
        any = TRUE;
        if (!fh->recalled) {
            fh->recalled = TRUE;
            fh->recall(fh, fh->data);
        }
    }
    return any;
}

int ceph_ll_open(struct ceph_mount_info *cmount, struct Inode *in, int flags, struct Fh **fh,
                 const UserPerm *perms)
{
    (void)cmount, (void)in, (void)perms;
    Fh *opened = g_new0(Fh, 1);
    opened->flags = flags;
    pthread_mutex_lock(&fake.lock);
    if (fake.refused && (flags & O_ACCMODE) == fake.refused) {
        pthread_mutex_unlock(&fake.lock);
        g_free(opened);
        return -EACCES;
    }
    g_ptr_array_add(fake.open, opened);
    while (recall_locked(opened, flags))
        pthread_cond_wait(&fake.changed, &fake.lock);
    fake.opens++;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    *fh = opened;
    return 0;
}

int ceph_ll_close(struct ceph_mount_info *cmount, struct Fh *fh)
{
    (void)cmount;
    pthread_mutex_lock(&fake.lock);
    hold_here_locked(CLOSES, fh);
    const int r = fh->error;
    ck_assert(g_ptr_array_remove(fake.open, fh));
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    g_free(fh);
    return r;
}

static inline int call(Fh *fh, int kind, uint64_t len)
{
    pthread_mutex_lock(&fake.lock);
    ck_assert(g_ptr_array_find(fake.open, fh, NULL));
    hold_here_locked(kind, fh);
    ck_assert(g_ptr_array_find(fake.open, fh, NULL));
    pthread_mutex_unlock(&fake.lock);
    return (int)len;
}

int ceph_ll_read(struct ceph_mount_info *cmount, struct Fh *fh, int64_t off, uint64_t len,
                 char *buf)
{
    (void)cmount, (void)off;
    memset(buf, 'r', len);
    return call(fh, READS, len);
}

int ceph_ll_write(struct ceph_mount_info *cmount, struct Fh *fh, int64_t off, uint64_t len,
                  const char *data)
{
    (void)cmount, (void)off, (void)data;
    return call(fh, WRITES, len);
}

int ceph_ll_sync_inode(struct ceph_mount_info *cmount, struct Inode *in, int syncdataonly)
{
    (void)cmount, (void)in, (void)syncdataonly;
    pthread_mutex_lock(&fake.lock);
    const int r = fake.sync_error;
    fake.sync_error = 0;
    pthread_mutex_unlock(&fake.lock);
    return r;
}

/* An error that it returns is not noted in the handle any more. */
int ceph_ll_fsync(struct ceph_mount_info *cmount, struct Fh *fh, int syncdataonly)
{
    const int r = ceph_ll_sync_inode(cmount, NULL, syncdataonly);
    pthread_mutex_lock(&fake.lock);
    if (r < 0)
        fh->error = 0;
    pthread_mutex_unlock(&fake.lock);
    return r;
}

int ceph_ll_delegation(struct ceph_mount_info *cmount, Fh *fh, unsigned int cmd, ceph_deleg_cb_t cb,
                       void *priv)
{
    (void)cmount;
    int r = 0;
    pthread_mutex_lock(&fake.lock);
    for (guint i = 0; cmd != CEPH_DELEGATION_NONE && i < fake.open->len; i++) {
        const Fh *other = fake.open->pdata[i];
        if (other->recalled ||
            (cmd == CEPH_DELEGATION_RD ? cephfs_can_write(other->flags) : other != fh))
            r = -EAGAIN;
    }
    if (r == 0) {
        fh->lease = cmd;
        fh->recalled = FALSE;
        fh->recall = cb;
        fh->data = priv;
        pthread_cond_broadcast(&fake.changed);
    }
    pthread_mutex_unlock(&fake.lock);
    return r;
}

int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in, struct ceph_statx *stx,
                    unsigned int want, unsigned int flags, const UserPerm *perms)
{
    (void)cmount, (void)in, (void)want, (void)flags, (void)perms;
    stx->stx_ino = 1;
    return 0;
}

struct Inode *ceph_ll_get_inode(struct ceph_mount_info *cmount, vinodeno_t vino)
{
    (void)cmount, (void)vino;
    return &the_inode;
}

/* The last thing that a thread of a pool does. GLib waits for it, which ThreadSanitizer does not
 * see: it sees this lock. */
int ceph_ll_put(struct ceph_mount_info *cmount, struct Inode *in)
{
    (void)cmount, (void)in;
    pthread_mutex_lock(&fake.lock);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

/* ---- an origin on it ---- */

static inline void told(void *data, uint64_t ino, int r)
{
    (void)data, (void)ino;
    ck_assert_int_lt(r, 0);
    pthread_mutex_lock(&fake.lock);
    fake.reported++;
    pthread_mutex_unlock(&fake.lock);
}

static inline CephfsOrigin *origin_up(void)
{
    CephfsOrigin *o = g_new0(CephfsOrigin, 1);
    fake.open = g_ptr_array_new();
    o->base.ops = &cephfs_origin_ops;
    o->leases = TRUE;
    o->pin = CEPHFS_PIN_GIVEN_BACK;
    pthread_mutex_init(&o->listener_mutex, NULL);
    o->listener.inode_failed = told;
    pthread_mutex_init(&o->waits.mutex, NULL);
    ck_assert(cephfs_files_start(o));
    return o;
}

/* All files are closed. */
static inline void origin_down(CephfsOrigin *o)
{
    cephfs_files_stop(o, FALSE);
    ck_assert_uint_eq(open_now(), 0);
    cephfs_files_clear(&o->files);
    g_ptr_array_unref(fake.open);
    g_free(o);
}

static inline OriginFile *open_file(CephfsOrigin *o, int flags)
{
    OriginFile *file;
    ck_assert_int_eq(o->base.ops->open(&o->base, (OriginNode *)&the_inode, flags, &file), 0);
    return file;
}

static inline void close_file(CephfsOrigin *o, OriginFile *file)
{
    ck_assert_int_eq(o->base.ops->close(&o->base, file), 0);
}

static inline void write_one(CephfsOrigin *o, OriginFile *file)
{
    ck_assert_int_eq(o->base.ops->write(&o->base, file, "w", 1, 0), 1);
}

static inline void read_one(CephfsOrigin *o, OriginFile *file)
{
    char c;
    ck_assert_int_eq(o->base.ops->read(&o->base, file, &c, 1, 0), 1);
}

static inline int sync_file(CephfsOrigin *o, OriginFile *file)
{
    return o->base.ops->fsync(&o->base, file, FALSE);
}

static inline void sync_well(CephfsOrigin *o, OriginFile *file)
{
    ck_assert_int_eq(sync_file(o, file), 0);
}

/* A recall of a lease; data: whether there was one. */
static inline void note_recall(OriginFile *file, void *data)
{
    (void)file;
    atomic_store((_Atomic gboolean *)data, TRUE);
}

/* The same on a thread of its own. */
typedef struct Aside {
    CephfsOrigin *o;
    OriginFile *file;
    void (*call)(CephfsOrigin *o, OriginFile *file);
    pthread_t thread;
    _Atomic gboolean done;
} Aside;

static inline void *run_aside(void *data)
{
    Aside *a = data;
    a->call(a->o, a->file);
    pthread_mutex_lock(&fake.lock);
    atomic_store(&a->done, TRUE);
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    return NULL;
}

static inline void aside_begin(Aside *a)
{
    ck_assert_int_eq(pthread_create(&a->thread, NULL, run_aside, a), 0);
}

static inline void aside_end(Aside *a)
{
    pthread_join(a->thread, NULL);
}

#endif
