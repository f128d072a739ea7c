/* SPDX-License-Identifier: Apache-2.0 */
/* What survives: closing, a kill, a power cut, the loss of the index. Promise 1: never a hole. */
#include <sys/stat.h>
#include "tests/unit/cache/store/fixture.h"

static Fixture f;
#define SIZE 5000

static void assert_held(uint64_t from, uint64_t to, gboolean held)
{
    for (uint64_t i = from; i <= to; i++) {
        ObjectId id = fixture_id(&f, i, SIZE);
        ck_assert_int_eq(fixture_serves(&f, i, SIZE), held);
        ck_assert_int_eq(store_has(f.store, &id), held);
        g_autofree char *path = fixture_object_path(&f, &id);
        ck_assert_int_eq(access(path, F_OK) == 0, held);
    }
}

static void assert_tag(uint64_t objects)
{
    uint64_t bytes, got;
    store_tag_usage(f.store, "t", &bytes, &got);
    ck_assert_uint_eq(got, objects);
    ck_assert_uint_eq(bytes, objects * 8192);
    ck_assert_uint_eq(fixture_objects(&f), objects);
}

START_TEST(a_restart_keeps_objects)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 1; i <= 10; i++)
        fixture_put(&f, i, SIZE, "t");
    fixture_close(&f);
    f.hooks.boot_id = "second"; /* closed in order: a reboot changes nothing */
    fixture_open(&f);
    assert_held(1, 10, TRUE);
    assert_tag(10);
    fixture_done(&f);
}
END_TEST

static void five_recorded_five_not(Fixture *fixture)
{
    for (uint64_t i = 1; i <= 5; i++)
        fixture_put(fixture, i, SIZE, "t");
    ck_assert_int_eq(store_flush(fixture->store), 0);
    for (uint64_t i = 6; i <= 10; i++)
        fixture_put(fixture, i, SIZE, "t");
}

START_TEST(a_kill_loses_nothing)
{
    fixture_init(&f);
    fixture_crash(&f, five_recorded_five_not);
    fixture_open(&f);
    assert_held(1, 10, TRUE);
    assert_tag(10);
    /* They are recorded now: a power cut would not lose them. */
    for (uint64_t i = 1; i <= 10; i++) {
        ObjectId id = fixture_id(&f, i, SIZE);
        ck_assert(index_has(f.store->index, &id));
        ck_assert_int_eq(store_verify(f.store, &id, NULL), 0);
    }
    fixture_done(&f);
}
END_TEST

START_TEST(a_power_cut_loses_what_was_not_recorded)
{
    fixture_init(&f);
    fixture_crash(&f, five_recorded_five_not);
    f.hooks.boot_id = "second";
    fixture_open(&f);
    assert_held(1, 5, TRUE);
    assert_held(6, 10, FALSE);
    assert_tag(5);
    fixture_done(&f);
}
END_TEST

START_TEST(what_has_no_record_is_not_served_before_the_scan_either)
{
    fixture_init(&f);
    fixture_open(&f);
    fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    /* As after a power cut, with the scan still to come. */
    ObjectId id = fixture_id(&f, 2, SIZE);
    g_autofree char *path = fixture_object_path(&f, &id);
    g_autofree char *hole = g_malloc0(SIZE);
    ck_assert(g_file_set_contents(path, hole, SIZE, NULL));
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = object_id_seal(&id)}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    atomic_store(&f.store->trust, LAYOUT_UNTRUSTED);
    ck_assert_int_eq(store_open_object(f.store, &id, SIZE), -ENOENT);
    ck_assert(fixture_serves(&f, 1, SIZE));
    /* A fill of it replaces it, and what is filled now is served. */
    fixture_put(&f, 2, SIZE, "t");
    ck_assert(fixture_serves(&f, 2, SIZE));
    atomic_store(&f.store->scanned, FALSE);
    wake_round(&f.store->flusher);
    ck_assert(fixture_serves(&f, 2, SIZE));
    fixture_done(&f);
}
END_TEST

