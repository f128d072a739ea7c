/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of an inode have which handle. */
#include "tests/unit/cache/origin/cephfs/fake_cephfs.h"

START_TEST(files_share_a_handle_while_one_can_write)
{
    CephfsOrigin *o = origin_up();
    OriginFile *reader = open_file(o, O_RDONLY), *other = open_file(o, O_RDONLY);
    ck_assert_ptr_ne(reader->handle, other->handle);
    OriginFile *writer = open_file(o, O_WRONLY);
    ck_assert_ptr_eq(reader->handle, writer->handle);
    ck_assert_ptr_eq(other->handle, writer->handle);
    ck_assert_uint_eq(open_now(), 1);
    close_file(o, writer);
    await_opens(5);
    close_file(o, reader);
    close_file(o, other);
    origin_down(o);
}
END_TEST

START_TEST(a_handle_that_only_reads_never_counts_as_written)
{
    CephfsOrigin *o = origin_up();
    fake.refused = O_RDWR;
    OriginFile *writer = open_file(o, O_WRONLY), *reader = open_file(o, O_RDONLY);
    ck_assert_ptr_ne(reader->handle, writer->handle);
    write_one(o, writer);
    Aside write = {.o = o, .file = writer, .call = write_one};
    hold(WRITES, TRUE);
    aside_begin(&write);
    await_held(WRITES, 1);
    Aside sync = {.o = o, .file = writer, .call = sync_well};
    aside_begin(&sync);
    await_opens(3); /* the handle that takes the writer's place */
    hold(WRITES, FALSE);
    aside_end(&write);
    aside_end(&sync);
    ck_assert_uint_ne(writer->handle->written, 0);
    ck_assert_uint_eq(reader->handle->written, 0);
    close_file(o, reader);
    close_file(o, writer);
    origin_down(o);
}
END_TEST

START_TEST(the_end_of_a_lost_connection_waits_for_no_lease)
{
    CephfsOrigin *o = origin_up();
    _Atomic gboolean recalled = FALSE;
    OriginFile *writer = open_file(o, O_RDWR), *reader = open_file(o, O_RDONLY);
    ck_assert_int_eq(cephfs_lease(&o->base, reader, ORIGIN_LEASE_READ, note_recall, &recalled), 0);
    close_file(o, writer);
    while (!atomic_load(&recalled))
        g_usleep(1000);
    atomic_store(&o->gone, TRUE);
    cephfs_files_stop(o, TRUE);
    ck_assert_uint_eq(open_now(), 1); /* as it was */
    ck_assert_int_eq(o->base.ops->close(&o->base, reader), -ENOTCONN);
    cephfs_files_clear(&o->files);
    g_free(o);
}
END_TEST

START_TEST(readers_get_their_own_handles_when_the_lease_has_gone_back)
{
    CephfsOrigin *o = origin_up();
    _Atomic gboolean recalled = FALSE;
    OriginFile *writer = open_file(o, O_RDWR), *reader = open_file(o, O_RDONLY);
    ck_assert_int_eq(cephfs_lease(&o->base, reader, ORIGIN_LEASE_READ, note_recall, &recalled), 0);
    close_file(o, writer);
    while (!atomic_load(&recalled))
        g_usleep(1000);
    ck_assert_int_eq(cephfs_lease(&o->base, reader, ORIGIN_LEASE_NONE, NULL, NULL), 0);
    await_opens(2);
    /* A read lease, beside which others may read. */
    while (cephfs_lease(&o->base, reader, ORIGIN_LEASE_READ, note_recall, &recalled) == -EAGAIN)
        g_usleep(1000);
    atomic_store(&recalled, FALSE);
    OriginFile *other = open_file(o, O_RDONLY);
    ck_assert(!atomic_load(&recalled));
    close_file(o, reader);
    close_file(o, other);
    origin_down(o);
}
END_TEST

HARNESS_MAIN("cache/origin/cephfs/share", files_share_a_handle_while_one_can_write,
             a_handle_that_only_reads_never_counts_as_written,
             the_end_of_a_lost_connection_waits_for_no_lease,
             readers_get_their_own_handles_when_the_lease_has_gone_back)
