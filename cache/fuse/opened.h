/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files, or the directories, that the kernel has open in a session, by the numbers with which
 * it names them (fi->fh in libfuse's fuse_common.h). A number is given once: a request with one
 * that is closed, or was never given, finds nothing and is answered EBADF. All functions may be
 * called from any thread.
 */
#ifndef HEARTH_CACHE_FUSE_OPENED_H
#define HEARTH_CACHE_FUSE_OPENED_H

#include <glib.h>
#include <stdint.h>

typedef struct Opened Opened;

Opened *opened_new(void);
void opened_free(Opened *opened);

/* The number of what was opened, never 0. The caller owns `what` and removes it before its end. */
uint64_t opened_add(Opened *opened, void *what);
/* With the number that it had in another process, which opened_continue() knows. */
void opened_add_as(Opened *opened, uint64_t fh, void *what);
/* The last number that was given. */
uint64_t opened_last(Opened *opened);
/* Before the first is given: it is greater than `last`. */
void opened_continue(Opened *opened, uint64_t last);
void opened_remove(Opened *opened, uint64_t fh);
/* NULL: nothing is open by this number. */
void *opened_find(Opened *opened, uint64_t fh);
/* One of all that is open, NULL when nothing is. */
void *opened_any(Opened *opened);
/* Calls `visit` for each, with the table's lock held: it must not open or close. */
void opened_each(Opened *opened, void (*visit)(void *what, void *data), void *data);

/*
 * What the kernel had open when another process served the mount, by the numbers that it was given
 * then. Each is opened again when the kernel uses it.
 */
typedef struct Reopens Reopens;

typedef struct Reopen {
    uint64_t fh, node;
    int flags;                             /* of open(2) */
    unsigned seen_by_fsync, seen_by_close; /* losses (unsynced.h) */
} Reopen;

Reopens *reopens_new(void);
/* NULL is fine. */
void reopens_free(Reopens *reopens);
void reopens_add(Reopens *reopens, const Reopen *what);

/* Opens it again, and adds it to what is open (opened_add_as()); NULL with *error. */
typedef void *(*ReopenOpen)(void *data, const Reopen *what, int *error);
/* What is open by that number, after `open` if need be, which is called by one thread at a time for
 * a number; the others wait. NULL with *error, -EBADF: nothing is. `all` NULL: there was no earlier
 * process. */
void *reopens_find(Reopens *all, Opened *opened, uint64_t fh, ReopenOpen open, void *data,
                   int *error);
/* It was closed before it was opened again. FALSE: it is not to be opened again. */
gboolean reopens_close(Reopens *all, uint64_t fh, Reopen *what);
/* Whether some are of that node. */
gboolean reopens_has(Reopens *reopens, uint64_t node);
/* Those that nobody has used. Reopen; the caller's. */
GArray *reopens_left(Reopens *reopens);

#endif
