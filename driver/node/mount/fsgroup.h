/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's fsGroup on a file system that the kernel has mounted by itself: every file gets the group
 * and is readable and writable for it, new files in directories inherit the group. As
 * kubelet does with fsGroupChangePolicy OnRootMismatch, nothing is walked when the root is right.
 * The root is changed last, so the next call continues a walk that was interrupted.
 *
 * No other pod may get the file system meanwhile: see staging.h about groups.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_FSGROUP_H
#define HEARTH_DRIVER_NODE_MOUNT_FSGROUP_H

#include <glib.h>
#include <sys/types.h>

/* Whether the root at `path` is as fsgroup_apply() leaves it. INTERNAL. */
gboolean fsgroup_fits(const char *path, gid_t group, gboolean *fits, GError **error);
/* The point where a walk stopped: 24 bytes for each level of the tree, and no open file. */
typedef struct FsgroupWalk FsgroupWalk;
void fsgroup_walk_free(FsgroupWalk *walk);

/*
 * Runs until deadline_us (monotonic), or until it has visited so many entries. *left: where the
 * last call for this file system stopped, or NULL; taken over. With DEADLINE_EXCEEDED it is set for
 * the next call, and is the caller's; else it is NULL. UNAVAILABLE: try again. FAILED_PRECONDITION:
 * nested too deep. INTERNAL names the inode. No message has the path of a file: that can be of any
 * length.
 */
gboolean fsgroup_apply(const char *path, gid_t group, gint64 deadline_us, guint64 entries,
                       FsgroupWalk **left, GError **error);

#endif
