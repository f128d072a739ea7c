/* SPDX-License-Identifier: Apache-2.0 */
/* Large objects: fetched as far as they are read, parked, continued, kept when they are whole. */
#include "cache/store/fill/internal.h"
#include "tests/unit/cache/store/fixture.h"
#include <errno.h>
#include <fcntl.h>

#define CHUNK 65536
#define PART 4096
#define SIZE (100 * CHUNK + 17)

static Fixture f;
static OriginNode node;

static void prepare(void)
{
    fixture_init(&f);
    f.config.whole_bytes = CHUNK;
}

static void open_prepared(void)
{
    fixture_open(&f);
    node = fake_file(1, SIZE);
    f.origin.named = &node;
}

static void begin_of(uint64_t max_bytes)
{
    prepare();
    f.config.max_bytes = max_bytes;
    open_prepared();
}

static void begin(void)
{
    begin_of(0);
}

static void end(void)
{
    fixture_close(&f);
    fake_assert_unused(&f.origin, &node);
    ck_assert_uint_eq(fixture_count(&f, "partial"), 0);
    fixture_done(&f);
}

static StoreFill *fill_of(const char *tag)
{
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    StoreFill *fill = store_fill_path(f.store, &f.origin.base, "named", &key, tag);
    ck_assert_ptr_nonnull(fill);
    return fill;
}

static void read_at(StoreFill *fill, uint64_t off, size_t len)
{
    g_autofree uint8_t *buf = g_malloc(len);
    const size_t there = (size_t)MIN(len, SIZE - off);
    ck_assert_int_eq(store_fill_read(fill, buf, len, off), (ssize_t)there);
    ck_assert(fake_is_right(1, buf, there, off));
}

static void read_in_sequence(StoreFill *fill, uint64_t from, uint64_t to)
{
    for (uint64_t off = from; off < to; off += 10000)
        read_at(fill, off, (size_t)MIN(10000, to - off));
}

static uint64_t origin_bytes(void)
{
    pthread_mutex_lock(&f.origin.lock);
    uint64_t n = f.origin.bytes_read;
    pthread_mutex_unlock(&f.origin.lock);
    return n;
}

static unsigned parked(void)
{
    pthread_mutex_lock(&f.store->fills->lock);
    const unsigned n = f.store->fills->n_parked;
    pthread_mutex_unlock(&f.store->fills->lock);
    return n;
}

static uint64_t bytes_in_use(void)
{
    return ledger_sum(&f.store->ledger).bytes;
}

static void await_no_fill(void)
{
    StoreStats stats;
    do {
        g_usleep(1000);
        store_stats(f.store, &stats);
    } while (stats.fills_active > 0);
}

static void leave(StoreFill *fill)
{
    store_fill_unref(fill);
    await_no_fill();
}

/* It is an object, for which this much was fetched. */
static void assert_kept(uint64_t fetched)
{
    ck_assert_uint_eq(origin_bytes(), fetched);
    ck_assert(fixture_serves(&f, 1, SIZE));
}

START_TEST(one_byte_of_a_large_file_costs_one_chunk)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 0, 1);
    leave(fill);
    ck_assert_uint_eq(origin_bytes(), PART);
    ck_assert_uint_eq(bytes_in_use(), 2 * PART); /* and a block, as every object */
    ck_assert_uint_eq(parked(), 1);
    fake_assert_unused(&f.origin, &node);
    end();
}
END_TEST

START_TEST(what_is_there_in_part_is_served_where_it_is)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 0, PART);
    read_at(fill, 50 * CHUNK, 2 * PART);
    read_at(fill, SIZE - 17, 100);
    leave(fill);
    const uint64_t before = origin_bytes();
    fill = fill_of("t");
    read_at(fill, 50 * CHUNK + PART, PART - 1);
    read_at(fill, 0, PART);
    read_at(fill, SIZE - 5, 100);
    ck_assert_uint_eq(origin_bytes(), before);
    ck_assert_uint_eq(parked(), 0);
    store_fill_unref(fill);
    end();
}
END_TEST

START_TEST(scattered_reads_fetch_little_more_than_they_read)
{
    begin();
    StoreFill *fill = fill_of("t");
    uint64_t read = 0;
    for (unsigned i = 0; i < 40; i++) {
        read_at(fill, (i * 37 % 99) * (uint64_t)CHUNK + 1000, 8000);
        read += 8000;
    }
    leave(fill);
    ck_assert_uint_lt(origin_bytes(), 2 * read);
    end();
}
END_TEST

