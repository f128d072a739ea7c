/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to CephFS, from its mount to its end. Either may wait for as long as Ceph is silent:
 * they run on threads of their own (connect.c, aside.h), of which is waited for a bounded
 * time.
 */
#include "cache/origin/aside.h"
#include "cache/origin/cephfs/connect.h"
#include "cache/origin/cephfs/internal.h"
#include "cache/origin/reconnect/reconnect.h"
#include "cache/origin/cephfs/session_names.h"
#include <errno.h>
#include <dirent.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

/*
 * How long a recalled lease may take to come back. Then libcephfs ends the whole connection, and
 * what is not synced is reported lost: better than a file that hangs for everybody. Drops go around
 * pages that are locked, so it takes longer only when more requests hang than there are readers.
 */
#define LEASE_RETURN_SEC 60
#define LEASE_RETURN_MIN_SEC 10
/* libcephfs aborts when it is ended while OSDs have yet to answer, or refuse, what it had sent them
 * (Inode.cc, oset.objects.empty()): until then they have. */
#define QUIET_MS 20000
/* An MDS that answers ends a session at once. */
#define RECLAIM_SEC 5
/* How long is waited for what a connection has to write; it goes on then. */
#define END_MS 30000
/* The keeper of connections waits for this. */
#define END_LOST_MS 5000
/* How long sessions are waited for when hearthd stops. */
#define STOP_MS 5000

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
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot read the cluster's fsid: %s",
                    g_strerror(-r));
        return FALSE;
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
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "the cluster's fsid is no UUID: %s",
                    fsid);
        return FALSE;
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

void cephfs_listen(Origin *origin, const OriginListener *listener)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    pthread_mutex_lock(&o->listener_mutex);
    o->listener = listener ? *listener : (OriginListener){0};
    pthread_mutex_unlock(&o->listener_mutex);
}

/* What is mounted for `root_path`: a path in a snapshot is walked from the directory it is of,
 * since the MDS knows no name for it. *inside points into root_path, or is NULL. */
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
    return r < 0 ? r : n == 1 ? 0 : n ? -ENOTUNIQ : -ENOENT;
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

/*
 * The canary: a lock that is held on the directory for as long as the session lives, and is asked
 * for at each check. libcephfs carries locks over a failure of the MDS, and answers EIO once it has
 * lost one with its session. Shared, on one byte that no file can have: it is in nobody's way.
 */
#define CANARY_OWNER 1

static struct flock canary_lock(void)
{
    return (struct flock){
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 62, .l_len = 1};
}

static int canary_take(CephfsOrigin *o)
{
    struct Inode *root;
    struct flock lock = canary_lock();
    int r = ceph_ll_lookup_root(o->mount, &root);
    if (r < 0)
        return r;
    r = ceph_ll_open(o->mount, root, O_RDONLY | O_DIRECTORY, &o->canary, o->perms);
    ceph_ll_put(o->mount, root);
    return r < 0 ? r : ceph_ll_setlk(o->mount, o->canary, &lock, CANARY_OWNER, 0);
}

static int check(Origin *origin)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    struct flock lock = canary_lock();
    return ceph_ll_getlk(o->mount, o->canary, &lock, CANARY_OWNER);
}

static gboolean leases_on(struct ceph_mount_info *mount)
{
    for (unsigned sec = LEASE_RETURN_SEC; sec >= LEASE_RETURN_MIN_SEC; sec /= 2)
        if (ceph_set_deleg_timeout(mount, sec) == 0)
            return TRUE;
    return FALSE;
}

static void release(CephfsOrigin *o)
{
    if (atomic_fetch_sub(&o->holders, 1) != 1)
        return;
    pthread_mutex_destroy(&o->listener_mutex);
    pthread_mutex_destroy(&o->rights.mutex);
    pthread_mutex_destroy(&o->names.mutex);
    cephfs_files_clear(&o->files);
    g_free(o);
}

/* Mounts, and finds what it takes to go on. */
static int mount_all(CephfsOrigin *o, const CephfsOriginConfig *config, const SessionName *name,
                     CephfsAttempt *attempt)
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
    if ((r = cephfs_attempt_mount(attempt, o->mount, path)) < 0)
        return r;
    o->mounted = TRUE;
    if (config->ceph.crush_location)
        ceph_localize_reads(o->mount, 1);
    o->perms = ceph_mount_perms(o->mount);
    r = inside ? walk_inside(o, inside) : 0;
    return r < 0 ? r : canary_take(o);
}

