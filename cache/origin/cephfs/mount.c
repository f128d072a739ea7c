/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection to CephFS is made: dead sessions of the same name end, the file system is
 * mounted, what the connection needs is read and its threads start. A mount may wait for as long
 * as Ceph is silent: it runs on a thread of connect.c.
 */
#include "cache/origin/client_memory.h"
#include "cache/origin/cephfs/connect.h"
#include "cache/origin/cephfs/internal.h"
#include "common/io_error.h"
#include <errno.h>
#include <dirent.h>
#include <gio/gio.h>
#include <string.h>

/*
 * How long a recalled lease may take to come back. After that libcephfs ends the whole connection,
 * and writes that are not synced are reported lost: better than a file that hangs for all clients.
 * Drops skip locked pages, so a return takes longer only when more requests hang than there are
 * readers.
 */
#define LEASE_RETURN_SEC 60
#define LEASE_RETURN_MIN_SEC 10

/* fsid and file system id: what makes inode numbers unique in the world. */
static gboolean read_space(CephfsOrigin *o, GError **error)
{
    struct Inode *root = NULL;
    char fsid[64] = "";
    int r = ceph_ll_lookup_root(o->mount, &root);
    if (r == 0) {
        r = ceph_ll_getxattr(o->mount, root, "ceph.cluster_fsid", fsid, sizeof(fsid) - 1, o->perms);
        ceph_ll_put(o->mount, root);
    }
    if (r < 0) {
        return io_fail(error, G_IO_ERROR_FAILED, "cannot read the cluster's fsid: %s",
                       g_strerror(-r));
    }
    size_t n = 0;
    for (const char *c = fsid; *c && n < 32; c++) {
        int digit = g_ascii_xdigit_value(*c);
        if (digit < 0)
            continue;
        uint8_t *byte = &o->base.space[n / 2];
        *byte = (uint8_t)(*byte << 4 | digit);
        n++;
    }
    if (n != 32) {
        return io_fail(error, G_IO_ERROR_FAILED, "the cluster's fsid is no UUID: %s", fsid);
    }
    int64_t id = GINT64_TO_LE(ceph_get_fs_cid(o->mount));
    memcpy(o->base.space + 16, &id, sizeof(id));
    return TRUE;
}

static void ino_changed(void *data, vinodeno_t vino, int64_t off, int64_t len)
{
    CephfsOrigin *o = data;
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.inode_changed)
        o->listener.inode_changed(o->listener.data, vino.ino.val, cephfs_snapshot(vino.snapid.val),
                                  off, len);
    pthread_mutex_unlock(&o->listener_mutex);
}

static void dentry_changed(void *data, vinodeno_t dir, vinodeno_t ino, const char *name, size_t len)
{
    (void)ino;
    CephfsOrigin *o = data;
    char copy[256];
    if (len >= sizeof(copy))
        return;
    memcpy(copy, name, len);
    copy[len] = '\0';
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.entry_changed)
        o->listener.entry_changed(o->listener.data, dir.ino.val, cephfs_snapshot(dir.snapid.val),
                                  copy);
    pthread_mutex_unlock(&o->listener_mutex);
}

static void release_wanted(void *data, vinodeno_t vino)
{
    CephfsOrigin *o = data;
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.inode_unwanted)
        o->listener.inode_unwanted(o->listener.data, vino.ino.val,
                                   cephfs_snapshot(vino.snapid.val));
    pthread_mutex_unlock(&o->listener_mutex);
}

/* The path to mount for `root_path`. A path in a snapshot is walked from the directory of the
 * snapshot, because the MDS knows no name for it. *inside points into root_path, or is NULL. */
static char *mounted_path(const char *root_path, const char **inside)
{
    const char *snapshot = strstr(root_path, "/" CEPHFS_SNAPSHOT_DIR "/");
    *inside = snapshot ? snapshot + 1 : NULL;
    if (!snapshot)
        return g_strdup(root_path);
    return snapshot == root_path ? g_strdup("/")
                                 : g_strndup(root_path, (gsize)(snapshot - root_path));
}

/* The name of the one directory in another: -ENOENT, -ENOTUNIQ. */
static int only_directory(CephfsOrigin *o, struct Inode *in, char name[NAME_MAX + 1])
{
    struct ceph_dir_result *dir;
    struct dirent entry;
    int n = 0, r = ceph_ll_opendir(o->mount, in, &dir, o->perms);
    if (r < 0)
        return r;
    while ((r = ceph_readdir_r(o->mount, dir, &entry)) > 0) {
        if (entry.d_type != DT_DIR || strcmp(entry.d_name, ".") == 0 ||
            strcmp(entry.d_name, "..") == 0)
            continue;
        g_strlcpy(name, entry.d_name, NAME_MAX + 1);
        n++;
    }
    ceph_ll_releasedir(o->mount, dir);
    if (r < 0)
        return r;
    if (n == 0)
        return -ENOENT;
    return n == 1 ? 0 : -ENOTUNIQ;
}

static int walk_inside(CephfsOrigin *o, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    struct ceph_statx stx;
    struct Inode *at = NULL;
    int r = ceph_ll_lookup_root(o->mount, &at);
    for (char **name = names; r == 0 && *name; name++) {
        struct Inode *next = NULL;
        if (!**name)
            continue;
        r = ceph_ll_lookup(o->mount, at, *name, &next, &stx, CEPH_STATX_INO, 0, o->perms);
        char only[NAME_MAX + 1];
        if (r == -ENOENT && strcmp(*name, "*") == 0 && (r = only_directory(o, at, only)) == 0)
            r = ceph_ll_lookup(o->mount, at, only, &next, &stx, CEPH_STATX_INO, 0, o->perms);
        ceph_ll_put(o->mount, at);
        at = next;
    }
    if (r == 0)
        o->root = at;
    return r;
}