START_TEST(a_stride_is_not_taken_for_a_sequence)
{
    begin();
    StoreFill *fill = fill_of("t");
    for (uint64_t off = 0; off < 90 * CHUNK; off += CHUNK / 4)
        read_at(fill, off, 1000);
    leave(fill);
    ck_assert_uint_lt(origin_bytes(), (4 * 90 + 16) * PART);
    end();
}
END_TEST

START_TEST(a_sequence_is_fetched_ahead_of_its_reader)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_in_sequence(fill, 0, 4 * CHUNK);
    /* What was asked for comes without another read. */
    while (origin_bytes() < 5 * CHUNK)
        g_usleep(1000);
    leave(fill);
    /* Not more than the window, and what workers had begun. */
    ck_assert_uint_le(origin_bytes(), (4 + 8 + 3) * CHUNK + 10000);
    end();
}
END_TEST

START_TEST(all_of_it_read_is_kept)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_in_sequence(fill, 0, SIZE);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    assert_kept(SIZE);
    ObjectId id = fixture_id(&f, 1, SIZE);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(store_verify(f.store, &id, NULL), 0);
    ck_assert_uint_eq(bytes_in_use(), record_charge(SIZE));
    end();
}
END_TEST

START_TEST(the_rest_comes_when_more_than_half_was_read)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_in_sequence(fill, 0, 55 * CHUNK);
    leave(fill);
    assert_kept(SIZE);
    end();
}
END_TEST

START_TEST(a_waiter_for_all_of_it_gets_the_rest)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 20 * CHUNK, 100);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    assert_kept(SIZE);
    end();
}
END_TEST

static StoreFill *fill_ahead(StorePace *pace)
{
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    const FillRequest request = {
        .origin = &f.origin.base, .path = "named", .key = &key, .tag = "t", .pace = pace};
    return store_fill_ahead(f.store, &request);
}

START_TEST(a_fill_ahead_takes_the_place_of_what_is_parked)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 20 * CHUNK, 5 * PART);
    leave(fill);
    fill = fill_ahead(NULL);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    assert_kept(SIZE + 5 * PART);
    end();
}
END_TEST

START_TEST(a_fill_ahead_of_what_was_parked_has_a_pace_and_can_be_abandoned)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 0, 1);
    leave(fill);
    StorePace *pace = store_pace_new(CHUNK);
    fill = fill_ahead(pace);
    ck_assert_int_eq(store_fill_await(fill, 0, 20000), 0);
    store_fill_abandon(fill);
    store_pace_unref(pace);
    await_no_fill();
    ck_assert_uint_lt(origin_bytes(), SIZE / 2);
    end();
}
END_TEST

START_TEST(what_another_origin_has_parked_is_not_continued)
{
    static FakeOrigin other;
    begin();
    fake_init(&other);
    OriginNode same = fake_file(1, SIZE);
    other.named = &same;
    StoreFill *fill = fill_of("t");
    read_at(fill, 0, 1);
    ObjectKey key;
    fake_key(&other, &same, &key, NULL);
    ck_assert_ptr_null(store_fill_path(f.store, &other.base, "named", &key, "other"));
    leave(fill);
    const uint64_t before = origin_bytes();
    fill = store_fill_path(f.store, &other.base, "named", &key, "other");
    ck_assert_ptr_nonnull(fill);
    read_at(fill, 0, 1);
    store_fill_unref(fill);
    ck_assert_uint_eq(origin_bytes(), before);
    ck_assert_uint_eq(other.bytes_read, PART);
    store_cancel_fills(f.store, &other.base);
    fake_assert_unused(&other, &same);
    end();
}
END_TEST

START_TEST(a_file_that_cannot_fit_evicts_nothing)
{
    begin_of(60 * CHUNK);
    for (unsigned i = 0; i < 20; i++)
        fixture_put(&f, 100 + i, CHUNK, "other");
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    ck_assert_ptr_null(store_fill_path(f.store, &f.origin.base, "named", &key, "t"));
    ck_assert_uint_eq(fixture_objects(&f), 20);
    end();
}
END_TEST

/* What is written counts once against the file system: for it, 62 % of the disk fit. */
static _Atomic(Store *) on_small_disk;

