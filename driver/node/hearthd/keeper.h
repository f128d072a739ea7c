/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node plugin's state of each staged volume, in memory only: the spec given to hearthd,
 * which holds the Ceph key, a duplicate of the FUSE descriptor, and hearthd's note if its successor
 * can serve the mount. A restarted node plugin gets all back from hearthd ("fetch").
 *
 * A duplicate keeps the connection from being aborted when hearthd dies: calls of applications
 * wait instead of failing. With a note they wait for the next hearthd (hand_over.h). Without one
 * they would wait for ever: keeper_release() closes such duplicates, so that they fail at once.
 * Closing one never harms a volume that is served.
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

/* Replaces the kept state of the volume. Copies spec and note (NULL: none); takes the descriptor
 * (-1: none). */
void keeper_put(Keeper *keeper, const char *volume, const json_t *spec, const char *note,
                int fuse_fd);
/* Replaces the spec of a volume that is kept; copies it. */
void keeper_renew(Keeper *keeper, const char *volume, const json_t *spec);
/* A copy of the spec, for node_spec_free(); NULL when the volume is not kept. */
json_t *keeper_spec(Keeper *keeper, const char *volume);
/* Whether both spec and descriptor are kept. */
gboolean keeper_is_complete(Keeper *keeper, const char *volume);
void keeper_drop(Keeper *keeper, const char *volume);
/* Closes the volume's descriptor and keeps its spec. */
void keeper_release_volume(Keeper *keeper, const char *volume);
/* hearthd has ended. Closes every descriptor without a note and keeps the specs. The number closed.
 */
unsigned keeper_release(Keeper *keeper);

/* ---- volumes that the next hearthd can serve */

/* Whether descriptor and note are kept. */
gboolean keeper_may_wait(Keeper *keeper, const char *volume);
/* Those that wait since keeper_release(): array of char *, the caller's. */
GPtrArray *keeper_waiting(Keeper *keeper);
/* Closes the descriptors of those that have waited for longer. The number closed. */
unsigned keeper_release_overdue(Keeper *keeper, gint64 wait_ms);

/* What the next hearthd needs. */
typedef struct KeptMount {
    json_t *spec; /* a copy, with a secret */
    char *note;
    int fuse_fd;   /* a duplicate */
    guint64 place; /* which keeper_put() it is of */
} KeptMount;

void kept_mount_clear(KeptMount *mount);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KeptMount, kept_mount_clear)

/* FALSE: it cannot wait (any more). From now on it waits, if it did not before. */
gboolean keeper_lend(Keeper *keeper, const char *volume, KeptMount *mount);
/* Closes what was lent: hearthd refuses it. Nothing if it was replaced meanwhile. */
void keeper_release_lent(Keeper *keeper, const char *volume, guint64 place);
/* It is served again, with this note from now on. FALSE: it was released or replaced meanwhile. */
gboolean keeper_served_again(Keeper *keeper, const char *volume, guint64 place, const char *note);

#endif
