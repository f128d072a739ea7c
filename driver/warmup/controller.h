/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's part in CacheWarmups: watches them, and while `may_act` returns TRUE begins
 * their runs, chooses nodes, orders the nodes to run them (order.h), and writes their progress into
 * their status. The decisions are in warmup.h, nodes.h and status.h.
 *
 * All state is in the API, so another controller continues where this one ended.
 */
#ifndef HEARTH_DRIVER_WARMUP_CONTROLLER_H
#define HEARTH_DRIVER_WARMUP_CONTROLLER_H

#include "driver/warmth/warmth.h"
#include "driver/warmup/target.h"

typedef struct WarmupsOps {
    gboolean (*may_act)(void *data); /* asked before each write, from a thread of ours */
    const char *driver_name, *cluster_config;
    WarmupClaims claim_of; /* from that thread too */
    void *claims;          /* its data; borrowed until warmups_free() */
    gint64 round_ms;       /* between two rounds; 0: 1 s */
    gint64 retry_ms;       /* before a run that must wait is tried again; 0: 10 s */
} WarmupsOps;

typedef struct Warmups Warmups;

/* client and warmth are borrowed until warmups_free(), strings are copied. Starts its threads. */
Warmups *warmups_new(KubeClient *client, Warmth *warmth, const WarmupsOps *ops, void *data);
void warmups_free(Warmups *warmups);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Warmups, warmups_free)

#endif