static int statvfs_of_all(void *data, int fd, struct statvfs *st)
{
    Store *store = atomic_load(&on_small_disk);
    (void)fd;
    *st = ((Fixture *)data)->fs;
    st->f_blocks = 160 * 16;
    const uint64_t used = store ? ledger_sum(&store->ledger).bytes / 4096 : 0;
    st->f_bfree = st->f_bavail = st->f_blocks - MIN(used, st->f_blocks);
    return 0;
}

START_TEST(what_is_written_counts_once)
{
    fixture_init(&f);
    f.config.whole_bytes = CHUNK;
    f.hooks.statvfs = statvfs_of_all;
    fixture_open(&f);
    atomic_store(&on_small_disk, f.store);
    node = fake_file(1, SIZE);
    f.origin.named = &node;
    fake_set_gate(&f.origin, 85 * CHUNK);
    StoreFill *fill = fill_of("t");
    read_in_sequence(fill, 0, 60 * CHUNK);
    g_usleep(400000); /* the sample of the file system is 250 ms old at most */
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    leave(fill);
    ck_assert_uint_eq(ledger_written_bytes(&f.store->ledger), 0);
    atomic_store(&on_small_disk, NULL);
    end();
}
END_TEST

START_TEST(what_was_fetched_last_is_read_from_memory)
{
    begin();
    StoreFill *fill = fill_of("t");
    if (fill->direct < 0) {
        printf("skipped: this file system has no direct I/O\n");
        leave(fill);
        end();
        return;
    }
    read_at(fill, 0, PART);
    ck_assert_int_eq(ftruncate(fill->partial.fd, 0), 0);
    read_at(fill, 0, PART);
    for (uint64_t i = 1; i <= f.config.fill_threads; i++)
        read_at(fill, 2 * i * CHUNK, PART);
    uint8_t byte;
    ck_assert_uint_eq(fill_recent_read(fill, &byte, 1, 0), 0); /* not for ever */
    leave(fill);
    end();
}
END_TEST

static atomic_uint slow_writes, found_stuck;

static ssize_t slow_pwrite(void *data, int fd, const void *buf, size_t len, off_t off)
{
    const Store *store = ((Fixture *)data)->store;
    Fills *fills = store->fills;
    g_usleep(20000);
    pthread_mutex_lock(&fills->lock);
    fill_find_stuck_locked(fills, store, (uint64_t)monotonic_ms());
    atomic_fetch_add(&found_stuck, fills->stuck);
    pthread_mutex_unlock(&fills->lock);
    atomic_fetch_add(&slow_writes, 1);
    return pwrite(fd, buf, len, off);
}

START_TEST(a_slow_disk_is_no_origin_that_hangs)
{
    prepare();
    f.hooks.stuck_ms = 5;
    f.hooks.pwrite = slow_pwrite;
    open_prepared();
    StoreFill *fill = fill_of("t");
    for (uint64_t i = 0; i < 10; i++)
        read_at(fill, 2 * i * CHUNK, PART);
    ck_assert_uint_ge(atomic_load(&slow_writes), 10);
    if (fill->direct >= 0) /* others do not wait for the disk */
        ck_assert_uint_eq(atomic_load(&found_stuck), 0);
    leave(fill);
    end();
}
END_TEST

static ssize_t pwrite_of_large_blocks(void *data, int fd, const void *buf, size_t len, off_t off)
{
    (void)data;
    if (!(fcntl(fd, F_GETFL) & O_DIRECT))
        return pwrite(fd, buf, len, off);
    errno = EINVAL;
    return -1;
}

START_TEST(a_disk_of_larger_blocks_is_written_through_the_page_cache)
{
    prepare();
    f.hooks.pwrite = pwrite_of_large_blocks;
    open_prepared();
    StoreFill *fill = fill_of("t");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    leave(fill);
    assert_kept(SIZE);
    ck_assert_int_eq(disk_state(&f.store->disk), STORE_DISK_OK);
    end();
}
END_TEST

START_TEST(a_damaged_part_is_fetched_again)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 0, PART);
    leave(fill);
    fill = fill_of("t");
    ck_assert_int_eq(ftruncate(fill->partial.fd, 0), 0);
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 0), -EIO);
    leave(fill);
    ck_assert_uint_eq(parked(), 0);
    fill = fill_of("t");
    read_at(fill, 0, PART);
    store_fill_unref(fill);
    end();
}
END_TEST

