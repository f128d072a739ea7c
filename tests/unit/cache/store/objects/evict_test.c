/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: who goes, when, how much, and that files and index agree afterwards. */
#include "tests/unit/cache/store/fixture.h"

static Fixture f;
#define BLOCK 4096

START_TEST(the_least_recently_used_goes_first)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 1; i <= 4; i++)
        fixture_put(&f, i, BLOCK, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert(fixture_serves(&f, 1, BLOCK)); /* a use, known only in memory so far */
    ck_assert_uint_eq(store_evict(f.store, NULL, 2 * BLOCK), 2 * BLOCK);
    ck_assert(fixture_serves(&f, 1, BLOCK));
    ck_assert(!fixture_serves(&f, 2, BLOCK));
    ck_assert(!fixture_serves(&f, 3, BLOCK));
    ck_assert(fixture_serves(&f, 4, BLOCK));
    ck_assert_uint_eq(fixture_objects(&f), 2);
    fixture_done(&f);
}
END_TEST

START_TEST(objects_not_yet_recorded_go_last_but_go)
{
    fixture_init(&f);
    fixture_open(&f);
    fixture_put(&f, 1, BLOCK, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    fixture_put(&f, 2, BLOCK, "t");
    fixture_put(&f, 3, BLOCK, "t");
    ck_assert_uint_eq(store_evict(f.store, NULL, 1), BLOCK);
    ck_assert(!fixture_serves(&f, 1, BLOCK));
    ck_assert(fixture_serves(&f, 2, BLOCK));
    ck_assert_uint_eq(store_evict(f.store, NULL, UINT64_MAX), 2 * BLOCK);
    ck_assert(!fixture_serves(&f, 2, BLOCK));
    ck_assert_uint_eq(fixture_objects(&f), 0);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert_uint_eq(stats.evicted_objects, 3);
    ck_assert_uint_eq(stats.evicted_bytes, 3 * BLOCK);
    ck_assert_uint_eq(stats.bytes, 0);
    fixture_done(&f);
}
END_TEST

/* As if the flush came after the eviction has listed what had a record. */
START_TEST(objects_that_are_recorded_meanwhile_go_too)
{
    static const EvictLimit limit = {.batch = 1024, .batches = 8};
    EvictRun run = {.why = STORE_EVICTS_ASKED};
    fixture_init(&f);
    fixture_open(&f);
    fixture_put(&f, 1, BLOCK, "t");
    evict_begin(f.store, FALSE);
    store_evict_locked(f.store, &run, 0, 0, &limit);
    run.rank = TAG_RANK_USED;
    ck_assert_int_eq(store_flush(f.store), 0);
    store_evict_locked(f.store, &run, UINT64_MAX, UINT64_MAX, &limit);
    evict_end(f.store);
    ck_assert_uint_eq(fixture_objects(&f), 0);
    fixture_done(&f);
}
END_TEST

static void assert_usage(const char *tag, uint64_t bytes, uint64_t objects)
{
    uint64_t got_bytes, got_objects;
    store_tag_usage(f.store, tag, &got_bytes, &got_objects);
    ck_assert_uint_eq(got_bytes, bytes);
    ck_assert_uint_eq(got_objects, objects);
}

START_TEST(a_tag_is_evicted_alone_and_counted)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 1; i <= 600; i++)
        fixture_put(&f, i, 100, i % 3 ? "many" : "few");
    assert_usage("many", 400 * BLOCK, 400);
    assert_usage("few", 200 * BLOCK, 200);
    ck_assert_int_eq(store_flush(f.store), 0);
    fixture_put(&f, 601, 100, "few");
    assert_usage("few", 201 * BLOCK, 201);
    ck_assert_uint_eq(store_evict(f.store, "many", 10 * BLOCK), 10 * BLOCK);
    ck_assert(!fixture_serves(&f, 1, 100));
    ck_assert(fixture_serves(&f, 3, 100));
    ck_assert(fixture_serves(&f, 16, 100));
    assert_usage("many", 390 * BLOCK, 390);
    ck_assert_uint_eq(store_evict(f.store, "many", UINT64_MAX), 390 * BLOCK);
    ck_assert_uint_eq(store_evict(f.store, "nobody", UINT64_MAX), 0);
    assert_usage("many", 0, 0);
    assert_usage("few", 201 * BLOCK, 201);
    for (uint64_t i = 1; i <= 600; i++)
        ck_assert_int_eq(fixture_serves(&f, i, 100), i % 3 == 0);
    fixture_done(&f);
}
END_TEST

