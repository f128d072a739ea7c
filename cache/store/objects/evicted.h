/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which objects were evicted lately, from memory of fixed size. A fetch of one of them shows that
 * the files in use are more than the cache holds.
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_EVICTED_H
#define HEARTH_CACHE_STORE_OBJECTS_EVICTED_H

#include <stdatomic.h>
#include "cache/store/disk/key.h"

typedef struct Evicted {
    _Atomic uint8_t *marks;
} Evicted;

void evicted_init(Evicted *evicted);
void evicted_destroy(Evicted *evicted);
void evicted_note(Evicted *evicted, const ObjectId *id);
/* Whether it was evicted, and forgets it. In one of 255 cases it answers yes for another one. */
gboolean evicted_take(Evicted *evicted, const ObjectId *id);

#endif
