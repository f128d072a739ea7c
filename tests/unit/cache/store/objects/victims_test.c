/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction under the ways in which datasets and live volumes are read. A hit of a native dataset is
 * not seen by the store: the kernel reads the object itself. A hit of a live volume opens it.
 */
#include "tests/unit/cache/store/fixture.h"

#define BLOCK 4096
#define CACHE 400 /* objects; evicted from 360 to 320 */
#define LARGER (CACHE * 6 / 5)

static Fixture f;
static unsigned unflushed;

static int no_syncfs(void *data, int fd)
{
    (void)data;
    (void)fd;
    return 0;
}

static void begin(void)
{
    fixture_init(&f);
    f.config.max_bytes = CACHE * BLOCK;
    f.hooks.syncfs = no_syncfs;
    fixture_open(&f);
    unflushed = 0;
}

static void fetch(uint64_t ino, const char *tag)
{
    fixture_put(&f, ino, BLOCK, tag);
    if (++unflushed >= 32) {
        unflushed = 0;
        ck_assert_int_eq(store_flush(f.store), 0);
    }
    wake_round(&f.store->evictor);
}

/* As the kernel reads a file of a native dataset. TRUE: a hit. */
static gboolean read_native(uint64_t ino, const char *tag)
{
    ObjectId id = fixture_id(&f, ino, BLOCK);
    if (store_has(f.store, &id))
        return TRUE;
    fetch(ino, tag);
    return FALSE;
}

static gboolean read_live(uint64_t ino, const char *tag)
{
    if (fixture_serves(&f, ino, BLOCK))
        return TRUE;
    fetch(ino, tag);
    return FALSE;
}

static void shuffle(uint64_t *inos, unsigned n)
{
    for (unsigned i = n - 1; i > 0; i--) {
        unsigned other = (unsigned)g_random_int_range(0, (gint32)i + 1);
        uint64_t swapped = inos[i];
        inos[i] = inos[other];
        inos[other] = swapped;
    }
}

/* Reads n files in each of `epochs`. The part of hits in the second half of them. */
static double loop(const char *tag, uint64_t first, unsigned n, unsigned epochs, gboolean shuffled,
                   gboolean (*read)(uint64_t ino, const char *tag))
{
    unsigned hits = 0, half = epochs / 2;
    g_autofree uint64_t *inos = g_new(uint64_t, n);
    for (unsigned i = 0; i < n; i++)
        inos[i] = first + i;
    for (unsigned epoch = 0; epoch < epochs; epoch++) {
        if (shuffled)
            shuffle(inos, n);
        for (unsigned i = 0; i < n; i++)
            hits += read(inos[i], tag) && epoch >= half;
    }
    return (double)hits / ((epochs - half) * n);
}

static void assert_at_least(double hits, double wanted)
{
    ck_assert_msg(hits >= wanted, "%.2f of the reads hit, not %.2f", hits, wanted);
}

static void assert_loop_hits(const char *tag, gboolean shuffled,
                             gboolean (*read)(uint64_t ino, const char *tag))
{
    begin();
    store_use(f.store, tag, TRUE);
    assert_at_least(loop(tag, 1, LARGER, 10, shuffled, read), 0.6);
    fixture_done(&f);
}

START_TEST(a_loop_larger_than_the_cache_hits_in_proportion)
{
    assert_loop_hits("d", FALSE, read_native);
}
END_TEST

START_TEST(so_does_one_that_is_shuffled_in_each_epoch)
{
    g_random_set_seed(7);
    assert_loop_hits("d", TRUE, read_native);
}
END_TEST

START_TEST(so_does_one_of_a_live_volume)
{
    assert_loop_hits("live", FALSE, read_live);
}
END_TEST

START_TEST(a_loop_takes_nothing_from_a_dataset_that_has_less)
{
    begin();
    store_use(f.store, "small", TRUE);
    store_use(f.store, "large", TRUE);
    unsigned hits = 0, reads = 0, large_hits = 0, large_reads = 0;
    const unsigned small = CACHE * 3 / 10;
    for (unsigned i = 0; i < 10 * LARGER; i++) {
        const gboolean counted = i >= 5 * LARGER;
        gboolean hit = read_native(10000 + i % LARGER, "large");
        large_hits += hit && counted;
        large_reads += counted;
        if (i % 4 > 0)
            continue;
        hit = read_native(1 + i / 4 % small, "small");
        hits += hit && counted;
        reads += counted;
    }
    assert_at_least((double)hits / reads, 0.99);
    assert_at_least((double)large_hits / large_reads, 0.25);
    fixture_done(&f);
}
END_TEST

/* Reads a hot set, then files once, with a read of a hot one beside each. The hot reads that hit.
 */
