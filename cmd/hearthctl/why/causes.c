/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of causes, in the order in which they are asked: what breaks the job first, then
 * whether it waits for storage at all, then faults below the cache, and at last what is normal.
 * Thresholds are shares that a person would call "most" or "some"; they are tested on both sides.
 */
#include "cmd/hearthctl/why/causes.h"

/* Of the time of threads that run or wait: less is no reason to look at storage. */
#define WAITS 0.10
/* One thread that runs half of the time. */
#define COMPUTES 0.5
/* Of the waiting. */
#define MOST 0.6
#define HALF 0.5
/* Warm, but for what was changed lately. */
#define WARM 0.99
/* Of the objects that were completed: had been evicted before. */
#define REFETCHED 0.10
/* What a read of Ceph may take: a fixed time, and for each MiB as long as at 40 MiB/s. */
#define SLOW_US 50000
#define SLOW_US_PER_MIB 25000
/* Of the cache: above it is full, as eviction begins at 90%. */
#define FULL 0.85
/* Ceph, or the network, is busy and not slow when it gives so much: many reads share it. */
#define BUSY_BYTES_PER_SEC 100e6

gboolean why_waits(const WhyFacts *f)
{
    return f->wait < 0 || f->wait >= WAITS;
}

uint64_t why_slow_us(const WhyFacts *f)
{
    const double mib =
        f->ceph_reads ? (double)f->ceph_bytes / (double)f->ceph_reads / (1 << 20) : 0;
    return SLOW_US + (uint64_t)(mib * SLOW_US_PER_MIB);
}

static gboolean is_lost(const WhyFacts *f)
{
    return f->lost;
}

static gboolean waits_elsewhere(const WhyFacts *f)
{
    return !why_waits(f) && f->other >= WAITS;
}

static gboolean computes(const WhyFacts *f)
{
    return !why_waits(f) && (f->running >= COMPUTES || f->cpus >= COMPUTES);
}

static gboolean is_idle(const WhyFacts *f)
{
    return !why_waits(f);
}

static gboolean reads_nothing(const WhyFacts *f)
{
    return f->ceph_reads + f->misses + f->from_cache + f->from_fills + f->from_ceph == 0;
}

/* Then no counter tells anything of the job. */
static gboolean is_unread(const WhyFacts *f)
{
    return f->wait < 0 && reads_nothing(f) && f->fills_active == 0;
}

/* Warm datasets are read past hearthd, so that silence needs a fetch that is under way. */
static gboolean is_silent(const WhyFacts *f)
{
    return f->wait >= HALF && f->kinds[WAIT_NAME] < MOST && f->ceph_reads == 0 &&
           f->from_cache + f->from_fills + f->from_ceph == 0 && (!f->native || f->fills_active > 0);
}

/* Most of what is read is neither in the cache nor on its way there. */
static gboolean goes_past_the_cache(const WhyFacts *f)
{
    return !f->image && f->from_ceph > f->from_cache + f->from_fills;
}

gboolean why_cache_is_full(const WhyFacts *f)
{
    return f->cache_most && (double)f->cache_bytes >= FULL * (double)f->cache_most;
}

static gboolean is_bypassed(const WhyFacts *f)
{
    return f->disk_off;
}

static gboolean waits_for_writes(const WhyFacts *f)
{
    return f->kinds[WAIT_WRITE] >= MOST;
}

static gboolean is_slow(const WhyFacts *f)
{
    return f->ceph_reads > 0 && f->ceph_us / f->ceph_reads > why_slow_us(f) &&
           (double)f->ceph_bytes < BUSY_BYTES_PER_SEC * f->seconds;
}

static gboolean is_uncached(const WhyFacts *f)
{
    return f->uncached;
}

gboolean why_has_no_room(const WhyFacts *f)
{
    return why_cache_is_full(f) && goes_past_the_cache(f);
}

static gboolean is_full(const WhyFacts *f)
{
    const gboolean too_large = f->cache_most && f->bytes_total > f->cache_most;
    const gboolean again =
        f->refetched > 0 && (double)f->refetched >= REFETCHED * (double)f->filled;
    return (f->evicted_bytes > 0 && (too_large || again)) || why_has_no_room(f);
}

static gboolean is_cold(const WhyFacts *f)
{
    return f->warm < WARM && (f->from_fills + f->from_ceph > 0 || f->misses > 0);
}

static gboolean waits_for_names(const WhyFacts *f)
{
    return f->kinds[WAIT_NAME] >= MOST;
}

static gboolean is_shared(const WhyFacts *f)
{
    return !f->native && goes_past_the_cache(f);
}

static gboolean always(const WhyFacts *f)
{
    (void)f;
    return TRUE;
}

static const struct {
    const char *name;
    gboolean (*holds)(const WhyFacts *facts);
} table[WHY_CAUSES] = {
    [WHY_LOST] = {"mount-lost", is_lost},
    [WHY_OTHER] = {"other-storage", waits_elsewhere},
    [WHY_CPU] = {"cpu", computes},
    [WHY_IDLE] = {"idle", is_idle},
    [WHY_UNREAD] = {"nothing-read", is_unread},
    [WHY_SILENT] = {"ceph-silent", is_silent},
    [WHY_BYPASS] = {"cache-bypassed", is_bypassed},
    [WHY_WRITES] = {"writes", waits_for_writes},
    [WHY_SLOW] = {"slow-ceph", is_slow},
    [WHY_UNCACHED] = {"not-cached", is_uncached},
    [WHY_FULL] = {"full-cache", is_full},
    [WHY_COLD] = {"cold", is_cold},
    [WHY_NAMES] = {"names", waits_for_names},
    [WHY_SHARED] = {"shared-writes", is_shared},
    [WHY_DISK] = {"cache-disk", always},
};

WhyCause why_cause(const WhyFacts *facts)
{
    WhyCause cause = WHY_LOST;
    while (!table[cause].holds(facts))
        cause++;
    return cause;
}

const char *why_cause_name(WhyCause cause)
{
    return table[cause].name;
}
