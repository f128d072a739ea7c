/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/disk/guard.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

static _Thread_local Guard *current;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction bus_before, segv_before;

void guard_jump(void)
{
    Guard *guard = current;
    if (!guard)
        return;
    current = guard->outer;
    siglongjmp(guard->back, 1);
}

/* From the instruction that touched the page, so nothing but this thread's own work is interrupted.
 */
static void on_bad_page(int signal_number)
{
    guard_jump();
    sigaction(signal_number, signal_number == SIGBUS ? &bus_before : &segv_before, NULL);
    raise(signal_number);
}

static void install_handler(void)
{
    /* Not blocked while it is handled, so that there is no signal mask to be restored. */
    struct sigaction action = {.sa_handler = on_bad_page, .sa_flags = SA_NODEFER};
    sigaction(SIGBUS, &action, &bus_before);
    sigaction(SIGSEGV, &action, &segv_before);
}

void guard_begin(Guard *guard)
{
    pthread_once(&once, install_handler);
    guard->outer = current;
    current = guard;
}

void guard_leave(void)
{
    current = current->outer;
}

gboolean guard_copy(void *to, const void *from, size_t size)
{
    Guard guard;
    if (GUARD_ENTER(&guard))
        return FALSE;
    memcpy(to, from, size);
    guard_leave();
    return TRUE;
}