static unsigned served(uint64_t from, uint64_t to)
{
    unsigned n = 0;
    for (uint64_t i = from; i <= to; i++)
        n += fixture_serves(&f, i, BLOCK);
    return n;
}

START_TEST(what_is_not_in_use_goes_before_what_is)
{
    fixture_init(&f);
    fixture_open(&f);
    store_use(f.store, "used", TRUE);
    for (uint64_t i = 1; i <= 10; i++)
        fixture_put(&f, i, BLOCK, i <= 5 ? "used" : "left");
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_uint_eq(store_evict(f.store, NULL, 3 * BLOCK), 3 * BLOCK);
    ck_assert_uint_eq(served(1, 5), 5);
    ck_assert_uint_eq(served(6, 8), 0);
    /* Then it goes as well. */
    ck_assert_uint_eq(store_evict(f.store, NULL, 4 * BLOCK), 4 * BLOCK);
    ck_assert_uint_eq(served(6, 10), 0);
    ck_assert_uint_eq(served(1, 5), 3);
    TagId id;
    tag_id("used", &id);
    store_use(f.store, "used", TRUE);
    store_use(f.store, "used", FALSE);
    ck_assert_int_eq(tags_rank(&f.store->tags, &id), TAG_RANK_USED);
    store_use(f.store, "used", FALSE);
    ck_assert_int_eq(tags_rank(&f.store->tags, &id), TAG_RANK_NONE);
    fixture_done(&f);
}
END_TEST

START_TEST(what_is_pinned_stays_until_it_is_named)
{
    fixture_init(&f);
    f.config.max_bytes = 100 * BLOCK;
    fixture_open(&f);
    ck_assert_int_eq(store_pin(f.store, "pinned", TRUE), 0);
    for (uint64_t i = 1; i <= 85; i++)
        fixture_put(&f, i, BLOCK, "pinned");
    for (uint64_t i = 101; i <= 140; i++)
        fixture_put(&f, i, BLOCK, "other");
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(served(1, 85), 85);
    store_evict(f.store, NULL, UINT64_MAX); /* what the evictor has left of the others */
    ck_assert_uint_eq(fixture_objects(&f), 85);
    /* Over a restart as well, from the first moment. */
    fixture_close(&f);
    f.config.max_bytes = 50 * BLOCK;
    fixture_open(&f);
    wake_round(&f.store->evictor);
    ck_assert(store_is_pinned(f.store, "pinned"));
    ck_assert(!store_is_pinned(f.store, "other"));
    ck_assert_uint_eq(served(1, 85), 85);
    ck_assert_uint_eq(store_evict(f.store, "pinned", 5 * BLOCK), 5 * BLOCK);
    ck_assert_uint_eq(store_evict_pinned_too(f.store, 5 * BLOCK), 5 * BLOCK);
    ck_assert_int_eq(store_pin(f.store, "pinned", FALSE), 0);
    wake_round(&f.store->evictor);
    ck_assert_uint_le(fixture_objects(&f), 45);
    fixture_done(&f);
}
END_TEST

