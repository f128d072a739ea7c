/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is under way to or from Ceph in an image, so that the cache is never left with other bytes
 * than Ceph has:
 *
 *   write:  begins (its blocks are forgotten) --Ceph--> has landed --installed--> gone
 *   fill:   begins ----------------------------Ceph--> has landed --installed--> gone
 *
 * Who has landed may install what it carried, unless it was spoilt: a fill by any write that began
 * after it or had not landed when it began; a write by another that began later, or that had not
 * landed or was just being installed when it began: of those Ceph's order is not known.
 *
 * The caller holds the lock named `lock` for all of it; it is a leaf but for the words of the file,
 * which are forgotten and vouched for under it.
 */
#ifndef HEARTH_CACHE_BLOCK_IN_FLIGHT_H
#define HEARTH_CACHE_BLOCK_IN_FLIGHT_H

#include <glib.h>
#include <pthread.h>
#include <stdint.h>

typedef enum FlightState { FLIGHT_AIRBORNE, FLIGHT_LANDED, FLIGHT_INSTALLING } FlightState;

/* Embedded by what it is of. The range is of whole blocks. */
typedef struct Flight {
    uint64_t off, end;
    gboolean is_write, spoilt;
    gboolean sure; /* of a fill that has landed: its bytes are right whoever asks for them */
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
/* FALSE: spoilt; nothing of it is to be installed. */
gboolean flights_landed_locked(Flights *flights, Flight *flight);
gboolean flights_install_locked(Flights *flights, Flight *flight);
void flights_end_locked(Flights *flights, Flight *flight);

/* Nothing of what is under way is to be installed. */
void flights_spoil_locked(Flights *flights);

/* A fill that covers the range and whose bytes are Ceph's of now, or will be; NULL: none. */
Flight *flights_find_fill_locked(Flights *flights, uint64_t off, uint64_t end);
#endif
