/* SPDX-License-Identifier: Apache-2.0 */
/* How a background thread waits: for its next round, a kick, or wake_stop(). */
#ifndef HEARTH_COMMON_WAKE_H
#define HEARTH_COMMON_WAKE_H

#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include "common/monotonic.h"

typedef struct Wake {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    pthread_cond_t idle;            /* the thread has ended a round and waits */
    gboolean kicked, stop, waiting; /* lock */
    uint64_t rounds;                /* lock: ended */
} Wake;

void wake_init(Wake *wake);
void wake_destroy(Wake *wake);
void wake_kick(Wake *wake);
void wake_stop(Wake *wake);
/* Waits for a kick, at most timeout_ms. FALSE: stopped. */
gboolean wake_wait(Wake *wake, uint64_t timeout_ms);
gboolean wake_stopping(Wake *wake);
/* Kicks, and waits until a round that began after this call has ended. */
void wake_round(Wake *wake);

#endif
