/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sentence with the cause, a line with the fix, then the figures. The time that a warm-up would
 * take is what is missing at the rate at which Ceph gave data: while the job was watched, or to the
 * last warm job, whichever is more. Without such a rate no time is told.
 */
#include "cmd/hearthctl/why/answer.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/table.h"
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"
#include "proto/wire.h"

#define PERCENT 100.0

static uint64_t rate_of(uint64_t bytes, double seconds)
{
    return seconds > 0 ? (uint64_t)((double)bytes / seconds) : 0;
}

static double ceph_ms(const WhyFacts *f)
{
    return f->ceph_reads ? (double)f->ceph_us / (double)f->ceph_reads / 1000 : 0;
}

/* Seconds; 0: not known. */
static uint64_t warm_sec(const Answer *a)
{
    const WhyFacts *f = &a->facts;
    const uint64_t seen = rate_of(f->ceph_bytes, f->seconds), rate = MAX(seen, a->warm_rate);
    return rate && f->bytes_total > f->bytes_cached ? (f->bytes_total - f->bytes_cached) / rate + 1
                                                    : 0;
}

/* "imagenet is 61% warm (97 of 160 GiB)" */
static char *warmth_text(const Answer *a)
{
    const WhyFacts *f = &a->facts;
    if (f->warm < 0)
        return g_strdup_printf("what it reads of %s is not in the cache yet", a->name);
    g_autofree char *share = words_percent(f->bytes_cached, f->bytes_total);
    g_autofree char *part = words_part(f->bytes_cached, f->bytes_total);
    g_auto(GStrv) both = g_strsplit(part, "/", 2);
    return g_strdup_printf("%s is %s warm (%s of %s)", a->name, share, both[0], both[1]);
}

static char *slow_text(const WhyFacts *f)
{
    const uint64_t mean = f->ceph_reads ? f->ceph_bytes / f->ceph_reads : 0;
    g_autofree char *size = size_format(mean);
    return g_strdup_printf("Ceph is slow: a read of %s takes %.0f ms on average", size, ceph_ms(f));
}

/* There is room in the cache, so that a bound of the volume's own evicts. */
static gboolean is_of_quota(const WhyFacts *f)
{
    return !why_cache_is_full(f) && (!f->cache_most || f->bytes_total <= f->cache_most);
}

static char *full_text(const Answer *a)
{
    const WhyFacts *f = &a->facts;
    g_autofree char *most = size_format(f->cache_most), *all = size_format(f->bytes_total);
    g_autofree char *evicted = size_format(f->evicted_bytes);
    if (why_has_no_room(f))
        return g_strdup_printf("the cache is full of what may not be evicted, so that reads of %s "
                               "go past it",
                               a->name);
    if (f->cache_most && f->bytes_total > f->cache_most)
        return g_strdup_printf("the cache is full: %s has %s and the cache %s, so that data is "
                               "evicted before it is read again",
                               a->name, all, most);
    return g_strdup_printf("%s: in %.0f s %s were evicted, and %" G_GUINT64_FORMAT
                           " of %" G_GUINT64_FORMAT " files that came had been there before",
                           is_of_quota(f) ? "a cacheQuota is full" : "the cache is full",
                           f->seconds, evicted, f->refetched, f->filled);
}

static char *reason(const Answer *a, WhyCause cause)
{
    switch (cause) {
    case WHY_LOST:
        return g_strdup_printf(
            "the mount of %s is not served any more, because hearthd was "
            "restarted; each access to %s fails",
            a->name,
            g_str_has_prefix(a->volume, WIRE_DATASET_PREFIX) ? "what is not in the cache" : "it");
    case WHY_OTHER:
        return g_strdup("it waits for other storage than Hearth's");
    case WHY_CPU:
        return g_strdup("it computes");
    case WHY_IDLE:
        return g_strdup(a->facts.ended ? "it ended while it was watched, and had not waited for "
                                         "storage"
                                       : "it neither computes nor reads, and waits for something "
                                         "else");
    case WHY_UNREAD:
        return g_strdup_printf("nothing of %s was read through hearthd meanwhile", a->name);
    case WHY_SILENT:
        return g_strdup_printf("no read of %s was answered; Ceph may be away", a->name);
    case WHY_BYPASS:
        return g_strdup(a->facts.no_cache ? "this node has no cache, so that all reads go to Ceph"
                                          : "the cache's disk is not used, so that all reads go to "
                                            "Ceph");
    case WHY_WRITES:
        return g_strdup_printf("its writes to %s are done only when Ceph has them", a->name);
    case WHY_SLOW:
        return slow_text(&a->facts);
    case WHY_UNCACHED:
        return g_strdup_printf("nothing of %s is cached", a->name);
    case WHY_FULL:
        return full_text(a);
    case WHY_COLD:
        return warmth_text(a);
    case WHY_NAMES:
        return g_strdup_printf("it looks up and lists files of %s, which Ceph's MDS answers",
                               a->name);
    case WHY_SHARED:
        return g_strdup_printf("what it reads of %s is being written, here or on another node, so "
                               "that it comes from Ceph",
                               a->name);
    case WHY_DISK:
    case WHY_CAUSES:
        break;
    }
    return g_strdup_printf("what it reads of %s is warm; the node's cache disk is the limit",
                           a->name);
}