static double hot_hits_in_scan(const char *hot, const char *scanned)
{
    const unsigned n = CACHE * 3 / 10;
    unsigned hits = 0;
    g_random_set_seed(7);
    store_use(f.store, hot, TRUE);
    store_use(f.store, scanned, TRUE);
    for (unsigned i = 0; i < 3 * n; i++)
        read_live(1 + i % n, hot);
    for (unsigned i = 0; i < 3 * CACHE; i++) {
        read_live(10000 + i, scanned);
        hits += read_live(1 + (unsigned)g_random_int_range(0, (gint32)n), hot);
    }
    return (double)hits / (3 * CACHE);
}

START_TEST(a_hot_set_outlives_a_scan_of_the_same_volume)
{
    begin();
    assert_at_least(hot_hits_in_scan("live", "live"), 0.85);
    fixture_done(&f);
}
END_TEST

START_TEST(a_hot_set_loses_nothing_to_a_scan_of_another_volume)
{
    begin();
    assert_at_least(hot_hits_in_scan("live", "scanned"), 0.99);
    fixture_done(&f);
}
END_TEST

START_TEST(other_files_of_a_dataset_displace_the_first_ones)
{
    begin();
    store_use(f.store, "d", TRUE);
    loop("d", 1, CACHE * 3 / 4, 2, FALSE, read_native);
    assert_at_least(loop("d", 10000, CACHE * 3 / 4, 2, FALSE, read_native), 0.99);
    fixture_done(&f);
}
END_TEST

START_TEST(a_loop_takes_the_place_of_what_is_not_in_use)
{
    begin();
    for (uint64_t i = 1; i <= CACHE / 2; i++)
        fetch(i, "left");
    store_use(f.store, "d", TRUE);
    assert_at_least(loop("d", 10000, CACHE * 3 / 4, 4, FALSE, read_native), 0.99);
    fixture_done(&f);
}
END_TEST

START_TEST(a_loop_takes_nothing_of_what_is_pinned)
{
    begin();
    ck_assert_int_eq(store_pin(f.store, "pinned", TRUE), 0);
    for (uint64_t i = 1; i <= CACHE / 4; i++)
        fetch(i, "pinned");
    store_use(f.store, "d", TRUE);
    assert_at_least(loop("d", 10000, CACHE * 9 / 10, 10, FALSE, read_native), 0.55);
    unsigned held = 0;
    for (uint64_t i = 1; i <= CACHE / 4; i++)
        held += fixture_serves(&f, i, BLOCK);
    ck_assert_uint_eq(held, CACHE / 4);
    fixture_done(&f);
}
END_TEST

#define QUOTA (CACHE / 2)
/* As a volume's upkeep holds it to its quota, which it does every few seconds. */
static gboolean read_within_quota(uint64_t ino, const char *tag)
{
    static unsigned reads;
    uint64_t bytes, objects;
    gboolean hit = read_native(ino, tag);
    store_tag_usage(f.store, tag, &bytes, &objects);
    if (++reads % 20 == 0 && bytes > (uint64_t)QUOTA * BLOCK)
        store_evict_over_quota(f.store, tag, bytes - (uint64_t)QUOTA * BLOCK);
    return hit;
}

START_TEST(a_loop_larger_than_its_quota_hits_in_proportion)
{
    begin();
    store_use(f.store, "d", TRUE);
    assert_at_least(loop("d", 1, QUOTA * 6 / 5, 10, FALSE, read_within_quota), 0.6);
    fixture_done(&f);
}
END_TEST

START_TEST(a_reader_does_not_wait_for_a_large_eviction)
{
    fixture_init(&f);
    f.config.max_bytes = 2000 * BLOCK;
    f.config.high_percent = 100;
    f.config.low_percent = 99;
    f.hooks.syncfs = no_syncfs;
    fixture_open(&f);
    store_use(f.store, "d", TRUE);
    for (uint64_t i = 1; i <= 2000; i++)
        fixture_put(&f, i, BLOCK, "d");
    ck_assert_int_eq(store_flush(f.store), 0);
    OriginNode large = fake_file(10000, 1000 * BLOCK);
    ck_assert_int_eq(fixture_fill(&f, &large, "d"), -ENOSPC);
    wake_round(&f.store->evictor); /* which was told */
    ck_assert_int_eq(fixture_fill(&f, &large, "d"), 0);
    fixture_done(&f);
}
END_TEST

HARNESS_MAIN("cache/store/objects/victims", a_loop_larger_than_the_cache_hits_in_proportion,
             so_does_one_that_is_shuffled_in_each_epoch, so_does_one_of_a_live_volume,
             a_loop_takes_nothing_from_a_dataset_that_has_less,
             a_hot_set_outlives_a_scan_of_the_same_volume,
             a_hot_set_loses_nothing_to_a_scan_of_another_volume,
             other_files_of_a_dataset_displace_the_first_ones,
             a_loop_takes_the_place_of_what_is_not_in_use, a_loop_takes_nothing_of_what_is_pinned,
             a_loop_larger_than_its_quota_hits_in_proportion,
             a_reader_does_not_wait_for_a_large_eviction)
