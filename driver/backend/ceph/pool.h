/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of librados in a pool and namespace. A request is a struct that begins with a PoolJob
 * and owns all it uses, because its thread may be left behind (ceph_conn_run()).
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_POOL_H
#define HEARTH_DRIVER_BACKEND_CEPH_POOL_H

#include <rados/librados.h>
#include "driver/backend/ceph/conn.h"

/* Borrowed by all who take one. */
typedef struct CephPool {
    CephConn *conn;
    const char *pool, *nspace; /* "": the pool's default namespace */
} CephPool;

typedef struct PoolJob PoolJob;
struct PoolJob {
    int (*run)(PoolJob *job, rados_ioctx_t io); /* 0 or -errno */
    void (*clear)(PoolJob *job);                /* frees what the struct has beside this one */
    int rc;                                     /* of run(); -ENXIO: there is no such pool */
    /* Set by pool_job_run(). */
    CephConn *conn;
    char *pool, *nspace;
};

/*
 * Runs job->run(). TRUE: it has returned and the job, with its answer, is the caller's, for
 * pool_job_free(). FALSE: no answer came in time (UNAVAILABLE, DEADLINE_EXCEEDED), and the job is
 * freed by its thread.
 */
gboolean pool_job_run(PoolJob *job, const CephPool *at, const CephOperation *operation,
                      gint64 deadline_us, GError **error);
void pool_job_free(PoolJob *job);

#endif
