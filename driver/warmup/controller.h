/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's part in CacheWarmups: watches them, and while `may_act` says so begins their
 * runs, on nodes of its choice, has the nodes do them (order.h), and tells in their status
 * how far they are. What is decided is in warmup.h, nodes.h and status.h.
 *
 * Nothing is kept that is not in the API: another controller goes on where this one ended.
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
    gint64 round_ms;       /* between two looks; 0: 1 s */
    gint64 retry_ms;       /* for what a run that is due still waits; 0: 10 s */
} WarmupsOps;

typedef struct Warmups Warmups;

/* client and warmth are borrowed until warmups_free(), strings are copied. Starts its threads. */
Warmups *warmups_new(KubeClient *client, Warmth *warmth, const WarmupsOps *ops, void *data);
void warmups_free(Warmups *warmups);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Warmups, warmups_free)

#endif
