/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE_NOTIFY_PRUNE of Linux 6.18 (include/uapi/linux/fuse.h, 7.45), which libfuse 3.18 and older
 * do not have. */
#ifndef HEARTH_CACHE_FUSE_PRUNE_H
#define HEARTH_CACHE_FUSE_PRUNE_H

#include <fuse_lowlevel.h>
#include <glib.h>

/* Tells the kernel to forget these inodes (uint64_t), except for those in use. FALSE: this kernel
 * is too old. May wait for pages of them that are being read. */
gboolean fuse_prune(struct fuse_session *fuse, const GArray *inodes);

#endif
