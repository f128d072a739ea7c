/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches hearthd from the node plugin, on one thread. It holds an idle connection, so it sees the
 * end of hearthd at once. Then it releases the keeper's descriptors that the next hearthd cannot
 * serve, and calls on those volumes fail at once instead of hanging. The others wait for the next
 * hearthd, which gets them as soon as it is there (hand_over.h), but not for ever. A hearthd that
 * was killed and cannot end it helps by ending its mounts (peer.h). When hearthd is there (again),
 * it fetches the volumes that are mounted but not kept, as after a restart of the node plugin.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_WATCH_H
#define HEARTH_DRIVER_NODE_HEARTHD_WATCH_H

#include <glib.h>
#include "common/busy.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/keeper.h"
#include "driver/node/mount/mount.h"

typedef struct Watch Watch;

/* How long volumes wait for the next hearthd when nothing else is said. */
#define WATCH_WAIT_SEC 600

/* What is watched. Borrowed until watch_free() has returned. */
typedef struct WatchConfig {
    const char *socket_path;
    NodeMounter *mounter;
    Keeper *keeper;
    Busy *busy;
    unsigned wait_sec; /* how long volumes wait for the next hearthd */
} WatchConfig;

Watch *watch_new(const WatchConfig *config);
/* Stops and joins the thread. */
void watch_free(Watch *watch);

/* hearthd does not serve the volume, although it has not been seen to end: it gets the mount again,
 * if it can serve it. */
void watch_hand_over(Watch *watch, const char *volume);

/*
 * The name under which a served volume is held (common/busy.h); the caller's. It is the volume's,
 * but all volumes that hearthd serves for one dataset are held as one.
 */
char *watch_busy_name(const char *volume);
/* The spec of a volume that hearthd serves, the caller's. One that is not kept completely is
 * fetched, and kept from now on. NULL with hearthd's error, NOT_FOUND among them. */
json_t *watch_spec(Keeper *keeper, HearthdLink *link, const char *volume, GError **error);

#endif