static void unmount(CephfsOrigin *o)
{
    if (o->canary)
        ceph_ll_close(o->mount, o->canary);
    if (o->root)
        ceph_ll_put(o->mount, o->root);
    if (o->mounted)
        ceph_unmount(o->mount);
    ceph_release(o->mount);
    session_name_release(o->name);
}

static int end_session_named(const CephfsOriginConfig *config, const char *name)
{
    struct ceph_mount_info *mount = cephfs_configured(config, NULL);
    return mount ? cephfs_reclaim(mount, &config->ceph, name, RECLAIM_SEC) : -ENOMEM;
}

/*
 * Sessions that an MDS may still have would hold others up: that of the connection before, which
 * had the same name, or those of a run that died, by all the names that it may have given them.
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
static CephfsOrigin *begin(const CephfsOriginConfig *config, SessionName *name,
                           CephfsAttempt *attempt, int *r, GError **error)
{
    CephfsOrigin *o = g_new0(CephfsOrigin, 1);
    o->base.ops = &cephfs_origin_ops;
    atomic_init(&o->holders, 1);
    pthread_mutex_init(&o->listener_mutex, NULL);
    pthread_mutex_init(&o->rights.mutex, NULL);
    pthread_mutex_init(&o->names.mutex, NULL);
    o->names.kept = cephfs_names_kept(config);
    o->mount = cephfs_configured(config, error);
    *r = -EINVAL;
    if (!o->mount) {
        release(o);
        return NULL;
    }
    *r = mount_all(o, config, name, attempt);
    if (*r < 0)
        cephfs_set_mount_error(config, *r, error);
    if (*r < 0 || !read_space(o, error)) {
        unmount(o);
        release(o);
        return NULL;
    }
    o->name = name ? session_name_again(session_name(name)) : NULL;
    return o;
}

Origin *cephfs_connect(const CephfsOriginConfig *config, SessionName *name, CephfsAttempt *attempt,
                       GError **error)
{
    if (config->dead_client)
        end_dead_sessions(config);
    int r;
    CephfsOrigin *o = begin(config, name, attempt, &r, error);
    /* So an MDS refuses users, and also a name of which it has a session still. Nobody here has it:
     * libcephfs gives up ending one after a while. */
    if (!o && r == -EPERM && name && end_session_named(config, session_name(name)) == 0) {
        g_clear_error(error);
        o = begin(config, name, attempt, &r, error);
    }
    if (!o)
        return NULL;
    o->leases = leases_on(o->mount);
    cephfs_waits_start(o);
    cephfs_pin_init(o);
    cephfs_files_start(o);
    cephfs_prime_init(&o->prime);
    cephfs_lookers_start(o);
    return &o->base;
}

/* What was written goes to Ceph. */
static void end_written(void *data)
{
    CephfsOrigin *o = data;
    cephfs_files_stop(o, FALSE);
    cephfs_waits_stop(o);
    cephfs_prime_clear(&o->prime);
    cephfs_lookers_stop(o);
    if (o->canary)
        ceph_ll_close(o->mount, g_steal_pointer(&o->canary));
    if (o->root)
        ceph_ll_put(o->mount, g_steal_pointer(&o->root));
    const int r = ceph_sync_fs(o->mount);
    if (r < 0)
        g_warning("what was written last, and not synced, may not be in Ceph: %s", g_strerror(-r));
}

/* libcephfs lets go of the directories above a volume once a second only (client_tick_interval). */
static void end_session(void *data)
{
    unmount(data);
}

/* Nothing is written back. What is open in it goes with it. */
static void end_lost(void *data)
{
    CephfsOrigin *o = data;
    cephfs_files_stop(o, TRUE);
    cephfs_waits_stop(o);
    cephfs_prime_clear(&o->prime);
    cephfs_lookers_stop(o);
    /* It may stop this thread. */
    session_name_release(g_steal_pointer(&o->name));
    cephfs_abort_or_stop(o->mount);
    ceph_release(o->mount);
}

static void end_holder(void *data)
{
    release(data);
}

