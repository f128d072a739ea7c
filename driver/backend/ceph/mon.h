/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitors know of pools. */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_MON_H
#define HEARTH_DRIVER_BACKEND_CEPH_MON_H

#include "driver/backend/ceph/conn.h"

/* The parsed answer to a command without arguments, the caller's; NULL with the error. */
json_t *ceph_mon_ask(CephConn *conn, const char *prefix, gint64 deadline_us, GError **error);
/* The cluster's own ID, the caller's. */
char *ceph_mon_fsid(CephConn *conn, gint64 deadline_us, GError **error);
/* What a pool can still take, copies accounted for, as it was 5 s ago at most. INVALID_ARGUMENT:
 * there is no such pool. */
gboolean ceph_mon_available(CephConn *conn, const char *pool, gint64 *bytes, gint64 deadline_us,
                            GError **error);
/* The names of the pools an application is enabled for; the array owns them. */
GPtrArray *ceph_mon_pools(CephConn *conn, const char *application, gint64 deadline_us,
                          GError **error);
/* The name of the pool of a number, the caller's; NULL without an error: there is none, or the
 * application is not enabled for it. */
char *ceph_mon_pool(CephConn *conn, const char *application, guint64 number, gint64 deadline_us,
                    GError **error);

#endif
