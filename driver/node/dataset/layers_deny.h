/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes stacks that are mounted: their files cannot be opened any more, in any mount namespace, so
 * not by running containers either. fanotify(7) on the file system asks for permission, and a
 * thread denies it (EPERM). Files that were open before can still be read: Linux before 6.14 asks
 * at each read, later releases only for files opened after the mark was set, and never for mapped
 * pages. It holds for as long as this process lives.
 */
#ifndef HEARTH_DRIVER_NODE_DATASET_LAYERS_DENY_H
#define HEARTH_DRIVER_NODE_DATASET_LAYERS_DENY_H

#include <glib.h>
#include <sys/types.h>
#include "common/error.h"

typedef struct LayersDeny LayersDeny;

LayersDeny *layers_deny_new(void);
/* Opens all again. */
void layers_deny_free(LayersDeny *deny);
/* Closes the file system `dev` that is mounted at `path`, or opens it again. It may be repeated. */
gboolean layers_deny_set(LayersDeny *deny, const char *path, dev_t dev, gboolean on,
                         GError **error);

#endif
