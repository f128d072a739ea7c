/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for requests that have to wait, made when they are needed: those that read /dev/fuse go
 * on with others meanwhile.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_WAITERS_H
#define HEARTH_CACHE_FUSE_LAYER_WAITERS_H

#include <glib.h>

typedef struct Waiters Waiters;

/* `run` serves a job on a thread of its own; there are at most `most`. */
Waiters *waiters_new(unsigned most, void (*run)(void *data, gpointer job), void *data);
/* FALSE: all are busy; the caller serves the job. */
gboolean waiters_give(Waiters *waiters, gpointer job);
/* Waits until all jobs are served. None may be given meanwhile. NULL is fine. */
void waiters_stop(Waiters *waiters);

#endif
