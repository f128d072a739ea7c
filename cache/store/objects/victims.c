/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of objects to evict, tag by tag: victims.h has the order. Amounts of tags are what the
 * index has; objects not recorded yet are a few seconds' worth.
 */
#include "cache/store/objects/victims.h"
#include <string.h>

#define TAGS_AT_ONCE 64
#define STEP 64 /* objects of one unused tag before the others are compared again */

typedef struct Share {
    TagId tag;
    IndexTotals left; /* less what was listed */
    IndexFrom from;
    IndexCursor cursor;
    uint64_t oldest_ms; /* of unused tags: of the next object, or older */
    gboolean listed;    /* some were, in this call */
    gboolean paused;    /* until the next call */
    gboolean empty;
} Share;

static void add_share(Victims *v, const TagId *tag, const IndexTotals *totals)
{
    Share share = {.tag = *tag, .left = *totals, .from = INDEX_FROM_OLDEST};
    if (v->in_use) {
        if (tags_takes_newest(&v->store->tags, tag))
            share.from = INDEX_FROM_NEWEST_ONCE;
    } else {
        IndexEntry first;
        gboolean end;
        if (index_list(v->store->index,
                       &(IndexList){tag, share.from, NULL, 0, 1, &first, 1, &end}) == 1)
            share.oldest_ms = first.last_use_ms;
    }
    g_array_append_val(v->shares, share);
}

static void add_unused(Victims *v)
{
    IndexTag tags[TAGS_AT_ONCE];
    const TagId *after = NULL;
    TagId last;
    for (ssize_t n = TAGS_AT_ONCE; n == TAGS_AT_ONCE; after = &last) {
        n = index_tags(v->store->index, after, tags, TAGS_AT_ONCE);
        for (ssize_t i = 0; i < n; i++)
            if (tags_rank(&v->store->tags, &tags[i].tag) == TAG_RANK_NONE)
                add_share(v, &tags[i].tag, &tags[i].totals);
        if (n > 0)
            last = tags[n - 1].tag;
    }
}

static void add_ranked(Victims *v, TagRank rank)
{
    g_autoptr(GArray) tags = tags_list(&v->store->tags, rank);
    for (guint i = 0; i < tags->len; i++) {
        const TagId *tag = &g_array_index(tags, TagId, i);
        IndexTotals totals;
        index_tag_totals(v->store->index, tag, &totals);
        if (totals.objects > 0)
            add_share(v, tag, &totals);
    }
}

void victims_init(Victims *v, Store *store, const EvictRun *run)
{
    *v = (Victims){.store = store, .shares = g_array_new(FALSE, FALSE, sizeof(Share))};
    v->in_use = run->tag ? run->why == STORE_EVICTS_QUOTA : run->rank != TAG_RANK_NONE;
    if (run->tag)
        add_share(v, run->tag, &(IndexTotals){0, 0});
    else if (run->rank == TAG_RANK_NONE)
        add_unused(v);
    else
        add_ranked(v, run->rank);
}

void victims_clear(Victims *v)
{
    g_clear_pointer(&v->shares, g_array_unref);
}

static uint64_t amount_of(const Share *s, gboolean bytes)
{
    return bytes ? s->left.bytes : s->left.objects;
}

/* Whether `a` is to go before `b`. */
static gboolean is_before(const Victims *v, const Share *a, const Share *b, gboolean bytes)
{
    if (v->in_use)
        return amount_of(a, bytes) > amount_of(b, bytes);
    return a->oldest_ms < b->oldest_ms;
}

/* The share to take from, and the one after it, if any. */
static Share *choose(const Victims *v, gboolean bytes, const Share **next)
{
    Share *best = NULL;
    *next = NULL;
    for (guint i = 0; i < v->shares->len; i++) {
        Share *s = &g_array_index(v->shares, Share, i);
        if (s->empty || s->paused)
            continue;
        if (!best || is_before(v, s, best, bytes)) {
            *next = best;
            best = s;
        } else if (!*next || is_before(v, s, *next, bytes)) {
            *next = s;
        }
    }
    return best;
}

/* Of those listed, how many are older than the next tag's; one at least. The others come later. */
static size_t keep_older(Share *s, const Share *next, const IndexEntry *entries, size_t n)
{
    size_t kept = 1;
    s->oldest_ms = entries[n - 1].last_use_ms;
    while (next && kept < n && entries[kept].last_use_ms <= next->oldest_ms)
        kept++;
    if (!next || kept == n)
        return n;
    s->oldest_ms = entries[kept].last_use_ms;
    s->cursor = (IndexCursor){TRUE, entries[kept - 1].last_use_ms, entries[kept - 1].id};
    return kept;
}

/* At the end of a list: a tag's other objects follow those used once, if they are not among those
 * that are listed already. */
static void end_share(Share *s)
{
    s->empty = s->from == INDEX_FROM_OLDEST;
    s->paused = s->listed;
    s->from = INDEX_FROM_OLDEST;
    s->cursor.started = FALSE;
}

/* Takes what is wanted of one share: bytes or, with 0 of them, objects. */
static ssize_t take_from(Victims *v, Share *s, const Share *next, IndexTotals wanted,
                         IndexEntry *out, size_t max)
{
    gboolean end;
    if (v->in_use && next) {
        const gboolean bytes = wanted.bytes > 0;
        const uint64_t ahead = MAX(amount_of(s, bytes) - amount_of(next, bytes), 1);
        wanted.bytes = MIN(wanted.bytes, ahead);
        wanted.objects = bytes ? 0 : MIN(wanted.objects, ahead);
    } else if (next) {
        max = MIN(max, STEP);
    }
    const IndexList list = {.tag = &s->tag,
                            .from = s->from,
                            .after = &s->cursor,
                            .bytes = wanted.bytes,
                            .objects = wanted.objects,
                            .out = out,
                            .max = max,
                            .end = &end};
    ssize_t n = index_list(v->store->index, &list);
    if (n <= 0) {
        end_share(s);
        return n;
    }
    if (!v->in_use) {
        size_t kept = keep_older(s, next, out, (size_t)n);
        end = end && kept == (size_t)n;
        n = (ssize_t)kept;
    }
    s->listed = TRUE;
    for (ssize_t i = 0; i < n; i++)
        s->left.bytes -= MIN(s->left.bytes, record_charge(out[i].size));
    s->left.objects -= MIN(s->left.objects, (uint64_t)n);
    if (end)
        end_share(s);
    return n;
}

ssize_t victims_list(Victims *v, uint64_t bytes, uint64_t objects, IndexEntry *out, size_t max)
{
    size_t n = 0;
    uint64_t got = 0;
    for (guint i = 0; i < v->shares->len; i++) {
        Share *s = &g_array_index(v->shares, Share, i);
        s->listed = s->paused = FALSE;
    }
    while (n < max && (got < bytes || n < objects)) {
        IndexTotals wanted = {.bytes = bytes - MIN(bytes, got)};
        if (wanted.bytes == 0)
            wanted.objects = objects - n;
        const Share *next;
        Share *s = choose(v, wanted.bytes > 0, &next);
        if (!s)
            break;
        ssize_t taken = take_from(v, s, next, wanted, out + n, max - n);
        if (taken < 0)
            return taken;
        for (ssize_t i = 0; i < taken; i++)
            got += record_charge(out[n + (size_t)i].size);
        n += (size_t)taken;
    }
    return (ssize_t)n;
}
