/* SPDX-License-Identifier: Apache-2.0 */
/* Fills: one fetch for all, readers served meanwhile, and nothing kept that is not the file. */
#include <sys/mman.h>
#include "cache/store/fill/internal.h"
#include "cache/origin/thread_room.h"
#include "tests/unit/cache/store/fixture.h"

#define CHUNK 65536

static Fixture f;

static void begin(void)
{
    fixture_init(&f);
    fixture_open(&f);
}

static void end(const OriginNode *node)
{
    fixture_close(&f);
    fake_assert_unused(&f.origin, node);
    ck_assert_uint_eq(fixture_count(&f, "partial"), 0);
    fixture_done(&f);
}

static StoreFill *fill_of(OriginNode *node)
{
    ObjectKey key;
    fake_key(&f.origin, node, &key, NULL);
    return store_fill(f.store, &f.origin.base, node, &key, "tag");
}

static void assert_reads(StoreFill *fill, uint64_t ino, uint64_t off, size_t len)
{
    g_autofree uint8_t *buf = g_malloc(len);
    ck_assert_int_eq(store_fill_read(fill, buf, len, off), (ssize_t)len);
    ck_assert(fake_is_right(ino, buf, len, off));
}

static uint64_t origin_bytes(void)
{
    pthread_mutex_lock(&f.origin.lock);
    uint64_t n = f.origin.bytes_read;
    pthread_mutex_unlock(&f.origin.lock);
    return n;
}

typedef struct Reader {
    pthread_t thread;
    OriginNode *node;
    int rc;
} Reader;

static void *read_whole(void *data)
{
    Reader *reader = data;
    uint64_t size = (uint64_t)reader->node->attr.st.st_size;
    g_autofree uint8_t *buf = g_malloc(size);
    StoreFill *fill = fill_of(reader->node);
    ck_assert_ptr_nonnull(fill);
    for (uint64_t off = 0; off < size;) {
        ssize_t n = store_fill_read(fill, buf + off, 10000, off);
        if (n <= 0) {
            reader->rc = (int)n;
            break;
        }
        off += (uint64_t)n;
    }
    if (reader->rc == 0 && !fake_is_right(reader->node->attr.st.st_ino, buf, size, 0))
        reader->rc = -EBADMSG;
    store_fill_unref(fill);
    return NULL;
}

static void many_readers(uint64_t size)
{
    begin();
    OriginNode node = fake_file(1, size);
    Reader readers[8];
    fake_set_gate(&f.origin, 0);
    /* This reference keeps the fill from being over before the last reader comes. */
    StoreFill *fill = fill_of(&node);
    for (int i = 0; i < 8; i++) {
        readers[i] = (Reader){.node = &node};
        pthread_create(&readers[i].thread, NULL, read_whole, &readers[i]);
    }
    fake_await_reads(&f.origin, 1);
    fake_set_gate(&f.origin, UINT64_MAX);
    for (int i = 0; i < 8; i++) {
        pthread_join(readers[i].thread, NULL);
        ck_assert_int_eq(readers[i].rc, 0);
    }
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    ck_assert_uint_eq(origin_bytes(), size);
    ck_assert_uint_eq(f.origin.opens, 1);
    ck_assert(f.origin.open_flags & O_DIRECT);
    ck_assert(fixture_serves(&f, 1, size));
    ObjectId id = fixture_id(&f, 1, size);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(store_verify(f.store, &id, NULL), 0);
    end(&node);
}

START_TEST(eight_readers_of_a_small_file_cost_one_fetch)
{
    many_readers(40000);
}
END_TEST

START_TEST(eight_readers_of_a_large_file_cost_one_fetch)
{
    many_readers(10 * CHUNK + 17);
}
END_TEST

/* Begins fills that nobody needs, of files 100, 101, ... of one chunk each. */
static void begin_ahead(OriginNode *nodes, StoreFill **fills, unsigned n, StorePace *pace)
{
    for (unsigned i = 0; i < n; i++) {
        ObjectKey key;
        nodes[i] = fake_file(100 + i, CHUNK);
        fake_key(&f.origin, &nodes[i], &key, NULL);
        const FillRequest request = {
            .origin = &f.origin.base, .node = &nodes[i], .key = &key, .tag = "ahead", .pace = pace};
        fills[i] = store_fill_ahead(f.store, &request);
        ck_assert_ptr_nonnull(fills[i]);
    }
}

static void end_all(StoreFill **fills, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(store_fill_wait(fills[i]), 0);
        store_fill_unref(fills[i]);
    }
}

START_TEST(a_reader_is_served_before_what_nobody_needs)
{
    begin();
    OriginNode nodes[20], node = fake_file(1, 3 * CHUNK);
    StoreFill *ahead[20];
    uint64_t order[64];
    f.origin.order = order;
    /* All workers hold one of these; the others wait in the queue. */
    fake_set_gate(&f.origin, 0);
    begin_ahead(nodes, ahead, 20, NULL);
    fake_await_reads(&f.origin, 2);
    Reader reader = {.node = &node};
    pthread_create(&reader.thread, NULL, read_whole, &reader);
    StoreFill *fill = fill_of(&node);
    store_fill_await_waiter(fill);
    fake_set_gate(&f.origin, UINT64_MAX);
    pthread_join(reader.thread, NULL);
    ck_assert_int_eq(reader.rc, 0);
    /* After the two that were under way, and one for each of its three chunks at most, as the other
     * worker may be faster. */
    unsigned last = 0;
    pthread_mutex_lock(&f.origin.lock);
    for (unsigned i = 0; i < f.origin.n_order; i++)
        last = order[i] == 2 * CHUNK ? i : last;
    pthread_mutex_unlock(&f.origin.lock);
    ck_assert_uint_gt(last, 0);
    ck_assert_uint_lt(last, 10);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    end_all(ahead, 20);
    f.origin.order = NULL;
    end(&node);
}
END_TEST

