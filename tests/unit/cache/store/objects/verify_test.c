/* SPDX-License-Identifier: Apache-2.0 */
/* Verification: what is damaged is found, told and dropped, on demand and by the scrubber. */
#include "tests/unit/cache/store/fixture.h"
#include <fcntl.h>
#include <sys/stat.h>

static Fixture f;
#define SIZE 70000

/* As a disk does: the bytes alone. */
static void damage(const ObjectId *id)
{
    struct stat before;
    g_autofree char *path = fixture_object_path(&f, id);
    ck_assert_int_eq(stat(path, &before), 0);
    hearth_autofd int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "damage", 6, SIZE - 10), 6);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before.st_mtim};
    ck_assert_int_eq(futimens(fd, times), 0);
}

static gboolean is_even(void *data, const ObjectId *id)
{
    const ObjectId *ids = data;
    for (int i = 0; i < 200; i += 2)
        if (object_id_equal(&ids[i], id))
            return TRUE;
    return FALSE;
}

START_TEST(damage_is_found_told_and_dropped)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId ids[200];
    for (uint64_t i = 0; i < 200; i++)
        ids[i] = fixture_put(&f, i + 1, i == 7 ? 0 : SIZE, i % 2 ? "odd" : "even");
    ck_assert_int_eq(store_flush(f.store), 0);
    for (int i = 50; i < 100; i++)
        damage(&ids[i]);
    /* In parts, each object once. */
    StoreVerify run = {.started = FALSE};
    uint64_t objects = 0, bad = 0;
    while (!run.end) {
        run.objects = run.bytes = run.bad = 0;
        ck_assert_int_eq(store_verify_some(f.store, "odd", &run, 5 * SIZE), 0);
        objects += run.objects;
        bad += run.bad;
        ck_assert_uint_le(run.bytes, 5 * SIZE);
    }
    ck_assert_uint_eq(objects, 100);
    ck_assert_uint_eq(bad, 25);
    ck_assert(!fixture_serves(&f, 52, SIZE));
    run = (StoreVerify){.wanted = is_even, .data = ids};
    ck_assert_int_eq(store_verify_some(f.store, "nobody", &run, UINT64_MAX), 0);
    ck_assert_uint_eq(run.objects, 100);
    ck_assert_uint_eq(run.bad, 25);
    ck_assert_uint_eq(run.unchecked, 0);
    run = (StoreVerify){.started = FALSE};
    ck_assert_int_eq(store_verify_some(f.store, NULL, &run, UINT64_MAX), 0);
    ck_assert_uint_eq(run.objects, 150);
    ck_assert_uint_eq(run.bad, 0);
    ck_assert(run.end);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert_uint_eq(stats.bad_objects, 50);
    fixture_done(&f);
}
END_TEST

START_TEST(no_more_is_told_than_fits_and_the_rest_by_the_next_call)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 0; i < 2 * STORE_VERIFY_BAD_MAX; i++) {
        ObjectId id = fixture_put(&f, i + 1, SIZE, "t");
        damage(&id);
    }
    StoreVerify run = {.started = FALSE};
    unsigned bad = 0, calls = 0;
    for (; !run.end; calls++) {
        run.bad = 0;
        ck_assert_int_eq(store_verify_some(f.store, NULL, &run, UINT64_MAX), 0);
        bad += run.bad;
    }
    ck_assert_uint_eq(bad, 2 * STORE_VERIFY_BAD_MAX);
    ck_assert_uint_ge(calls, 2);
    fixture_done(&f);
}
END_TEST

START_TEST(a_shorter_or_touched_object_is_bad)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId a = fixture_put(&f, 1, SIZE, "t"), b = fixture_put(&f, 2, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    g_autofree char *short_one = fixture_object_path(&f, &a);
    g_autofree char *touched = fixture_object_path(&f, &b);
    ck_assert_int_eq(truncate(short_one, SIZE - 1), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, touched, NULL, 0), 0);
    ck_assert_int_eq(store_check(f.store, &a, NULL), 1);
    ck_assert_int_eq(store_check(f.store, &b, NULL), 1);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(store_check(f.store, &b, NULL), -ENOENT);
    ck_assert_uint_eq(fixture_objects(&f), 0);
    fixture_done(&f);
}
END_TEST

static StoreStats after_a_pass(void)
{
    StoreStats stats;
    do {
        g_usleep(1000);
        store_stats(f.store, &stats);
    } while (!stats.scrub_ended_ms);
    return stats;
}

START_TEST(the_scrubber_finds_damage)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 0; i < 100; i++) {
        ObjectId id = fixture_put(&f, i + 1, SIZE, "t");
        if (i % 10 == 0)
            damage(&id);
    }
    fixture_close(&f);
    f.config.scrub_bytes_per_sec = 1 << 30;
    fixture_open(&f);
    StoreStats stats = after_a_pass();
    ck_assert_uint_eq(stats.bad_objects, 10);
    ck_assert_uint_eq(stats.scrub_objects, 100);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_uint_eq(fixture_objects(&f), 90);
    fixture_done(&f);
}
END_TEST

