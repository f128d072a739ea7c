/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a node: runs one order of a CacheWarmup (order.h) with hearthd: opens the dataset, waits for
 * its manifest, and has each path fetched. Temporary failures, as when hearthd or Ceph is away, are
 * tried again for WARMUP_PATIENCE_S (status.h); hearthd continues where it stopped.
 */
#ifndef HEARTH_DRIVER_WARMUP_TASK_H
#define HEARTH_DRIVER_WARMUP_TASK_H

#include <gio/gio.h>
#include "driver/node/hearthd/crush_location.h"
#include "driver/warmup/order.h"
#include "driver/warmup/places.h"

/* What a node needs for its tasks. */
typedef struct WarmupConfig {
    const char *hearthd_socket;
    const char *cluster_config; /* volume/config.h */
    const char *secret_dir; /* volume/secret_dir.h: the Ceph user; NULL: none, all orders fail */
    CrushLocation *crush_location; /* of the node; NULL: not known */
    WarmupPlaces *places;          /* in which it runs; NULL: it waits for no place */
    gint64 first_pause_ms;         /* between tries; 0: 1 s. It doubles, to 30 s */
    gint64 patience_s;             /* 0: WARMUP_PATIENCE_S */
} WarmupConfig;

/* Blocks until it has ended: the last state passed to on_progress is Succeeded, Failed, or, when
 * `cancel` was cancelled, Cancelled. All is borrowed. */
void warmup_task_run(const WarmupOrder *order, const WarmupConfig *config, GCancellable *cancel,
                     void (*on_progress)(const WarmupDoing *doing, void *data), void *data);

#endif
