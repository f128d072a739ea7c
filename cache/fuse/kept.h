/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of a file that was written here when its lease goes back: an object, and what
 * was written since, are together the content that had a certain version then. If the file still
 * has it when there is a lease again, they still are.
 */
#ifndef HEARTH_CACHE_FUSE_KEPT_H
#define HEARTH_CACHE_FUSE_KEPT_H

#include "cache/fuse/written.h"
#include "cache/store/disk/key.h"

typedef struct Kept {
    ObjectKey object;
    ObjectKey current; /* the file's, under the lease */
    uint64_t session;  /* origin_session() */
    unsigned writes;   /* how many had begun here before `current` was asked for */
    Written *written;  /* since the object's version */
} Kept;

/* Copies; takes a reference of its own. */
Kept *kept_new(const Kept *kept);
void kept_free(Kept *kept);
/* Whether the object is of use: nobody has changed the file since, here or elsewhere. */
gboolean kept_is_good(const Kept *kept, const Kept *now);

#endif
