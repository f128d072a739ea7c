/* SPDX-License-Identifier: Apache-2.0 */
/* Which handles are told of writes that went with a lost session, and how often. */
#include <errno.h>
#include "cache/fuse/live/session_internal.h"
#include "tests/unit/harness.h"

static uint64_t number;

static uint64_t session_number(Origin *o)
{
    (void)o;
    return number;
}

static const OriginOps ops = {.session = session_number};
static Origin origin = {.ops = &ops};
static Session session = {.origin = &origin};
static Node node;

static void begin(void)
{
    number = 1;
    node.unsynced = (Unsynced){0};
    pthread_mutex_init(&node.mutex, NULL);
}

static void write_once(void)
{
    unsynced_wrote(&session, &node, unsynced_session(&session));
}

static void sync_all(void)
{
    unsynced_synced(&session, &node, unsynced_mark(&node));
}

START_TEST(each_handle_hears_once_of_a_loss)
{
    begin();
    UnsyncedSeen one = unsynced_seen(&session, &node), other = one;
    write_once();
    number++;
    ck_assert_int_eq(unsynced_error(&session, &node, &one), -EIO);
    ck_assert_int_eq(unsynced_error(&session, &node, &one), 0);
    ck_assert_int_eq(unsynced_error(&session, &node, &other), -EIO);
    ck_assert_int_eq(unsynced_error(&session, &node, &other), 0);
}
END_TEST

START_TEST(what_was_synced_is_not_lost)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    write_once();
    sync_all();
    number++;
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), 0);
}
END_TEST

START_TEST(a_write_beside_a_sync_is_not_safe)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    write_once();
    uint64_t mark = unsynced_mark(&node);
    write_once();
    unsynced_synced(&session, &node, mark);
    number++;
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
}
END_TEST

START_TEST(a_sync_in_the_next_session_hides_no_loss)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    write_once();
    number++;
    sync_all();
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
}
END_TEST

START_TEST(a_write_in_the_next_session_hides_no_loss)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    write_once();
    number++;
    write_once();
    sync_all();
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), 0);
}
END_TEST

START_TEST(a_write_that_began_before_the_loss_counts_as_lost)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    uint64_t before = unsynced_session(&session);
    number++;
    unsynced_wrote(&session, &node, before);
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
}
END_TEST

START_TEST(a_write_that_began_before_the_loss_and_ends_beside_another_counts_as_lost)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    const uint64_t before = unsynced_session(&session);
    number++;
    write_once();
    unsynced_wrote(&session, &node, before);
    sync_all();
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
}
END_TEST

START_TEST(a_handle_opened_after_a_reported_loss_hears_nothing)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    write_once();
    number++;
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
    UnsyncedSeen later = unsynced_seen(&session, &node);
    ck_assert_int_eq(unsynced_error(&session, &node, &later), 0);
}
END_TEST

START_TEST(a_loss_that_no_handle_has_heard_of_waits_for_the_next)
{
    begin();
    write_once();
    number++;
    UnsyncedSeen later = unsynced_seen(&session, &node);
    ck_assert_int_eq(unsynced_error(&session, &node, &later), -EIO);
}
END_TEST

START_TEST(a_loss_noticed_by_a_write_waits_too)
{
    begin();
    write_once();
    number++;
    write_once();
    UnsyncedSeen later = unsynced_seen(&session, &node);
    ck_assert_int_eq(unsynced_error(&session, &node, &later), -EIO);
}
END_TEST

START_TEST(what_failed_at_a_close_is_told_to_the_others)
{
    begin();
    UnsyncedSeen other = unsynced_seen(&session, &node);
    write_once();
    unsynced_failed(&node, -ENOSPC);
    UnsyncedSeen later = unsynced_seen(&session, &node);
    ck_assert_int_eq(unsynced_error(&session, &node, &later), -ENOSPC);
    ck_assert_int_eq(unsynced_error(&session, &node, &other), -ENOSPC);
    ck_assert_int_eq(unsynced_error(&session, &node, &other), 0);
    UnsyncedSeen last = unsynced_seen(&session, &node);
    ck_assert_int_eq(unsynced_error(&session, &node, &last), 0);
}
END_TEST

START_TEST(a_close_tells_a_loss_and_takes_nothing)
{
    begin();
    UnsyncedSeen seen = unsynced_seen(&session, &node);
    write_once();
    number++;
    ck_assert_int_eq(unsynced_error_at_close(&session, &node, &seen), -EIO);
    ck_assert_int_eq(unsynced_error_at_close(&session, &node, &seen), -EIO);
    ck_assert_int_eq(unsynced_error(&session, &node, &seen), -EIO);
    ck_assert_int_eq(unsynced_error_at_close(&session, &node, &seen), 0);
}
END_TEST

START_TEST(a_close_of_what_was_opened_after_the_loss_hears_nothing)
{
    begin();
    write_once();
    number++;
    UnsyncedSeen later = unsynced_seen(&session, &node);
    ck_assert_int_eq(unsynced_error_at_close(&session, &node, &later), 0);
    ck_assert_int_eq(unsynced_error(&session, &node, &later), -EIO);
}
END_TEST

HARNESS_MAIN("cache/fuse/live/unsynced", a_close_tells_a_loss_and_takes_nothing,
             a_close_of_what_was_opened_after_the_loss_hears_nothing,
             each_handle_hears_once_of_a_loss, what_was_synced_is_not_lost,
             a_write_beside_a_sync_is_not_safe, a_sync_in_the_next_session_hides_no_loss,
             a_write_in_the_next_session_hides_no_loss,
             a_write_that_began_before_the_loss_counts_as_lost,
             a_write_that_began_before_the_loss_and_ends_beside_another_counts_as_lost,
             a_handle_opened_after_a_reported_loss_hears_nothing,
             a_loss_that_no_handle_has_heard_of_waits_for_the_next,
             a_loss_noticed_by_a_write_waits_too, what_failed_at_a_close_is_told_to_the_others)
