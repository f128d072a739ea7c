#include "cache/store/guard.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static _Thread_local Guard *current;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* From the instruction that touched the page, so nothing but this thread's own work is interrupted.
 */
static void on_bus_error(int signal_number)
{
    Guard *guard = current;
    if (guard) {
        current = NULL;
        siglongjmp(guard->back, 1);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void install(void)
{
    struct sigaction action = {.sa_handler = on_bus_error};
    sigaction(SIGBUS, &action, NULL);
}

void guard_begin(Guard *guard)
{
    pthread_once(&once, install);
    current = guard;
}

void guard_leave(void)
{
    current = NULL;
}
