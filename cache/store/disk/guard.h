/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Survives a page of a mapped file that cannot be read: its disk failed, or the file was truncated.
 * The kernel says so with SIGBUS, which would end the process, and with it every volume it serves.
 * A page that has rotten may lead its reader anywhere: SIGSEGV is handled the same way.
 *
 *   Guard guard;
 *   if (GUARD_ENTER(&guard)) -> the page was touched; locks taken since are still held
 *   ...
 *   guard_leave();
 *
 * The jump has ended the guard: guard_leave() is for the other way out. Guards nest. The
 * interrupted code leaves its data as it was: discard it.
 */
#ifndef HEARTH_CACHE_STORE_DISK_GUARD_H
#define HEARTH_CACHE_STORE_DISK_GUARD_H

#include <glib.h>
#include <setjmp.h>

typedef struct Guard {
    sigjmp_buf back;
    struct Guard *outer;
} Guard;

/* ThreadSanitizer handles signals with all of them blocked: then the mask has to be restored. */
#ifdef __SANITIZE_THREAD__
#define GUARD_MASK 1
#else
#define GUARD_MASK 0
#endif
/* A macro, as the frame that sigsetjmp() was called in must still be there. */
#define GUARD_ENTER(guard) (guard_begin(guard), sigsetjmp((guard)->back, GUARD_MASK) != 0)
void guard_begin(Guard *guard);
void guard_leave(void);
/* Leaves the guarded code as a page that cannot be read does. Returns if there is no guard. */
void guard_jump(void);
/* Copies from a mapped file; FALSE: a page of it cannot be read. */
gboolean guard_copy(void *to, const void *from, size_t size);

#endif
