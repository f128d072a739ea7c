/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/layer/bypass_budget.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t used; /* lock */

static gboolean fits_locked(const BypassShare *share, size_t bytes)
{
    const uint64_t others = used - share->bytes;
    return share->bytes == 0 || others + 2 * (share->bytes + bytes) <= BYPASS_BUDGET_BYTES;
}

gboolean bypass_budget_take(BypassShare *share, size_t bytes, const atomic_bool *unwanted)
{
    pthread_mutex_lock(&lock);
    while (!fits_locked(share, bytes) && !atomic_load(unwanted))
        pthread_cond_wait(&changed, &lock);
    const gboolean wanted = !atomic_load(unwanted);
    if (wanted) {
        share->bytes += bytes;
        used += bytes;
    }
    pthread_mutex_unlock(&lock);
    return wanted;
}

void bypass_budget_give(BypassShare *share, size_t bytes)
{
    pthread_mutex_lock(&lock);
    share->bytes -= bytes;
    used -= bytes;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void bypass_budget_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

uint64_t bypass_budget_used(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t bytes = used;
    pthread_mutex_unlock(&lock);
    return bytes;
}