START_TEST(what_nobody_needs_leaves_a_worker_to_readers)
{
    begin();
    OriginNode nodes[4], node = fake_file(1, CHUNK), late = fake_file(2, 2 * CHUNK);
    StoreFill *ahead[4], *fill = fill_of(&node); /* there are readers about */
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    fake_set_gate(&f.origin, 0);
    begin_ahead(nodes, ahead, 4, NULL);
    fake_await_reads(&f.origin, 1);
    fill = fill_of(&late);
    fake_await_reads(&f.origin, 2);
    pthread_mutex_lock(&f.store->fills->lock);
    ck_assert_uint_eq(f.store->fills->ahead_busy, 1);
    pthread_mutex_unlock(&f.store->fills->lock);
    fake_set_gate(&f.origin, UINT64_MAX);
    assert_reads(fill, 2, 0, 2 * CHUNK);
    store_fill_unref(fill);
    end_all(ahead, 4);
    end(&late);
}
END_TEST

START_TEST(what_nobody_needs_leaves_one_of_many_workers_to_readers)
{
    fixture_init(&f);
    f.config.fill_threads = 8;
    fixture_open(&f);
    OriginNode nodes[20], node = fake_file(1, CHUNK), late = fake_file(2, 2 * CHUNK);
    StoreFill *ahead[20], *fill = fill_of(&node); /* there are readers about */
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    fake_set_gate(&f.origin, 0);
    begin_ahead(nodes, ahead, 20, NULL);
    fake_await_reads(&f.origin, 3);
    fill = fill_of(&late);
    fake_await_reads(&f.origin, 4);
    pthread_mutex_lock(&f.store->fills->lock);
    ck_assert_uint_eq(f.store->fills->ahead_busy, 3);
    pthread_mutex_unlock(&f.store->fills->lock);
    fake_set_gate(&f.origin, UINT64_MAX);
    assert_reads(fill, 2, 0, 2 * CHUNK);
    store_fill_unref(fill);
    end_all(ahead, 20);
    end(&late);
}
END_TEST

START_TEST(what_nobody_needs_begins_when_the_readers_are_gone)
{
    fixture_init(&f);
    f.config.fill_threads = 2;
    fixture_open(&f);
    FakeOrigin other;
    fake_init(&other);
    OriginNode hung = fake_file(1, 2 * CHUNK), later = fake_file(2, CHUNK);
    fake_set_gate(&f.origin, 0);
    StoreFill *fill = fill_of(&hung);
    fake_await_reads(&f.origin, 1);
    ObjectKey key;
    fake_key(&other, &later, &key, NULL);
    const FillRequest request = {.origin = &other.base, .node = &later, .key = &key, .tag = "t"};
    StoreFill *ahead = store_fill_ahead(f.store, &request);
    ck_assert_int_eq(store_fill_wait(ahead), 0);
    store_fill_unref(ahead);
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    store_cancel_fills(f.store, &other.base);
    fake_assert_unused(&other, &later);
    end(&hung);
}
END_TEST

START_TEST(what_a_reader_joins_is_needed)
{
    begin();
    OriginNode nodes[3];
    StoreFill *ahead[3];
    /* So slow that only the first chunk comes by itself. */
    StorePace *pace = store_pace_new(1);
    begin_ahead(nodes, ahead, 3, pace);
    ck_assert_int_eq(store_fill_wait(ahead[0]), 0);
    ObjectKey key;
    fake_key(&f.origin, &nodes[2], &key, NULL);
    StoreFill *fill = store_fill(f.store, &f.origin.base, &nodes[2], &key, "reader");
    ck_assert_ptr_eq(fill, ahead[2]);
    assert_reads(fill, 102, 0, CHUNK);
    store_fill_unref(fill);
    store_fill_abandon(ahead[1]);
    StoreStats stats;
    do {
        store_stats(f.store, &stats);
        sched_yield();
    } while (stats.fills_active);
    ObjectId id = fixture_id(&f, 101, CHUNK);
    ck_assert(!store_has(f.store, &id));
    store_fill_unref(ahead[0]);
    store_fill_unref(ahead[2]);
    store_pace_unref(pace);
    end(&nodes[1]);
}
END_TEST

START_TEST(a_pace_bounds_all_that_has_it)
{
    begin();
    OriginNode nodes[10];
    StoreFill *ahead[10];
    StorePace *pace = store_pace_new(20 * CHUNK);
    gint64 start = g_get_monotonic_time();
    begin_ahead(nodes, ahead, 10, pace);
    end_all(ahead, 10);
    /* The first is free; 20 ms are let go. */
    ck_assert_int_ge(g_get_monotonic_time() - start, 9 * 50000 - 20000);
    store_pace_unref(pace);
    end(&nodes[0]);
}
END_TEST

