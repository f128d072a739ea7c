/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers a read with bytes of a file without copying them through this process: they go from the
 * page cache through a pipe into the kernel's reply (splice(2); FUSE_READ in linux/fuse.h). The
 * pages are copied once then, into those of the reader.
 *
 * They are not moved there (SPLICE_F_MOVE), although that would save this copy too: such pages
 * remain in the memory cgroup of hearthd, so its limit would bound what the node's pods have in the
 * page cache.
 */
#ifndef HEARTH_CACHE_FUSE_OBJECT_REPLY_H
#define HEARTH_CACHE_FUSE_OBJECT_REPLY_H

#include <fuse_lowlevel.h>
#include <glib.h>
#include <stdint.h>

/* For shorter reads a copy is cheaper. */
#define OBJECT_REPLY_MIN (16 << 10)

/* The request that this thread processes from now on, by its number in the kernel; 0: none. */
void object_reply_request(uint64_t unique);

/*
 * Puts the reply to this thread's request in its pipe: exactly these bytes of the file. FALSE: it
 * has no such bytes, the disk has an error, or there is no pipe for so many. The caller answers in
 * another way then.
 */
gboolean object_reply_fill(int fd, size_t len, uint64_t off);
/* Sends it and frees the request. FALSE: the kernel did not take it; the caller answers. */
gboolean object_reply_send(fuse_req_t req, int fuse_fd);

#endif
