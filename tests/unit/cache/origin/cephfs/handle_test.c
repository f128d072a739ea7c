/* SPDX-License-Identifier: Apache-2.0 */
/* What syncs wait for and report while files of an inode share a handle. */
#include "common/monotonic.h"
#include "tests/unit/cache/origin/cephfs/fake_cephfs.h"

/* FALSE: it still runs after a while. */
static gboolean ends_soon(Aside *a)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    int r = 0;
    pthread_mutex_lock(&fake.lock);
    while (!atomic_load(&a->done) && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&fake.changed, &fake.lock, &until);
    pthread_mutex_unlock(&fake.lock);
    return atomic_load(&a->done);
}

START_TEST(a_sync_waits_for_a_handle_that_was_replaced_under_a_write)
{
    CephfsOrigin *o = origin_up();
    OriginFile *one = open_file(o, O_WRONLY);
    write_one(o, one);
    writes_fail(-ENOSPC); /* noted in the handle of now only */
    Aside write = {.o = o, .file = one, .call = write_one};
    hold(WRITES, TRUE);
    aside_begin(&write);
    await_held(WRITES, 1);
    fake.only = one->handle->fh;
    OriginFile *two = open_file(o, O_RDWR);
    ck_assert_ptr_eq(one->handle, two->handle);
    hold(CLOSES, TRUE);
    hold(WRITES, FALSE);
    await_held(CLOSES, 1);
    Aside sync = {.o = o, .file = two, .call = sync_well};
    aside_begin(&sync);
    ck_assert(!ends_soon(&sync));
    hold(CLOSES, FALSE);
    aside_end(&sync);
    ck_assert_uint_eq(reported_now(), 1);
    aside_end(&write);
    close_file(o, one);
    close_file(o, two);
    origin_down(o);
}
END_TEST

START_TEST(a_sync_that_finds_nothing_to_look_at_waits_as_well)
{
    CephfsOrigin *o = origin_up();
    OriginFile *one = open_file(o, O_WRONLY);
    Aside write = {.o = o, .file = one, .call = write_one};
    hold(WRITES, TRUE);
    aside_begin(&write);
    await_held(WRITES, 1);
    OriginFile *two = open_file(o, O_RDWR);
    Aside sync = {.o = o, .file = two, .call = sync_well};
    aside_begin(&sync);
    ck_assert(!ends_soon(&sync));
    hold(WRITES, FALSE);
    aside_end(&sync);
    aside_end(&write);
    close_file(o, one);
    close_file(o, two);
    origin_down(o);
}
END_TEST

START_TEST(a_write_that_ends_with_a_replaced_handle_is_reported_by_the_new_one)
{
    CephfsOrigin *o = origin_up();
    OriginFile *one = open_file(o, O_WRONLY);
    Aside write = {.o = o, .file = one, .call = write_one};
    hold(WRITES, TRUE);
    aside_begin(&write);
    await_held(WRITES, 1);
    OriginFile *two = open_file(o, O_RDWR);
    hold(WRITES, FALSE);
    aside_end(&write);
    ck_assert_uint_eq(open_now(), 1);
    writes_fail(-ENOSPC);
    sync_well(o, two);
    ck_assert_uint_eq(reported_now(), 1);
    sync_well(o, one);
    ck_assert_uint_eq(reported_now(), 1);
    close_file(o, one);
    close_file(o, two);
    origin_down(o);
}
END_TEST

START_TEST(an_error_that_a_sync_returns_is_reported_to_all)
{
    CephfsOrigin *o = origin_up();
    OriginFile *one = open_file(o, O_RDWR), *two = open_file(o, O_RDWR);
    write_one(o, two);
    writes_fail(-EIO);
    pthread_mutex_lock(&fake.lock);
    fake.sync_error = -EIO;
    pthread_mutex_unlock(&fake.lock);
    ck_assert_int_eq(sync_file(o, one), -EIO);
    ck_assert_uint_eq(reported_now(), 1);
    close_file(o, one);
    close_file(o, two);
    origin_down(o);
}
END_TEST