START_TEST(a_small_file_is_fetched_by_its_reader)
{
    begin();
    f.hooks.grace_ms = NEVER_MS;
    fixture_close(&f);
    fixture_open(&f);
    OriginNode node = fake_file(1, 1000);
    StoreFill *fill = fill_of(&node);
    /* No worker would come for an hour. */
    assert_reads(fill, 1, 0, 1000);
    ck_assert(fixture_serves(&f, 1, 1000));
    store_fill_unref(fill);
    end(&node);
}
END_TEST

START_TEST(a_small_file_nobody_reads_is_fetched_all_the_same)
{
    begin();
    f.hooks.grace_ms = NEVER_MS;
    fixture_close(&f);
    fixture_open(&f);
    OriginNode node = fake_file(1, 1000), other = fake_file(2, 1000), third = fake_file(3, 1000);
    /* The one who began it waits. */
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    /* The one who began it leaves. */
    StoreFill *fill = fill_of(&other), *again = store_fill_ref(fill);
    store_fill_unref(fill);
    ck_assert_int_eq(store_fill_wait(again), 0);
    store_fill_unref(again);
    /* Time passes. */
    fixture_close(&f);
    f.hooks.grace_ms = 1;
    fixture_open(&f);
    fake_set_gate(&f.origin, 0);
    fill = fill_of(&third);
    fake_await_reads(&f.origin, 1);
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    end(&node);
}
END_TEST

START_TEST(reader_is_served_before_the_fill_is_complete)
{
    begin();
    OriginNode node = fake_file(1, 8 * CHUNK);
    fake_set_gate(&f.origin, 4 * CHUNK);
    StoreFill *fill = fill_of(&node);
    assert_reads(fill, 1, 100, 3 * CHUNK);
    ObjectId id = fixture_id(&f, 1, 8 * CHUNK);
    ck_assert_int_eq(store_open_object(f.store, &id, 8 * CHUNK), -ENOENT);
    ck_assert(!store_has(f.store, &id));
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    ck_assert(store_has(f.store, &id));
    /* The fill goes on being readable, also when the object is gone. */
    ck_assert_uint_gt(store_evict(f.store, NULL, UINT64_MAX), 0);
    assert_reads(fill, 1, 5 * CHUNK + 3, 2 * CHUNK);
    store_fill_unref(fill);
    end(&node);
}
END_TEST

static void *ask_for_20(void *fill)
{
    assert_reads(fill, 1, 20 * CHUNK, 10);
    return NULL;
}

START_TEST(chunks_asked_for_come_first)
{
    fixture_init(&f);
    f.config.fill_threads = 1;
    fixture_open(&f);
    OriginNode node = fake_file(1, 32 * CHUNK);
    uint64_t order[64];
    f.origin.order = order;
    fake_set_gate(&f.origin, 0);
    StoreFill *fill = fill_of(&node);
    fake_await_reads(&f.origin, 1);
    /* The worker is held in chunk 0; 20 is asked for meanwhile. */
    pthread_t thread;
    pthread_create(&thread, NULL, ask_for_20, fill);
    store_fill_await_waiter(fill);
    fake_set_gate(&f.origin, UINT64_MAX);
    pthread_join(thread, NULL);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    ck_assert_uint_eq(f.origin.n_order, 32);
    ck_assert_uint_eq(order[0], 0);
    ck_assert_uint_eq(order[1], 20 * CHUNK);
    ck_assert_uint_eq(order[2], 21 * CHUNK);
    f.origin.order = NULL;
    store_fill_unref(fill);
    end(&node);
}
END_TEST

START_TEST(random_reads_of_a_large_fill_are_right)
{
    begin();
    uint64_t size = 50 * CHUNK + 12345;
    OriginNode node = fake_file(9, size);
    f.origin.most_per_read = 30000; /* an origin may give less than asked */
    StoreFill *fill = fill_of(&node);
    uint32_t seed = 12345;
    for (int i = 0; i < 300; i++) {
        seed = seed * 1664525 + 1013904223;
        uint64_t off = (seed >> 4) % size;
        size_t len = seed % 200000 + 1;
        g_autofree uint8_t *buf = g_malloc(len);
        ssize_t n = store_fill_read(fill, buf, len, off);
        ck_assert_int_eq(n, (ssize_t)MIN(len, size - off));
        ck_assert(fake_is_right(9, buf, (size_t)n, off));
    }
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, size), 0);
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, UINT64_MAX), 0);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    ck_assert_uint_eq(origin_bytes(), size);
    store_fill_unref(fill);
    ck_assert(fixture_serves(&f, 9, size));
    end(&node);
}
END_TEST

/* Pages of a file that are in the page cache. */
static size_t pages_cached(int fd, size_t size)
{
    size_t n = 0, pages = (size + 4095) / 4096;
    g_autofree unsigned char *in_core = g_malloc(pages);
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_int_eq(mincore(map, size, in_core), 0);
    munmap(map, size);
    for (size_t i = 0; i < pages; i++)
        n += in_core[i] & 1;
    return n;
}

