/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers of the I/O thread: a binary heap of what its owners embed, so that arming one allocates
 * nothing of its own and disarming costs log n. Times are of g_get_monotonic_time(), microseconds.
 */
#ifndef HEARTH_DRIVER_RPC_TIMERS_H
#define HEARTH_DRIVER_RPC_TIMERS_H

#include <glib.h>

typedef struct RpcTimer RpcTimer;
struct RpcTimer {
    gint64 at_us;
    size_t slot;              /* 1-based place in the heap; 0: not armed */
    void (*fire)(RpcTimer *); /* runs disarmed; may arm or clear any timer */
};

typedef struct RpcTimers {
    RpcTimer **heap;
    size_t length;
    size_t capacity;
} RpcTimers;

/* Arms or moves the timer; G_MAXINT64 disarms it. */
void rpc_timer_set(RpcTimers *timers, RpcTimer *timer, gint64 at_us);
void rpc_timer_clear(RpcTimers *timers, RpcTimer *timer);
/* When the next one is due; G_MAXINT64 when none is armed. */
gint64 rpc_timers_next(const RpcTimers *timers);
/* Fires what is due at `now_us`. */
void rpc_timers_run(RpcTimers *timers, gint64 now_us);
/* Frees the heap; timers still armed are forgotten. */
void rpc_timers_free(RpcTimers *timers);

#endif