START_TEST(a_sync_does_not_wait_for_a_read_that_a_write_found)
{
    CephfsOrigin *o = origin_up();
    OriginFile *writer = open_file(o, O_RDWR), *reader = open_file(o, O_RDONLY);
    ck_assert_ptr_eq(writer->handle, reader->handle);
    Aside read = {.o = o, .file = reader, .call = read_one};
    hold(READS, TRUE);
    aside_begin(&read);
    await_held(READS, 1);
    write_one(o, writer);
    writes_fail(-ENOSPC);
    sync_well(o, writer);
    ck_assert_uint_eq(reported_now(), 1);
    ck_assert_ptr_eq(writer->handle, reader->handle);
    hold(READS, FALSE);
    aside_end(&read);
    ck_assert_uint_eq(reported_now(), 1);
    close_file(o, writer);
    close_file(o, reader);
    origin_down(o);
}
END_TEST

START_TEST(a_sync_does_not_wait_for_a_read_that_finds_a_write)
{
    CephfsOrigin *o = origin_up();
    OriginFile *writer = open_file(o, O_RDWR), *reader = open_file(o, O_RDWR);
    Aside read = {.o = o, .file = reader, .call = read_one};
    write_one(o, writer);
    hold(READS, TRUE);
    aside_begin(&read);
    await_held(READS, 1);
    write_one(o, writer);
    writes_fail(-ENOSPC);
    sync_well(o, reader);
    ck_assert_uint_eq(reported_now(), 1);
    hold(READS, FALSE);
    aside_end(&read);
    /* Behind the sync reads have the handle of all again. */
    read_one(o, reader);
    ck_assert_uint_eq(open_now(), 1);
    ck_assert_uint_eq(reported_now(), 1);
    close_file(o, writer);
    close_file(o, reader);
    origin_down(o);
}
END_TEST

START_TEST(a_file_that_is_alone_reads_and_writes_under_its_lease)
{
    CephfsOrigin *o = origin_up();
    _Atomic gboolean recalled = FALSE;
    OriginFile *file = open_file(o, O_RDWR);
    ck_assert_int_eq(cephfs_lease(&o->base, file, ORIGIN_LEASE_WRITE, note_recall, &recalled), 0);
    write_one(o, file);
    read_one(o, file);
    ck_assert(!atomic_load(&recalled));
    ck_assert_uint_eq(open_now(), 1);
    close_file(o, file);
    origin_down(o);
}
END_TEST

START_TEST(a_lease_that_a_read_beside_writes_ends_comes_back)
{
    CephfsOrigin *o = origin_up();
    _Atomic gboolean recalled = FALSE;
    OriginFile *writer = open_file(o, O_RDWR), *reader = open_file(o, O_RDWR);
    write_one(o, writer);
    ck_assert_int_eq(cephfs_lease(&o->base, writer, ORIGIN_LEASE_WRITE, note_recall, &recalled), 0);
    Aside read = {.o = o, .file = reader, .call = read_one};
    aside_begin(&read);
    while (!atomic_load(&recalled))
        g_usleep(1000);
    ck_assert_int_eq(cephfs_lease(&o->base, writer, ORIGIN_LEASE_NONE, NULL, NULL), 0);
    aside_end(&read);
    ck_assert_uint_eq(open_now(), 2);
    while (cephfs_lease(&o->base, reader, ORIGIN_LEASE_WRITE, note_recall, &recalled) == -EAGAIN)
        g_usleep(1000);
    ck_assert_uint_eq(open_now(), 1);
    close_file(o, writer);
    close_file(o, reader);
    origin_down(o);
}
END_TEST

HARNESS_MAIN("cache/origin/cephfs/handle",
             a_sync_waits_for_a_handle_that_was_replaced_under_a_write,
             a_sync_that_finds_nothing_to_look_at_waits_as_well,
             a_write_that_ends_with_a_replaced_handle_is_reported_by_the_new_one,
             an_error_that_a_sync_returns_is_reported_to_all,
             a_sync_does_not_wait_for_a_read_that_a_write_found,
             a_sync_does_not_wait_for_a_read_that_finds_a_write,
             a_file_that_is_alone_reads_and_writes_under_its_lease,
             a_lease_that_a_read_beside_writes_ends_comes_back)