START_TEST(many_readers_in_sequence_are_all_read_ahead_for)
{
    begin();
    StoreFill *fill = fill_of("t");
    for (uint64_t off = 0; off + 8192 <= 4 * CHUNK; off += 8192)
        for (unsigned i = 0; i < 10; i++)
            read_at(fill, i * 9 * (uint64_t)CHUNK + off, 8192);
    leave(fill);
    /* Less than half of one for each read. */
    ck_assert_uint_lt(f.origin.reads, 4 * CHUNK / 8192 * 10 / 2);
    end();
}
END_TEST

START_TEST(a_fill_that_nobody_wants_stops)
{
    begin();
    fake_set_gate(&f.origin, 4 * CHUNK);
    StoreFill *fill = fill_of("t");
    read_in_sequence(fill, 0, 4 * CHUNK);
    fake_await_reads(&f.origin, 1);
    store_fill_unref(fill);
    fake_set_gate(&f.origin, UINT64_MAX);
    pthread_mutex_lock(&f.store->fills->lock);
    while (f.store->fills->busy > 0) {
        pthread_mutex_unlock(&f.store->fills->lock);
        g_usleep(1000);
        pthread_mutex_lock(&f.store->fills->lock);
    }
    pthread_mutex_unlock(&f.store->fills->lock);
    /* The chunks that three workers had. */
    ck_assert_uint_le(origin_bytes(), (4 + 3) * CHUNK);
    fake_assert_unused(&f.origin, &node);
    end();
}
END_TEST

START_TEST(a_file_known_by_its_node_is_fetched_as_a_whole)
{
    begin();
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    StoreFill *fill = store_fill(f.store, &f.origin.base, &node, &key, "t");
    read_at(fill, 0, 1);
    leave(fill);
    assert_kept(SIZE);
    end();
}
END_TEST

START_TEST(a_small_file_is_fetched_as_a_whole)
{
    begin();
    node = fake_file(1, CHUNK);
    StoreFill *fill = fill_of("t");
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 0), 1);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    ck_assert_uint_eq(origin_bytes(), CHUNK);
    end();
}
END_TEST

/* A byte of each of n files, whose numbers begin at `from`. */
static void park_files(unsigned from, unsigned n, const char *tag, size_t len)
{
    for (unsigned i = 0; i < n; i++) {
        pthread_mutex_lock(&f.origin.lock);
        node = fake_file(from + i, SIZE);
        pthread_mutex_unlock(&f.origin.lock);
        StoreFill *fill = fill_of(tag);
        g_autofree uint8_t *buf = g_malloc(len);
        ck_assert_int_eq(store_fill_read(fill, buf, len, 0), (ssize_t)len);
        leave(fill);
    }
}

START_TEST(parked_fills_are_bounded_in_number)
{
    begin();
    park_files(10, 300, "t", 1);
    ck_assert_uint_eq(parked(), 256);
    ck_assert_uint_eq(bytes_in_use(), 256 * 2 * PART);
    end();
}
END_TEST

START_TEST(parked_fills_hold_an_eighth_of_the_cache)
{
    begin_of(300 * CHUNK);
    park_files(10, 20, "t", 4 * CHUNK);
    ck_assert_uint_le(bytes_in_use(), 300 * CHUNK / 8);
    ck_assert_uint_ge(bytes_in_use(), 300 * CHUNK / 16);
    end();
}
END_TEST

START_TEST(a_loop_over_more_files_than_can_be_parked_hits_in_part)
{
    begin();
    park_files(10, 280, "t", 1);
    const uint64_t before = origin_bytes();
    park_files(10, 280, "t", 1);
    ck_assert_uint_lt(origin_bytes() - before, 200 * PART);
    end();
}
END_TEST

START_TEST(one_that_has_more_than_the_share_leaves_the_others)
{
    begin_of(300 * CHUNK);
    park_files(10, 3, "t", 1);
    node = fake_file(1, SIZE);
    StoreFill *fill = fill_of("t");
    for (unsigned i = 0; i < 40; i++)
        read_at(fill, (i * 37 % 99) * (uint64_t)CHUNK, CHUNK);
    leave(fill);
    ck_assert_uint_eq(parked(), 4);
    park_files(20, 1, "t", 1);
    ck_assert_uint_eq(parked(), 4); /* without the large one */
    ck_assert_uint_le(bytes_in_use(), 300 * CHUNK / 8);
    end();
}
END_TEST

