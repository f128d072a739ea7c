/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over hearthd from the node plugin, on one thread. It holds an idle connection, so the
 * end of hearthd is seen at once; then the keeper's descriptors are released, and calls on volumes
 * that nobody serves fail at once instead of hanging. Whenever hearthd is (again) there, volumes
 * found mounted but not kept, as after a restart of the node plugin, are fetched from it.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_WATCH_H
#define HEARTH_DRIVER_NODE_HEARTHD_WATCH_H

#include <glib.h>
#include "common/busy.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/keeper.h"
#include "driver/node/mount/mount.h"

typedef struct Watch Watch;

/* All are borrowed until watch_free() has returned. */
Watch *watch_new(const char *socket_path, NodeMounter *mounter, Keeper *keeper, Busy *busy);
/* Stops and joins the thread. */
void watch_free(Watch *watch);

/* Fetches a volume that is not kept completely. FALSE with hearthd's error, NOT_FOUND among them.
 */
gboolean watch_fetch(Keeper *keeper, HearthdLink *link, const char *volume, GError **error);

#endif
