/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on what a file that a library has mapped for reading adds to this process's memory. The
 * pages stay in the page cache, where the kernel takes them when it needs them; here they would
 * count as ours. Each page that is looked at brings its neighbours (the kernel maps around a fault,
 * 64 KiB), so an index that is read at random would soon be in memory as a whole.
 */
#ifndef HEARTH_CACHE_STORE_DISK_MAPPED_H
#define HEARTH_CACHE_STORE_DISK_MAPPED_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct Mapped {
    void *at; /* NULL: not known, and nothing is done */
    size_t length;
    atomic_uint looks;
} Mapped;

/* Finds the mapping of `length` bytes of the file. */
void mapped_find(Mapped *m, const char *path, size_t length);
/* Counts pages that were read, and releases the mapping from time to time. Any thread, also while
 * it is being read. */
void mapped_looked(Mapped *m, unsigned places);

#endif
