/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread puts what it answers a read with. */
#ifndef HEARTH_CACHE_FUSE_REPLY_BUFFER_H
#define HEARTH_CACHE_FUSE_REPLY_BUFFER_H

#include <stddef.h>

/* At least `size` bytes, aligned as direct I/O wants them; the thread's own, until it asks again.
 */
char *reply_buffer(size_t size);

#endif
