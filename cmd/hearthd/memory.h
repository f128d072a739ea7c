/* SPDX-License-Identifier: Apache-2.0 */
/* One budget of memory for all volumes. */
#ifndef HEARTH_CMD_HEARTHD_MEMORY_H
#define HEARTH_CMD_HEARTHD_MEMORY_H

#include <glib.h>
#include <stdint.h>

#define MEMORY_LEAST_BYTES (128u << 20)
/* --live-inodes was not given. */
#define MEMORY_LIVE_INODES_UNSET G_MININT64

/*
 * Divides the budget among what hearthd remembers and what Ceph's clients keep, after the buffers
 * of fetches, images and reads that bypass the cache, which have bounds of their own. bytes 0: half
 * of what the cgroup allows, at most 2 GiB. live_inodes: given, or MEMORY_LIVE_INODES_UNSET. Before
 * the first volume.
 */
void memory_divide(uint64_t bytes, unsigned fill_threads, gint64 live_inodes);

#endif
