/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to a record that is there, each in one step of the OSD that holds it. Holders are
 * keys of the object's omap, the seal is an attribute; both go with the object. No number of
 * holders makes taking or leaving a hold slower, and no two of them get into each other's way.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/internal.h"

#define RECORD_MS (20 * 1000)
#define SEAL "hearth.seal"
#define SEALED "1"
#define HOLDERS_PAGE 1000

typedef struct RecordJob {
    CephConn *conn;
    CephRecordOp op;
    char *pool, *nspace, *object, *text, *expected;
    GPtrArray *names;
    int rc, compared;
} RecordJob;

/* Only the start is compared, but no JSON text is the start of another. */
static void replace(rados_write_op_t op, RecordJob *job)
{
    rados_write_op_cmpext(op, job->expected, strlen(job->expected), 0, &job->compared);
    rados_write_op_write_full(op, job->text, strlen(job->text));
}

static void hold(rados_write_op_t op, const RecordJob *job)
{
    char *keys = job->text, *values = (char *)"";
    size_t length = strlen(job->text), none = 0;
    rados_write_op_cmpxattr(op, SEAL, LIBRADOS_CMPXATTR_OP_NE, SEALED, strlen(SEALED));
    rados_write_op_omap_set2(op, (const char *const *)&keys, (const char *const *)&values, &length,
                             &none, 1);
}

static void release(rados_write_op_t op, const RecordJob *job)
{
    char *keys = job->text;
    size_t length = strlen(job->text);
    rados_write_op_omap_rm_keys2(op, (const char *const *)&keys, &length, 1);
}

static int list_holders(rados_ioctx_t io, const RecordJob *job)
{
    g_autofree char *after = g_strdup("");
    for (unsigned char more = 1; more;) {
        int each = 0, rc;
        rados_omap_iter_t iter = NULL;
        rados_read_op_t op = rados_create_read_op();
        rados_read_op_omap_get_keys2(op, after, HOLDERS_PAGE, &iter, &more, &each);
        rc = rados_read_op_operate(op, io, job->object, 0);
        char *key = NULL, *value = NULL;
        size_t key_length = 0, value_length = 0;
        while (rc == 0 && each == 0 &&
               rados_omap_get_next2(iter, &key, &value, &key_length, &value_length) == 0 && key) {
            g_free(after);
            after = g_strndup(key, key_length);
            g_ptr_array_add(job->names, g_strdup(after));
        }
        if (iter)
            rados_omap_get_end(iter);
        rados_release_read_op(op);
        if (rc != 0 || each != 0)
            return rc ? rc : each;
    }
    return 0;
}

static int work(rados_ioctx_t io, RecordJob *job)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    switch (job->op) {
    case CEPH_RECORD_REPLACE:
        replace(op, job);
        break;
    case CEPH_RECORD_HOLD:
        hold(op, job);
        break;
    case CEPH_RECORD_RELEASE:
        release(op, job);
        break;
    case CEPH_RECORD_SEAL:
        rados_write_op_setxattr(op, SEAL, SEALED, strlen(SEALED));
        break;
    case CEPH_RECORD_UNSEAL:
        rados_write_op_setxattr(op, SEAL, "0", 1);
        break;
    }
    int rc = rados_write_op_operate(op, io, job->object, NULL, 0);
    rados_release_write_op(op);
    /* A comparison that fails tells where, below -MAX_ERRNO; one of an attribute is ECANCELED. */
    if (rc <= -4095)
        rc = -ECANCELED;
    return rc == 0 && job->op == CEPH_RECORD_SEAL ? list_holders(io, job) : rc;
}

static void record_run(void *data)
{
    RecordJob *job = data;
    rados_ioctx_t io;
    job->rc = rados_ioctx_create(job->conn->cluster, job->pool, &io);
    if (job->rc != 0) {
        if (job->rc == -ENOENT)
            job->rc = -ENXIO;
        return;
    }
    rados_ioctx_set_namespace(io, job->nspace);
    job->rc = work(io, job);
    rados_ioctx_destroy(io);
}

static void record_free(void *data)
{
    RecordJob *job = data;
    ceph_conn_unref(job->conn);
    g_free(job->pool);
    g_free(job->nspace);
    g_free(job->object);
    g_free(job->text);
    g_free(job->expected);
    if (job->names)
        g_ptr_array_unref(job->names);
    g_free(job);
}

gboolean ceph_conn_record(CephConn *conn, CephRecordOp op, const char *pool, const char *nspace,
                          const char *object, const char *text, const char *expected, int *rc,
                          GPtrArray **holders, gint64 deadline_us, GError **error)
{
    RecordJob *job = g_new0(RecordJob, 1);
    job->conn = ceph_conn_ref(conn);
    job->op = op;
    job->pool = g_strdup(pool);
    job->nspace = g_strdup(nspace);
    job->object = g_strdup(object);
    job->text = g_strdup(text);
    job->expected = g_strdup(expected);
    job->names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *what = g_strdup_printf("changing record %s in pool %s", object, pool);
    if (!ceph_conn_run(conn, "record", what, record_run, job, record_free, RECORD_MS, deadline_us,
                       error))
        return FALSE;
    *rc = job->rc;
    if (holders && job->rc == 0)
        *holders = g_steal_pointer(&job->names);
    record_free(job);
    ceph_conn_note(conn, *rc);
    return TRUE;
}
