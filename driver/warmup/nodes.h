/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a CacheWarmup: among those whose labels match, all that can hold the dataset, or the
 * `nodes` best of them. The best have most of the dataset already, then were part of the run
 * before, then have most room, then come first by name. So a repeated choice stays the same: the
 * chosen nodes have fetched something.
 *
 * A node can hold it when it is ready and not cordoned (jobs could not go there), its cache is in
 * use, it has reported within WARM_STALE_MS (driver/warmth/labels.h), and the missing part fits.
 * Each node that cannot has a reason. Nodes whose labels do not match, or that were not needed,
 * have none. No I/O.
 */
#ifndef HEARTH_DRIVER_WARMUP_NODES_H
#define HEARTH_DRIVER_WARMUP_NODES_H

#include <glib.h>
#include <jansson.h>
#include "driver/warmup/warmup.h"

/* One node, from its Node and its NodeCache; all is borrowed. */
typedef struct WarmupCandidate {
    const char *name;
    const json_t *labels; /* metadata.labels of the Node; NULL: none */
    gboolean ready, cordoned;
    gint64 age_ms;    /* since its last heartbeat; < 0: it has no NodeCache that reports */
    const char *disk; /* of its cache: ok, suspect, bypass, off; "" while hearthd does not answer */
    guint64 room;     /* bytes that can be fetched: free, or held by other datasets, less what other
                         runs still fetch */
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

/* total: bytes to be warm, 0: not known (then no node is too small). */
void warmup_nodes_choose(const Warmup *warmup, guint64 total, const WarmupCandidate *candidates,
                         gsize n, WarmupChoice *choice);
void warmup_choice_clear(WarmupChoice *choice);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WarmupChoice, warmup_choice_clear)

/* For people, the caller's: "2 of the 3 nodes asked for; of 5 that match, cordoned: n4; too small:
 * n1, n2". Names a few nodes for each reason; "" when no node is missing. */
char *warmup_choice_message(const Warmup *warmup, const WarmupChoice *choice);

#endif
