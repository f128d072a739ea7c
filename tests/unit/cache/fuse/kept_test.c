/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/kept.h"
#include "tests/unit/harness.h"

static const Kept before = {
    .object = {.ino = 1, .version = 3},
    .current = {.ino = 1, .version = 5, .size = 100, .mtime_sec = 7, .mtime_nsec = 8},
    .session = 2,
    .writes = 4,
};

START_TEST(an_unchanged_file_has_what_was_kept)
{
    Kept *kept = kept_new(&before);
    ck_assert(kept_is_good(kept, &before));
    ck_assert_uint_eq(kept->object.version, 3);
    kept_free(kept);
    ck_assert(!kept_is_good(NULL, &before));
    kept_free(NULL);
}
END_TEST

START_TEST(any_change_makes_it_useless)
{
    g_autoptr(Written) written = written_new();
    Kept other = before;
    other.current.version++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.current.size++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.current.mtime_sec++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.current.mtime_nsec++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.current.space[0]++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.writes++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.session++;
    ck_assert(!kept_is_good(&before, &other));
    other = before;
    other.written = written;
    ck_assert(!kept_is_good(&before, &other));
}
END_TEST

HARNESS_MAIN("cache/fuse/kept", an_unchanged_file_has_what_was_kept, any_change_makes_it_useless)
