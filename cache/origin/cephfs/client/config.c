/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of libcephfs before it connects, and the meaning of its errors. The kernel checks
 * permissions (default_permissions), so that a warm open asks nothing of Ceph; libcephfs acts as
 * root.
 */
#include <errno.h>
#include <gio/gio.h>
#include <rados/librados.h>
#include <string.h>
#include "cache/origin/ceph_options.h"
#include "cache/origin/client_memory.h"
#include "cache/origin/cephfs/client/client.h"
#include "common/io_error.h"

#define DEFAULT_TIMEOUT_SEC 25
/* libcephfs begins to write when so much is not in Ceph yet: its default, or less. */
#define WRITE_FROM_BYTES (8u << 20)
/* For a snapshot, whose files the manifest knows: enough to keep what was listed ahead. */
#define INODE_CACHE_SNAPSHOT 16384

unsigned cephfs_timeout_sec(const CephfsOriginConfig *config)
{
    return config->timeout_sec ? config->timeout_sec : DEFAULT_TIMEOUT_SEC;
}

/* Names kept beyond those the kernel holds make an epoch after dropped caches cheap. */
unsigned cephfs_names_most(const CephfsOriginConfig *config)
{
    return strstr(config->root_path, "/" CEPHFS_SNAPSHOT_DIR "/") ? INODE_CACHE_SNAPSHOT
                                                                  : CLIENT_NAMES_MOST;
}

static int set_cephfs(void *mount, const char *name, const char *value)
{
    return ceph_conf_set(mount, name, value);
}

static int set_rados(void *cluster, const char *name, const char *value)
{
    return rados_conf_set(cluster, name, value);
}

static gboolean set_option(struct ceph_mount_info *mount, const char *name, const char *value,
                           GError **error)
{
    int r = ceph_conf_set(mount, name, value);
    if (r == 0)
        return TRUE;
    return io_fail(error, G_IO_ERROR_INVALID_ARGUMENT, "libcephfs refuses option %s: %s", name,
                   g_strerror(-r));
}

static gboolean configure(struct ceph_mount_info *mount, const CephfsOriginConfig *config,
                          GError **error)
{
    const uint64_t bytes = MAX(config->memory_bytes, CLIENT_BYTES_LEAST) / 2;
    g_autofree char *half = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);
    g_autofree char *write_from =
        g_strdup_printf("%" G_GUINT64_FORMAT, MIN(bytes / 2, WRITE_FROM_BYTES));
    g_autofree char *names =
        g_strdup_printf("%u", MIN(cephfs_names_most(config), client_memory_names()));
    const CephOption options[] = {
        CEPH_OPTIONS(config->monitors, config->key),
        {"debug_client", "0/0"},
        {"debug_objectcacher", "0/0"},
        /* It aborts the process when a mount is given up half way: see connect.c. */
        {"client_mount_timeout", "100000000"},
        {"client_permissions", "false"},
        {"fuse_default_permissions", "true"},
        {"client_oc_size", half}, /* without what is not written yet */
        {"client_oc_max_dirty", half},
        {"client_oc_target_dirty", write_from},
        /* A read of bytes that this client wrote must still prove that they may be read. */
        {"client_check_pool_perm", "true"},
        {"client_cache_size", names},
        /* A client whose session was lost does not continue in a new session: see
           cache/origin/reconnect/reconnect.h. */
        {"client_reconnect_stale", "false"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        if (!set_option(mount, options[i].name, options[i].value, error))
            return FALSE;
    return ceph_client_configure(&config->ceph, set_cephfs, mount, error);
}

struct ceph_mount_info *cephfs_configured(const CephfsOriginConfig *config, GError **error)
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

/* Connected, and to be shut down whatever the result; NULL: no memory. */
static int connect_monitors(const CephfsOriginConfig *config, rados_t *monitors)
{
    g_autofree char *timeout = g_strdup_printf("%u", cephfs_timeout_sec(config));
    const CephOption options[] = {
        CEPH_OPTIONS(config->monitors, config->key),
        {"client_mount_timeout", timeout},
        {"rados_mon_op_timeout", timeout},
    };
    *monitors = NULL;
    int r = rados_create(monitors, config->user_id);
    for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(options); i++)
        r = rados_conf_set(*monitors, options[i].name, options[i].value);
    /* An option that is refused is reported when the real connection is made. */
    if (r == 0 && ceph_client_configure(&config->ceph, set_rados, *monitors, NULL))
        r = rados_connect(*monitors);
    return r;
}

int cephfs_reach_monitors(const CephfsOriginConfig *config)
{
    rados_t monitors;
    const int r = connect_monitors(config, &monitors);
    if (monitors)
        rados_shutdown(monitors);
    return r;
}

int cephfs_command_monitors(const CephfsOriginConfig *config, const char *command)
{
    rados_t monitors;
    int r = connect_monitors(config, &monitors);
    if (r == 0)
        r = rados_mon_command(monitors, &command, 1, NULL, 0, NULL, NULL, NULL, NULL);
    if (monitors)
        rados_shutdown(monitors);
    return r;
}

void cephfs_set_mount_error(const CephfsOriginConfig *config, int r, GError **error)
{
    switch (-r) {
    case ETIMEDOUT:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "no answer from the monitors at %s within %u s: check the cluster's "
                    "\"monitors\" in config.json and the network, and that the MDS is active",
                    config->monitors, cephfs_timeout_sec(config));
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
                    "no MDS of file system %s answers: `ceph fs status` shows their state",
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

CephfsOriginConfig *cephfs_config_copy(const CephfsOriginConfig *config)
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
        .dead_client = g_strdup(config->dead_client),
        .memory_bytes = config->memory_bytes,
    };
    ceph_client_copy(&copy->ceph, &config->ceph);
    return copy;
}

void cephfs_config_free(void *data)
{
    CephfsOriginConfig *config = data;
    explicit_bzero((char *)config->key, strlen(config->key));
    g_free((char *)config->monitors);
    g_free((char *)config->user_id);
    g_free((char *)config->key);
    g_free((char *)config->fs_name);
    g_free((char *)config->root_path);
    g_free((char *)config->client);
    g_free((char *)config->dead_client);
    ceph_client_clear(&config->ceph);
    g_free(config);
}
