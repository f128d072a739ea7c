/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrubber: a thread that verifies all objects in the order of their ids, at a bounded rate and
 * with the lowest I/O priority. It begins at a random id each time, so that a hearthd that is
 * restarted often does not verify the same objects only.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cache/store/objects/internal.h"
#include "cache/store/objects/verify.h"
#include "common/monotonic.h"

#define LIST 64
/* A pass begins no more often than this, */
#define PASS_MS (24 * 3600 * 1000ULL)
/* and takes so long at most, at this rate or more, if no rate is configured. */
#define DAILY_SEC (20 * 3600)
#define DAILY_MIN ((uint64_t)8 << 20)
/* Shorter pauses are added up. */
#define PAUSE_MS 100
/* linux/ioprio.h, which older headers do not have: the whole thread, class idle. */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE (3 << 13)

typedef struct Scrub {
    Store *store;
    uint64_t rate; /* of this pass */
    uint64_t owed_bytes;
} Scrub;

uint64_t store_scrub_rate(const StoreConfig *config, uint64_t held)
{
    if (config->scrub_bytes_per_sec != STORE_SCRUB_DAILY)
        return config->scrub_bytes_per_sec;
    const uint64_t needed = held / DAILY_SEC;
    return MAX(needed, DAILY_MIN);
}

static gboolean pause_for(void *data, size_t bytes)
{
    Scrub *s = data;
    s->owed_bytes += bytes;
    atomic_fetch_add(&s->store->scrub_bytes, bytes);
    uint64_t ms = s->owed_bytes * 1000 / s->rate;
    if (ms < PAUSE_MS)
        return !wake_stopping(&s->store->scrubber);
    s->owed_bytes = 0;
    return wake_wait(&s->store->scrubber, ms);
}

/* From `from` on; up to `to` (NULL: the last). FALSE: stopped. */
static gboolean scrub_range(Scrub *s, const ObjectId *from, const ObjectId *to)
{
    Store *store = s->store;
    const VerifyPace pace = {pause_for, s};
    ObjectId after = *from;
    gboolean end = FALSE;
    while (!end) {
        IndexEntry entries[LIST];
        ssize_t n = disk_state(&store->disk) == STORE_DISK_BYPASS
                        ? 0
                        : index_by_id(store->index, &after, entries, LIST, &end);
        for (ssize_t i = 0; i < n; i++) {
            after = entries[i].id;
            if (to && memcmp(&after, to, sizeof(after)) > 0)
                return TRUE;
            if (store_check(store, &after, &pace) == -ECANCELED)
                return FALSE;
            atomic_fetch_add(&store->scrub_objects, 1);
        }
        if (n <= 0 && !end && !wake_wait(&store->scrubber, store->hooks.check_ms))
            return FALSE; /* the disk fails, or the index is being rebuilt */
        if (wake_stopping(&store->scrubber))
            return FALSE;
    }
    return TRUE;
}

void *store_scrubber(void *data)
{
    Scrub s = {.store = data};
    Store *store = s.store;
    ObjectId start, none;
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
    memset(&none, 0, sizeof(none));
    for (size_t i = 0; i < sizeof(start.bytes); i++)
        start.bytes[i] = (uint8_t)g_random_int();
    uint64_t next_ms;
    do {
        next_ms = monotonic_ms() + PASS_MS;
        s.rate = store_scrub_rate(&store->config, ledger_held(&store->ledger).bytes);
        atomic_store(&store->scrub_objects, 0);
        atomic_store(&store->scrub_bytes, 0);
        if (!scrub_range(&s, &start, NULL) || !scrub_range(&s, &none, &start))
            break;
        atomic_store(&store->scrub_ended_ms, store_wall_ms(store));
        const uint64_t now = monotonic_ms();
        next_ms = next_ms > now ? next_ms - now : 0;
    } while (wake_wait(&store->scrubber, next_ms));
    return NULL;
}
