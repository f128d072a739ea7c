/* SPDX-License-Identifier: Apache-2.0 */
/* An owner has few ranges at a time, so each call looks at all of them. */
#include "cache/fuse/locks/ranges.h"

GArray *lock_ranges_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(LockRange));
}

static gboolean overlap(LockRange a, LockRange b)
{
    return a.first <= b.last && b.first <= a.last;
}

void lock_ranges_remove(GArray *ranges, LockRange range)
{
    for (guint i = ranges->len; i-- > 0;) {
        const LockRange old = g_array_index(ranges, LockRange, i);
        if (!overlap(old, range))
            continue;
        g_array_remove_index_fast(ranges, i);
        if (old.first < range.first) {
            const LockRange before = {old.first, range.first - 1};
            g_array_append_val(ranges, before);
        }
        if (old.last > range.last) {
            const LockRange after = {range.last + 1, old.last};
            g_array_append_val(ranges, after);
        }
    }
}

void lock_ranges_add(GArray *ranges, LockRange range)
{
    lock_ranges_remove(ranges, range);
    g_array_append_val(ranges, range);
}

gboolean lock_ranges_overlap(const GArray *ranges, LockRange range)
{
    for (guint i = 0; i < ranges->len; i++)
        if (overlap(g_array_index(ranges, LockRange, i), range))
            return TRUE;
    return FALSE;
}
