/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether Ceph monitors answer at their addresses: what can be known without a secret. A monitor
 * greets each client with "ceph v2\n" (msgr2) or "ceph v027" (msgr1), so a TCP connection that
 * something else takes does not count.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_MONITOR_PROBE_H
#define HEARTH_DRIVER_BACKEND_CEPH_MONITOR_PROBE_H

#include <glib.h>
#include "common/error.h"

/*
 * `clusters` holds ClusterConfig*. All their monitors are tried at once; reached[i] says whether
 * one of cluster i answered. Ends at the deadline, or REACH_GRACE_MS after the first answer: one
 * cluster that is away must not make the answer about the others late.
 */
#define REACH_GRACE_MS 200
void reach_monitors(const GPtrArray *clusters, gboolean *reached, gint64 deadline_us);

/*
 * The same list with "v1:" or "v2:" before addresses without either whose monitor answered;
 * caller's. For "ADDRESS:PORT" with a port other than Ceph's two, librados tries both protocols
 * in turn, and a refused key then looks like a monitor that does not answer.
 */
char **reach_explicit(char *const *monitors, gint64 deadline_us);

/* What one address answered. */
typedef struct ReachAnswer {
    guint monitor; /* which of the list */
    char *host;
    guint16 port;
    char version;      /* '1' or '2': of msgr; 0: no monitor answered there */
    gint64 latency_us; /* to the whole greeting, connecting included */
    int error;         /* an errno; 0 though no monitor answered: something else did */
} ReachAnswer;

/* One for each address of each monitor, in order; the caller's. Ends at the deadline. */
GArray *reach_each(char *const *monitors, gint64 deadline_us);

typedef struct ReachAddress {
    char *host;
    guint16 port;
    gboolean bare; /* was written "ADDRESS:PORT" with another port than Ceph's two */
} ReachAddress;

/*
 * The TCP addresses of one element of Ceph's mon_host: "10.0.0.1" (both of Ceph's ports),
 * "10.0.0.1:6789", "[fd00::1]:6789", "v2:10.0.0.1:3300/0",
 * "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]". ReachAddress, caller's.
 */
GArray *reach_parse(const char *monitor);

#endif