static void refill_over_a_stale_record(Fixture *fixture)
{
    ObjectId id = fixture_put(fixture, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(fixture->store), 0);
    layout_unlink_object(&fixture->store->layout, &id);
    fixture_put(fixture, 1, SIZE, "t"); /* its bytes are not synced */
}

START_TEST(a_record_does_not_vouch_for_a_later_file)
{
    fixture_init(&f);
    fixture_crash(&f, refill_over_a_stale_record);
    f.hooks.boot_id = "second";
    fixture_open(&f);
    assert_held(1, 1, FALSE);
    fixture_done(&f);
}
END_TEST

static int failing_syncfs(void *data, int fd)
{
    Fixture *fixture = data;
    if (atomic_load(&fixture->sync_error)) {
        errno = atomic_load(&fixture->sync_error);
        return -1;
    }
    return syncfs(fd);
}

START_TEST(a_failed_sync_loses_its_batch)
{
    fixture_init(&f);
    f.hooks.syncfs = failing_syncfs;
    fixture_open(&f);
    fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    fixture_put(&f, 2, SIZE, "t");
    atomic_store(&f.sync_error, EIO);
    ck_assert_int_eq(store_flush(f.store), -EIO);
    assert_held(1, 1, TRUE);
    assert_held(2, 2, FALSE);
    assert_tag(1);
    StoreStats stats;
    store_stats(f.store, &stats);
    ck_assert_int_eq(stats.disk, STORE_DISK_SUSPECT);
    fixture_done(&f);
}
END_TEST

static int dropping_syncfs(void *data, int fd)
{
    Fixture *fixture = data;
    if (atomic_exchange(&fixture->sync_error, 0)) {
        ObjectId id = fixture_id(fixture, 1, SIZE);
        store_report_bad(fixture->store, &id, EAGAIN);
    }
    return syncfs(fd);
}

START_TEST(an_object_dropped_while_it_is_synced_gets_no_record)
{
    fixture_init(&f);
    f.hooks.syncfs = dropping_syncfs;
    fixture_open(&f);
    fixture_put(&f, 1, SIZE, "t");
    fixture_put(&f, 2, SIZE, "t");
    atomic_store(&f.sync_error, 1);
    ck_assert_int_eq(store_flush(f.store), 0);
    assert_held(1, 1, FALSE);
    assert_held(2, 2, TRUE);
    ck_assert_int_eq(store_flush(f.store), 0);
    assert_tag(1);
    fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    assert_tag(2);
    fixture_done(&f);
}
END_TEST

static void lose_index(void)
{
    g_autofree char *index = g_build_filename(f.dir, "index.mdb", NULL);
    ck_assert_int_eq(unlink(index), 0);
}

START_TEST(a_lost_index_is_rebuilt_with_tags_and_checksums)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 1; i <= 10; i++)
        fixture_put(&f, i, SIZE, "t");
    fixture_close(&f);
    lose_index();
    fixture_open(&f);
    assert_held(1, 10, TRUE);
    assert_tag(10);
    ObjectId id = fixture_id(&f, 3, SIZE);
    ck_assert_int_eq(store_verify(f.store, &id, NULL), 0);
    fixture_close(&f);
    fixture_open(&f);
    assert_tag(10);
    fixture_done(&f);
}
END_TEST

START_TEST(a_garbled_index_is_rebuilt)
{
    fixture_init(&f);
    fixture_open(&f);
    for (uint64_t i = 1; i <= 10; i++)
        fixture_put(&f, i, SIZE, "t");
    fixture_close(&f);
    g_autofree char *index = g_build_filename(f.dir, "index.mdb", NULL);
    ck_assert(g_file_set_contents(index, "garbage", -1, NULL));
    fixture_open(&f);
    assert_held(1, 10, TRUE);
    assert_tag(10);
    fixture_done(&f);
}
END_TEST

