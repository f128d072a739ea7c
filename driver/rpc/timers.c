/* SPDX-License-Identifier: Apache-2.0 */
/* Slot i of the heap is not later than slots 2i and 2i+1; every timer knows its own slot. */
#include "driver/rpc/timers.h"

static void place(RpcTimers *timers, size_t slot, RpcTimer *timer)
{
    timers->heap[slot - 1] = timer;
    timer->slot = slot;
}

static RpcTimer *at(const RpcTimers *timers, size_t slot)
{
    return timers->heap[slot - 1];
}

static void sift_up(RpcTimers *timers, RpcTimer *timer)
{
    size_t slot = timer->slot;
    while (slot > 1 && timer->at_us < at(timers, slot / 2)->at_us) {
        place(timers, slot, at(timers, slot / 2));
        slot /= 2;
    }
    place(timers, slot, timer);
}

static void sift_down(RpcTimers *timers, RpcTimer *timer)
{
    size_t slot = timer->slot;
    for (;;) {
        size_t child = slot * 2;
        if (child > timers->length)
            break;
        if (child < timers->length && at(timers, child + 1)->at_us < at(timers, child)->at_us)
            child++;
        if (timer->at_us <= at(timers, child)->at_us)
            break;
        place(timers, slot, at(timers, child));
        slot = child;
    }
    place(timers, slot, timer);
}

void rpc_timer_clear(RpcTimers *timers, RpcTimer *timer)
{
    if (timer->slot == 0)
        return;
    size_t slot = timer->slot;
    RpcTimer *last = at(timers, timers->length--);
    timer->slot = 0;
    if (last == timer)
        return;
    place(timers, slot, last);
    sift_up(timers, last);
    sift_down(timers, last);
}

void rpc_timer_set(RpcTimers *timers, RpcTimer *timer, gint64 at_us)
{
    rpc_timer_clear(timers, timer);
    if (at_us == G_MAXINT64)
        return;
    if (timers->length == timers->capacity) {
        timers->capacity = MAX(64, timers->capacity * 2);
        timers->heap = g_renew(RpcTimer *, timers->heap, timers->capacity);
    }
    timer->at_us = at_us;
    place(timers, ++timers->length, timer);
    sift_up(timers, timer);
}

gint64 rpc_timers_next(const RpcTimers *timers)
{
    return timers->length > 0 ? timers->heap[0]->at_us : G_MAXINT64;
}

void rpc_timers_run(RpcTimers *timers, gint64 now_us)
{
    while (timers->length > 0 && timers->heap[0]->at_us <= now_us) {
        RpcTimer *timer = timers->heap[0];
        rpc_timer_clear(timers, timer);
        timer->fire(timer);
    }
}

void rpc_timers_free(RpcTimers *timers)
{
    g_free(timers->heap);
    *timers = (RpcTimers){0};
}
