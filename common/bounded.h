/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function that may hang in the kernel (statvfs on a FUSE mount whose Ceph is away) and
 * waits for it only so long. A thread in the kernel cannot be cancelled, so one that outstays its
 * time is left behind and counted as stuck; when it returns it frees what it was given. The number
 * of stuck threads is bounded: one a key (what is done to which mount), `max_stuck` together;
 * beyond that a call fails at once instead of starting another.
 */
#ifndef HEARTH_COMMON_BOUNDED_H
#define HEARTH_COMMON_BOUNDED_H

#include <glib.h>
#include "common/error.h"

typedef struct Bounded Bounded;

Bounded *bounded_new(unsigned max_stuck);
/* Stuck threads end on their own, whenever the kernel lets them. No call may be waiting. */
void bounded_free(Bounded *bounded);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Bounded, bounded_free)

typedef struct BoundedJob {
    void (*run)(void *data);
    void *data;
    void (*free_data)(void *data);
} BoundedJob;

/* Its jobs are about mounts, and keep the process from ending: bounded_any_of_mounts() tells
 * whether one runs. Call it before the first job. */
void bounded_set_of_mounts(Bounded *bounded);
gboolean bounded_any_of_mounts(void);

/*
 * TRUE: run(data) has returned and `data` is the caller's as before. FALSE: `data` was handed over
 * and is freed with `free_data`; DEADLINE_EXCEEDED after timeout_ms, UNAVAILABLE when too many are
 * stuck already or no thread can be had. `what` names the work in the message.
 */
gboolean bounded_run(Bounded *bounded, const char *key, const char *what, const BoundedJob *job,
                     gint64 timeout_ms, GError **error);

#endif
