/*
 * Survives a page of a mapped file that cannot be read: its disk failed, or somebody cut it short.
 * The kernel says so with SIGBUS, which would end the process, and with it every volume it serves.
 *
 *   Guard guard;
 *   if (GUARD_ENTER(&guard)) -> the page was touched; locks taken since are still held
 *   ...
 *   guard_leave();
 *
 * A thread is in one guard at a time. What the code between was doing is left as it was: give it
 * up.
 */
#ifndef HEARTH_STORE_GUARD_H
#define HEARTH_STORE_GUARD_H

#include <setjmp.h>

typedef struct Guard {
    sigjmp_buf back;
} Guard;

/* A macro, as the frame that sigsetjmp() was called in must still be there. */
#define GUARD_ENTER(guard) (guard_begin(guard), sigsetjmp((guard)->back, 1) != 0)
void guard_begin(Guard *guard);
void guard_leave(void);

#endif