START_TEST(what_nobody_needs_yet_passes_the_page_cache_by)
{
    begin();
    uint64_t size = 5 * CHUNK + 1234;
    OriginNode node = fake_file(3, size);
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    const FillRequest request = {
        .origin = &f.origin.base, .node = &node, .key = &key, .tag = "tag"};
    StoreFill *fill = store_fill_ahead(f.store, &request);
    void *blocks;
    ck_assert_int_eq(posix_memalign(&blocks, 4096, size), 0);
    for (uint64_t off = 0; off < size; off += 32768) {
        ssize_t n = store_fill_read(fill, blocks, 32768, off);
        ck_assert_int_eq(n, (ssize_t)MIN(32768, size - off));
        ck_assert(fake_is_right(3, blocks, (size_t)n, off));
    }
    ck_assert_int_eq(store_fill_wait(fill), 0);
    gboolean direct = fill->direct >= 0;
    store_fill_unref(fill);
    ObjectId id = fixture_id(&f, 3, size);
    int fd = store_open_object(f.store, &id, size);
    ck_assert_int_ge(fd, 0);
    /* The rest beyond the last whole block is read as usual. */
    if (direct)
        ck_assert_uint_le(pages_cached(fd, size), 2);
    ck_assert_int_eq(pread(fd, blocks, size, 0), (ssize_t)size);
    ck_assert(fake_is_right(3, blocks, size, 0));
    close(fd);
    free(blocks);
    end(&node);
}
END_TEST

START_TEST(several_chunks_of_one_fill_are_fetched_at_once)
{
    begin();
    OriginNode node = fake_file(1, 8 * CHUNK);
    fake_set_gate(&f.origin, 0);
    StoreFill *fill = fill_of(&node);
    fake_await_reads(&f.origin, 2);
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    ck_assert_uint_eq(f.origin.most_reading, 2);
    store_fill_unref(fill);
    end(&node);
}
END_TEST

static unsigned workers_started(void)
{
    pthread_mutex_lock(&f.store->fills->lock);
    unsigned n = f.store->fills->n_threads;
    pthread_mutex_unlock(&f.store->fills->lock);
    return n;
}

/* Of a gate that is shut, for files with the numbers from 1. */
static void begin_hung(OriginNode *nodes, StoreFill **fills, unsigned n, uint64_t size)
{
    fake_set_gate(&f.origin, 0);
    for (unsigned i = 0; i < n; i++) {
        nodes[i] = fake_file(1 + i, size);
        fills[i] = fill_of(&nodes[i]);
    }
}

static void end_hung(StoreFill **fills, unsigned n)
{
    fake_set_gate(&f.origin, UINT64_MAX);
    end_all(fills, n);
}

/* A file of another origin is read, and nothing of that origin is in use any more. */
static void other_is_served(void)
{
    FakeOrigin other;
    ObjectKey key;
    OriginNode node = fake_file(50, 7 * CHUNK);
    fake_init(&other);
    fake_key(&other, &node, &key, NULL);
    StoreFill *fill = store_fill(f.store, &other.base, &node, &key, "t");
    assert_reads(fill, 50, 0, 7 * CHUNK);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    store_cancel_fills(f.store, &other.base);
    fake_assert_unused(&other, &node);
}

START_TEST(an_origin_that_hangs_leaves_workers_to_others)
{
    enum { HUNG = 8 };
    fixture_init(&f);
    f.config.fill_threads = 4;
    fixture_open(&f);
    ck_assert_uint_eq(workers_started(), 1);
    OriginNode hung[HUNG];
    StoreFill *waiting[HUNG];
    begin_hung(hung, waiting, HUNG, 2 * CHUNK);
    /* It has two, since two are free then. */
    fake_await_reads(&f.origin, 2);
    other_is_served();
    ck_assert_uint_eq(f.origin.most_reading, 2);
    end_hung(waiting, HUNG);
    ck_assert_uint_le(workers_started(), 5);
    end(&hung[0]);
}
END_TEST

/* Of four workers the last is for the others. */
START_TEST(an_origin_that_hangs_leaves_the_last_worker_when_no_more_can_be_made)
{
    enum { HUNG = 8 };
    fixture_init(&f);
    f.config.fill_threads = 8;
    f.hooks.stuck_ms = 1;
    fixture_open(&f);
    OriginNode hung[HUNG];
    StoreFill *waiting[HUNG];
    thread_room_set_most((unsigned)harness_threads() + 8 + 3); /* three more */
    begin_hung(hung, waiting, HUNG, 2 * CHUNK);
    fake_await_reads(&f.origin, 2);
    for (int i = 0; i < 3; i++)
        other_is_served();
    pthread_mutex_lock(&f.origin.lock);
    ck_assert_uint_le(f.origin.most_reading, 3);
    pthread_mutex_unlock(&f.origin.lock);
    thread_room_set_most(0);
    fake_await_reads(&f.origin, 5);
    end_hung(waiting, HUNG);
    end(&hung[0]);
}
END_TEST

static void await_workers(unsigned most)
{
    while (workers_started() > most)
        g_usleep(1000);
}

START_TEST(fetches_that_hang_leave_room_for_other_files_of_their_origin)
{
    enum { HUNG = 40, THREADS = 4 };
    fixture_init(&f);
    f.config.fill_threads = THREADS;
    f.hooks.stuck_ms = 1;
    fixture_open(&f);
    OriginNode hung[HUNG], healthy = fake_file(100, 7 * CHUNK);
    StoreFill *waiting[HUNG];
    f.origin.passes = 100;
    begin_hung(hung, waiting, HUNG, 1000);
    fake_await_reads(&f.origin, HUNG);
    StoreFill *fill = fill_of(&healthy);
    assert_reads(fill, 100, 0, 7 * CHUNK);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    ck_assert_uint_le(workers_started(), THREADS + 1 + HUNG + 7); /* its chunks may be slow, too */
    end_hung(waiting, HUNG);
    await_workers(THREADS + 1);
    for (unsigned i = 0; i < HUNG; i++)
        ck_assert(fixture_serves(&f, 1 + i, 1000));
    end(&healthy);
}
END_TEST

