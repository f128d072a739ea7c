/*
 * Connecting to CephFS. The key goes to libcephfs by option, in memory, never by a keyring file or
 * an argument. Permission checks are the kernel's (default_permissions), so that a warm open needs
 * no second opinion; libcephfs acts as root.
 */
#include "cache/origin/cephfs_internal.h"
#include "cache/origin/reconnect.h"
#include <errno.h>
#include <dirent.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_TIMEOUT_SEC 25
#define DEFAULT_MEMORY_BYTES (32u << 20)
/* Inodes kept beyond those the kernel holds: what makes an epoch after dropped caches cheap. */
#define INODE_CACHE "65536"
/* A snapshot's files are known to the manifest; what is listed ahead is to be kept. */
#define INODE_CACHE_SNAPSHOT "16384"
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
/* What libcephfs calls the directory of snapshots (client_snapdir). */

static gboolean set_option(struct ceph_mount_info *mount, const char *name, const char *value,
                           GError **error)
{
    int r = ceph_conf_set(mount, name, value);
    if (r == 0)
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "libcephfs refuses option %s: %s",
                name, g_strerror(-r));
    return FALSE;
}

static gboolean configure(struct ceph_mount_info *mount, const CephfsOriginConfig *config,
                          GError **error)
{
    g_autofree char *timeout =
        g_strdup_printf("%u", config->timeout_sec ? config->timeout_sec : DEFAULT_TIMEOUT_SEC);
    g_autofree char *memory = g_strdup_printf(
        "%" G_GUINT64_FORMAT, config->memory_bytes ? config->memory_bytes : DEFAULT_MEMORY_BYTES);
    const struct {
        const char *name, *value;
    } options[] = {
        {"mon_host", config->monitors},
        {"key", config->key},
        {"keyring", ""},
        {"log_file", ""},
        {"log_to_stderr", "false"},
        {"err_to_stderr", "false"},
        {"log_to_file", "false"},
        /* Gathering debug lines in memory costs more than a warm lookup. */
        {"debug_client", "0/0"},
        {"debug_ms", "0/0"},
        {"debug_objecter", "0/0"},
        {"debug_objectcacher", "0/0"},
        {"debug_monc", "0/0"},
        {"debug_auth", "0/0"},
        {"client_mount_timeout", timeout},
        {"client_permissions", "false"},
        {"fuse_default_permissions", "true"},
        {"client_oc_size", memory},
        /* What is read back of what was written here shows that it may be read. */
        {"client_check_pool_perm", "true"},
        {"client_cache_size", strstr(config->root_path, "/" CEPHFS_SNAPSHOT_DIR "/")
                                  ? INODE_CACHE_SNAPSHOT
                                  : INODE_CACHE},
        /* A client whose session was lost does not go on in another: see reconnect.h. */
        {"client_reconnect_stale", "false"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        if (!set_option(mount, options[i].name, options[i].value, error))
            return FALSE;
    return TRUE;
}

static struct ceph_mount_info *configured(const CephfsOriginConfig *config, GError **error)
{
    struct ceph_mount_info *mount;
    int r = ceph_create(&mount, config->user_id);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "libcephfs: %s", g_strerror(-r));
        return NULL;
    }
    if (configure(mount, config, error))
        return mount;
    ceph_release(mount);
    return NULL;
}

static void set_mount_error(const CephfsOriginConfig *config, int r, GError **error)
{
    switch (-r) {
    case ETIMEDOUT:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "no answer from the monitors at %s within %u s: check the cluster's "
                    "\"monitors\" in config.json and the network, and that the MDS is active",
                    config->monitors,
                    config->timeout_sec ? config->timeout_sec : DEFAULT_TIMEOUT_SEC);
        break;
    case EACCES:
    case EPERM:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                    "the cluster at %s refuses user client.%s for %s: check userID and userKey in "
                    "the secret and the user's mds and osd capabilities",
                    config->monitors, config->user_id, config->root_path);
        break;
    case ENOENT:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "file system %s has no path %s, or there is no such file system",
                    config->fs_name ? config->fs_name : "(default)", config->root_path);
        break;
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENOTCONN:
    case ECONNABORTED:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "no MDS of file system %s answers: `ceph fs status` tells of them",
                    config->fs_name ? config->fs_name : "(default)");
        break;
    case ENOTUNIQ:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "%s of file system %s: there are several directories; write rootPath out",
                    config->root_path, config->fs_name ? config->fs_name : "(default)");
        break;
    default:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot mount %s of %s at %s: %s",
                    config->root_path, config->fs_name ? config->fs_name : "the file system",
                    config->monitors, g_strerror(-r));
    }
}

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