START_TEST(a_store_full_of_pinned_objects_takes_no_more)
{
    fixture_init(&f);
    f.config.max_bytes = 100 * BLOCK;
    f.config.high_percent = 100;
    f.config.low_percent = 90;
    fixture_open(&f);
    ck_assert_int_eq(store_pin(f.store, "pinned", TRUE), 0);
    for (uint64_t i = 1; i <= 100; i++)
        fixture_put(&f, i, BLOCK, "pinned");
    OriginNode more = fake_file(1000, BLOCK);
    for (int flushed = 0; flushed < 2; flushed++) {
        for (int i = 0; i < 20; i++)
            ck_assert_int_eq(fixture_fill(&f, &more, "other"), -ENOSPC);
        ck_assert_uint_eq(served(1, 100), 100);
        ck_assert_int_eq(store_flush(f.store), 0);
    }
    ck_assert_int_eq(store_pin(f.store, "pinned", FALSE), 0);
    fixture_put(&f, 1001, BLOCK, "other");
    ck_assert_uint_eq(served(1001, 1001), 1);
    fixture_done(&f);
}
END_TEST

START_TEST(objects_become_those_of_the_tag_with_the_better_claim)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId ids[4];
    for (uint64_t i = 0; i < 4; i++)
        ids[i] = fixture_put(&f, i + 1, BLOCK, i < 3 ? "first" : "pinned");
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(store_pin(f.store, "pinned", TRUE), 0);
    ck_assert_uint_eq(store_adopt(f.store, "second", ids, 4), 0); /* it is not in use */
    store_use(f.store, "second", TRUE);
    ck_assert_uint_eq(store_adopt(f.store, "second", ids, 2), 2);
    ck_assert_uint_eq(store_adopt(f.store, "second", ids, 4), 1);
    assert_usage("second", 3 * BLOCK, 3);
    assert_usage("pinned", BLOCK, 1);
    store_use(f.store, "first", TRUE);
    ck_assert_uint_eq(store_adopt(f.store, "first", ids, 4), 0);
    ck_assert_uint_eq(store_adopt(f.store, "pinned", ids, 4), 3);
    ck_assert_uint_eq(store_evict(f.store, NULL, UINT64_MAX), 0);
    ck_assert_uint_eq(served(1, 4), 4);
    fixture_done(&f);
}
END_TEST

START_TEST(a_damaged_list_of_pins_counts_as_empty)
{
    fixture_init(&f);
    fixture_open(&f);
    ck_assert_int_eq(store_pin(f.store, "a", TRUE), 0);
    ck_assert_int_eq(store_pin(f.store, "b", TRUE), 0);
    ck_assert_int_eq(store_pin(f.store, "a", FALSE), 0);
    g_autoptr(GPtrArray) pins = store_pins(f.store);
    ck_assert_uint_eq(pins->len, 1);
    ck_assert_str_eq(pins->pdata[0], "b");
    fixture_close(&f);
    g_autofree char *path = g_build_filename(f.dir, "pins", NULL);
    g_autofree char *text = NULL;
    gsize length;
    ck_assert(g_file_get_contents(path, &text, &length, NULL));
    for (gsize cut = 0; cut <= length; cut++) {
        g_autofree char *bad = g_memdup2(text, length);
        if (cut < length)
            bad[cut] ^= 1;
        ck_assert(
            g_file_set_contents(path, bad, (gssize)(cut < length ? length : length - 1), NULL));
        fixture_open(&f);
        ck_assert(!store_is_pinned(f.store, "b"));
        fixture_close(&f);
    }
    fixture_done(&f);
}
END_TEST

START_TEST(from_above_the_high_watermark_to_the_low_one)
{
    fixture_init(&f);
    f.config.max_bytes = 100 * BLOCK;
    f.config.high_percent = 90;
    f.config.low_percent = 50;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 90; i++)
        fixture_put(&f, i, BLOCK, "t");
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 90);
    fixture_put(&f, 91, BLOCK, "t");
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 50);
    for (uint64_t i = 1; i <= 91; i++)
        ck_assert_int_eq(fixture_serves(&f, i, BLOCK), i > 41);
    fixture_done(&f);
}
END_TEST

