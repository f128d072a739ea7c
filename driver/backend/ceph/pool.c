/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/ceph/pool.h"
#include <errno.h>
#include "driver/backend/ceph/internal.h"

static void job_run(void *data)
{
    PoolJob *job = data;
    rados_ioctx_t io;
    job->rc = rados_ioctx_create(job->conn->cluster, job->pool, &io);
    if (job->rc != 0) {
        /* A missing pool must not look like a missing object. */
        if (job->rc == -ENOENT)
            job->rc = -ENXIO;
        return;
    }
    rados_ioctx_set_namespace(io, job->nspace);
    job->rc = job->run(job, io);
    rados_ioctx_destroy(io);
}

static void job_free(void *data)
{
    pool_job_free(data);
}

void pool_job_free(PoolJob *job)
{
    job->clear(job);
    ceph_conn_unref(job->conn);
    g_free(job->pool);
    g_free(job->nspace);
    g_free(job);
}

gboolean pool_job_run(PoolJob *job, const CephPool *at, const CephOperation *operation,
                      gint64 deadline_us, GError **error)
{
    const BoundedJob work = {job_run, job, job_free};
    job->conn = ceph_conn_ref(at->conn);
    job->pool = g_strdup(at->pool);
    job->nspace = g_strdup(at->nspace);
    if (!ceph_conn_run(at->conn, operation, &work, deadline_us, error))
        return FALSE;
    ceph_conn_note(at->conn, job->rc);
    return TRUE;
}
