/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to Ceph's libraries that may not return for as long as Ceph is silent. */
#ifndef HEARTH_CACHE_ORIGIN_ASIDE_H
#define HEARTH_CACHE_ORIGIN_ASIDE_H

#include <glib.h>

/*
 * Calls call(data) on a thread of its own, and waits for limit_ms at most, by CLOCK_MONOTONIC.
 * TRUE: it has returned. FALSE: it still runs, and free_data(data) follows on that thread when it
 * returns. If no thread can be made, it is called on this one.
 */
gboolean aside_call(void (*call)(void *data), void *data, GDestroyNotify free_data,
                    unsigned limit_ms);

/* How many calls still run after their caller has stopped waiting. */
unsigned aside_left_behind(void);

/*
 * As aside_call(), followed by then(data) and free_data(data), which are called on that thread in
 * any case, and for which the caller does not wait. `data` is not the caller's any more.
 */
gboolean aside_call_then(void (*call)(void *data), void (*then)(void *data), void *data,
                         GDestroyNotify free_data, unsigned limit_ms);
/* Calls call(data) on a thread of its own, and does not wait for it. If no thread can be made, it
 * is called on this one. */
void aside_begin(void (*call)(void *data), void *data);
/* The same; FALSE: no thread could be made, and it is not called. */
gboolean aside_try(void (*call)(void *data), void *data);

#endif