START_TEST(a_power_cut_that_takes_the_index_takes_all)
{
    fixture_init(&f);
    fixture_crash(&f, five_recorded_five_not);
    lose_index();
    f.hooks.boot_id = "second";
    fixture_open(&f);
    assert_held(1, 10, FALSE);
    assert_tag(0);
    fixture_done(&f);
}
END_TEST

START_TEST(the_scan_adopts_only_what_is_whole)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId shorter = fixture_put(&f, 1, SIZE, "t"), altered = fixture_put(&f, 2, SIZE, "t");
    fixture_put(&f, 3, SIZE, "t");
    fixture_close(&f);
    lose_index();
    g_autofree char *shorter_path = fixture_object_path(&f, &shorter);
    g_autofree char *altered_path = fixture_object_path(&f, &altered);
    g_autofree char *stray = g_build_filename(f.dir, "objects", "ab", "README", NULL);
    ck_assert_int_eq(truncate(shorter_path, 100), 0);
    hearth_autofd int fd = open(altered_path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
    ck_assert(g_file_set_contents(stray, "x", 1, NULL));
    fixture_open(&f);
    assert_held(1, 2, FALSE);
    assert_held(3, 3, TRUE);
    assert_tag(1);
    ck_assert_int_eq(access(stray, F_OK), 0);
    fixture_done(&f);
}
END_TEST

START_TEST(uses_are_recorded_once_a_minute)
{
    fixture_init(&f);
    f.hooks.slack_ms = 60000;
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    Record before, after;
    ck_assert_int_eq(index_get(f.store->index, &id, &before), 0);
    ck_assert(fixture_serves(&f, 1, SIZE));
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(index_get(f.store->index, &id, &after), 0);
    ck_assert_uint_eq(before.last_use_ms, after.last_use_ms);
    pthread_mutex_lock(&f.clock_lock);
    f.clock_ms += 60000;
    pthread_mutex_unlock(&f.clock_lock);
    ck_assert(fixture_serves(&f, 1, SIZE));
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(index_get(f.store->index, &id, &after), 0);
    ck_assert_uint_ge(after.last_use_ms, before.last_use_ms + 60000);
    fixture_done(&f);
}
END_TEST

START_TEST(memory_of_uses_is_bounded)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, SIZE, "t");
    for (int i = 0; i < 3 * LEDGER_USES_MAX; i++)
        ledger_used(&f.store->ledger, &id);
    size_t n;
    g_autofree ObjectId *uses = ledger_take_uses(&f.store->ledger, &n);
    ck_assert_uint_eq(n, LEDGER_USES_MAX);
    fixture_done(&f);
}
END_TEST

START_TEST(owners_that_keep_dying_get_a_new_index)
{
    fixture_init(&f);
    for (int i = 0; i < 5; i++)
        fixture_crash(&f, five_recorded_five_not);
    struct stat before, after;
    g_autofree char *index = g_build_filename(f.dir, "index.mdb", NULL);
    ck_assert_int_eq(stat(index, &before), 0);
    /* Held open, so that its inode number is not given to the next. */
    hearth_autofd int fd = open(index, O_RDONLY);
    fixture_open(&f);
    ck_assert_int_eq(stat(index, &after), 0);
    ck_assert_uint_ne(before.st_ino, after.st_ino);
    assert_held(1, 10, TRUE);
    assert_tag(10);
    fixture_done(&f);
}
END_TEST

HARNESS_MAIN("cache/store/objects/flush", a_restart_keeps_objects, a_kill_loses_nothing,
             a_power_cut_loses_what_was_not_recorded,
             what_has_no_record_is_not_served_before_the_scan_either,
             a_record_does_not_vouch_for_a_later_file, a_failed_sync_loses_its_batch,
             an_object_dropped_while_it_is_synced_gets_no_record,
             a_lost_index_is_rebuilt_with_tags_and_checksums, a_garbled_index_is_rebuilt,
             a_power_cut_that_takes_the_index_takes_all, the_scan_adopts_only_what_is_whole,
             uses_are_recorded_once_a_minute, memory_of_uses_is_bounded,
             owners_that_keep_dying_get_a_new_index)
