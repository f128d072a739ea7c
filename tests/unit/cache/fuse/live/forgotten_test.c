/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of unsynced writes when the kernel has forgotten the inode. */
#include "cache/fuse/live/unsynced.h"
#include <errno.h>
#include "tests/unit/harness.h"

static uint64_t number = 1;
static int result;
static unsigned syncs;
static gboolean lost_meanwhile;

static uint64_t session_number(Origin *o)
{
    (void)o;
    return number;
}

static int sync_all(Origin *o)
{
    (void)o;
    syncs++;
    number += lost_meanwhile;
    return result;
}

static const OriginOps ops = {.session = session_number, .sync_all = sync_all};
static Origin origin = {.ops = &ops};
static const Unsynced written = {.writes = 3, .synced = 2, .session = 1};
static const Unsynced safe = {.writes = 3, .synced = 3, .session = 1};
static const Unsynced lost = {.writes = 3, .synced = 3, .session = 1, .losses = 1, .error = -EIO};

START_TEST(what_is_unsynced_is_known_to_the_next_node)
{
    Forgotten *f = forgotten_new();
    forgotten_keep(f, 7, &written);
    forgotten_keep(f, 8, &safe);
    ck_assert_uint_eq(forgotten_count(f), 1);
    ck_assert_uint_eq(forgotten_take(f, 7).writes, 3);
    ck_assert_uint_eq(forgotten_take(f, 7).writes, 0);
    ck_assert_uint_eq(forgotten_take(f, 8).writes, 0);
    forgotten_free(f);
}
END_TEST

START_TEST(a_loss_that_was_not_reported_is_kept)
{
    Forgotten *f = forgotten_new();
    forgotten_keep(f, 7, &lost);
    forgotten_sync(f, &origin);
    ck_assert_uint_eq(forgotten_take(f, 7).losses, 1);
    forgotten_free(f);
}
END_TEST

START_TEST(a_sync_makes_safe_what_was_written_in_its_session)
{
    const Unsynced before = {.writes = 1, .session = 0};
    Forgotten *f = forgotten_new();
    forgotten_keep(f, 7, &written);
    forgotten_keep(f, 8, &before);
    result = -EIO;
    forgotten_sync(f, &origin);
    ck_assert_uint_eq(forgotten_count(f), 2);
    result = 0;
    lost_meanwhile = TRUE;
    forgotten_sync(f, &origin);
    ck_assert_uint_eq(forgotten_count(f), 2);
    number = 1;
    lost_meanwhile = FALSE;
    forgotten_sync(f, &origin);
    ck_assert_uint_eq(forgotten_count(f), 1);
    ck_assert_uint_eq(forgotten_take(f, 8).writes, 1);
    forgotten_free(f);
}
END_TEST

START_TEST(many_ask_for_a_sync_once)
{
    Forgotten *f = forgotten_new();
    for (uint64_t id = 1; id < FORGOTTEN_MANY; id++)
        forgotten_keep(f, id, &lost);
    ck_assert(!forgotten_are_many(f));
    forgotten_keep(f, FORGOTTEN_MANY, &lost);
    ck_assert(forgotten_are_many(f));
    ck_assert(!forgotten_are_many(f));
    forgotten_sync(f, &origin);
    ck_assert(!forgotten_are_many(f)); /* it left them all */
    forgotten_free(f);
}
END_TEST

START_TEST(what_failed_since_is_known_to_the_next_node)
{
    Forgotten *f = forgotten_new();
    forgotten_keep(f, 7, &written);
    forgotten_failed(f, 7, -ENOSPC);
    forgotten_failed(f, 8, -EIO);
    forgotten_sync(f, &origin);
    const Unsynced kept = forgotten_take(f, 7), unkept = forgotten_take(f, 8);
    ck_assert_int_eq(kept.error, -ENOSPC);
    ck_assert_uint_eq(kept.losses - kept.reported, 1);
    ck_assert_int_eq(unkept.error, -EIO);
    ck_assert_uint_eq(unkept.losses - unkept.reported, 1);
    forgotten_free(f);
}
END_TEST

HARNESS_MAIN("cache/fuse/live/forgotten", what_is_unsynced_is_known_to_the_next_node,
             a_loss_that_was_not_reported_is_kept,
             a_sync_makes_safe_what_was_written_in_its_session, many_ask_for_a_sync_once,
             what_failed_since_is_known_to_the_next_node)
