/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The free space of pools, as GetCapacity reports it. external-provisioner asks for each class and
 * node once a minute, and writes to the API server whenever an answer differs from the last one: a
 * thousand nodes with four classes are 4,000 questions. So a pool is asked about once for all of
 * them, and the answer is rounded to coarse steps.
 *
 * Asking: an answer is valid for ROOM_FRESH_MS. A cluster has one request under way at a time, for
 * ROOM_ASK_MS at most; other calls for its pools wait. When the cluster does not answer, the last
 * answer for a pool stays valid for ROOM_KNOWN_MS. Without such an answer, or when the cluster
 * refuses, the call fails, and the failure is valid for ROOM_FAILED_MS, so that a silent cluster is
 * asked rarely. A missing pool has no space.
 *
 * Rounding: a step is a 32nd part of the power of two below, 1.6 to 3.1 % of the space, and the
 * answer is never more than there is. The answer rises only when the space is half a step above the
 * next step, so that space which varies around a step gives one value. Until then it is at most 1.5
 * steps too small, 4.7 %.
 */
#ifndef HEARTH_DRIVER_SERVICE_CONTROLLER_FREE_SPACE_H
#define HEARTH_DRIVER_SERVICE_CONTROLLER_FREE_SPACE_H

#include <glib.h>
#include "common/error.h"

#define ROOM_FRESH_MS 30000
#define ROOM_ASK_MS 10000
#define ROOM_FAILED_MS 10000
#define ROOM_KNOWN_MS 600000

typedef struct Room Room;

Room *room_new(void);
/* After the last call. */
void room_free(Room *room);

/* Asks the cluster. INVALID_ARGUMENT: there is no such pool. */
typedef gboolean (*RoomAsk)(void *data, gint64 deadline_us, gint64 *bytes, GError **error);

/* A pool, and how to ask for its space. Borrowed for the call. */
typedef struct RoomPool {
    const char *cluster, *name; /* they name the pool and nothing else */
    RoomAsk ask;
    void *data;
} RoomPool;

/*
 * Bytes that the pool can still take, in steps, from any thread. Errors are the ask's;
 * DEADLINE_EXCEEDED: another one's request took too long.
 */
gboolean room_of(Room *room, const RoomPool *pool, gint64 deadline_us, gint64 *bytes,
                 GError **error);

/* The answer for `bytes` free when the last answer was `last`; < 0: there was none. */
gint64 room_step(gint64 bytes, gint64 last);

/* Makes all answers older by `ms`; for tests. */
void room_age(Room *room, gint64 ms);

#endif
