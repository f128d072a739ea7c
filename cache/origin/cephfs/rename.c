/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves. Once a move that replaces a name is on the MDS's disk, libcephfs forgets all names of the
 * file that had it, as if none were left: its other hard links are then missing, on this node
 * alone, for as long as their directories are not changed elsewhere. It can only forget what it
 * keeps. So when one of several links is replaced, it is made to drop all names before, and
 * afterwards those that were looked up meanwhile and forgotten. That is slow, and rare.
 *
 * Left: a directory with no names but links of that file, listed by others in the midst of it.
 */
#include <errno.h>
#include <stdio.h>
#include "cache/origin/client_memory.h"
#include "cache/origin/cephfs/internal.h"

static void set_names_kept(CephfsOrigin *o, unsigned n)
{
    char value[16];
    snprintf(value, sizeof(value), "%u", n);
    ceph_conf_set(o->mount, "client_cache_size", value);
}

static void keep_none(CephfsOrigin *o)
{
    CephfsNames *names = &o->names;
    pthread_mutex_lock(&names->mutex);
    if (names->moves++ == 0)
        set_names_kept(o, 0);
    pthread_mutex_unlock(&names->mutex);
}

static void keep_again(CephfsOrigin *o)
{
    CephfsNames *names = &o->names;
    pthread_mutex_lock(&names->mutex);
    if (--names->moves == 0)
        set_names_kept(o, names->kept);
    pthread_mutex_unlock(&names->mutex);
}

void cephfs_names_share(CephfsOrigin *o)
{
    CephfsNames *names = &o->names;
    const unsigned n = MIN(names->most, client_memory_names());
    pthread_mutex_lock(&names->mutex);
    if (names->kept != n && names->moves == 0)
        set_names_kept(o, n);
    names->kept = n;
    pthread_mutex_unlock(&names->mutex);
}

/* libcephfs looks at what it keeps behind a change, also one that the MDS refuses: a directory
 * cannot be linked. */
static void drop_names(CephfsOrigin *o, struct Inode *dir, const char *name)
{
    ceph_ll_link(o->mount, dir, dir, name, o->perms);
}

/* The file of several links that has the name; NULL: none. */
static struct Inode *one_of_several(CephfsOrigin *o, struct Inode *dir, const char *name)
{
    struct Inode *in;
    struct ceph_statx stx;
    if (ceph_ll_lookup(o->mount, dir, name, &in, &stx, CEPH_STATX_MODE | CEPH_STATX_NLINK, 0,
                       o->perms) < 0)
        return NULL;
    if (!S_ISDIR(stx.stx_mode) && stx.stx_nlink > 1)
        return in;
    ceph_ll_put(o->mount, in);
    return NULL;
}

/* The MDS protocol has no flags on rename. */
int cephfs_rename(Origin *origin, OriginNode *from, const char *name, OriginNode *to,
                  const char *new_name, unsigned flags)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    struct Inode *dir = (struct Inode *)from, *new_dir = (struct Inode *)to;
    if (flags)
        return -EINVAL;
    struct Inode *replaced = one_of_several(o, new_dir, new_name);
    if (!replaced)
        return ceph_ll_rename(o->mount, dir, name, new_dir, new_name, o->perms);
    /* Names of changes that are not on the MDS's disk cannot be dropped. */
    ceph_ll_sync_inode(o->mount, replaced, 0);
    keep_none(o);
    drop_names(o, new_dir, new_name);
    int r = ceph_ll_rename(o->mount, dir, name, new_dir, new_name, o->perms);
    ceph_ll_sync_inode(o->mount, new_dir, 0);
    drop_names(o, new_dir, new_name);
    keep_again(o);
    ceph_ll_put(o->mount, replaced);
    return r;
}
