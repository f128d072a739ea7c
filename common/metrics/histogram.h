/* SPDX-License-Identifier: Apache-2.0 */
/* How long something takes, counted by powers of about three from 100 us to 30 s. Any thread, no
 * lock. */
#ifndef HEARTH_COMMON_METRICS_HISTOGRAM_H
#define HEARTH_COMMON_METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_BOUNDS 12

/* Microseconds; what takes longer than the last is counted beyond it. */
static const uint32_t histogram_bounds_us[HISTOGRAM_BOUNDS] = {
    100, 300, 1000, 3000, 10000, 30000, 100000, 300000, 1000000, 3000000, 10000000, 30000000};

/* Zeroed, it is empty. */
typedef struct Histogram {
    atomic_ullong counts[HISTOGRAM_BOUNDS + 1];
    atomic_ullong sum_us;
} Histogram;

static inline void histogram_add(Histogram *h, int64_t us)
{
    unsigned i = 0;
    const uint64_t took = us > 0 ? (uint64_t)us : 0;
    while (i < HISTOGRAM_BOUNDS && took > histogram_bounds_us[i])
        i++;
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, took, memory_order_relaxed);
}

static inline uint64_t histogram_count(const Histogram *h)
{
    uint64_t n = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
        n += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
    return n;
}

#endif
