/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a node: watches the node's own NodeCache for orders of CacheWarmups (order.h), does a
 * few of them at a time, and tells what has become of them as long as they are ordered. What is
 * ordered no more is cancelled.
 */
#ifndef HEARTH_DRIVER_WARMUP_AGENT_H
#define HEARTH_DRIVER_WARMUP_AGENT_H

#include "driver/kube/client.h"
#include "driver/warmup/task.h"

#define WARMUP_AT_A_TIME 4

typedef struct WarmupAgent WarmupAgent;

/* client is borrowed until warmup_agent_free(); strings are copied. Starts its threads. */
WarmupAgent *warmup_agent_new(KubeClient *client, const char *node, const WarmupPlace *place);
/* Cancels what is under way and waits for it; it stays ordered, for the plugin that comes next. */
void warmup_agent_free(WarmupAgent *agent);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WarmupAgent, warmup_agent_free)

/* status.warmups; a new reference. From any thread. */
json_t *warmup_agent_report(WarmupAgent *agent);

#endif
