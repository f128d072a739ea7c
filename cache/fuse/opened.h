/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files, or the directories, that the kernel has open in a session, by the numbers with which
 * it names them (fi->fh in libfuse's fuse_common.h). A number is given once: a request with one
 * that is closed, or was never given, finds nothing and is answered EBADF. All functions may be
 * called from any thread.
 */
#ifndef HEARTH_CACHE_FUSE_OPENED_H
#define HEARTH_CACHE_FUSE_OPENED_H

#include <stdint.h>

typedef struct Opened Opened;

Opened *opened_new(void);
void opened_free(Opened *opened);

/* The number of what was opened, never 0. The caller owns `what` and removes it before its end. */
uint64_t opened_add(Opened *opened, void *what);
void opened_remove(Opened *opened, uint64_t fh);
/* NULL: nothing is open by this number. */
void *opened_find(Opened *opened, uint64_t fh);
/* One of all that is open, NULL when nothing is. */
void *opened_any(Opened *opened);
/* Calls `visit` for each, with the table's lock held: it must not open or close. */
void opened_each(Opened *opened, void (*visit)(void *what, void *data), void *data);

#endif