/* Once. Callbacks may come until it has ended, which may be later. */
static void disconnect(CephfsOrigin *o, gboolean lost)
{
    atomic_store(&o->gone, TRUE);
    atomic_fetch_add(&o->holders, 1);
    const unsigned limit_ms = lost ? END_LOST_MS : END_MS;
    const gboolean done = lost ? aside_call(end_lost, o, end_holder, limit_ms)
                               : aside_call_then(end_written, end_session, o, end_holder, limit_ms);
    if (done && lost)
        release(o);
    if (done)
        return;
    atomic_store(&o->left, TRUE);
    g_message("a connection with Ceph has not ended within %u s: it is left behind",
              limit_ms / 1000);
}

static void abandon(Origin *origin)
{
    cephfs_listen(origin, NULL);
    disconnect((CephfsOrigin *)origin, TRUE);
}

void cephfs_destroy(Origin *origin)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    cephfs_listen(origin, NULL);
    if (!atomic_load(&o->gone))
        disconnect(o, FALSE);
    release(o);
}

/* ---- connections that follow one another ---- */

/* How the next connection is made: with what Ceph accepted last. */
typedef struct Way {
    pthread_mutex_t mutex; /* a leaf */
    CephfsOriginConfig *config;
    SessionName *name; /* of all of them; NULL: none */
} Way;

static void reach(void *data, const char *monitors, const char *key, unsigned timeout_sec)
{
    Way *way = data;
    pthread_mutex_lock(&way->mutex);
    CephfsOriginConfig *old = way->config, changed = *old;
    changed.monitors = monitors;
    changed.key = key;
    changed.timeout_sec = timeout_sec;
    way->config = cephfs_config_copy(&changed);
    pthread_mutex_unlock(&way->mutex);
    cephfs_config_free(old);
}

static CephfsOriginConfig *current_way(void *data)
{
    Way *way = data;
    pthread_mutex_lock(&way->mutex);
    CephfsOriginConfig *config = cephfs_config_copy(way->config);
    pthread_mutex_unlock(&way->mutex);
    return config;
}

static void way_free(void *data)
{
    Way *way = data;
    cephfs_config_free(way->config);
    session_name_release(way->name);
    pthread_mutex_destroy(&way->mutex);
    g_free(way);
}

static gboolean answers(void *data)
{
    CephfsOriginConfig *own = current_way(data), config = *own;
    config.client = config.dead_client = NULL;
    g_autoptr(Origin) other = cephfs_attempt(&config, 0, NULL);
    cephfs_config_free(own);
    return other != NULL;
}

static gboolean fence(void *data)
{
    CephfsOriginConfig *config = current_way(data);
    struct ceph_mount_info *mount = config->client ? cephfs_configured(config, NULL) : NULL;
    const int r =
        mount ? cephfs_reclaim(mount, &config->ceph, config->client, RECLAIM_SEC) : -EPERM;
    cephfs_config_free(config);
    return r == 0 || r == -ENOENT;
}

static Origin *connect_again(void *data, GError **error)
{
    CephfsOriginConfig *own = current_way(data), config = *own;
    config.dead_client = config.client;
    Origin *origin = cephfs_attempt(&config, RECLAIM_SEC, error);
    cephfs_config_free(own);
    return origin;
}

gboolean origin_cephfs_await_ends(void)
{
    return session_names_await_none(STOP_MS);
}

Origin *origin_cephfs_open(const CephfsOriginConfig *config, GError **error)
{
    static const ReconnectOps ops = {
        .reach = reach,
        .connect = connect_again,
        .check = check,
        .answers = answers,
        .fence = fence,
        .abandon = abandon,
        .quiet_ms = QUIET_MS,
        .free_data = way_free,
    };
    Origin *first =
        cephfs_attempt(config, config->dead_client ? SESSION_NAMES * RECLAIM_SEC : 0, error);
    if (!first)
        return NULL;
    Way *way = g_new0(Way, 1);
    pthread_mutex_init(&way->mutex, NULL);
    CephfsOriginConfig next = *config;
    SessionName *name = ((CephfsOrigin *)first)->name;
    if (name) {
        next.client = session_name(name);
        way->name = session_name_again(next.client);
    }
    way->config = cephfs_config_copy(&next);
    return origin_reconnect_new(first, &ops, way);
}