START_TEST(the_memory_that_hung_fetches_wait_for_is_bounded)
{
    enum { HUNG = 20, THREADS = 8 };
    fixture_init(&f);
    f.config.fill_threads = THREADS;
    f.hooks.stuck_ms = 1;
    fixture_open(&f);
    OriginNode hung[HUNG];
    StoreFill *waiting[HUNG];
    begin_hung(hung, waiting, HUNG, CHUNK);
    /* Half of what is for those that are stuck, and half of what may be busy. */
    fake_await_reads(&f.origin, THREADS);
    other_is_served();
    pthread_mutex_lock(&f.store->fills->lock);
    ck_assert_uint_eq(f.store->fills->stuck, THREADS / 2);
    ck_assert_uint_eq(f.store->fills->busy, THREADS / 2);
    pthread_mutex_unlock(&f.store->fills->lock);
    end_hung(waiting, HUNG);
    ck_assert_uint_eq(f.origin.most_reading, THREADS);
    end(&hung[0]);
}
END_TEST

static void await_no_fill(void)
{
    Fills *fills = f.store->fills;
    pthread_mutex_lock(&fills->lock);
    while (fills->n_live)
        pthread_cond_wait(&fills->released, &fills->lock);
    pthread_mutex_unlock(&fills->lock);
}

/* The fetch is the last that has the fill, which is freed before its worker is done (for ASan). */
START_TEST(a_slow_fetch_that_nobody_waits_for_ends_beside_others)
{
    enum { ROUNDS = 60, OTHERS = 8 };
    fixture_init(&f);
    f.hooks.stuck_ms = 1;
    f.config.fill_threads = 8;
    fixture_open(&f);
    static OriginNode slow[ROUNDS], others[ROUNDS * OTHERS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        slow[i] = fake_file(1 + i, 1000);
        fake_set_gate(&f.origin, 0);
        store_fill_unref(fill_of(&slow[i]));
        fake_await_reads(&f.origin, 1);
        g_usleep(3000); /* longer than stuck_ms */
        fake_set_gate(&f.origin, UINT64_MAX);
        for (unsigned j = 0; j < OTHERS; j++) {
            others[i * OTHERS + j] = fake_file(1000 + i * OTHERS + j, 100);
            store_fill_unref(fill_of(&others[i * OTHERS + j]));
        }
        await_no_fill();
    }
    end(&slow[0]);
}
END_TEST

static uint64_t buffer_bytes(void)
{
    const Fills *fills = f.store->fills;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = fills->buffers_bytes / page;
    g_autofree unsigned char *pages = g_malloc(n);
    uint64_t bytes = 0;
    ck_assert_int_eq(mincore(fills->buffers, fills->buffers_bytes, pages), 0);
    for (size_t i = 0; i < n; i++)
        bytes += pages[i] & 1 ? page : 0;
    return bytes;
}

/* Each worker has fetched a whole chunk of another origin before. */
START_TEST(fetches_that_hang_keep_no_memory_of_earlier_ones)
{
    enum { HUNG = 40, THREADS = 32, LARGE = 1 << 20 };
    fixture_init(&f);
    f.config.fill_threads = THREADS;
    f.config.chunk_bytes = LARGE;
    f.hooks.stuck_ms = 1;
    fixture_open(&f);
    FakeOrigin other;
    fake_init(&other);
    OriginNode hung[HUNG], large[HUNG];
    StoreFill *waiting[HUNG];
    fake_set_gate(&f.origin, 0);
    for (unsigned i = 0; i < HUNG; i++) {
        ObjectKey key;
        large[i] = fake_file(1000 + i, LARGE);
        fake_key(&other, &large[i], &key, NULL);
        StoreFill *fill = store_fill(f.store, &other.base, &large[i], &key, "t");
        ck_assert_int_eq(store_fill_wait(fill), 0);
        store_fill_unref(fill);
        hung[i] = fake_file(1 + i, 1000);
        waiting[i] = fill_of(&hung[i]);
        store_fill_unref(store_fill_ref(waiting[i])); /* a worker fetches it */
        fake_await_reads(&f.origin, i + 1);
    }
    /* One more, until all that hang longer are found to be stuck. */
    while (buffer_bytes() > (THREADS / 2 + 2) * (uint64_t)LARGE) {
        OriginNode node = fake_file(2000, 100);
        StoreFill *fill = fill_of(&node);
        store_fill_unref(fill);
        g_usleep(1000);
    }
    end_hung(waiting, HUNG);
    store_cancel_fills(f.store, &other.base);
    end(&hung[0]);
}
END_TEST

START_TEST(an_empty_file_is_an_object_too)
{
    begin();
    OriginNode node = fake_file(1, 0);
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    ck_assert(fixture_serves(&f, 1, 0));
    ck_assert_uint_eq(f.origin.opens, 0);
    end(&node);
}
END_TEST

