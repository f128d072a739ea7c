/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the mounts that a hearthd has served to the next one. Their readers wait meanwhile, and see
 * no error. It works in the background, on several volumes at once, so that a Ceph cluster that
 * does not answer delays no volume of another for long. A mount that hearthd refuses for good is
 * released:
 * its readers get errors, and the next stage or publish mounts the volume again.
 *
 * It takes no hold of a volume. A mount that is removed meanwhile is no longer kept, which ends the
 * attempt.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_HAND_OVER_H
#define HEARTH_DRIVER_NODE_HEARTHD_HAND_OVER_H

#include <glib.h>
#include "driver/node/hearthd/keeper.h"

typedef struct HandOver HandOver;

/* Borrowed until hand_over_free() has returned. */
HandOver *hand_over_new(const char *socket_path, Keeper *keeper);
/* Ends and waits for what is under way. */
void hand_over_free(HandOver *all);

/* Begins, unless it is under way; nothing if the volume cannot wait (keeper.h). It goes on until
 * the volume is served, or cannot wait any more. */
void hand_over_begin(HandOver *all, const char *volume);
gboolean hand_over_is_under_way(HandOver *all, const char *volume);

#endif