START_TEST(what_others_keep_in_the_directory_is_within_the_bound)
{
    fixture_init(&f);
    f.config.max_bytes = 100 * BLOCK;
    f.config.high_percent = 90;
    f.config.low_percent = 80;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 90; i++)
        fixture_put(&f, i, BLOCK, "t");
    store_set_other_bytes(f.store, STORE_OTHER_MANIFESTS, 30 * BLOCK);
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 50);
    OriginNode big = fake_file(1000, 61 * BLOCK);
    ck_assert_int_eq(fixture_fill(&f, &big, "t"), -ENOSPC);
    ck_assert_uint_eq(fixture_objects(&f), 50);
    /* However much it is, objects keep half. */
    store_set_other_bytes(f.store, STORE_OTHER_MANIFESTS, 1000 * BLOCK);
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 30);
    fixture_put(&f, 2000, BLOCK, "t");
    ck_assert(fixture_serves(&f, 2000, BLOCK));
    store_set_other_bytes(f.store, STORE_OTHER_MANIFESTS, 0);
    fixture_done(&f);
}
END_TEST

START_TEST(the_bound_on_inodes_counts_like_that_on_bytes)
{
    fixture_init(&f);
    f.config.max_inodes = 10;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 30; i++)
        fixture_put(&f, i, 1, "t");
    wake_round(&f.store->evictor);
    ck_assert_uint_le(fixture_objects(&f), 9);
    ck_assert(fixture_serves(&f, 30, 1));
    fixture_done(&f);
}
END_TEST

START_TEST(a_tiny_bound_makes_room_for_what_is_needed_now)
{
    fixture_init(&f);
    f.config.max_bytes = 10 * BLOCK;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 200; i++) {
        fixture_put(&f, i, 3 * BLOCK, "t");
        StoreStats stats;
        store_stats(f.store, &stats);
        ck_assert_uint_le(stats.bytes, 10 * BLOCK);
        ck_assert_uint_eq(stats.max_bytes, 10 * BLOCK);
    }
    ck_assert(fixture_serves(&f, 200, 3 * BLOCK));
    /* Larger than the bound, or than what is kept of it. */
    OriginNode big = fake_file(1000, 11 * BLOCK), high = fake_file(1001, 10 * BLOCK);
    ck_assert_int_eq(fixture_fill(&f, &big, "t"), -ENOSPC);
    ck_assert_int_eq(fixture_fill(&f, &high, "t"), -ENOSPC);
    ck_assert(fixture_serves(&f, 200, 3 * BLOCK));
    fixture_done(&f);
}
END_TEST

START_TEST(room_taken_by_fills_under_way_is_not_given_twice)
{
    fixture_init(&f);
    f.config.max_bytes = 10 * BLOCK;
    fixture_open(&f);
    fake_set_gate(&f.origin, 0);
    OriginNode a = fake_file(1, 8 * BLOCK), b = fake_file(2, 4 * BLOCK);
    ObjectKey key;
    fake_key(&f.origin, &a, &key, NULL);
    StoreFill *fill = store_fill(f.store, &f.origin.base, &a, &key, "t");
    ck_assert_ptr_nonnull(fill);
    fake_key(&f.origin, &b, &key, NULL);
    ck_assert_ptr_null(store_fill(f.store, &f.origin.base, &b, &key, "t"));
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    ck_assert_int_eq(fixture_fill(&f, &b, "t"), 0);
    ck_assert(!fixture_serves(&f, 1, 8 * BLOCK));
    /* A failed fill gives its room back. */
    f.origin.read_error = -EIO;
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(fixture_fill(&f, &a, "t"), -EIO);
        store_cancel_fills(f.store, NULL); /* waits for the fill to be cleaned up */
    }
    f.origin.read_error = 0;
    ck_assert_int_eq(fixture_fill(&f, &a, "t"), 0);
    fixture_done(&f);
}
END_TEST

