/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a node: watches the node's own NodeCache for orders of CacheWarmups (order.h), runs a
 * few of them at a time, and reports their state as long as they are ordered. An order that is
 * removed is cancelled.
 */
#ifndef HEARTH_DRIVER_WARMUP_AGENT_H
#define HEARTH_DRIVER_WARMUP_AGENT_H

#include "driver/kube/client.h"
#include "driver/warmup/task.h"

#define WARMUP_AT_A_TIME 4
/* For how long one has its place at least while other namespaces wait: places.h. */
#define WARMUP_TURN_MS (5 * 60 * 1000)

typedef struct WarmupAgent WarmupAgent;

/* client is borrowed until warmup_agent_free(); strings are copied. Starts its threads. */
WarmupAgent *warmup_agent_new(KubeClient *client, const char *node, const WarmupConfig *config);
/* Cancels the running orders and waits for them. They stay ordered, for the next plugin. */
void warmup_agent_free(WarmupAgent *agent);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WarmupAgent, warmup_agent_free)

/* status.warmups; a new reference. From any thread. */
json_t *warmup_agent_report(WarmupAgent *agent);

#endif
