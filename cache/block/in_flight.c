/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/block/in_flight.h"

void flights_init(Flights *flights)
{
    *flights = (Flights){.first = NULL};
    pthread_mutex_init(&flights->lock, NULL);
}

void flights_destroy(Flights *flights)
{
    pthread_mutex_destroy(&flights->lock);
}

static gboolean overlaps(const Flight *a, const Flight *b)
{
    return a->off < b->end && b->off < a->end;
}

/* `other` was there before. */
static void mark_spoilt(Flight *flight, Flight *other)
{
    const gboolean unordered = other->is_write && other->state == FLIGHT_AIRBORNE;
    if (flight->is_write) {
        other->spoilt = TRUE;
        flight->spoilt |= unordered || other->state == FLIGHT_INSTALLING;
    } else {
        flight->spoilt |= unordered;
    }
}

void flights_begin_locked(Flights *flights, Flight *flight)
{
    flight->state = FLIGHT_AIRBORNE;
    flight->spoilt = flight->sure = FALSE;
    for (Flight *f = flights->first; f; f = f->next)
        if (overlaps(f, flight))
            mark_spoilt(flight, f);
    flight->previous = NULL;
    flight->next = flights->first;
    if (flight->next)
        flight->next->previous = flight;
    flights->first = flight;
}

gboolean flights_landed_locked(Flights *flights, Flight *flight)
{
    (void)flights;
    flight->state = FLIGHT_LANDED;
    flight->sure = !flight->spoilt;
    return flight->sure;
}

gboolean flights_install_locked(Flights *flights, Flight *flight)
{
    (void)flights;
    flight->state = FLIGHT_INSTALLING;
    return !flight->spoilt;
}

void flights_end_locked(Flights *flights, Flight *flight)
{
    if (flight->previous)
        flight->previous->next = flight->next;
    else
        flights->first = flight->next;
    if (flight->next)
        flight->next->previous = flight->previous;
}

void flights_spoil_locked(Flights *flights)
{
    for (Flight *f = flights->first; f; f = f->next)
        f->spoilt = TRUE;
}

Flight *flights_find_fill_locked(Flights *flights, uint64_t off, uint64_t end)
{
    for (Flight *f = flights->first; f; f = f->next)
        if (!f->is_write && !f->spoilt && f->off <= off && end <= f->end)
            return f;
    return NULL;
}
