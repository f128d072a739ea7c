/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/backoff.h"

gint64 kube_backoff_next_ms(KubeBackoff *b)
{
    gint64 whole = b->first_ms;
    for (unsigned i = 0; i < b->failures && whole < b->most_ms; i++)
        whole *= 2;
    whole = MIN(whole, b->most_ms);
    b->failures++;
    return whole / 2 + (gint64)(g_random_double() * (double)(whole - whole / 2));
}

void kube_bucket_init(KubeBucket *b, double per_second, double burst, gint64 now_us)
{
    *b = (KubeBucket){
        .per_second = per_second, .burst = MAX(burst, 1), .tokens = MAX(burst, 1), .at_us = now_us};
}

gint64 kube_bucket_take_ms(KubeBucket *b, gint64 now_us, gint64 most_ms)
{
    if (b->per_second <= 0)
        return 0;
    const double passed = (double)MAX(now_us - b->at_us, 0) / G_USEC_PER_SEC;
    b->tokens = MIN(b->tokens + passed * b->per_second, b->burst);
    b->at_us = now_us;
    const double left = b->tokens - 1;
    const gint64 wait_ms = left >= 0 ? 0 : 1 + (gint64)(-left / b->per_second * 1000);
    if (wait_ms > most_ms)
        return -1;
    b->tokens = left;
    return wait_ms;
}
