/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that serve a block device must not wait, for memory, for the write-back of that very
 * device: under memory pressure neither would end. The kernel learns this by PR_SET_IO_FLUSHER
 * (prctl(2), Linux 5.6), which takes CAP_SYS_RESOURCE.
 */
#ifndef HEARTH_CACHE_ORIGIN_RBD_IO_FLUSHER_H
#define HEARTH_CACHE_ORIGIN_RBD_IO_FLUSHER_H

#include <glib.h>

/* Whether this process may say so of its threads. */
gboolean io_flusher_allowed(void);
/* Says so of the calling thread, and of all that it starts. FALSE: not allowed. */
gboolean io_flusher_set(void);

#endif
