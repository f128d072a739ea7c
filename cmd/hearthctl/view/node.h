/* SPDX-License-Identifier: Apache-2.0 */
/* Words about a node that several screens have. The strings are the caller's. */
#ifndef HEARTH_CMD_HEARTHCTL_VIEW_NODE_H
#define HEARTH_CMD_HEARTHCTL_VIEW_NODE_H

#include <glib.h>

/* The state of the cache's disk (WIRE_DISK_*): "ok", "BYPASS, reads go to Ceph". */
char *node_disk_text(const char *disk, gboolean colour);
/* "1.2 MiB", "0"; NULL for RATE_UNKNOWN. */
char *node_bytes_text(double bytes);

#endif
