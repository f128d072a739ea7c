/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room: how much the store may hold. Two bounds apply, each with a high and a low watermark: the
 * configured one, on what the ledger says; and the file system's own, on what statvfs(2) says, for
 * both bytes and inodes, because others write there too and a full file system helps nobody.
 *
 * Space of an object that somebody has open is not free when the object is removed. So nothing here
 * loops until statvfs shows room: what was removed is noted as credit, the credit counts as free
 * until seen, and it halves every minute in case it never is.
 */
#include <limits.h>
#include <string.h>
#include "cache/store/internal.h"

#define SAMPLE_MS 250
#define CREDIT_HALF_MS 60000

static uint64_t percent(uint64_t of, unsigned n)
{
    return of / 100 * n + of % 100 * n / 100;
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

uint64_t room_others(Store *store)
{
    uint64_t bytes = 0, most = store->config.max_bytes / 2;
    for (int i = 0; i < STORE_OTHERS; i++)
        bytes += atomic_load(&store->others[i]);
    return most ? MIN(bytes, most) : bytes;
}

uint64_t store_image_room(Store *store)
{
    uint64_t of_objects, inodes, all;
    const uint64_t images = atomic_load(&store->others[STORE_OTHER_IMAGES]);
    room_bounds(store, &of_objects, &inodes);
    all = of_objects > UINT64_MAX - images ? UINT64_MAX : of_objects + images;
    if (store->config.max_bytes)
        all = MIN(all, percent(store->config.max_bytes, store->config.high_percent));
    return MAX(all / 2, above(all, ledger_held(&store->ledger).bytes +
                                       atomic_load(&store->others[STORE_OTHER_MANIFESTS])));
}

static void see_freed(uint64_t *credit, uint64_t before, uint64_t now)
{
    *credit -= MIN(*credit, above(before, now));
}

/* Looks at the file system anew unless it was looked at a moment ago. */
static void sample_locked(Store *store, uint64_t max_age_ms)
{
    Room *room = &store->room;
    uint64_t now = store_mono_ms();
    if (room->sampled && now - room->sampled_at_ms < max_age_ms)
        return;
    struct statvfs st;
    IndexTotals linked = ledger_ever_linked(&store->ledger);
    int rc = store->hooks.statvfs
                 ? store->hooks.statvfs(store->hooks.data, store->layout.objects_fd, &st)
                 : fstatvfs(store->layout.objects_fd, &st);
    if (rc < 0)
        return;
    uint64_t unit = st.f_frsize ? st.f_frsize : st.f_bsize;
    uint64_t used = above(st.f_blocks, st.f_bfree) * unit;
    uint64_t files = above(st.f_files, st.f_ffree);
    if (room->sampled) {
        /* Had nothing come free, all that was added would show. */
        see_freed(&room->credit_bytes, room->used + linked.bytes - room->linked.bytes, used);
        see_freed(&room->credit_files, room->files + linked.objects - room->linked.objects, files);
    }
    if (now - room->credit_at_ms >= CREDIT_HALF_MS) {
        room->credit_bytes /= 2;
        room->credit_files /= 2;
        room->credit_at_ms = now;
    }
    room->used = used;
    room->total = used + st.f_bavail * unit;
    room->files = files;
    /* btrfs has no inode count, XFS makes inodes as it goes: nothing to keep within. */
    room->files_total = st.f_files && st.f_favail ? files + st.f_favail : 0;
    room->linked = linked;
    room->sampled = TRUE;
    room->sampled_at_ms = now;
}

/* What was added since the look: a fast disk writes a lot in a quarter of a second. */
static IndexTotals used_now_locked(Store *store)
{
    const Room *room = &store->room;
    IndexTotals linked = ledger_ever_linked(&store->ledger);
    return (IndexTotals){room->used + linked.bytes - room->linked.bytes,
                         room->files + linked.objects - room->linked.objects};
}

void room_credit(Store *store, const IndexTotals *removed)
{
    Room *room = &store->room;
    pthread_mutex_lock(&room->lock);
    if (room->credit_bytes == 0 && room->credit_files == 0)
        room->credit_at_ms = store_mono_ms();
    room->credit_bytes += removed->bytes;
    room->credit_files += removed->objects;
    pthread_mutex_unlock(&room->lock);
}

void room_forget(Store *store)
{
    Room *room = &store->room;
    pthread_mutex_lock(&room->lock);
    room->sampled = FALSE;
    room->credit_bytes = room->credit_files = 0;
    pthread_mutex_unlock(&room->lock);
}

IndexTotals room_excess(Store *store, gboolean pressing)
{
    const StoreConfig *config = &store->config;
    Room *room = &store->room;
    IndexTotals sum = ledger_sum(&store->ledger);
    IndexTotals held = ledger_held(&store->ledger);
    IndexTotals excess = {0, 0};
    sum.bytes += room_others(store);
    unsigned high = pressing ? config->low_percent : config->high_percent;
    if (config->max_bytes && sum.bytes > percent(config->max_bytes, high))
        excess.bytes = above(sum.bytes, percent(config->max_bytes, config->low_percent));
    if (config->max_inodes && sum.objects > percent(config->max_inodes, high))
        excess.objects = above(sum.objects, percent(config->max_inodes, config->low_percent));

    pthread_mutex_lock(&room->lock);
    sample_locked(store, SAMPLE_MS);
    if (room->sampled) {
        IndexTotals in_use = used_now_locked(store);
        uint64_t used = above(in_use.bytes, room->credit_bytes);
        uint64_t files = above(in_use.objects, room->credit_files);
        if (used > percent(room->total, high))
            excess.bytes =
                MAX(excess.bytes, above(used, percent(room->total, config->low_percent)));
        if (room->files_total && files > percent(room->files_total, high))
            excess.objects =
                MAX(excess.objects, above(files, percent(room->files_total, config->low_percent)));
    }
    pthread_mutex_unlock(&room->lock);
    excess.bytes = MIN(excess.bytes, held.bytes);
    excess.objects = MIN(excess.objects, held.objects);
    return excess;
}

/* The configured bound: reserves if there is room, or tells what is missing. */
static gboolean try_reserve(Store *store, uint64_t charge, IndexTotals *missing)
{
    const StoreConfig *config = &store->config;
    Ledger *ledger = &store->ledger;
    pthread_mutex_lock(&ledger->lock);
    uint64_t bytes = ledger->indexed.bytes + ledger->waiting.bytes + ledger->reserved.bytes +
                     room_others(store) + charge;
    uint64_t objects =
        ledger->indexed.objects + ledger->waiting.objects + ledger->reserved.objects + 1;
    missing->bytes = config->max_bytes ? above(bytes, config->max_bytes) : 0;
    missing->objects = config->max_inodes ? above(objects, config->max_inodes) : 0;
    gboolean fits = missing->bytes == 0 && missing->objects == 0;
    if (fits) {
        ledger->reserved.bytes += charge;
        ledger->reserved.objects++;
    }
    pthread_mutex_unlock(&ledger->lock);
    if (fits &&
        ((config->max_bytes && bytes > percent(config->max_bytes, config->high_percent)) ||
         (config->max_inodes && objects > percent(config->max_inodes, config->high_percent))))
        wake_kick(&store->evictor);
    return fits;
}

/*
 * The file system: reservations must not go beyond halfway from the high watermark to full. What
 * is reserved may be written already; counting it twice errs on the safe side.
 */
static gboolean file_system_fits(Store *store, uint64_t max_age_ms, IndexTotals *missing)
{
    Room *room = &store->room;
    IndexTotals sum = ledger_sum(&store->ledger), held = ledger_held(&store->ledger);
    unsigned limit = (store->config.high_percent + 100) / 2;
    gboolean press = FALSE;
    *missing = (IndexTotals){0, 0};
    pthread_mutex_lock(&room->lock);
    sample_locked(store, max_age_ms);
    if (room->sampled) {
        IndexTotals in_use = used_now_locked(store);
        uint64_t used = in_use.bytes + sum.bytes - held.bytes;
        missing->bytes = above(used, percent(room->total, limit));
        press = used > percent(room->total, store->config.high_percent);
        if (room->files_total) {
            uint64_t files = in_use.objects + sum.objects - held.objects;
            missing->objects = above(files, percent(room->files_total, limit));
            press |= files > percent(room->files_total, store->config.high_percent);
        }
    }
    pthread_mutex_unlock(&room->lock);
    if (press)
        wake_kick(&store->evictor);
    return missing->bytes == 0 && missing->objects == 0;
}

static gboolean reserve_evicting(Store *store, uint64_t charge)
{
    IndexTotals missing;
    if (try_reserve(store, charge, &missing))
        return TRUE;
    evict_begin(store, TRUE);
    EvictRun run = {.tag = NULL};
    gboolean fits = try_reserve(store, charge, &missing); /* others may have evicted meanwhile */
    if (!fits) {
        /* A little more than this fill needs: the next ones need room as well. */
        if (missing.bytes)
            missing.bytes += store->config.max_bytes / 64;
        if (missing.objects)
            missing.objects += store->config.max_inodes / 64;
        store_evict_locked(store, &run, missing.bytes, missing.objects, UINT_MAX);
        fits = try_reserve(store, charge, &missing);
    }
    evict_end(store);
    return fits;
}

/* Evicts once, and only if it can be enough and was not done already. */
static gboolean relieve_file_system(Store *store)
{
    IndexTotals missing;
    if (file_system_fits(store, SAMPLE_MS, &missing))
        return TRUE;
    evict_begin(store, TRUE);
    EvictRun run = {.tag = NULL};
    gboolean fits = file_system_fits(store, 0, &missing); /* others may have evicted meanwhile */
    IndexTotals held = ledger_held(&store->ledger);
    pthread_mutex_lock(&store->room.lock);
    gboolean awaited =
        store->room.credit_bytes >= missing.bytes && store->room.credit_files >= missing.objects;
    pthread_mutex_unlock(&store->room.lock);
    if (!fits && !awaited && missing.bytes <= held.bytes && missing.objects <= held.objects) {
        store_evict_locked(store, &run, missing.bytes, missing.objects, UINT_MAX);
        fits = file_system_fits(store, 0, &missing);
    }
    evict_end(store);
    return fits;
}

gboolean room_reserve(Store *store, uint64_t size)
{
    uint64_t charge = record_charge(size);
    const StoreConfig *config = &store->config;
    /* What does not fit below the high watermark would be evicted as soon as it is complete. */
    if (config->max_bytes &&
        charge + room_others(store) > percent(config->max_bytes, config->high_percent))
        return FALSE;
    if (!reserve_evicting(store, charge))
        return FALSE;
    if (relieve_file_system(store))
        return TRUE;
    ledger_unreserve(&store->ledger, charge);
    return FALSE;
}

void room_bounds(Store *store, uint64_t *max_bytes, uint64_t *max_inodes)
{
    const StoreConfig *config = &store->config;
    Room *room = &store->room;
    IndexTotals held = ledger_held(&store->ledger);
    uint64_t bytes = UINT64_MAX, files = UINT64_MAX;
    pthread_mutex_lock(&room->lock);
    sample_locked(store, SAMPLE_MS);
    if (room->sampled) {
        bytes = held.bytes + above(percent(room->total, config->high_percent), room->used);
        if (room->files_total)
            files =
                held.objects + above(percent(room->files_total, config->high_percent), room->files);
    }
    pthread_mutex_unlock(&room->lock);
    *max_bytes = config->max_bytes ? MIN(config->max_bytes, bytes) : bytes;
    *max_inodes = config->max_inodes ? MIN(config->max_inodes, files) : files;
}
