/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that read one /dev/fuse descriptor and hand each request to libfuse. They end by
 * themselves when the kernel has unmounted or aborted the connection.
 */
#ifndef HEARTH_CACHE_FUSE_READERS_H
#define HEARTH_CACHE_FUSE_READERS_H

#include <fuse_lowlevel.h>
#include <glib.h>

typedef struct Readers Readers;

/*
 * Makes libfuse serve `fuse_fd`, a mounted /dev/fuse descriptor; on
 * success libfuse closes it. NULL with G_IO_ERROR.
 */
struct fuse_session *readers_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                   GError **error);

/* `n` threads; for each that waits for Ceph for long one more is made, up to 64, which ends when it
 * is not needed. `ended` is called once, by the last thread, if they end by
 * themselves. */
Readers *readers_start(struct fuse_session *fuse, unsigned n, void (*ended)(void *data),
                       void *data);
/* Stops and joins the threads, frees. NULL is fine. */
void readers_stop(Readers *readers);

#endif
