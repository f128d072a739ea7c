/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs-verity (Documentation/filesystems/fsverity.rst): the kernel keeps a hash tree of a file that
 * may not change any more, and answers EIO instead of a page that is not what it was.
 *
 * Objects are sealed so by the flusher, once their bytes are synced: sealing waits for them. Until
 * then an object is like any other.
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_VERITY_H
#define HEARTH_CACHE_STORE_OBJECTS_VERITY_H

#include "cache/store/objects/internal.h"

/* Whether kernel and file system can, tried with a file of its own. */
gboolean verity_probe(Store *store);
/* Makes the descriptor of a complete file one that only reads: what is open for writing cannot be
 * sealed. `flags`: those of open(2) that it has, such as O_DIRECT. */
void verity_stop_writing(int fd, int flags);
/* Seals an object. 0 or -errno: it is as it was. */
int verity_seal(Store *store, const ObjectId *id);

#endif
