/* SPDX-License-Identifier: Apache-2.0 */
/* A connection from inside, for the files that make calls on it. */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_INTERNAL_H
#define HEARTH_DRIVER_BACKEND_CEPH_INTERNAL_H

#include <pthread.h>
#include <rados/librados.h>
#include <stdatomic.h>
#include "driver/backend/ceph/conn.h"
#include "common/bounded.h"

typedef enum ConnState { CONN_CONNECTING, CONN_READY, CONN_FAILED } ConnState;

struct CephConn {
    atomic_int references;
    rados_t cluster;
    char *cluster_id, *user, *monitors, *key; /* key: of the cache's table, no secret */
    Bounded *bounded;                         /* see ceph_conn_run() */
    atomic_bool broken;                       /* the cluster shut us out: make another */
    Bounded *checks; /* of ceph_conns_check(), for which calls that hang leave a thread */
    pthread_mutex_t memo_lock;
    GHashTable *memos; /* ceph_conn_remember(); guarded by memo_lock */
    /* Below: guarded by the cache's lock. */
    ConnState state;
    GError *failure;
    gint64 used_us;
};

/*
 * Runs the job on a thread until the deadline, or the operation's limit. TRUE: it returned and its
 * data is still the caller's. FALSE: the data was handed over and is freed when the thread ends; it
 * must hold what it uses, a reference to the connection too. DEADLINE_EXCEEDED, UNAVAILABLE past
 * the limit.
 */
gboolean ceph_conn_run(CephConn *conn, const CephOperation *operation, const BoundedJob *job,
                       gint64 deadline_us, GError **error);
/* Takes note of an answer that says that the connection is of no use any more. */
void ceph_conn_note(CephConn *conn, int rc);

#endif
