/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait: between tries of what failed (a delay that doubles, with jitter so that many
 * nodes do not come back at the same time), and before a write (a token bucket, so that a bug of
 * ours cannot flood the API server). Pure arithmetic; the caller waits. Not thread-safe.
 */
#ifndef HEARTH_DRIVER_KUBE_BACKOFF_H
#define HEARTH_DRIVER_KUBE_BACKOFF_H

#include <glib.h>

typedef struct KubeBackoff {
    gint64 first_ms, most_ms;
    unsigned failures; /* in a row; 0 starts again */
} KubeBackoff;

/* The delay before the next try, between half and all of first_ms * 2^failures, most_ms at most.
 * Counts. */
gint64 kube_backoff_next_ms(KubeBackoff *backoff);

typedef struct KubeBucket {
    double per_second; /* 0: no limit */
    double burst;
    double tokens; /* below 0: promised to waiting callers */
    gint64 at_us;  /* the time of that number */
} KubeBucket;

void kube_bucket_init(KubeBucket *bucket, double per_second, double burst, gint64 now_us);
/* Takes a token, and returns how long the caller must wait for it. Later callers wait longer. -1:
 * it would be longer than most_ms, and nothing was taken. */
gint64 kube_bucket_take_ms(KubeBucket *bucket, gint64 now_us, gint64 most_ms);

#endif