START_TEST(a_cache_of_any_size_is_scrubbed_within_a_day)
{
    const StoreConfig none = {0}, fixed = {.scrub_bytes_per_sec = 5},
                      daily = {.scrub_bytes_per_sec = STORE_SCRUB_DAILY};
    ck_assert_uint_eq(store_scrub_rate(&none, 1 << 30), 0);
    ck_assert_uint_eq(store_scrub_rate(&fixed, (uint64_t)1 << 40), 5);
    ck_assert_uint_eq(store_scrub_rate(&daily, 0), 8 << 20);
    for (uint64_t held = 1 << 20; held < (uint64_t)1 << 50; held *= 7)
        ck_assert_uint_lt(held / store_scrub_rate(&daily, held), 24 * 3600);
}
END_TEST

START_TEST(the_scrubber_keeps_to_its_rate_and_stops_at_once)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 0; i < 10; i++)
        fixture_put(&f, i + 1, SIZE, "t");
    fixture_close(&f);
    f.config.scrub_bytes_per_sec = 20 * SIZE;
    gint64 start = g_get_monotonic_time();
    fixture_open(&f);
    StoreStats stats;
    do {
        g_usleep(1000);
        store_stats(f.store, &stats);
    } while (!stats.scrub_ended_ms);
    ck_assert_int_ge(g_get_monotonic_time() - start, 400000);
    fixture_close(&f);
    f.config.scrub_bytes_per_sec = 1;
    fixture_open(&f);
    do
        store_stats(f.store, &stats);
    while (!stats.scrub_bytes);
    fixture_done(&f);
}
END_TEST

static unsigned sealed;

/* A lease to read is given while nobody has the file open for writing, as fs-verity asks. */
static int seal_if_nobody_writes(void *data, int fd)
{
    (void)data;
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY || fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return -ETXTBSY;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    sealed++;
    return 0;
}

static int cannot_seal(void *data, int fd)
{
    (void)data, (void)fd;
    return -EOPNOTSUPP;
}

START_TEST(objects_are_sealed_once_they_are_synced)
{
    fixture_init(&f);
    f.config.verity = TRUE;
    f.hooks.enable_verity = seal_if_nobody_writes;
    fixture_open(&f);
    ck_assert_uint_eq(sealed, 1); /* the trial */
    OriginNode node = fake_file(1, SIZE);
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    StoreFill *fill = store_fill(f.store, &f.origin.base, &node, &key, "t");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    ck_assert_uint_eq(sealed, 1);
    ck_assert_int_eq(store_flush(f.store), 0); /* with a reader's descriptor still open */
    ck_assert_uint_eq(sealed, 2);
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, SIZE - 1), 1);
    store_fill_unref(fill);
    ck_assert(fixture_serves(&f, 1, SIZE));
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert(stats.verity);
    ck_assert_uint_eq(stats.sealed, 1);
    ck_assert_uint_eq(fixture_count(&f, "partial"), 0);
    fixture_done(&f);
}
END_TEST

START_TEST(a_large_file_is_sealed_although_it_is_still_read)
{
    const uint64_t size = 20 * 65536 + 17;
    fixture_init(&f);
    f.config.verity = TRUE;
    f.config.whole_bytes = 65536;
    f.hooks.enable_verity = seal_if_nobody_writes;
    sealed = 0;
    fixture_open(&f);
    OriginNode node = fake_file(1, size);
    f.origin.named = &node;
    ObjectKey key;
    fake_key(&f.origin, &node, &key, NULL);
    StoreFill *fill = store_fill_path(f.store, &f.origin.base, "named", &key, "t");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_uint_eq(sealed, 2); /* and the trial */
    uint8_t byte;
    ck_assert_int_eq(store_fill_read(fill, &byte, 1, size - 1), 1);
    store_fill_unref(fill);
    ck_assert(fixture_serves(&f, 1, size));
    fixture_done(&f);
}
END_TEST

START_TEST(without_verity_objects_are_as_they_were)
{
    fixture_init(&f);
    f.config.verity = TRUE;
    f.hooks.enable_verity = cannot_seal;
    fixture_open(&f);
    fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert(stats.verity_wanted && !stats.verity);
    ck_assert(fixture_serves(&f, 1, SIZE));
    fixture_done(&f);
}
END_TEST

HARNESS_MAIN("cache/store/objects/verify", damage_is_found_told_and_dropped,
             no_more_is_told_than_fits_and_the_rest_by_the_next_call,
             a_shorter_or_touched_object_is_bad, the_scrubber_finds_damage,
             a_cache_of_any_size_is_scrubbed_within_a_day,
             the_scrubber_keeps_to_its_rate_and_stops_at_once,
             objects_are_sealed_once_they_are_synced,
             a_large_file_is_sealed_although_it_is_still_read,
             without_verity_objects_are_as_they_were)
