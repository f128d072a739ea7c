/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a CacheWarmup: computed from the status before and the reports of the nodes in
 * their NodeCaches. No I/O, no clock but the caller's. All fields but lastScheduleTime are always
 * there, so that {"status": STATUS} is a merge patch of the subresource. The exception is "origin",
 * the dataset's location: the controller keeps it to itself (controller.c), because a reader of a
 * CacheWarmup need not know paths in Ceph. Texts of nodes come without paths (warmup_message()).
 *
 *     phase                  a run...
 *     Pending                waits for its time, or for nodes
 *     Warming                is under way
 *     Warm, Failed           has ended; Failed also: the spec cannot be done
 *     Suspended              was cancelled, or none is begun
 *
 *     state of a node        from
 *     Pending                being chosen; the node has not taken it up (WARMUP_PATIENCE_S: Failed)
 *     Running                the node's report
 *     Succeeded, Failed,     the node's report, for good; Cancelled also by suspending
 *       Cancelled
 *     Lost                   a report older than WARM_STALE_MS (driver/warmth/labels.h); when
 *                            the node is back its reports count again, until the run has ended
 *
 * A run ends when all its nodes have, where one that has been lost for WARMUP_PATIENCE_S counts as
 * ended: long enough for a node to boot. Then it is Warm when all succeeded, else Failed.
 */
#ifndef HEARTH_DRIVER_WARMUP_STATUS_H
#define HEARTH_DRIVER_WARMUP_STATUS_H

#include <glib.h>
#include <jansson.h>
#include "driver/warmth/dataset_origin.h"
#include "driver/warmup/warmup.h"

#define WARMUP_PATIENCE_S 600
/* The longest time for a node's part; after it the node has Failed, and others may take its turn.
 */
#define WARMUP_DEADLINE_S (24 * 3600)
#define WARMUP_WRITE_MS 5000
/* For a run on many nodes: each adds about 200 bytes to every write. */
#define WARMUP_WRITE_NODE_MS 10
#define WARMUP_REFRESH_MS 30000

/* The report of one node, from its NodeCache; borrowed. */
typedef struct WarmupReport {
    gint64 age_ms;         /* since its last heartbeat; < 0: it has no NodeCache that reports */
    const json_t *warmups; /* status.warmups: what runs the node has, by their names */
} WarmupReport;

/* A CacheWarmup, and its status as it was written last; a watch may not have shown that yet.
 * Borrowed. */
typedef struct WarmupObject {
    const Warmup *warmup;
    const json_t *status; /* NULL: none */
} WarmupObject;

/* Each returns the object's next status, a new reference. */

/*
 * A run begins on these nodes. message: about missing nodes (warmup_choice_message()), or "".
 */
json_t *warmup_status_begin(const WarmupObject *object, const WarmupRun *run,
                            const DatasetOrigin *origin, const GPtrArray *nodes,
                            const char *message, gint64 now_s);
/*
 * The progress of a run under way; reports: name -> WarmupReport. A run that has ended does not
 * change.
 */
json_t *warmup_status_progress(const WarmupObject *object, GHashTable *reports, gint64 now_s);

typedef enum WarmupIdle {
    WARMUP_WAITING,   /* Pending; the message says for what */
    WARMUP_SUSPENDED, /* Suspended; ends what is under way */
    WARMUP_REFUSED,   /* Failed: the message is warmup_read()'s; ends what is under way */
    WARMUP_LOST,      /* Failed: the location of the run's dataset is no longer known */
} WarmupIdle;
json_t *warmup_status_idle(const WarmupObject *object, WarmupIdle why, const char *message,
                           gint64 now_s);

/*
 * The nodes that have a part in the run under way, borrowed from the status; the array is the
 * caller's. Orders of this CacheWarmup on other nodes must be cancelled. None when the spec has
 * changed since: that ends the run.
 */
GPtrArray *warmup_status_parts(const WarmupObject *object);

/*
 * Whether `after` must be written: a state, a percent, a message or anything else but a plain
 * number has changed, or rate and ETA have and nothing was written for WARMUP_REFRESH_MS. Except
 * for another phase, not sooner after the last write (since_write_ms ago; < 0: this process has
 * made none) than WARMUP_WRITE_MS, or WARMUP_WRITE_NODE_MS for each node when that is longer.
 */
gboolean warmup_status_is_worth(const json_t *before, const json_t *after, gint64 since_write_ms);

#endif
