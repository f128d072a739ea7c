/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of an image that are under way to or from Ceph, so that the cache never has other bytes
 * than Ceph:
 *
 *   write:  begins (its blocks are forgotten) --Ceph--> has landed --installed--> gone
 *   fill:   begins ----------------------------Ceph--> has landed --installed--> gone
 *
 * A flight that has landed may install its bytes, unless it was spoilt. A fill is spoilt by any
 * write that began after it or had not landed when it began. A write is spoilt by another write
 * that began later, or that had not landed or was being installed when it began: Ceph's order of
 * those is not known.
 *
 * The caller holds `lock` for all of it. It is a leaf, except that the words of the file are
 * forgotten and vouched for under it.
 */
#ifndef HEARTH_CACHE_BLOCK_IN_FLIGHT_H
#define HEARTH_CACHE_BLOCK_IN_FLIGHT_H

#include <glib.h>
#include <pthread.h>
#include <stdint.h>

typedef enum FlightState { FLIGHT_AIRBORNE, FLIGHT_LANDED, FLIGHT_INSTALLING } FlightState;

/* Embedded in the request. The range is of whole blocks. */
typedef struct Flight {
    uint64_t off, end;
    gboolean is_write, spoilt;
    gboolean sure; /* of a fill that has landed: its bytes are right for every reader */
    FlightState state;
    struct Flight *previous, *next;
} Flight;

typedef struct Flights {
    pthread_mutex_t lock;
    Flight *first;
} Flights;

void flights_init(Flights *flights);
void flights_destroy(Flights *flights);

/* Adds one, its range and kind filled in. */
void flights_begin_locked(Flights *flights, Flight *flight);
/* FALSE: spoilt; it must not be installed. */
gboolean flights_landed_locked(Flights *flights, Flight *flight);
gboolean flights_install_locked(Flights *flights, Flight *flight);
void flights_end_locked(Flights *flights, Flight *flight);

/* Spoils all flights. */
void flights_spoil_locked(Flights *flights);

/* A fill that covers the range and that has, or will have, Ceph's current bytes; NULL: none. */
Flight *flights_find_fill_locked(Flights *flights, uint64_t off, uint64_t end);
#endif