START_TEST(evicting_a_tag_drops_what_is_parked_of_it)
{
    begin();
    park_files(10, 3, "one", 1);
    park_files(20, 2, "other", 1);
    ck_assert_uint_eq(store_evict_parts(f.store, "one", UINT64_MAX), 3 * 2 * PART);
    ck_assert_uint_eq(parked(), 2);
    ck_assert_uint_eq(store_evict_parts(f.store, NULL, UINT64_MAX), 2 * 2 * PART);
    ck_assert_uint_eq(bytes_in_use(), 0);
    end();
}
END_TEST

START_TEST(the_origin_is_free_of_parked_fills_after_a_cancel)
{
    begin();
    park_files(10, 3, "t", 1);
    StoreFill *fill = fill_of("t");
    store_cancel_fills(f.store, &f.origin.base);
    ck_assert_uint_eq(parked(), 0);
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 50 * CHUNK), -ECANCELED);
    store_fill_unref(fill);
    ck_assert_uint_eq(bytes_in_use(), 0);
    end();
}
END_TEST

START_TEST(an_error_ends_the_fill_and_gives_back_its_space)
{
    begin();
    StoreFill *fill = fill_of("t");
    read_at(fill, 0, 1);
    f.origin.read_error = -EIO;
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 50 * CHUNK), -EIO);
    store_fill_unref(fill);
    ck_assert_uint_eq(parked(), 0);
    f.origin.read_error = 0;
    fill = fill_of("t");
    read_at(fill, 50 * CHUNK, 10);
    store_fill_unref(fill);
    end();
}
END_TEST

typedef struct Scattered {
    pthread_t thread;
    GRand *random;
} Scattered;

static void *read_scattered(void *data)
{
    Scattered *s = data;
    for (int round = 0; round < 60; round++) {
        StoreFill *fill = fill_of("t");
        for (int i = g_rand_int_range(s->random, 1, 6); i > 0; i--) {
            const uint64_t off = (uint64_t)g_rand_int_range(s->random, 0, SIZE);
            const size_t len = (size_t)g_rand_int_range(s->random, 1, 3 * PART);
            if (g_rand_boolean(s->random))
                read_at(fill, off, len);
            else
                read_in_sequence(fill, off, MIN(off + len, SIZE));
        }
        store_fill_unref(fill);
        if (g_rand_int_range(s->random, 0, 10) == 0)
            store_evict_parts(f.store, NULL, UINT64_MAX);
    }
    return NULL;
}

START_TEST(readers_that_come_and_go_read_what_is_right)
{
    begin();
    Scattered readers[4];
    for (unsigned i = 0; i < 4; i++) {
        readers[i].random = g_rand_new_with_seed(i);
        pthread_create(&readers[i].thread, NULL, read_scattered, &readers[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(readers[i].thread, NULL);
        g_rand_free(readers[i].random);
    }
    end();
}
END_TEST

HARNESS_MAIN(
    "cache/store/fill/parts", one_byte_of_a_large_file_costs_one_chunk,
    what_is_there_in_part_is_served_where_it_is, scattered_reads_fetch_little_more_than_they_read,
    a_stride_is_not_taken_for_a_sequence, a_sequence_is_fetched_ahead_of_its_reader,
    all_of_it_read_is_kept, the_rest_comes_when_more_than_half_was_read,
    a_waiter_for_all_of_it_gets_the_rest, a_fill_ahead_takes_the_place_of_what_is_parked,
    a_fill_ahead_of_what_was_parked_has_a_pace_and_can_be_abandoned,
    what_another_origin_has_parked_is_not_continued, a_file_that_cannot_fit_evicts_nothing,
    what_is_written_counts_once, what_was_fetched_last_is_read_from_memory,
    a_slow_disk_is_no_origin_that_hangs, a_disk_of_larger_blocks_is_written_through_the_page_cache,
    a_damaged_part_is_fetched_again, many_readers_in_sequence_are_all_read_ahead_for,
    a_fill_that_nobody_wants_stops, a_file_known_by_its_node_is_fetched_as_a_whole,
    a_small_file_is_fetched_as_a_whole, parked_fills_are_bounded_in_number,
    parked_fills_hold_an_eighth_of_the_cache,
    a_loop_over_more_files_than_can_be_parked_hits_in_part,
    one_that_has_more_than_the_share_leaves_the_others, evicting_a_tag_drops_what_is_parked_of_it,
    the_origin_is_free_of_parked_fills_after_a_cancel,
    an_error_ends_the_fill_and_gives_back_its_space, readers_that_come_and_go_read_what_is_right)
