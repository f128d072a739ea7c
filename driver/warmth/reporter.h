/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a node: asks hearthd every 5 s what it holds, and writes that to the node's NodeCache, at once
 * when it is news (node_cache_is_news()), else every 30 s as a heartbeat. While hearthd does not
 * answer nothing is written, and the node counts as gone after WARM_STALE_MS (labels.h).
 */
#ifndef HEARTH_DRIVER_WARMTH_REPORTER_H
#define HEARTH_DRIVER_WARMTH_REPORTER_H

#include <jansson.h>
#include "driver/kube/client.h"
#include "driver/node/lost.h"

#define REPORTER_LOOK_MS 5000
#define REPORTER_BEAT_MS 30000

typedef struct Reporter Reporter;

typedef struct ReporterNode {
    const char *name, *tier, *zone; /* zone NULL or "": none */
    LostQuery lost;
} ReporterNode;

/* Where status.warmups comes from: runs() returns a new reference. Called from the thread. */
typedef struct ReporterWarmups {
    json_t *(*runs)(void *data);
    void *data;
} ReporterWarmups;

/* client and the data of warmups are borrowed until reporter_free(); strings are copied. Starts its
 * thread. */
Reporter *reporter_new(KubeClient *client, const ReporterNode *node,
                       const ReporterWarmups *warmups);
/* Stops and joins it. What was reported stays, for a plugin that is upgraded. */
void reporter_free(Reporter *reporter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Reporter, reporter_free)

#endif
