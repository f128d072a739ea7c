/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that serve all sources of the process. There is always the configured number that are
 * not stuck: when a request takes longer than a moment, it waits for Ceph or the disk, and one more
 * thread is made, which ends when it is not needed. The first source starts the threads, the last
 * one ends them.
 */
#ifndef HEARTH_CACHE_FUSE_READER_THREADS_H
#define HEARTH_CACHE_FUSE_READER_THREADS_H

#include "cache/fuse/reader_sources.h"

/* 0: the default. Takes effect when the threads are started. */
void reader_threads_set(unsigned n);
/* Each thread has a buffer of this size. The same in all calls. FALSE with G_IO_ERROR. */
gboolean reader_threads_add(ReaderSource *source, size_t buffer_size, GError **error);
void reader_threads_remove(ReaderSource *source);
/* How often a thread took an event of this source from epoll. */
uint64_t reader_threads_events(ReaderSource *source);

#endif
