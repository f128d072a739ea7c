/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes stacks that are mounted: no file of theirs is opened any more, in whatever mount
 * namespace, so also by containers that run. By fanotify(7) on the file system, whose every
 * question a thread answers with "no" (EPERM). What was open before can be read on: Linux
 * before 6.14 asks at each read, later ones only of files that were opened since somebody wants to
 * be asked, and none of what is mapped. It holds for as long as this process lives.
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