START_TEST(a_file_that_changes_meanwhile_is_not_kept)
{
    begin();
    OriginNode node = fake_file(1, 3 * CHUNK);
    fake_set_gate(&f.origin, CHUNK);
    StoreFill *fill = fill_of(&node);
    assert_reads(fill, 1, 0, 100);
    pthread_mutex_lock(&f.origin.lock);
    node.attr.version++;
    pthread_mutex_unlock(&f.origin.lock);
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(fill), -ESTALE);
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 0), -ESTALE);
    store_fill_unref(fill);
    ck_assert(!fixture_serves(&f, 1, 3 * CHUNK));
    ck_assert_uint_eq(fixture_objects(&f), 0);
    end(&node);
}
END_TEST

START_TEST(a_file_shorter_than_it_said_is_not_kept)
{
    begin();
    OriginNode node = fake_file(1, 2000);
    f.origin.ends_at = 1000;
    StoreFill *fill = fill_of(&node);
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 0), -ESTALE);
    store_fill_unref(fill);
    ck_assert(!fixture_serves(&f, 1, 2000));
    end(&node);
}
END_TEST

static void origin_error(uint64_t size, int open_error, int read_error, int getattr_error)
{
    fixture_init(&f);
    f.hooks.named_partials = TRUE;
    fixture_open(&f);
    OriginNode node = fake_file(1, size);
    f.origin.open_error = open_error;
    f.origin.read_error = read_error;
    f.origin.error_from = size > CHUNK ? size / 2 : 0;
    f.origin.getattr_error = getattr_error;
    int expected = open_error + read_error + getattr_error;
    StoreFill *fill = fill_of(&node);
    g_autofree uint8_t *buf = g_malloc(size);
    ssize_t n = store_fill_read(fill, buf, size, 0);
    /* Its bytes are there before the last check is made. */
    ck_assert(n == expected || (getattr_error && n == (ssize_t)size));
    ck_assert_int_eq(store_fill_wait(fill), expected);
    store_fill_unref(fill);
    store_cancel_fills(f.store, &f.origin.base);
    ck_assert_uint_eq(fixture_count(&f, "partial"), 0);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert_uint_eq(stats.objects, 0);
    ck_assert_uint_eq(stats.fills_failed, 1);
    ck_assert_int_eq(stats.disk, STORE_DISK_OK);
    /* It is the origin's fault: the next try may succeed. */
    f.origin.open_error = f.origin.read_error = f.origin.getattr_error = 0;
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    ck_assert(fixture_serves(&f, 1, size));
    end(&node);
}

START_TEST(origin_errors_reach_readers_and_leave_nothing)
{
    origin_error(1000, -EACCES, 0, 0);
    origin_error(1000, 0, -EIO, 0);
    origin_error(1000, 0, 0, -ETIMEDOUT);
    origin_error(6 * CHUNK, -ENOENT, 0, 0);
    origin_error(6 * CHUNK, 0, -EIO, 0);
    origin_error(6 * CHUNK, 0, 0, -ENOENT);
}
END_TEST

static void *cancel(void *node)
{
    store_cancel_fills(f.store, &f.origin.base);
    fake_assert_unused(&f.origin, node);
    return NULL;
}

START_TEST(cancelling_waits_for_the_origin_and_no_longer)
{
    begin();
    FakeOrigin other;
    fake_init(&other);
    OriginNode node = fake_file(1, 8 * CHUNK), kept = fake_file(2, 2 * CHUNK);
    fake_set_gate(&f.origin, CHUNK);
    StoreFill *fill = fill_of(&node);
    fake_await_reads(&f.origin, 1);
    ObjectKey key;
    fake_key(&other, &kept, &key, NULL);
    StoreFill *others = store_fill(f.store, &other.base, &kept, &key, "t");
    pthread_t thread;
    pthread_create(&thread, NULL, cancel, &node);
    /* Readers do not wait for the read that hangs. */
    ck_assert_int_eq(store_fill_wait(fill), -ECANCELED);
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, 7 * CHUNK), -ECANCELED);
    fake_set_gate(&f.origin, UINT64_MAX);
    pthread_join(thread, NULL);
    store_fill_unref(fill);
    ck_assert_int_eq(store_fill_wait(others), 0);
    store_fill_unref(others);
    store_cancel_fills(f.store, &other.base); /* it is over, but perhaps not yet cleaned up */
    fake_assert_unused(&other, &kept);
    end(&node);
}
END_TEST

START_TEST(a_file_known_by_its_path_is_looked_up_when_it_is_fetched)
{
    begin();
    OriginNode node = fake_file(1, 3 * CHUNK);
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    StoreFill *fill = store_fill_path(f.store, &f.origin.base, "named", &key, "t");
    ck_assert_int_eq(store_fill_wait(fill), -ENOENT);
    store_fill_unref(fill);
    f.origin.named = &node;
    fill = store_fill_path(f.store, &f.origin.base, "named", &key, "t");
    assert_reads(fill, 1, 10, 2 * CHUNK);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    end(&node);
}
END_TEST

/* Readers without a thread, and how often each was told. */
typedef struct Waiting {
    FillWait wait;
    atomic_uint told;
} Waiting;

static void count_told(Task *task)
{
    atomic_fetch_add(&((Waiting *)task)->told, 1);
}

