/* SPDX-License-Identifier: Apache-2.0 */
/* Depth-first walk over the regular files beneath a node. Memory is bounded by depth, not by the
 * number of entries. */
#ifndef HEARTH_CACHE_WARM_WALK_H
#define HEARTH_CACHE_WARM_WALK_H

#include "cache/origin/origin.h"

typedef struct WalkVisitor {
    /* A regular file; node is borrowed. FALSE ends the walk. */
    gboolean (*file)(void *data, const char *path, OriginNode *node, const OriginAttr *attr);
    /* A directory could not be read: the walk goes on without it. May be NULL. */
    void (*failed)(void *data, const char *path, int error);
    void *data;
} WalkVisitor;

/* `path` names `node`. FALSE when the visitor ended it. */
gboolean walk(Origin *origin, OriginNode *node, const OriginAttr *attr, const char *path,
              const WalkVisitor *visitor);

#endif
