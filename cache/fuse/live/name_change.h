/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names that are made here, in the table of known names (known_names.h). */
#ifndef HEARTH_CACHE_FUSE_LIVE_NAME_CHANGE_H
#define HEARTH_CACHE_FUSE_LIVE_NAME_CHANGE_H

#include <glib.h>
#include "cache/fuse/live/nodes.h"

/* A change of names that is made here; to and new_name are NULL for a removal. */
typedef struct NameChange {
    Node *from;
    const char *name;
    Node *to;
    const char *new_name;
    gboolean exchange;
    Node *moving[2]; /* in use; NULL: the kernel has none of that name */
} NameChange;

/* Around the call that makes it. */
void name_change_begin(Nodes *nodes, NameChange *change);
void name_change_end(Nodes *nodes, NameChange *change, gboolean done);

#endif
