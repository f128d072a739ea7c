/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's fsGroup on a file system that the kernel has mounted by itself: every file gets the group
 * and is readable and writable for it, directories hand the group on. As kubelet does it with
 * fsGroupChangePolicy OnRootMismatch: nothing is walked when the root fits. The root is changed
 * last, so that a walk that was cut short is taken up by the next call, where it ended.
 *
 * Nobody may have the file system open for the first time meanwhile: see staging.h about groups.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_FSGROUP_H
#define HEARTH_DRIVER_NODE_MOUNT_FSGROUP_H

#include <glib.h>
#include <sys/types.h>

/* Whether the root at `path` is as fsgroup_apply() leaves it. INTERNAL. */
gboolean fsgroup_fits(const char *path, gid_t group, gboolean *fits, GError **error);
/* Where a walk ended: 24 bytes for each level of the tree, and nothing open. */
typedef struct FsgroupWalk FsgroupWalk;
void fsgroup_walk_free(FsgroupWalk *walk);

/*
 * Until deadline_us (monotonic), or until it has looked at so many entries. *left: where the last
 * call for this file system ended, or NULL; taken over. It is given back with DEADLINE_EXCEEDED,
 * the caller's, for the next call; else NULL. UNAVAILABLE: try again. FAILED_PRECONDITION: nested
 * too deep. INTERNAL names the inode. No message has the path of a file: that can be of any length.
 */
gboolean fsgroup_apply(const char *path, gid_t group, gint64 deadline_us, guint64 entries,
                       FsgroupWalk **left, GError **error);

#endif