static void await_told(Waiting *w, int result)
{
    const gint64 until = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;
    while (!atomic_load(&w->told) && g_get_monotonic_time() < until)
        g_usleep(1000);
    ck_assert_uint_eq(atomic_load(&w->told), 1);
    ck_assert_int_eq(w->wait.result, result);
}

static void start_waiting(Waiting *w, StoreFill *fill, size_t len, uint64_t off)
{
    *w = (Waiting){.wait.task.run = count_told};
    ck_assert_int_eq(store_fill_begin_read(fill, &w->wait, len, off), -EINPROGRESS);
}

START_TEST(a_reader_with_a_limit_does_not_wait_for_the_origin)
{
    begin();
    OriginNode small = fake_file(1, 100), large = fake_file(2, 3 * CHUNK);
    fake_set_gate(&f.origin, 0);
    StoreFill *fills[] = {fill_of(&small), fill_of(&large)};
    Waiting waiting[2];
    uint8_t buf[100];
    for (int i = 0; i < 2; i++) {
        start_waiting(&waiting[i], fills[i], sizeof(buf), 0);
        store_fill_withdraw(&waiting[i].wait, -ETIMEDOUT);
        await_told(&waiting[i], -ETIMEDOUT);
        store_fill_withdraw(&waiting[i].wait, -EINTR); /* it has ended */
        ck_assert_int_eq(waiting[i].wait.result, -ETIMEDOUT);
        start_waiting(&waiting[i], fills[i], sizeof(buf), 0);
    }
    fake_set_gate(&f.origin, UINT64_MAX);
    for (int i = 0; i < 2; i++) {
        await_told(&waiting[i], 0);
        ck_assert_int_eq(store_fill_read_now(fills[i], buf, sizeof(buf), 0), 100);
        ck_assert(fake_is_right((uint64_t)i + 1, buf, sizeof(buf), 0));
        ck_assert_int_eq(store_fill_wait(fills[i]), 0);
        ck_assert_int_eq(store_fill_begin_read(fills[i], &waiting[i].wait, sizeof(buf), 0), 0);
        store_fill_unref(fills[i]);
    }
    fixture_close(&f);
    fake_assert_unused(&f.origin, &small);
    fake_assert_unused(&f.origin, &large);
    fixture_done(&f);
}
END_TEST

#define MANY 500

/* At every offset: what begins in a chunk that is there may end in one that is not. */
START_TEST(any_number_of_readers_waits_and_each_is_told_once)
{
    begin();
    OriginNode node = fake_file(1, 8 * CHUNK);
    static Waiting waiting[MANY];
    fake_set_gate(&f.origin, 2 * CHUNK);
    StoreFill *fill = fill_of(&node);
    assert_reads(fill, 1, 0, 2 * CHUNK);
    const size_t len = CHUNK + 1;
    for (unsigned i = 0; i < MANY; i++)
        start_waiting(&waiting[i], fill, len, CHUNK + i * (6 * CHUNK - 1) / MANY + 1);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_uint_eq(atomic_load(&waiting[i].told), 0);
    fake_set_gate(&f.origin, UINT64_MAX);
    g_autofree uint8_t *buf = g_malloc(len);
    for (unsigned i = 0; i < MANY; i++) {
        const uint64_t off = CHUNK + i * (6 * CHUNK - 1) / MANY + 1;
        await_told(&waiting[i], 0);
        ck_assert_int_eq(store_fill_read_now(fill, buf, len, off), (ssize_t)len);
        ck_assert(fake_is_right(1, buf, len, off));
    }
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    end(&node);
}
END_TEST

START_TEST(readers_without_a_thread_hear_of_errors_and_of_the_end)
{
    begin();
    OriginNode node = fake_file(1, 8 * CHUNK);
    Waiting waiting[2];
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        fake_set_gate(&f.origin, 0);
        f.origin.read_error = cancelled ? 0 : -EIO;
        StoreFill *fill = fill_of(&node);
        for (int i = 0; i < 2; i++)
            start_waiting(&waiting[i], fill, 10, (uint64_t)i * 3 * CHUNK);
        fake_await_reads(&f.origin, 1);
        pthread_t thread;
        if (cancelled)
            pthread_create(&thread, NULL, cancel, &node);
        else
            fake_set_gate(&f.origin, UINT64_MAX);
        for (int i = 0; i < 2; i++)
            await_told(&waiting[i], cancelled ? -ECANCELED : -EIO);
        fake_set_gate(&f.origin, UINT64_MAX);
        if (cancelled)
            pthread_join(thread, NULL);
        store_fill_unref(fill);
    }
    end(&node);
}
END_TEST

START_TEST(closing_stops_fills)
{
    begin();
    OriginNode node = fake_file(1, 400 * CHUNK);
    StoreFill *fill = fill_of(&node);
    store_fill_unref(fill);
    fixture_close(&f);
    fake_assert_unused(&f.origin, &node);
    fixture_done(&f);
}
END_TEST

START_TEST(what_is_held_already_is_not_fetched_again)
{
    begin();
    OriginNode node = fake_file(1, 1000);
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    StoreFill *fill = fill_of(&node);
    assert_reads(fill, 1, 10, 900);
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    ck_assert_uint_eq(origin_bytes(), 1000);
    end(&node);
}
END_TEST

