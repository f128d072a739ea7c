/* Whether a monitor of each cluster takes a TCP connection: what can be known without a secret. */
#ifndef HEARTH_DRIVER_BACKEND_REACH_H
#define HEARTH_DRIVER_BACKEND_REACH_H

#include <glib.h>
#include "driver/error.h"

/*
 * `clusters` holds ClusterConfig*. All monitors are tried at once. UNAVAILABLE names the clusters
 * none of whose monitors answered, and their addresses.
 */
gboolean reach_monitors(const GPtrArray *clusters, gint64 deadline_us, GError **error);

typedef struct ReachAddress {
    char *host;
    guint16 port; /* 0 in the text: Ceph's two, 3300 and 6789 */
} ReachAddress;

/*
 * The TCP addresses of one element of Ceph's mon_host: "10.0.0.1", "10.0.0.1:6789",
 * "[fd00::1]:6789", "v2:10.0.0.1:3300/0", "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]". ReachAddress,
 * caller's.
 */
GArray *reach_parse(const char *monitor);

#endif
