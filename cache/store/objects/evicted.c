/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One byte for each object, at a place that its id says, in a table of 4 MiB: the next object of
 * the same place replaces it. Once several million objects are evicted between two uses of one,
 * fewer are recognized; eviction is then more like least recently used first.
 */
#include "cache/store/objects/evicted.h"
#include <string.h>

#define PLACES (4U << 20)

void evicted_init(Evicted *evicted)
{
    evicted->marks = g_malloc0(PLACES);
}

void evicted_destroy(Evicted *evicted)
{
    g_free((void *)evicted->marks);
}

static _Atomic uint8_t *place_of(Evicted *evicted, const ObjectId *id, uint8_t *mark)
{
    uint32_t place;
    memcpy(&place, id->bytes, sizeof(place));
    *mark = MAX(id->bytes[sizeof(place)], 1);
    return &evicted->marks[place % PLACES];
}

void evicted_note(Evicted *evicted, const ObjectId *id)
{
    uint8_t mark;
    _Atomic uint8_t *place = place_of(evicted, id, &mark);
    atomic_store_explicit(place, mark, memory_order_relaxed);
}

gboolean evicted_take(Evicted *evicted, const ObjectId *id)
{
    uint8_t mark;
    _Atomic uint8_t *place = place_of(evicted, id, &mark);
    return atomic_compare_exchange_strong_explicit(place, &mark, 0, memory_order_relaxed,
                                                   memory_order_relaxed);
}