START_TEST(fills_under_way_are_bounded)
{
    enum { SHARE = FILLS_MAX / 2 };
    begin();
    static OriginNode nodes[SHARE + 1];
    static StoreFill *fills[SHARE];
    FakeOrigin other;
    fake_init(&other);
    fake_set_gate(&f.origin, 0);
    for (unsigned i = 0; i <= SHARE; i++)
        nodes[i] = fake_file(1 + i, 100);
    for (unsigned i = 0; i < SHARE; i++)
        ck_assert_ptr_nonnull(fills[i] = fill_of(&nodes[i]));
    ck_assert_ptr_null(fill_of(&nodes[SHARE]));
    /* An origin that hangs leaves the other half. */
    OriginNode well = fake_file(SHARE + 3, 100);
    ObjectKey key;
    fake_key(&other, &well, &key, NULL);
    StoreFill *others = store_fill(f.store, &other.base, &well, &key, "t");
    ck_assert_ptr_nonnull(others);
    fake_set_gate(&f.origin, UINT64_MAX);
    ck_assert_int_eq(store_fill_wait(others), 0);
    store_fill_unref(others);
    for (unsigned i = 0; i < SHARE; i++) {
        ck_assert_int_eq(store_fill_wait(fills[i]), 0);
        store_fill_unref(fills[i]);
    }
    store_cancel_fills(f.store, NULL);
    ck_assert_int_eq(fixture_fill(&f, &nodes[SHARE], "t"), 0);
    fake_assert_unused(&other, &well);
    end(NULL);
}
END_TEST

static ssize_t failing_pwrite(void *data, int fd, const void *buf, size_t len, off_t off)
{
    Fixture *fixture = data;
    if (atomic_load(&fixture->write_error)) {
        errno = atomic_load(&fixture->write_error);
        return -1;
    }
    return pwrite(fd, buf, len, off);
}

START_TEST(a_write_error_reaches_readers_and_the_disk_s_health)
{
    fixture_init(&f);
    f.hooks.pwrite = failing_pwrite;
    fixture_open(&f);
    OriginNode node = fake_file(1, 1000);
    atomic_store(&f.write_error, EIO);
    StoreStats stats;
    for (int i = 0; i < 3; i++) {
        StoreFill *fill = fill_of(&node);
        ck_assert_ptr_nonnull(fill);
        uint8_t byte;
        ck_assert_int_eq(store_fill_read(fill, &byte, 1, 0), -EIO);
        store_fill_unref(fill);
    }
    store_stats(f.store, &stats);
    ck_assert_int_eq(stats.disk, STORE_DISK_BYPASS);
    ck_assert_uint_eq(stats.disk_errors, 3);
    ck_assert_ptr_null(fill_of(&node));
    end(&node);
}
END_TEST

START_TEST(a_full_disk_fails_the_fill_but_is_not_held_against_the_disk)
{
    fixture_init(&f);
    f.hooks.pwrite = failing_pwrite;
    fixture_open(&f);
    OriginNode node = fake_file(1, 1000);
    atomic_store(&f.write_error, ENOSPC);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(fixture_fill(&f, &node, "t"), -ENOSPC);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert_int_eq(stats.disk, STORE_DISK_OK);
    atomic_store(&f.write_error, 0);
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    end(&node);
}
END_TEST

HARNESS_MAIN("cache/store/fill/fill", a_reader_is_served_before_what_nobody_needs,
             what_nobody_needs_leaves_a_worker_to_readers,
             what_nobody_needs_leaves_one_of_many_workers_to_readers,
             what_nobody_needs_begins_when_the_readers_are_gone, what_a_reader_joins_is_needed,
             a_pace_bounds_all_that_has_it, eight_readers_of_a_small_file_cost_one_fetch,
             eight_readers_of_a_large_file_cost_one_fetch, a_small_file_is_fetched_by_its_reader,
             a_small_file_nobody_reads_is_fetched_all_the_same,
             reader_is_served_before_the_fill_is_complete, chunks_asked_for_come_first,
             random_reads_of_a_large_fill_are_right, what_nobody_needs_yet_passes_the_page_cache_by,
             several_chunks_of_one_fill_are_fetched_at_once,
             an_origin_that_hangs_leaves_workers_to_others,
             an_origin_that_hangs_leaves_the_last_worker_when_no_more_can_be_made,
             fetches_that_hang_leave_room_for_other_files_of_their_origin,
             the_memory_that_hung_fetches_wait_for_is_bounded,
             a_slow_fetch_that_nobody_waits_for_ends_beside_others,
             fetches_that_hang_keep_no_memory_of_earlier_ones, an_empty_file_is_an_object_too,
             a_file_that_changes_meanwhile_is_not_kept, a_file_shorter_than_it_said_is_not_kept,
             origin_errors_reach_readers_and_leave_nothing,
             cancelling_waits_for_the_origin_and_no_longer,
             a_file_known_by_its_path_is_looked_up_when_it_is_fetched,
             a_reader_with_a_limit_does_not_wait_for_the_origin,
             any_number_of_readers_waits_and_each_is_told_once,
             readers_without_a_thread_hear_of_errors_and_of_the_end, closing_stops_fills,
             what_is_held_already_is_not_fetched_again, fills_under_way_are_bounded,
             a_write_error_reaches_readers_and_the_disk_s_health,
             a_full_disk_fails_the_fill_but_is_not_held_against_the_disk)
