/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of what the keeper has, at hearth-keeper (proto/keep.h): what is kept of each mount that a
 * later hearthd might serve. So a node plugin that begins while no hearthd serves its mounts can
 * give them to the next one. A thread follows each change; without a hearth-keeper it tries again
 * every second, and nothing else is different.
 *
 * hearth-keeper gets up to three descriptors: a sealed memfd with the spec, which holds the Ceph
 * key, and the note; the FUSE descriptor; that of the state.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_KEPT_COPY_H
#define HEARTH_DRIVER_NODE_HEARTHD_KEPT_COPY_H

#include <glib.h>
#include "driver/node/hearthd/keeper.h"

typedef struct KeptCopy KeptCopy;

/*
 * First puts into the keeper what an earlier node plugin has left. `mounted` has the volumes with a
 * mount (char *), NULL: not known; of others nothing is taken. Borrows the keeper until
 * kept_copy_free(), and sets keeper_on_change().
 */
KeptCopy *kept_copy_new(const char *hearthd_socket, Keeper *keeper, GHashTable *mounted);
/* Waits until all changes are copied. */
void kept_copy_settle(KeptCopy *copy, gint64 timeout_ms);
/* The copies stay. No other thread may use the keeper. */
void kept_copy_free(KeptCopy *copy);

#endif
