/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the requests of /dev/fuse descriptors and hands them to libfuse. All sessions share the
 * threads of the process (reader_threads.h), so an idle session has none. Requests that wait for
 * Ceph delay no other session, and other requests of their session only when there are very many.
 */
#ifndef HEARTH_CACHE_FUSE_READERS_H
#define HEARTH_CACHE_FUSE_READERS_H

#include <fuse_lowlevel.h>
#include <glib.h>

/* What an init operation sets conn->max_write to at most: a thread's buffer serves all sessions. */
#define READERS_MAX_WRITE (1u << 20)

typedef struct Readers Readers;
struct fuse_in_header; /* linux/fuse.h */

/* The threads of the process, those that wait for Ceph not counted. Call it before the first
 * session; 0: the default, 16. */
void readers_set_threads(unsigned n);

/* Whether requests that the kernel sends again (take_over.h) are answered with EIO, in all
 * sessions: one of them may be what has ended the process before, again and again. */
void readers_fail_redelivered(gboolean fail);

/*
 * Makes libfuse serve `fuse_fd`, a mounted /dev/fuse descriptor; on
 * success libfuse closes it. NULL with G_IO_ERROR.
 */
struct fuse_session *readers_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                   GError **error);

/*
 * From now on requests are served. `ended` is called once, behind the last request, if the kernel
 * has unmounted or aborted the connection, and not after readers_stop(). NULL with G_IO_ERROR: no
 * thread or descriptor can be had.
 */
Readers *readers_start(struct fuse_session *fuse, void (*ended)(void *data), void *data,
                       GError **error);
/*
 * From now on only the requests that `serves` wants are served. The others are read and not
 * answered, so the kernel sends them to the next process again (take_over.h). `in` is followed by
 * the rest of the request.
 */
void readers_park(Readers *readers,
                  gboolean (*serves)(void *data, const struct fuse_in_header *in, size_t len),
                  void *data);
/* TRUE: since readers_park(), no request is being served; FALSE: some still were after timeout_ms.
 */
gboolean readers_await_served(Readers *readers, unsigned timeout_ms);
/* Waits for the requests of this session that are being served, and for `ended`; reads no more.
 * Frees. NULL is fine. */
void readers_stop(Readers *readers);

/* For tests: how often a thread took an event of this session from epoll. */
uint64_t readers_events(Readers *readers);

#endif
