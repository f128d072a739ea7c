/*
 * Objects of our own beside a file system's data: in the pool its files are in, in a RADOS
 * namespace that no file is in. The connection is librados's and lives only while it is used, with
 * what libcephfs was configured with.
 */
#include <errno.h>
#include <rados/librados.h>
#include <string.h>
#include "cache/origin/cephfs_internal.h"

#define NAMESPACE "hearth"
#define OP_TIMEOUT_SEC "30"

struct OriginBlobs {
    rados_t cluster;
    rados_ioctx_t io;
};

static int copy_option(CephfsOrigin *o, rados_t cluster, const char *name)
{
    char value[4096];
    int r = ceph_conf_get(o->mount, name, value, sizeof(value));
    if (r == 0)
        r = rados_conf_set(cluster, name, value);
    explicit_bzero(value, sizeof(value));
    return r;
}

static int configure(CephfsOrigin *o, rados_t cluster)
{
    static const char *const copied[] = {"mon_host",      "key",        "client_mount_timeout",
                                         "debug_ms",      "debug_monc", "debug_objecter",
                                         "debug_auth",    "log_file",   "log_to_stderr",
                                         "err_to_stderr", "log_to_file"};
    int r = rados_conf_set(cluster, "keyring", "");
    if (r == 0)
        r = rados_conf_set(cluster, "rados_osd_op_timeout", OP_TIMEOUT_SEC);
    for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(copied); i++)
        r = copy_option(o, cluster, copied[i]);
    return r;
}

/* The pool of the files in the root; a snapshot's root knows it as well. */
static int64_t pool_of(CephfsOrigin *o)
{
    OriginNode *root;
    OriginAttr attr;
    struct ceph_file_layout layout = {0};
    int r = o->base.ops->root(&o->base, &root, &attr);
    if (r < 0)
        return r;
    r = ceph_ll_file_layout(o->mount, (struct Inode *)root, &layout);
    o->base.ops->put(&o->base, root);
    if (r < 0)
        return r;
    return layout.fl_pg_pool ? (int64_t)layout.fl_pg_pool : -ENOENT;
}

int cephfs_blobs_open(Origin *origin, OriginBlobs **blobs)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    rados_t cluster;
    rados_ioctx_t io;
    int64_t pool = pool_of(o);
    if (pool < 0)
        return (int)pool;
    int r = rados_create(&cluster, o->user_id);
    if (r < 0)
        return r;
    r = configure(o, cluster);
    if (r == 0)
        r = rados_connect(cluster);
    if (r == 0)
        r = rados_ioctx_create2(cluster, pool, &io);
    if (r < 0) {
        rados_shutdown(cluster);
        return r;
    }
    rados_ioctx_set_namespace(io, NAMESPACE);
    *blobs = g_new0(OriginBlobs, 1);
    **blobs = (OriginBlobs){cluster, io};
    return 0;
}

void cephfs_blobs_close(OriginBlobs *blobs)
{
    rados_ioctx_destroy(blobs->io);
    rados_shutdown(blobs->cluster);
    g_free(blobs);
}

ssize_t cephfs_blob_read(OriginBlobs *blobs, const char *name, void *buf, size_t len, uint64_t off)
{
    return rados_read(blobs->io, name, buf, len, off);
}

int cephfs_blob_write(OriginBlobs *blobs, const char *name, const void *buf, size_t len,
                      gboolean exclusive)
{
    rados_write_op_t op = rados_create_write_op();
    if (exclusive)
        rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_write_full(op, buf, len);
    int r = rados_write_op_operate(op, blobs->io, name, NULL, 0);
    rados_release_write_op(op);
    return r;
}

int cephfs_blob_append(OriginBlobs *blobs, const char *name, const void *buf, size_t len)
{
    return rados_append(blobs->io, name, buf, len);
}

int cephfs_blob_remove(OriginBlobs *blobs, const char *name)
{
    return rados_remove(blobs->io, name);
}