static gboolean leases_on(struct ceph_mount_info *mount)
{
    for (unsigned sec = LEASE_RETURN_SEC; sec >= LEASE_RETURN_MIN_SEC; sec /= 2)
        if (ceph_set_deleg_timeout(mount, sec) == 0)
            return TRUE;
    return FALSE;
}

/* Mounts, and finds the root. */
static int mount_all(CephfsOrigin *o, const CephfsOriginConfig *config, const SessionName *name,
                     _Atomic gboolean *aborted)
{
    const struct ceph_client_callback_args callbacks = {
        .handle = o,
        .ino_cb = ino_changed,
        .dentry_cb = dentry_changed,
        .ino_release_cb = release_wanted,
    };
    int r = ceph_init(o->mount);
    if (r < 0)
        return r;
    /* Ceph 18 aborts when they are registered on a mounted client. */
    ceph_ll_register_callbacks(o->mount, (struct ceph_client_callback_args *)&callbacks);
    if (name)
        ceph_set_uuid(o->mount, session_name(name));
    if (config->fs_name && (r = ceph_select_filesystem(o->mount, config->fs_name)) < 0)
        return r;
    const char *inside;
    g_autofree char *path = mounted_path(config->root_path, &inside);
    if ((r = cephfs_mount_or_stop(o->mount, path, aborted)) < 0)
        return r;
    o->mounted = TRUE;
    if (config->ceph.crush_location)
        ceph_localize_reads(o->mount, 1);
    o->perms = ceph_mount_perms(o->mount);
    r = inside ? walk_inside(o, inside) : 0;
    return r < 0 ? r : cephfs_canary_take(o);
}

static int end_session_named(const CephfsOriginConfig *config, const char *name)
{
    struct ceph_mount_info *mount = cephfs_configured(config, NULL);
    return mount ? cephfs_reclaim(mount, &config->ceph, name, CEPHFS_RECLAIM_SEC) : -ENOMEM;
}

/*
 * Sessions that an MDS may still have would block other clients: that of the connection before,
 * which had the same name, or those of a run that died, under all names that it may have used.
 */
static void end_dead_sessions(const CephfsOriginConfig *config)
{
    const unsigned n = cephfs_follows(config) ? 1 : SESSION_NAMES;
    int r = 0;
    for (unsigned i = 0; r != -ETIMEDOUT && i < n; i++) {
        g_autofree char *name = session_name_of(config->dead_client, i);
        r = end_session_named(config, name);
    }
}

/* NULL with an error and its -errno. */
static CephfsOrigin *mount_new(const CephfsOriginConfig *config, SessionName *name,
                               _Atomic gboolean *aborted, int *r, GError **error)
{
    CephfsOrigin *o = g_new0(CephfsOrigin, 1);
    o->base.ops = &cephfs_origin_ops;
    atomic_init(&o->holders, 1);
    pthread_mutex_init(&o->listener_mutex, NULL);
    pthread_mutex_init(&o->rights.mutex, NULL);
    pthread_mutex_init(&o->names.mutex, NULL);
    o->memory_bytes = client_memory_take();
    CephfsOriginConfig own = *config;
    own.memory_bytes = o->memory_bytes;
    o->names.most = o->names.kept = cephfs_names_most(config);
    o->mount = cephfs_configured(&own, error);
    *r = -EINVAL;
    if (!o->mount) {
        cephfs_release(o);
        return NULL;
    }
    *r = mount_all(o, config, name, aborted);
    if (*r < 0)
        cephfs_set_mount_error(config, *r, error);
    if (*r < 0 || !read_space(o, error)) {
        cephfs_unmount(o);
        cephfs_release(o);
        return NULL;
    }
    o->name = name ? session_name_again(session_name(name)) : NULL;
    return o;
}

/*
 * After EPERM. An MDS answers it to a user without rights, and also for a name that still has a
 * session: libcephfs gives up ending a session after a while, so the MDS may have one of this name,
 * although no connection here has it. Whether it was that is known when the session has ended. An
 * MDS that does not answer has refused nobody. NULL with an error.
 */
static CephfsOrigin *mount_again(const CephfsOriginConfig *config, SessionName *name,
                                 _Atomic gboolean *aborted, GError **error)
{
    int r = end_session_named(config, session_name(name));
    if (r != 0 && r != -ETIMEDOUT)
        return NULL;
    g_clear_error(error);
    if (r == 0)
        return mount_new(config, name, aborted, &r, error);
    cephfs_set_mount_error(config, r, error);
    return NULL;
}

static gboolean start_threads(CephfsOrigin *o, GError **error)
{
    const gboolean waits = cephfs_waits_start(o);
    if (waits && cephfs_files_start(o))
        return TRUE;
    if (waits)
        cephfs_waits_stop(o);
    return io_fail(error, G_IO_ERROR_NO_SPACE,
                   "cannot start a thread: too many are running; see pids.max of hearthd's "
                   "container");
}

Origin *cephfs_connect(const CephfsOriginConfig *config, SessionName *name,
                       _Atomic gboolean *aborted, GError **error)
{
    if (config->dead_client)
        end_dead_sessions(config);
    int r;
    CephfsOrigin *o = mount_new(config, name, aborted, &r, error);
    if (!o && r == -EPERM && name)
        o = mount_again(config, name, aborted, error);
    if (!o)
        return NULL;
    o->leases = leases_on(o->mount);
    if (!start_threads(o, error)) {
        cephfs_unmount(o);
        cephfs_release(o);
        return NULL;
    }
    cephfs_pin_init(o);
    cephfs_prime_init(&o->prime);
    cephfs_lookers_start(o);
    return &o->base;
}
