/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CacheWarmup (csi.hearth.dev/v1alpha1, deploy/crds): an order to have a dataset in the caches of
 * nodes, once or by a schedule. This file has its spec, and decides when a run is due; nodes.h
 * chooses the nodes, and status.h writes the status. No I/O, no clock but the caller's.
 *
 * A run is identified by the object's uid, the generation of its spec and its scheduled time. Its
 * name goes to the nodes with the order, and comes back in their reports. A CacheWarmup has at most
 * one run at a time:
 *
 *     once        immediately, and again when the spec has changed
 *     scheduled   at the first time after it was created, then at each; after missed times (a run
 *                 was under way, it was suspended, no controller ran) only for the latest
 *
 * A spec that is changed while a run is under way begins a run that replaces it, for the same
 * time.
 */
#ifndef HEARTH_DRIVER_WARMUP_WARMUP_H
#define HEARTH_DRIVER_WARMUP_WARMUP_H

#include <glib.h>
#include <jansson.h>
#include "driver/kube/resource.h"
#include "common/dataset_key.h"
#include "driver/warmup/cron.h"

extern const KubeResource warmup_resource;

/* The limits of the schema (deploy/crds). */
#define WARMUP_PATHS_MAX 64
#define WARMUP_NODES_MAX 5000
/* Bytes a second: a slower run would occupy a node for ever. */
#define WARMUP_RATE_MIN (256 << 10)

typedef struct Warmup {
    char *namespace, *name, *uid;
    gint64 generation, created_s; /* since 1970 */
    gboolean going;               /* being deleted */
    gboolean suspend;
    /* The dataset: exactly one of both. */
    char *claim;      /* a PersistentVolumeClaim of the namespace; NULL: the dataset is named */
    char *dataset;    /* "": the claim's; else its key or its title (common/dataset_key.h) */
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
 * HEARTH_ERROR_INVALID_ARGUMENT: the spec is invalid; the message is for its status and names the
 * field, the value and the fix. name, uid, generation, going and suspend are set all the same. The
 * schema rejects most of this already.
 */
gboolean warmup_read(const json_t *object, Warmup *warmup, GError **error);
void warmup_clear(Warmup *warmup);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Warmup, warmup_clear)

typedef struct WarmupRun {
    gint64 generation;
    gint64 time_s; /* that it was scheduled for; 0: it runs once */
} WarmupRun;

/* "UID.GENERATION.TIME", the caller's. */
char *warmup_run_name(const char *uid, const WarmupRun *run);
/* FALSE: it is no run, or belongs to an object with another uid. */
gboolean warmup_run_parse(const char *uid, const char *name, WarmupRun *run);

/* The runs so far according to `status`, for the next decision. */
typedef struct WarmupDone {
    gboolean any; /* there was a run of this object */
    WarmupRun run;
    gboolean under_way;
    gint64 last_schedule_s; /* 0: never */
} WarmupDone;

void warmup_done_read(const Warmup *warmup, const json_t *status, WarmupDone *done);

/*
 * Whether a run must begin now. It replaces a run that is under way (done->under_way). A
 * CacheWarmup that is suspended or being deleted has none.
 */
gboolean warmup_due(const Warmup *warmup, const WarmupDone *done, gint64 now_s, WarmupRun *run);
/* The text of a node in the form that is stored: valid UTF-8, without absolute paths (of Ceph or
 * the node), and shortened, because a status has thousands of nodes; the caller's. */
char *warmup_message(const char *text);
/* The next time of the schedule; -1: there is none. */
gint64 warmup_next_s(const Warmup *warmup, gint64 now_s);

#endif
