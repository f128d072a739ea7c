/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/reading.h"

#define ROOM_TO_SPARE 1.25

void reading_init(Reading *reading)
{
    *reading = (Reading){.latencies_us = g_array_new(FALSE, FALSE, sizeof(guint32))};
}

void reading_clear(Reading *reading)
{
    g_clear_pointer(&reading->latencies_us, g_array_unref);
    *reading = (Reading){0};
}

void reading_add(Reading *to, const Reading *from)
{
    to->files += from->files;
    to->bytes += from->bytes;
    to->failed += from->failed;
    if (from->latencies_us->len > 0)
        g_array_append_vals(to->latencies_us, from->latencies_us->data, from->latencies_us->len);
}

static double per_s(uint64_t n, gint64 us)
{
    return us > 0 ? (double)n * G_USEC_PER_SEC / (double)us : 0;
}

double reading_bytes_per_s(const Reading *reading)
{
    return per_s(reading->bytes, reading->took_us);
}

double reading_files_per_s(const Reading *reading)
{
    return per_s(reading->files, reading->took_us);
}

static gint compare(gconstpointer a, gconstpointer b)
{
    const guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;
    return x < y ? -1 : x > y;
}

guint32 reading_percentile(Reading *reading, double percent)
{
    GArray *all = reading->latencies_us;
    if (all->len == 0)
        return 0;
    g_array_sort(all, compare);
    const double exact = percent * all->len / 100;
    guint rank = (guint)exact;
    rank += rank < exact;
    const guint at = CLAMP(rank, 1, all->len) - 1;
    return g_array_index(all, guint32, at);
}

ReadingBound reading_judge(double rate, double wanted)
{
    if (rate < wanted)
        return READING_BOUND;
    return rate < wanted * ROOM_TO_SPARE ? READING_CLOSE : READING_FREE;
}

const char *reading_bound_text(ReadingBound bound)
{
    switch (bound) {
    case READING_FREE:
        return "not storage-bound";
    case READING_CLOSE:
        return "just not storage-bound";
    case READING_BOUND:
        break;
    }
    return "storage-bound";
}

guint *reading_shuffle(guint n, guint32 seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    guint *order = g_new(guint, MAX(n, 1));
    for (guint i = 0; i < n; i++)
        order[i] = i;
    for (guint i = n; i > 1; i--) {
        const guint j = (guint)g_rand_int_range(random, 0, (gint32)i);
        const guint other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
    return order;
}
