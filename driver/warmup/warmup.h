/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CacheWarmup (csi.hearth.dev/v1alpha1, deploy/crds): an order to have a dataset in the caches of
 * nodes, once or by the clock. Here is what one asks for, and when a run of it is due; which nodes
 * it gets is nodes.h, what its status says status.h. No I/O, no clock but the
 * caller's.
 *
 * A run is known by the object's uid, the generation of its spec and the time it was scheduled for;
 * its name goes to the nodes with the status, and comes back in what they report. Of one
 * CacheWarmup there is never more than one run at a time:
 *
 *     once        at once, and again when the spec has changed
 *     scheduled   at the first time after it was made, then at each; of times that were missed (a
 *                 run was under way, it was suspended, no controller ran) the latest alone
 *
 * A spec that is changed while a run is under way makes a run that takes the other's place, for the
 * same time.
 */
#ifndef HEARTH_DRIVER_WARMUP_WARMUP_H
#define HEARTH_DRIVER_WARMUP_WARMUP_H

#include <glib.h>
#include <jansson.h>
#include "driver/kube/resource.h"
#include "driver/volume/dataset_key.h"
#include "driver/warmup/cron.h"

extern const KubeResource warmup_resource;

/* As the schema has it (deploy/crds). */
#define WARMUP_PATHS_MAX 64
#define WARMUP_NODES_MAX 5000
/* Bytes a second: a slower run would keep its place on a node for ever. */
#define WARMUP_RATE_MIN (256 << 10)

typedef struct Warmup {
    char *namespace, *name, *uid;
    gint64 generation, created_s; /* since 1970 */
    gboolean going;               /* being deleted */
    gboolean suspend;
    /* What: exactly one of both. */
    char *claim; /* a PersistentVolumeClaim of the namespace; NULL: the dataset is told */
    char dataset[DATASET_KEY_DIGITS + 1]; /* "": the claim's */
    GPtrArray *paths; /* relative, without "." and ".."; empty: all of it. Owns its texts */
    guint64 rate;     /* bytes a second, each node; 0: no bound */
    /* Where: so many nodes, or, with 0, all that have these labels. */
    guint nodes;
    GHashTable *selector; /* name -> value; empty: all */
    /* When. */
    gboolean scheduled;
    Cron cron;
} Warmup;

/*
 * HEARTH_ERROR_INVALID_ARGUMENT: the spec cannot be done; the message is for its status and names
 * field, value and mend. What the object is (name, uid, generation, going, suspend) is there all
 * the same. The schema refuses most of this; who wrote past it gets a word, too.
 */
gboolean warmup_read(const json_t *object, Warmup *warmup, GError **error);
void warmup_clear(Warmup *warmup);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Warmup, warmup_clear)

typedef struct WarmupRun {
    gint64 generation;
    gint64 time_s; /* that it was scheduled for; 0: of one that is done once */
} WarmupRun;

/* "UID.GENERATION.TIME", the caller's. */
char *warmup_run_name(const char *uid, const WarmupRun *run);
/* FALSE: it is no run, or one of an object with another uid. */
gboolean warmup_run_parse(const char *uid, const char *name, WarmupRun *run);

/* What `status` tells of what was done, for the next decision. */
typedef struct WarmupDone {
    gboolean any; /* there was a run of this very object */
    WarmupRun run;
    gboolean under_way;
    gint64 last_schedule_s; /* 0: never */
} WarmupDone;

void warmup_done_read(const Warmup *warmup, const json_t *status, WarmupDone *done);

/*
 * Whether a run is to begin now. When one is under way (done->under_way) it takes that one's place.
 * Suspended and going ones have none.
 */
gboolean warmup_due(const Warmup *warmup, const WarmupDone *done, gint64 now_s, WarmupRun *run);
/* What a node says, as it is kept: valid, without absolute paths, which are places in Ceph or on
 * the node, and its beginning, for a status of thousands has to be stored; the caller's. */
char *warmup_message(const char *text);
/* When the schedule has its next time, or -1: it has none. */
gint64 warmup_next_s(const Warmup *warmup, gint64 now_s);

#endif
