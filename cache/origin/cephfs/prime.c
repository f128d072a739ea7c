/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking up the files of a snapshot one by one costs a request to the MDS each, and a cold epoch
 * looks up all of them. So a directory in which names are looked up is listed as a whole: what its
 * listing brings along is what lookups need. libcephfs keeps a bounded number of inodes
 * (client_cache_size); so only so much is listed as was used of what was listed before.
 */
#include "cache/origin/cephfs/internal.h"
#include <errno.h>

/* With fewer lookups a listing may not be worth it. */
#define LOOKUPS_BEFORE 2
/* Listed and not yet looked up. */
#define UNUSED_MAX 8192
#define LISTED_MAX 4096 /* of one directory */
#define DIRECTORIES_MAX 4096
#define LISTED G_MAXUINT

/* TRUE: the caller lists it. */
static gboolean is_due(CephfsPrime *p, const struct Inode *dir)
{
    pthread_mutex_lock(&p->mutex);
    if (g_hash_table_size(p->lookups) >= DIRECTORIES_MAX)
        g_hash_table_remove_all(p->lookups);
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(p->lookups, dir));
    gboolean due = n != LISTED && ++n > LOOKUPS_BEFORE && p->unused < UNUSED_MAX;
    if (n == LISTED)
        p->unused -= MIN(p->unused, 1);
    else
        g_hash_table_insert(p->lookups, (gpointer)dir, GUINT_TO_POINTER(due ? LISTED : n));
    pthread_mutex_unlock(&p->mutex);
    return due;
}

/* Number of entries, as far as it came: what fails here fails again where it matters. */
static unsigned list(CephfsOrigin *o, struct Inode *dir)
{
    struct ceph_dir_result *result;
    struct dirent entry;
    struct ceph_statx stx;
    unsigned n = 0;
    if (ceph_ll_opendir(o->mount, dir, &result, o->perms) < 0)
        return 0;
    while (n < LISTED_MAX &&
           ceph_readdirplus_r(o->mount, result, &entry, &stx, 0, AT_STATX_DONT_SYNC, NULL) > 0)
        n++;
    ceph_ll_releasedir(o->mount, result);
    return n;
}

void cephfs_prime(CephfsOrigin *o, struct Inode *dir)
{
    CephfsPrime *p = &o->prime;
    if (!o->root || !is_due(p, dir))
        return;
    unsigned n = list(o, dir);
    pthread_mutex_lock(&p->mutex);
    p->unused += n;
    pthread_mutex_unlock(&p->mutex);
}

void cephfs_prime_init(CephfsPrime *p)
{
    pthread_mutex_init(&p->mutex, NULL);
    p->lookups = g_hash_table_new(NULL, NULL);
}

void cephfs_prime_clear(CephfsPrime *p)
{
    g_hash_table_unref(p->lookups);
    pthread_mutex_destroy(&p->mutex);
}