static char *warm_command(const Answer *a)
{
    const WhyFacts *f = &a->facts;
    const uint64_t seconds = warm_sec(a);
    g_autofree char *time = words_duration(seconds), *name = words_shell(a->name);
    g_autofree char *all = size_format(f->bytes_total), *most = size_format(f->cache_most);
    if (f->image)
        return g_strdup("blocks of an image are cached as they are read: the next pass is warm");
    if (f->cache_most && f->bytes_total > f->cache_most)
        return g_strdup_printf("a larger cache: it has %s, and %s does not fit", most, all);
    if (seconds == 0)
        return g_strdup_printf("`%s warm %s` before the job starts", a->command, name);
    return g_strdup_printf("`%s warm %s` would take %s", a->command, name, time);
}

/* NULL: there is nothing to do. */
static char *fix(const Answer *a, WhyCause cause)
{
    switch (cause) {
    case WHY_LOST:
        return g_strdup(a->heal);
    case WHY_OTHER:
        return g_strdup("see which disk that is: iostat -x 1, kubectl describe pod");
    case WHY_CPU:
        return g_strdup("faster storage would not help");
    case WHY_SILENT:
        return g_strdup_printf("`ceph -s`, and `%s doctor` on the node", a->command);
    case WHY_BYPASS:
        if (a->facts.no_cache)
            return g_strdup("run the job on nodes with a cache: the label "
                            "topology.csi.hearth.dev/tier=nvme");
        return g_strdup_printf("`%s doctor` on the node says what is wrong with the disk",
                               a->command);
    case WHY_WRITES:
        return g_strdup("write in larger pieces and fsync less often; Hearth caches no writes");
    case WHY_SLOW:
        return g_strdup("`ceph -s`, `ceph osd perf`, and the network from this node to Ceph");
    case WHY_UNCACHED:
        return g_strdup_printf("`%s status` says why; `cache: \"on\"` in the class", a->command);
    case WHY_FULL:
        if (why_has_no_room(&a->facts))
            return g_strdup_printf("`%s status` shows what is pinned: unpin what is not needed, or "
                                   "a larger cache",
                                   a->command);
        if (is_of_quota(&a->facts))
            return g_strdup("a larger `cacheQuota` in the class");
        return g_strdup_printf("a larger cache, or `%s evict` of what is not needed; `%s pin %s` "
                               "keeps this",
                               a->command, a->command, a->name);
    case WHY_COLD:
        return warm_command(a);
    case WHY_NAMES:
        return g_strdup("fewer, larger files; or a snapshot as a dataset, whose names are cached");
    case WHY_SHARED:
        return g_strdup("read a snapshot as a dataset, or let the writers close their files");
    case WHY_DISK:
        return g_strdup("a faster cache disk, or more memory for the page cache");
    case WHY_UNREAD:
        return g_strdup("run this while the job reads, as root, where its processes can be seen");
    case WHY_IDLE:
    case WHY_CAUSES:
        break;
    }
    return NULL;
}

static char *headline(const Answer *a, WhyCause cause, const View *view)
{
    const WhyFacts *f = &a->facts;
    const gboolean good = cause == WHY_CPU || cause == WHY_IDLE || cause == WHY_UNREAD;
    const Style style = cause == WHY_LOST ? STYLE_BAD : good ? STYLE_GOOD : STYLE_WARN;
    g_autofree char *why = reason(a, cause);
    g_autofree char *loud = style_text(why, style, view->colour);
    if (f->wait < 0 || cause == WHY_LOST)
        return g_strdup_printf("%s: %s", a->who, loud);
    return g_strdup_printf("%s waits for storage %.0f%% of the time: %s", a->who, PERCENT * f->wait,
                           loud);
}

