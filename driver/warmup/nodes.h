/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes a CacheWarmup gets: of those whose labels match, all that can hold the dataset, or
 * the `nodes` best of them: where most of it is already, then those that the run before had, then
 * where there is most room, then by name. So a choice that is made again stays as it is, for what
 * was fetched speaks for itself.
 *
 * A node can when it is ready and not cordoned (jobs could not go there), its cache is in use, it
 * has reported within WARM_STALE_MS (driver/warmth/labels.h), and what is missing fits. For each
 * that cannot there is a reason; those whose labels do not match, or that were not needed, have
 * none. No I/O.
 */
#ifndef HEARTH_DRIVER_WARMUP_NODES_H
#define HEARTH_DRIVER_WARMUP_NODES_H

#include <glib.h>
#include <jansson.h>
#include "driver/warmup/warmup.h"

/* Of one node, from its Node and its NodeCache; all is borrowed. */
typedef struct WarmupCandidate {
    const char *name;
    const json_t *labels; /* metadata.labels of the Node; NULL: none */
    gboolean ready, cordoned;
    gint64 age_ms;    /* since its last heartbeat; < 0: it has no NodeCache that reports */
    const char *disk; /* of its cache: ok, suspect, bypass, off; "" while hearthd does not answer */
    guint64 room;     /* bytes that may be fetched: free, and what may be evicted for it, less what
                         other runs were promised */
    guint64 bytes;    /* of the dataset that are there */
    gboolean before;  /* the run before had it */
} WarmupCandidate;

/* Sets name, labels, ready and cordoned from a Node; FALSE: it has no name. */
gboolean warmup_candidate_of_node(const json_t *node, WarmupCandidate *candidate);

typedef enum WarmupCannot {
    WARMUP_NOT_READY,
    WARMUP_CORDONED,
    WARMUP_NO_CACHE,  /* no NodeCache, or one that never reported */
    WARMUP_SILENT,    /* for WARM_STALE_MS */
    WARMUP_CACHE_OFF, /* off, or hearthd does not answer */
    WARMUP_BYPASS,    /* its disk is not used */
    WARMUP_TOO_SMALL,
    WARMUP_REASONS
} WarmupCannot;

typedef struct WarmupExcluded {
    const char *name; /* the candidate's */
    WarmupCannot why;
} WarmupExcluded;

typedef struct WarmupChoice {
    GPtrArray *names; /* the candidates' own; the best first */
    GArray *excluded; /* WarmupExcluded, by name */
    guint matching;   /* candidates that the labels leave */
} WarmupChoice;

/* total: bytes of what is to be warm, 0: not known (then no node is too small). */
void warmup_nodes_choose(const Warmup *warmup, guint64 total, const WarmupCandidate *candidates,
                         gsize n, WarmupChoice *choice);
void warmup_choice_clear(WarmupChoice *choice);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WarmupChoice, warmup_choice_clear)

/* For people, the caller's: "2 of the 3 nodes asked for; of 5 that match, cordoned: n4; too small:
 * n1, n2". Names a few nodes of each reason; "" when nobody is missing. */
char *warmup_choice_message(const Warmup *warmup, const WarmupChoice *choice);

#endif
