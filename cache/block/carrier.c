/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that Ceph has answered or accepted, on their way to the disk: from the moment that the
 * request is sent until they are installed or discarded.
 */
#include "cache/block/internal.h"

/* More than this is not noted block by block. */
#define ZERO_MAX_BYTES (64u << 20)

void cached_use(Cached *c)
{
    pthread_mutex_lock(&c->lock);
    c->under_way++;
    pthread_mutex_unlock(&c->lock);
}

void cached_unuse(Cached *c)
{
    pthread_mutex_lock(&c->lock);
    if (--c->under_way == 0)
        pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->lock);
}

void carrier_begin_locked(Carrier *carrier)
{
    cached_use(carrier->cached);
    flights_begin_locked(&carrier->kept->flights, &carrier->flight);
}

static void carrier_end(Carrier *carrier)
{
    Cached *c = carrier->cached;
    Flights *flights = &carrier->kept->flights;
    ImageCache *cache = carrier->kept->cache;
    const size_t buffered = carrier->buffered;
    pthread_mutex_lock(&flights->lock);
    flights_end_locked(flights, &carrier->flight);
    pthread_mutex_unlock(&flights->lock);
    g_free(carrier->owned);
    g_free(carrier);
    if (buffered)
        buffers_give(cache, buffered);
    cached_unuse(c);
}

void carrier_landed(Carrier *carrier, gboolean good)
{
    Flights *flights = &carrier->kept->flights;
    pthread_mutex_lock(&flights->lock);
    carrier->flight.spoilt |= !good;
    good = flights_landed_locked(flights, &carrier->flight);
    pthread_mutex_unlock(&flights->lock);
    if (good && carrier->len && kept_is_usable(carrier->kept))
        workers_push(carrier->kept->cache->installers, carrier);
    else
        carrier_end(carrier);
}

static int install_data(Carrier *carrier, uint32_t *sums)
{
    Kept *k = carrier->kept;
    int rc = block_file_write(k->file, carrier->buf, carrier->len, carrier->off, sums);
    pthread_mutex_lock(&k->flights.lock);
    if (rc == 0 && !carrier->flight.spoilt)
        rc = block_file_vouch(k->file, sums, carrier->off, carrier->len);
    pthread_mutex_unlock(&k->flights.lock);
    return rc;
}

static int install_zeros(Carrier *carrier)
{
    Kept *k = carrier->kept;
    int rc = 0;
    block_file_punch(k->file, carrier->off, carrier->len);
    pthread_mutex_lock(&k->flights.lock);
    if (!carrier->flight.spoilt && carrier->len <= ZERO_MAX_BYTES)
        rc = block_file_vouch(k->file, NULL, carrier->off, carrier->len);
    pthread_mutex_unlock(&k->flights.lock);
    return rc;
}

void carrier_install(void *data, void *unused)
{
    (void)unused;
    Carrier *carrier = data;
    Kept *k = carrier->kept;
    int rc = 0;
    pthread_mutex_lock(&k->flights.lock);
    gboolean good = flights_install_locked(&k->flights, &carrier->flight);
    pthread_mutex_unlock(&k->flights.lock);
    if (good && carrier->buf && block_space_take(k, carrier->len)) {
        g_autofree uint32_t *sums = g_new(uint32_t, carrier->len / BLOCK_BYTES);
        rc = install_data(carrier, sums);
        kept_use(k, carrier->off, carrier->len);
    } else if (good && !carrier->buf) {
        rc = install_zeros(carrier);
    }
    if (rc < 0)
        store_report_disk(k->cache->store, rc);
    carrier_end(carrier);
}