static void set_free(uint64_t blocks, uint64_t inodes)
{
    pthread_mutex_lock(&f.clock_lock);
    f.fs.f_bfree = f.fs.f_bavail = blocks;
    f.fs.f_ffree = f.fs.f_favail = inodes;
    pthread_mutex_unlock(&f.clock_lock);
    pthread_mutex_lock(&f.store->space.lock);
    f.store->space.sampled_at_ms = 0; /* look again */
    pthread_mutex_unlock(&f.store->space.lock);
}

START_TEST(a_file_system_filled_by_others_is_relieved_once)
{
    fixture_init(&f);
    f.fs.f_blocks = 1000;
    f.fs.f_bfree = f.fs.f_bavail = 800;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 300; i++)
        fixture_put(&f, i, BLOCK, "t");
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 300);
    set_free(80, 90000); /* 92% used: down to 80 are 120 blocks */
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 180);
    /* The removed ones are open somewhere: no space came free. No more are removed for that. */
    set_free(80, 90000);
    wake_round(&f.store->evictor);
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 180);
    /* Then it did, and others filled it again. */
    set_free(200, 90000);
    wake_round(&f.store->evictor);
    set_free(80, 90000);
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 60);
    fixture_done(&f);
}
END_TEST

START_TEST(a_file_system_short_of_inodes_is_relieved)
{
    fixture_init(&f);
    f.fs.f_files = 1000;
    f.fs.f_ffree = f.fs.f_favail = 800;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 300; i++)
        fixture_put(&f, i, BLOCK, "t");
    set_free(235930, 80);
    wake_round(&f.store->evictor);
    ck_assert_uint_eq(fixture_objects(&f), 180);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert_uint_eq(stats.max_inodes, 180); /* nothing is left below the watermark */
    fixture_done(&f);
}
END_TEST

START_TEST(a_small_file_system_is_filled_over_and_over)
{
    fixture_init(&f);
    f.fs.f_blocks = 1000;
    f.fs.f_bfree = f.fs.f_bavail = 800;
    fixture_open(&f);
    atomic_store(&f.tracked, f.store);
    /* Faster than the file system is looked at; every fill finds room. */
    for (uint64_t i = 1; i <= 6000; i++) {
        fixture_put(&f, i, BLOCK, "t");
        ck_assert_uint_le(fixture_objects(&f), 760);
    }
    ck_assert_uint_ge(fixture_objects(&f), 550);
    atomic_store(&f.tracked, NULL);
    fixture_done(&f);
}
END_TEST

START_TEST(a_full_file_system_takes_no_fill_and_is_not_looped_on)
{
    fixture_init(&f);
    f.fs.f_blocks = 1000;
    f.fs.f_bfree = f.fs.f_bavail = 800;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 300; i++)
        fixture_put(&f, i, BLOCK, "t");
    set_free(10, 90000); /* 99%, and evicting frees nothing */
    OriginNode node = fake_file(1000, BLOCK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(fixture_fill(&f, &node, "t"), -ENOSPC);
    wake_round(&f.store->evictor);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(fixture_fill(&f, &node, "t"), -ENOSPC);
    wake_round(&f.store->evictor);
    /* 190 blocks were over the low watermark, and a little for the fill itself. */
    ck_assert_uint_ge(fixture_objects(&f), 300 - 190 - 50);
    fixture_done(&f);
}
END_TEST

static uint64_t evictor_rounds(void)
{
    pthread_mutex_lock(&f.store->evictor.lock);
    uint64_t rounds = f.store->evictor.rounds;
    pthread_mutex_unlock(&f.store->evictor.lock);
    return rounds;
}

