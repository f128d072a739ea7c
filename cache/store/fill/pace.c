/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/fill/pace.h"

#define SLACK_US 20000

StorePace *store_pace_new(uint64_t bytes_per_sec)
{
    StorePace *pace = g_new0(StorePace, 1);
    atomic_init(&pace->refs, 1);
    pace->bytes_per_sec = bytes_per_sec;
    return pace;
}

StorePace *pace_ref(StorePace *pace)
{
    if (pace)
        atomic_fetch_add(&pace->refs, 1);
    return pace;
}

void store_pace_unref(StorePace *pace)
{
    if (pace && atomic_fetch_sub(&pace->refs, 1) == 1)
        g_free(pace);
}

gboolean pace_allows_locked(const StorePace *pace, uint64_t *until_ms)
{
    if (!pace || pace->next_us <= (uint64_t)g_get_monotonic_time() + SLACK_US)
        return TRUE;
    uint64_t when = (pace->next_us - SLACK_US) / 1000 + 1;
    *until_ms = *until_ms ? MIN(*until_ms, when) : when;
    return FALSE;
}

void pace_take_locked(StorePace *pace, uint64_t bytes)
{
    if (!pace)
        return;
    uint64_t now = (uint64_t)g_get_monotonic_time();
    double us = (double)bytes * 1e6 / (double)pace->bytes_per_sec;
    pace->next_us = MAX(pace->next_us, now) + (uint64_t)us;
}
