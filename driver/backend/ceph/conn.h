/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to Ceph clusters, shared by requests of the same cluster, user and key. librados can
 * block for as long as Ceph is away, and its own timeout on mgr commands (rados_mon_op_timeout)
 * leaves pointers into a returned stack frame behind; so every blocking call runs on a thread of
 * its own that is left behind when the deadline passes (common/bounded.h), and keeps its connection
 * alive until it returns.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_CONN_H
#define HEARTH_DRIVER_BACKEND_CEPH_CONN_H

#include <glib.h>
#include <jansson.h>
#include "common/metrics/timings.h"
#include "driver/cluster/config.h"
#include "driver/cluster/secrets.h"

typedef struct CephConns CephConns;
typedef struct CephConn CephConn;

CephConns *ceph_conns_new(void);
/* Connections in use by calls that were left behind are closed by them. */
void ceph_conns_free(CephConns *conns);

/*
 * A reference to a connected one. It is made when there is none, once for all calls that ask at the
 * same time.
 * UNAVAILABLE names the monitors; UNAUTHENTICATED names the user.
 */
CephConn *ceph_conns_get(CephConns *conns, const ClusterConfig *cluster, const Secrets *secrets,
                         gint64 deadline_us, GError **error);
CephConn *ceph_conn_ref(CephConn *conn);
void ceph_conn_unref(CephConn *conn);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CephConn, ceph_conn_unref)

/*
 * Whether the monitors answer on the connections to `cluster_id`: TRUE when there is none. While
 * an earlier check hangs, the answer is UNAVAILABLE at once.
 */
gboolean ceph_conns_check(CephConns *conns, const char *cluster_id, gint64 deadline_us,
                          GError **error);

/* How long this process's calls to all clusters took, by operation and by whether the answer came
 * in time. Borrowed. */
Timings *ceph_timings(void);

/* One operation of Ceph's. Borrowed. */
typedef struct CephOperation {
    const char *name; /* by which it is counted */
    const char *what; /* for messages */
    gint64 limit_ms;  /* an answer that takes longer will not come, though the caller would wait */
} CephOperation;

typedef enum CephTarget { CEPH_MON, CEPH_MGR } CephTarget;

typedef struct CephReply {
    int rc;       /* 0 or -errno, Ceph's */
    char *output; /* NUL-terminated */
    char *status; /* a line for people, never NULL */
} CephReply;
void ceph_reply_clear(CephReply *reply);

/* FALSE when no answer came in time: UNAVAILABLE or DEADLINE_EXCEEDED. */
gboolean ceph_conn_command(CephConn *conn, CephTarget target, const json_t *command,
                           CephReply *reply, gint64 deadline_us, GError **error);

/*
 * Answers of the cluster, kept with the connection by a name: for those that hardly ever change and
 * that every call needs. Recalling gives the caller's copy, or NULL when there is none or it is
 * older than `max_age_us`.
 */
void ceph_conn_remember(CephConn *conn, const char *name, const char *text);
char *ceph_conn_recall(CephConn *conn, const char *name, gint64 max_age_us);

/* Sets the error for an answer `rc` of Ceph's; `what` is the thing done, `status` may be NULL. */
void ceph_conn_fail(GError **error, CephConn *conn, int rc, const char *what, const char *status);

const char *ceph_conn_user(const CephConn *conn);

#endif
