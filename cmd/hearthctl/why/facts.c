/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page that a thread waits for may be of any file that it has mapped, so that such waits count
 * for Hearth's volumes when the job has waited for no other files: it is what jobs that map their
 * data do. Those who wait for completions (io_uring, aio) may wait for a network as well, and count
 * while a volume of the job is read.
 */
#include "cmd/hearthctl/why/facts.h"
#include <string.h>
#include "cmd/hearthctl/client/client.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

const json_t *facts_find(const RatesLook *look, const char *volume)
{
    for (size_t i = 0; i < json_array_size(look->volumes); i++) {
        const json_t *one = json_array_get(look->volumes, i);
        if (strcmp(ctl_string(one, "volume"), volume) == 0)
            return one;
    }
    return NULL;
}

/* A counter that went back was restarted: then it counts from 0. */
static uint64_t grown(const json_t *before, const json_t *now, const char *name)
{
    const uint64_t was = ctl_number(before, name), is = ctl_number(now, name);
    return is >= was ? is - was : is;
}

static guint64 sum_of(const FactsWait *wait)
{
    guint64 sum = 0;
    for (guint i = 0; i < WAIT_KINDS; i++)
        sum += wait->kinds[i];
    return sum;
}

static uint64_t read_of(const char *volume, const RatesLook *before, const RatesLook *now)
{
    const json_t *was = facts_find(before, volume), *is = facts_find(now, volume);
    return grown(was, is, "bytesStore") + grown(was, is, "bytesFill") +
           grown(was, is, "bytesOrigin");
}

int facts_volume(const FactsWait *waits, guint n, const RatesLook *before, const RatesLook *now)
{
    int best = n > 0 ? 0 : -1;
    for (guint i = 0; i < n; i++) {
        const FactsWait *one = &waits[i], *top = &waits[best];
        if (top->lost)
            break;
        const guint64 a = sum_of(one), b = sum_of(top);
        if (one->lost || a > b ||
            (a == b && read_of(one->volume, before, now) > read_of(top->volume, before, now)))
            best = (int)i;
    }
    return best;
}

/* A dataset is served as one volume for each user and key, and they share what is cached. */
static gboolean is_same(const json_t *v, const char *volume)
{
    char a[WIRE_DATASET_DIGITS + 1], b[WIRE_DATASET_DIGITS + 1];
    const char *name = ctl_string(v, "volume");
    return strcmp(name, volume) == 0 ||
           (wire_dataset_of(name, a) && wire_dataset_of(volume, b) && strcmp(a, b) == 0);
}

static void add_volume(WhyFacts *f, const char *volume, const RatesLook *before,
                       const RatesLook *now)
{
    f->warm = WHY_UNKNOWN;
    for (size_t i = 0; i < json_array_size(now->volumes); i++) {
        const json_t *v = json_array_get(now->volumes, i);
        if (!is_same(v, volume))
            continue;
        const json_t *was = facts_find(before, ctl_string(v, "volume"));
        f->native = ctl_string(v, "dataset")[0] != '\0';
        f->image = strcmp(ctl_string(v, "type"), "rbd") == 0;
        f->uncached = !json_is_true(json_object_get(v, "cache")) || ctl_string(v, "uncached")[0];
        /* What came while the job was watched, it has waited for. */
        f->bytes_cached = ctl_number(v, "bytesCached");
        if (was)
            f->bytes_cached = MIN(f->bytes_cached, ctl_number(was, "bytesCached"));
        f->bytes_total = ctl_number(v, "bytesTotal");
        if (f->bytes_total)
            f->warm = MIN(1.0, (double)f->bytes_cached / (double)f->bytes_total);
        f->from_cache += grown(was, v, "bytesStore");
        f->from_fills += grown(was, v, "bytesFill");
        f->from_ceph += grown(was, v, "bytesOrigin");
        f->misses += grown(was, v, "misses");
        f->ceph_reads += grown(was, v, "originReads");
        f->ceph_us += grown(was, v, "originUs");
        f->ceph_bytes += grown(was, v, "bytesOrigin");
    }
}

static void add_node(WhyFacts *f, const RatesLook *before, const RatesLook *now)
{
    const json_t *was = json_object_get(before->status, "cache");
    const json_t *is = json_object_get(now->status, "cache");
    const char *disk = ctl_string(is, "disk");
    f->disk_off = strcmp(disk, WIRE_DISK_OFF) == 0 || strcmp(disk, WIRE_DISK_BYPASS) == 0;
    f->no_cache = f->disk_off && ctl_string(is, "dir")[0] == '\0';
    f->ceph_reads += grown(was, is, "originReads");
    f->ceph_us += grown(was, is, "originUs");
    f->ceph_bytes += grown(was, is, "originBytes");
    f->fills_active = ctl_number(is, "fillsActive");
    f->filled = grown(was, is, "fillsCompleted");
    f->refetched = grown(was, is, "refetchedObjects");
    f->evicted_bytes = grown(was, is, "evictedBytes");
    f->cache_bytes = ctl_number(is, "bytes");
    f->cache_most = ctl_number(is, "maxBytes");
}

static void add_job(WhyFacts *f, const FactsJob *job, const FactsWait *waits, guint n)
{
    guint64 kinds[WAIT_KINDS] = {0}, waiting = 0, elsewhere = job->elsewhere;
    for (guint i = 0; i < n; i++)
        for (guint k = 0; k < WAIT_KINDS; k++) {
            kinds[k] += waits[i].kinds[k];
            waiting += waits[i].kinds[k];
        }
    if (f->from_cache + f->from_fills + f->from_ceph > 0) {
        kinds[WAIT_READ] += job->async;
        waiting += job->async;
    }
    if (waiting > 0 || elsewhere == 0) {
        kinds[WAIT_READ] += job->pages;
        waiting += job->pages;
    } else {
        elsewhere += job->pages;
    }
    f->wait = f->other = WHY_UNKNOWN;
    f->ended = job->ended;
    if (job->looks == 0)
        return;
    const double active = (double)(waiting + job->running);
    const double busy = (double)(elsewhere + job->running);
    f->wait = active > 0 ? (double)waiting / active : 0;
    f->other = busy > 0 ? (double)elsewhere / busy : 0;
    f->running = (double)job->running / job->looks;
    f->waiting = (double)waiting / job->looks;
    f->cpus = f->seconds > 0 ? job->cpu_sec / f->seconds : 0;
    for (guint k = 0; k < WAIT_KINDS; k++)
        f->kinds[k] = waiting > 0 ? (double)kinds[k] / (double)waiting : 0;
}

WhyFacts facts_of(const FactsJob *job, const FactsWait *waits, guint n, guint at,
                  const RatesLook *before, const RatesLook *now)
{
    WhyFacts f = {.seconds = (double)(now->at_us - before->at_us) / G_USEC_PER_SEC,
                  .lost = waits[at].lost};
    add_volume(&f, waits[at].volume, before, now);
    add_node(&f, before, now);
    add_job(&f, job, waits, n);
    return f;
}
