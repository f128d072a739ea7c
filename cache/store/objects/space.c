/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the store may hold. Two bounds apply, each with a high and a low watermark: the
 * configured one, on the ledger's sums; and the file system's own, on what statvfs(2) says, for
 * both bytes and inodes, because other programs write there too, and a full file system is a
 * problem for all of them.
 *
 * The space of an open object is not free when the object is removed. So nothing here loops until
 * statvfs shows free space: removed bytes are noted as credit, the credit counts as free until the
 * file system shows it, and it halves every minute in case that never happens.
 */
#include <limits.h>
#include <string.h>
#include "cache/store/objects/internal.h"

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

uint64_t space_of_others(Store *store)
{
    uint64_t bytes = 0, most = store->config.max_bytes / 2;
    for (int i = 0; i < STORE_OTHERS; i++)
        bytes += atomic_load(&store->others[i]);
    return most ? MIN(bytes, most) : bytes;
}

void store_set_other_bytes(Store *store, StoreOther other, uint64_t bytes)
{
    atomic_store(&store->others[other], bytes);
    wake_kick(&store->evictor);
}

uint64_t store_image_room(Store *store)
{
    uint64_t of_objects, inodes, all;
    const uint64_t images = atomic_load(&store->others[STORE_OTHER_IMAGES]);
    space_bounds(store, &of_objects, &inodes);
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

/* Measures the file system, unless that was done a moment ago. */
static void sample_locked(Store *store, uint64_t max_age_ms)
{
    Space *space = &store->space;
    uint64_t now = monotonic_ms();
    if (space->sampled && now - space->sampled_at_ms < max_age_ms)
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
    if (space->sampled) {
        /* If nothing had become free, all that was added would show. */
        see_freed(&space->credit_bytes, space->used + linked.bytes - space->linked.bytes, used);
        see_freed(&space->credit_files, space->files + linked.objects - space->linked.objects,
                  files);
    }
    if (now - space->credit_at_ms >= CREDIT_HALF_MS) {
        space->credit_bytes /= 2;
        space->credit_files /= 2;
        space->credit_at_ms = now;
    }
    space->used = used;
    space->total = used + st.f_bavail * unit;
    space->files = files;
    /* btrfs has no inode count, XFS makes inodes when needed: there is no bound. */
    space->files_total = st.f_files && st.f_favail ? files + st.f_favail : 0;
    space->linked = linked;
    space->sampled = TRUE;
    space->sampled_at_ms = now;
}

/* Includes what was added since the sample: a fast disk writes a lot in a quarter of a second. */
static IndexTotals used_now_locked(Store *store)
{
    const Space *space = &store->space;
    IndexTotals linked = ledger_ever_linked(&store->ledger);
    return (IndexTotals){space->used + linked.bytes - space->linked.bytes,
                         space->files + linked.objects - space->linked.objects};
}

void space_credit(Store *store, const IndexTotals *removed)
{
    Space *space = &store->space;
    pthread_mutex_lock(&space->lock);
    if (space->credit_bytes == 0 && space->credit_files == 0)
        space->credit_at_ms = monotonic_ms();
    space->credit_bytes += removed->bytes;
    space->credit_files += removed->objects;
    pthread_mutex_unlock(&space->lock);
}

void space_forget(Store *store)
{
    Space *space = &store->space;
    pthread_mutex_lock(&space->lock);
    space->sampled = FALSE;
    space->credit_bytes = space->credit_files = 0;
    pthread_mutex_unlock(&space->lock);
}

void space_ask(Store *store, uint64_t charge)
{
    Space *space = &store->space;
    pthread_mutex_lock(&space->lock);
    space->asked = MAX(space->asked, charge);
    pthread_mutex_unlock(&space->lock);
    wake_kick(&store->evictor);
}

uint64_t space_take_asked(Store *store)
{
    Space *space = &store->space;
    pthread_mutex_lock(&space->lock);
    uint64_t asked = space->asked;
    space->asked = 0;
    pthread_mutex_unlock(&space->lock);
    return asked;
}

/* What is too much once an object of this charge is held as well; 0 if all of it is not enough. */
static void make_fit(uint64_t *excess, uint64_t used, uint64_t asked, uint64_t limit, uint64_t held)
{
    uint64_t missing = above(used + asked, limit);
    if (asked && missing <= held)
        *excess = MAX(*excess, missing);
}

IndexTotals space_excess(Store *store, gboolean pressing, uint64_t asked)
{
    const StoreConfig *config = &store->config;
    Space *space = &store->space;
    IndexTotals sum = ledger_sum(&store->ledger);
    IndexTotals held = ledger_held(&store->ledger);
    IndexTotals excess = {0, 0};
    sum.bytes += space_of_others(store);
    unsigned high = pressing ? config->low_percent : config->high_percent;
    if (config->max_bytes && sum.bytes > percent(config->max_bytes, high))
        excess.bytes = above(sum.bytes, percent(config->max_bytes, config->low_percent));
    if (config->max_inodes && sum.objects > percent(config->max_inodes, high))
        excess.objects = above(sum.objects, percent(config->max_inodes, config->low_percent));
    if (config->max_bytes)
        make_fit(&excess.bytes, sum.bytes, asked, config->max_bytes, held.bytes);
    if (config->max_inodes)
        make_fit(&excess.objects, sum.objects, asked ? 1 : 0, config->max_inodes, held.objects);

    pthread_mutex_lock(&space->lock);
    sample_locked(store, SAMPLE_MS);
    if (space->sampled) {
        const unsigned full = (config->high_percent + 100) / 2;
        IndexTotals in_use = used_now_locked(store);
        uint64_t used = above(in_use.bytes, space->credit_bytes);
        uint64_t files = above(in_use.objects, space->credit_files);
        if (used > percent(space->total, high))
            excess.bytes =
                MAX(excess.bytes, above(used, percent(space->total, config->low_percent)));
        if (space->files_total && files > percent(space->files_total, high))
            excess.objects =
                MAX(excess.objects, above(files, percent(space->files_total, config->low_percent)));
        make_fit(&excess.bytes, used, asked, percent(space->total, full), held.bytes);
        if (space->files_total)
            make_fit(&excess.objects, files, asked ? 1 : 0, percent(space->files_total, full),
                     held.objects);
    }
    pthread_mutex_unlock(&space->lock);
    excess.bytes = MIN(excess.bytes, held.bytes);
    excess.objects = MIN(excess.objects, held.objects);
    return excess;
}

gboolean space_try_reserve(Store *store, const IndexTotals *charge, IndexTotals *missing)
{
    const StoreConfig *config = &store->config;
    Ledger *ledger = &store->ledger;
    pthread_mutex_lock(&ledger->lock);
    uint64_t bytes = ledger->indexed.bytes + ledger->waiting.bytes + ledger->reserved.bytes +
                     space_of_others(store) + charge->bytes;
    uint64_t objects = ledger->indexed.objects + ledger->waiting.objects +
                       ledger->reserved.objects + charge->objects;
    missing->bytes = config->max_bytes ? above(bytes, config->max_bytes) : 0;
    missing->objects = config->max_inodes ? above(objects, config->max_inodes) : 0;
    gboolean fits = missing->bytes == 0 && missing->objects == 0;
    if (fits) {
        ledger->reserved.bytes += charge->bytes;
        ledger->reserved.objects += charge->objects;
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
 * is reserved by fills of whole objects may be written already; counting it twice errs on the safe
 * side.
 */
static gboolean file_system_fits(Store *store, gboolean again, IndexTotals *missing,
                                 gboolean *press)
{
    Space *space = &store->space;
    IndexTotals sum = ledger_sum(&store->ledger), held = ledger_held(&store->ledger);
    const uint64_t written = ledger_written_bytes(&store->ledger);
    unsigned limit = (store->config.high_percent + 100) / 2;
    *press = FALSE;
    *missing = (IndexTotals){0, 0};
    pthread_mutex_lock(&space->lock);
    sample_locked(store, again ? 0 : SAMPLE_MS);
    if (space->sampled) {
        IndexTotals in_use = used_now_locked(store);
        uint64_t used = in_use.bytes + above(sum.bytes - held.bytes, written);
        missing->bytes = above(used, percent(space->total, limit));
        *press = used > percent(space->total, store->config.high_percent);
        if (space->files_total) {
            uint64_t files = in_use.objects + sum.objects - held.objects;
            missing->objects = above(files, percent(space->files_total, limit));
            *press |= files > percent(space->files_total, store->config.high_percent);
        }
    }
    pthread_mutex_unlock(&space->lock);
    return missing->bytes == 0 && missing->objects == 0;
}

gboolean space_file_system_fits(Store *store, gboolean again, IndexTotals *missing)
{
    gboolean press, fits = file_system_fits(store, again, missing, &press);
    if (press)
        wake_kick(&store->evictor);
    return fits;
}

gboolean space_is_nearly_full(Store *store)
{
    gboolean press;
    IndexTotals missing;
    return !file_system_fits(store, FALSE, &missing, &press);
}

gboolean space_is_awaited(Store *store, const IndexTotals *missing)
{
    Space *space = &store->space;
    pthread_mutex_lock(&space->lock);
    gboolean awaited =
        space->credit_bytes >= missing->bytes && space->credit_files >= missing->objects;
    pthread_mutex_unlock(&space->lock);
    return awaited;
}

/* An object that does not fit below the high watermark would be evicted as soon as it is complete.
 */
gboolean space_is_enough_for(Store *store, uint64_t charge)
{
    const StoreConfig *config = &store->config;
    return !config->max_bytes ||
           charge + space_of_others(store) <= percent(config->max_bytes, config->high_percent);
}

void space_bounds(Store *store, uint64_t *max_bytes, uint64_t *max_inodes)
{
    const StoreConfig *config = &store->config;
    Space *space = &store->space;
    IndexTotals held = ledger_held(&store->ledger);
    uint64_t bytes = UINT64_MAX, files = UINT64_MAX;
    pthread_mutex_lock(&space->lock);
    sample_locked(store, SAMPLE_MS);
    if (space->sampled) {
        bytes = held.bytes + above(percent(space->total, config->high_percent), space->used);
        if (space->files_total)
            files = held.objects +
                    above(percent(space->files_total, config->high_percent), space->files);
    }
    pthread_mutex_unlock(&space->lock);
    *max_bytes = config->max_bytes ? MIN(config->max_bytes, bytes) : bytes;
    *max_inodes = config->max_inodes ? MIN(config->max_inodes, files) : files;
}
