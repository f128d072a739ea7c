/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to Ceph's libraries that may not return for as long as Ceph is silent. */
#ifndef HEARTH_CACHE_ORIGIN_ASIDE_H
#define HEARTH_CACHE_ORIGIN_ASIDE_H

#include <glib.h>

/*
 * Calls call(data) on a thread of its own, and waits for limit_ms at most, by CLOCK_MONOTONIC.
 * TRUE: it has returned. FALSE: it goes on, and free_data(data) follows on that thread when it has
 * returned. Without a thread for it, it is called on this one.
 */
gboolean aside_call(void (*call)(void *data), void *data, GDestroyNotify free_data,
                    unsigned limit_ms);

/* How many go on that nobody waits for. */
unsigned aside_left_behind(void);

/*
 * The same, but what follows is waited for by nobody: then(data), and free_data(data), are called
 * on that thread in any case. Afterwards `data` is not the caller's.
 */
gboolean aside_call_then(void (*call)(void *data), void (*then)(void *data), void *data,
                         GDestroyNotify free_data, unsigned limit_ms);
/* Calls call(data) on a thread of its own, and does not wait for it. */
void aside_begin(void (*call)(void *data), void *data);

#endif
