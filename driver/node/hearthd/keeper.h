/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node plugin's state of each staged volume, in memory only: the spec given to hearthd,
 * which holds the Ceph key, and a duplicate of the FUSE descriptor. A restarted node plugin gets
 * both back from hearthd ("fetch").
 *
 * A duplicate keeps the connection from being aborted when hearthd dies: calls of applications
 * wait instead of failing. Until it is given to a new hearthd they would wait for ever;
 * keeper_release() closes the duplicates, so that they fail at once. Closing one never harms a
 * volume that is served.
 *
 * Every function may be called from any thread.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_KEEPER_H
#define HEARTH_DRIVER_NODE_HEARTHD_KEEPER_H

#include <glib.h>
#include <jansson.h>

typedef struct Keeper Keeper;

Keeper *keeper_new(void);
/* Overwrites the secrets, closes the descriptors. */
void keeper_free(Keeper *keeper);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Keeper, keeper_free)

/* Replaces the kept state of the volume. Copies the spec; takes the descriptor (-1: none). */
void keeper_put(Keeper *keeper, const char *volume, const json_t *spec, int fuse_fd);
/* Replaces the spec of a volume that is kept; copies it. */
void keeper_renew(Keeper *keeper, const char *volume, const json_t *spec);
/* A copy of the spec, for node_spec_free(); NULL when the volume is not kept. */
json_t *keeper_spec(Keeper *keeper, const char *volume);
/* Whether both spec and descriptor are kept. */
gboolean keeper_is_complete(Keeper *keeper, const char *volume);
void keeper_drop(Keeper *keeper, const char *volume);
/* Closes the volume's descriptor and keeps its spec. */
void keeper_release_volume(Keeper *keeper, const char *volume);
/* Closes every descriptor and keeps the specs. The number closed. */
unsigned keeper_release(Keeper *keeper);

#endif