/* The connection alone. */
static Origin *connect_once(const CephfsOriginConfig *config, GError **error)
{
    g_autofree CephfsOrigin *o = g_new0(CephfsOrigin, 1);
    o->base.ops = &cephfs_origin_ops;
    pthread_mutex_init(&o->listener_mutex, NULL);
    pthread_mutex_init(&o->rights.mutex, NULL);
    if (config->dead_client) {
        struct ceph_mount_info *reclaimer = configured(config, error);
        if (!reclaimer)
            return NULL;
        cephfs_reclaim(reclaimer, config->dead_client, RECLAIM_SEC);
    }
    o->mount = configured(config, error);
    if (!o->mount)
        return NULL;
    struct ceph_client_callback_args callbacks = {
        .handle = o,
        .ino_cb = ino_changed,
        .dentry_cb = dentry_changed,
        .ino_release_cb = release_wanted,
    };
    int r = ceph_init(o->mount);
    /* Ceph 18 aborts when they are registered on a mounted client. */
    if (r == 0)
        ceph_ll_register_callbacks(o->mount, &callbacks);
    if (r == 0 && config->client)
        ceph_set_uuid(o->mount, config->client);
    if (r == 0 && config->fs_name)
        r = ceph_select_filesystem(o->mount, config->fs_name);
    const char *inside;
    g_autofree char *path = mounted_path(config->root_path, &inside);
    if (r == 0)
        r = ceph_mount(o->mount, path);
    if (r < 0) {
        set_mount_error(config, r, error);
        goto fail;
    }
    o->perms = ceph_mount_perms(o->mount);
    r = inside ? walk_inside(o, inside) : 0;
    if (r < 0) {
        set_mount_error(config, r, error);
        goto fail_mounted;
    }
    r = canary_take(o);
    if (r < 0) {
        set_mount_error(config, r, error);
        goto fail_mounted;
    }
    o->leases = leases_on(o->mount);
    if (!read_space(o, error))
        goto fail_mounted;
    cephfs_waits_start(o);
    cephfs_prime_init(&o->prime);
    return &g_steal_pointer(&o)->base;
fail_mounted:
    if (o->root)
        ceph_ll_put(o->mount, o->root);
    if (o->canary)
        ceph_ll_close(o->mount, o->canary);
    ceph_unmount(o->mount);
fail:
    ceph_release(o->mount);
    return NULL;
}

static void disconnect(CephfsOrigin *o, gboolean lost)
{
    cephfs_waits_stop(o);
    cephfs_prime_clear(&o->prime);
    if (lost) {
        /* Nothing is written back. What is open in it goes with it. */
        ceph_abort_conn(o->mount);
    } else {
        ceph_ll_close(o->mount, o->canary);
        if (o->root)
            ceph_ll_put(o->mount, o->root);
        ceph_unmount(o->mount);
    }
    ceph_release(o->mount);
    o->mount = NULL;
}

static void abandon(Origin *origin)
{
    disconnect((CephfsOrigin *)origin, TRUE);
}

void cephfs_destroy(Origin *origin)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    if (o->mount)
        disconnect(o, FALSE);
    pthread_mutex_destroy(&o->listener_mutex);
    pthread_mutex_destroy(&o->rights.mutex);
    g_free(o);
}

/* ---- connections that follow one another ---- */

static CephfsOriginConfig *config_copy(const CephfsOriginConfig *config)
{
    CephfsOriginConfig *copy = g_new0(CephfsOriginConfig, 1);
    *copy = (CephfsOriginConfig){
        .monitors = g_strdup(config->monitors),
        .user_id = g_strdup(config->user_id),
        .key = g_strdup(config->key),
        .fs_name = g_strdup(config->fs_name),
        .root_path = g_strdup(config->root_path),
        .timeout_sec = config->timeout_sec,
        .client = g_strdup(config->client),
        .memory_bytes = config->memory_bytes,
    };
    return copy;
}

static void config_free(void *data)
{
    CephfsOriginConfig *config = data;
    explicit_bzero((char *)config->key, strlen(config->key));
    g_free((char *)config->monitors);
    g_free((char *)config->user_id);
    g_free((char *)config->key);
    g_free((char *)config->fs_name);
    g_free((char *)config->root_path);
    g_free((char *)config->client);
    g_free(config);
}

static gboolean answers(void *data)
{
    CephfsOriginConfig config = *(CephfsOriginConfig *)data;
    config.client = NULL;
    g_autoptr(Origin) other = connect_once(&config, NULL);
    return other != NULL;
}

static gboolean fence(void *data)
{
    const CephfsOriginConfig *config = data;
    struct ceph_mount_info *mount = config->client ? configured(config, NULL) : NULL;
    return mount && cephfs_reclaim(mount, config->client, RECLAIM_SEC);
}

/* What the MDS still has of the session before is ended first: it would hold others up. */
static Origin *connect_again(void *data, GError **error)
{
    CephfsOriginConfig config = *(CephfsOriginConfig *)data;
    config.dead_client = config.client;
    return connect_once(&config, error);
}

Origin *origin_cephfs_open(const CephfsOriginConfig *config, GError **error)
{
    static const ReconnectOps ops = {
        .connect = connect_again,
        .check = check,
        .answers = answers,
        .fence = fence,
        .abandon = abandon,
        .quiet_ms = QUIET_MS,
        .free_data = config_free,
    };
    Origin *first = connect_once(config, error);
    return first ? origin_reconnect_new(first, &ops, config_copy(config)) : NULL;
}
