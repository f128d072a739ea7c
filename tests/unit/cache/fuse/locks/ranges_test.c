/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include "cache/fuse/locks/ranges.h"
#include "tests/unit/harness.h"

static gint by_first(gconstpointer a, gconstpointer b)
{
    const LockRange *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* As "0-9 20-29". */
static void expect(GArray *ranges, const char *wanted)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_array_sort(ranges, by_first);
    for (guint i = 0; i < ranges->len; i++) {
        const LockRange r = g_array_index(ranges, LockRange, i);
        g_string_append_printf(text, "%s%" PRId64 "-%" PRId64, i ? " " : "", r.first, r.last);
    }
    ck_assert_str_eq(text->str, wanted);
}

START_TEST(a_hole_leaves_both_sides)
{
    g_autoptr(GArray) ranges = lock_ranges_new();
    lock_ranges_add(ranges, (LockRange){0, 99});
    lock_ranges_remove(ranges, (LockRange){10, 19});
    expect(ranges, "0-9 20-99");
    lock_ranges_remove(ranges, (LockRange){0, 0});
    lock_ranges_remove(ranges, (LockRange){99, INT64_MAX});
    expect(ranges, "1-9 20-98");
    lock_ranges_remove(ranges, (LockRange){0, INT64_MAX});
    expect(ranges, "");
}
END_TEST

START_TEST(what_is_added_twice_is_there_once)
{
    g_autoptr(GArray) ranges = lock_ranges_new();
    lock_ranges_add(ranges, (LockRange){10, 20});
    lock_ranges_add(ranges, (LockRange){15, 30});
    lock_ranges_add(ranges, (LockRange){INT64_MAX, INT64_MAX});
    expect(ranges, "10-14 15-30 9223372036854775807-9223372036854775807");
    ck_assert(lock_ranges_overlap(ranges, (LockRange){30, 40}));
    ck_assert(!lock_ranges_overlap(ranges, (LockRange){31, 40}));
    lock_ranges_remove(ranges, (LockRange){12, 16});
    expect(ranges, "10-11 17-30 9223372036854775807-9223372036854775807");
}
END_TEST

HARNESS_MAIN("cache/fuse/locks/ranges", a_hole_leaves_both_sides, what_is_added_twice_is_there_once)