static void add_job(Lines *lines, const WhyFacts *f, const View *view)
{
    if (f->wait < 0)
        lines_add(lines, view,
                  "job      its processes cannot be seen from here (hostPID), so this is what "
                  "hearthd counted");
    else
        lines_add(lines, view,
                  "job      %.1f threads wait for Hearth, %.1f run, %.1f CPUs in use; waits: reads "
                  "%.0f%%, writes %.0f%%, names %.0f%%",
                  f->waiting, f->running, f->cpus, PERCENT * f->kinds[WAIT_READ],
                  PERCENT * f->kinds[WAIT_WRITE], PERCENT * f->kinds[WAIT_NAME]);
}

static void add_end(Lines *lines, const WhyFacts *f, const View *view)
{
    if (f->ended)
        lines_add(lines, view, "         it ended meanwhile: the shares are of the time before");
}

static void add_volume(Lines *lines, const Answer *a, const View *view)
{
    const WhyFacts *f = &a->facts;
    g_autofree char *cache = size_format(rate_of(f->from_cache, f->seconds));
    g_autofree char *fills = size_format(rate_of(f->from_fills, f->seconds));
    g_autofree char *ceph = size_format(rate_of(f->from_ceph, f->seconds));
    lines_add(lines, view,
              "volume   %s: %s/s from the cache%s, %s/s on their way into it, %s/s past it",
              a->name, cache, f->native ? " by hearthd" : "", fills, ceph);
}

static void add_node(Lines *lines, const WhyFacts *f, const View *view)
{
    g_autofree char *rate = size_format(rate_of(f->ceph_bytes, f->seconds));
    g_autofree char *used = size_format(f->cache_bytes), *most = size_format(f->cache_most);
    g_autofree char *evicted = size_format(f->evicted_bytes);
    lines_add(lines, view, "Ceph     %s/s, %.0f ms a read", rate, ceph_ms(f));
    lines_add(lines, view, "cache    %s of %s, evicted %s meanwhile", used,
              f->cache_most ? most : "no bound", evicted);
}

char **answer_lines(const Answer *a, const View *view)
{
    Lines *lines = lines_new();
    if (!a->volume) {
        lines_add(lines, view, "%s", a->none);
        return lines_end(lines);
    }
    const WhyCause cause = why_cause(&a->facts);
    g_autofree char *head = headline(a, cause, view), *what = fix(a, cause);
    lines_add(lines, view, "%s", head);
    if (what) {
        g_autofree char *arrow = g_strconcat("-> ", what, NULL);
        lines_add_text(lines, view, 0, 3, arrow);
    }
    lines_add(lines, view, "%s", "");
    lines_add(lines, view, "watched for %.0f s", a->facts.seconds);
    add_job(lines, &a->facts, view);
    add_end(lines, &a->facts, view);
    add_volume(lines, a, view);
    add_node(lines, &a->facts, view);
    return lines_end(lines);
}

static json_t *known(double share)
{
    return share < 0 ? json_null() : json_real(PERCENT * share);
}

json_t *answer_json(const Answer *a)
{
    const WhyFacts *f = &a->facts;
    if (!a->volume)
        return json_pack("{s:s, s:n, s:n}", "job", a->who, "volume", "cause");
    const WhyCause cause = why_cause(f);
    g_autofree char *why = reason(a, cause), *what = fix(a, cause);
    const uint64_t seconds = warm_sec(a);
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:f}", "job", a->who, "volume",
                             a->volume, "name", a->name, "cause", why_cause_name(cause), "reason",
                             why, "fix", what, "seconds", f->seconds);
    json_object_set_new(json, "waitPercent", known(f->wait));
    json_object_set_new(json, "otherStoragePercent", known(f->other));
    json_object_set_new(json, "warmPercent", known(f->warm));
    json_object_set_new(json, "warmUpSeconds",
                        seconds ? json_integer((json_int_t)seconds) : json_null());
    json_object_update_new(
        json,
        json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:I, s:I}", "threadsWaiting",
                  f->waiting, "threadsRunning", f->running, "cpus", f->cpus, "bytesCached",
                  (json_int_t)f->bytes_cached, "bytesTotal", (json_int_t)f->bytes_total,
                  "cephBytesPerSec", (json_int_t)rate_of(f->ceph_bytes, f->seconds), "cephReadMs",
                  ceph_ms(f), "evictedBytes", (json_int_t)f->evicted_bytes, "refetchedObjects",
                  (json_int_t)f->refetched, "cacheMaxBytes", (json_int_t)f->cache_most));
    return json;
}
