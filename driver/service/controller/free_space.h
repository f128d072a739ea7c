/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room in pools, as GetCapacity tells it. external-provisioner asks for each class and node
 * once a minute, and writes to the API server whenever an answer differs from the last one: a
 * thousand nodes with four classes are 4,000 questions. So what a pool has left is asked for once
 * for all of them, and told in coarse steps.
 *
 * Asking: what was told counts for ROOM_FRESH_MS. Of one cluster one request is under way at a
 * time, for ROOM_ASK_MS at most; who needs another pool of it, or the same, waits. When the cluster
 * does not answer, what was known of a pool counts on for ROOM_KNOWN_MS; a pool of which nothing is
 * known, and what the cluster refuses, is an error, which counts for ROOM_FAILED_MS, so that a
 * silent cluster is asked rarely. A pool that is missing has no room.
 *
 * Telling: a step is a 32nd part of the power of two below, so at most 3 % are left untold, and
 * never more is told than there is. More is told again only when it is half a step above the next
 * one: room that moves to and fro around a step tells one value.
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
/* When nobody asks any more. */
void room_free(Room *room);

/* Asks the cluster. INVALID_ARGUMENT: there is no such pool. */
typedef gboolean (*RoomAsk)(void *data, gint64 deadline_us, gint64 *bytes, GError **error);

/*
 * Bytes that `pool` of `cluster` can still take, in steps, from any thread. The strings name them
 * and nothing else. Errors are the ask's; DEADLINE_EXCEEDED: another one's request took too long.
 */
gboolean room_of(Room *room, const char *cluster, const char *pool, RoomAsk ask, void *data,
                 gint64 deadline_us, gint64 *bytes, GError **error);

/* What is told of `bytes` when `told` was told before; < 0: nothing was. */
gint64 room_step(gint64 bytes, gint64 told);

/* Adds to the time that ages are counted by; for tests. */
void room_age(Room *room, gint64 ms);

#endif