START_TEST(an_evictor_that_may_evict_nothing_rests)
{
    fixture_init(&f);
    fixture_open(&f);
    ck_assert_int_eq(store_pin(f.store, "pinned", TRUE), 0);
    for (uint64_t i = 1; i <= 5; i++)
        fixture_put(&f, i, BLOCK, "pinned");
    ck_assert_int_eq(store_flush(f.store), 0);
    /* Others have filled the file system to 92 %. */
    pthread_mutex_lock(&f.clock_lock);
    f.fs.f_bavail = f.fs.f_bfree = f.fs.f_blocks / 100 * 8;
    pthread_mutex_unlock(&f.clock_lock);
    space_forget(f.store);
    wake_round(&f.store->evictor);
    const uint64_t before = evictor_rounds();
    g_usleep(100000);
    ck_assert_uint_le(evictor_rounds() - before, 2);
    ck_assert_uint_eq(fixture_objects(&f), 5);
    fixture_done(&f);
}
END_TEST

START_TEST(an_open_object_stays_readable_when_evicted)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, 3 * BLOCK, "t");
    hearth_autofd int fd = store_open_object(f.store, &id, 3 * BLOCK);
    ck_assert_uint_eq(store_evict(f.store, NULL, UINT64_MAX), 3 * BLOCK);
    uint8_t buf[3 * BLOCK];
    ck_assert_int_eq(pread(fd, buf, sizeof(buf), 0), sizeof(buf));
    ck_assert(fake_is_right(1, buf, sizeof(buf), 0));
    fixture_done(&f);
}
END_TEST

START_TEST(a_record_without_a_file_goes_with_eviction)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId gone = fixture_put(&f, 1, BLOCK, "t");
    fixture_put(&f, 2, BLOCK, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    g_autofree char *path = fixture_object_path(&f, &gone);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(store_evict(f.store, NULL, UINT64_MAX), BLOCK);
    ck_assert_uint_eq(fixture_objects(&f), 0);
    assert_usage("t", 0, 0);
    fixture_done(&f);
}
END_TEST

static void die_between_unlink_and_record(Fixture *fixture)
{
    ObjectId first = fixture_put(fixture, 1, BLOCK, "t");
    fixture_put(fixture, 2, BLOCK, "t");
    ck_assert_int_eq(store_flush(fixture->store), 0);
    layout_unlink_object(&fixture->store->layout, &first);
}

START_TEST(a_crash_in_eviction_leaves_nothing_worse_than_a_miss)
{
    fixture_init(&f);
    fixture_crash(&f, die_between_unlink_and_record);
    f.hooks.boot_id = "second";
    fixture_open(&f);
    ck_assert(!fixture_serves(&f, 1, BLOCK));
    ck_assert(fixture_serves(&f, 2, BLOCK));
    fixture_put(&f, 1, BLOCK, "t");
    ck_assert(fixture_serves(&f, 1, BLOCK));
    ck_assert_uint_eq(fixture_objects(&f), 2);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_uint_eq(fixture_objects(&f), 2);
    fixture_done(&f);
}
END_TEST

HARNESS_MAIN("cache/store/objects/evict", the_least_recently_used_goes_first,
             objects_not_yet_recorded_go_last_but_go, objects_that_are_recorded_meanwhile_go_too,
             a_tag_is_evicted_alone_and_counted, what_is_not_in_use_goes_before_what_is,
             what_is_pinned_stays_until_it_is_named, a_store_full_of_pinned_objects_takes_no_more,
             objects_become_those_of_the_tag_with_the_better_claim,
             a_damaged_list_of_pins_counts_as_empty, from_above_the_high_watermark_to_the_low_one,
             what_others_keep_in_the_directory_is_within_the_bound,
             the_bound_on_inodes_counts_like_that_on_bytes,
             a_tiny_bound_makes_room_for_what_is_needed_now,
             room_taken_by_fills_under_way_is_not_given_twice,
             a_file_system_filled_by_others_is_relieved_once,
             a_file_system_short_of_inodes_is_relieved, a_small_file_system_is_filled_over_and_over,
             a_full_file_system_takes_no_fill_and_is_not_looped_on,
             an_evictor_that_may_evict_nothing_rests, an_open_object_stays_readable_when_evicted,
             a_record_without_a_file_goes_with_eviction,
             a_crash_in_eviction_leaves_nothing_worse_than_a_miss)
