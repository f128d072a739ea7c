/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE connection outlives the process that serves it while another process has a descriptor of
 * it. A later process goes on where the last one ended:
 *
 *   1. it needs the FUSE_INIT that the kernel sends once, when the connection is made: the first
 *      process notes it, and libfuse processes it again with its answer going nowhere;
 *   2. FUSE_NOTIFY_RESEND (linux/fuse.h, Linux 6.9) has the kernel send all requests again that the
 *      last process had read and not answered. Without it their callers would wait for ever.
 */
#ifndef HEARTH_CACHE_FUSE_TAKE_OVER_H
#define HEARTH_CACHE_FUSE_TAKE_OVER_H

#include <fuse_lowlevel.h>
#include <glib.h>

/* The longest FUSE_INIT that is believed. */
#define TAKE_OVER_INIT_MAX 1024

/*
 * As readers_serve(), of a new connection, whose FUSE_INIT it answers. *init is a copy of it, the
 * caller's; NULL: the kernel cannot send requests again, so no other process can serve the
 * connection.
 */
struct fuse_session *take_over_begin(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                     GBytes **init, GError **error);
/* As readers_serve(), of a connection whose FUSE_INIT another process has answered. */
struct fuse_session *take_over_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                     GBytes *init, GError **error);
/* Has the kernel send again what was read and not answered. INVALID_DATA: the connection has ended,
 * or the kernel cannot do it. */
gboolean take_over_resend(struct fuse_session *fuse, GError **error);

/* Whether these bytes can be a FUSE_INIT. */
gboolean take_over_is_init(GBytes *init);

#endif
