/* SPDX-License-Identifier: Apache-2.0 */
/* One is started when there is something to fetch and all others fetch already, up to
 * StoreConfig.fill_threads; they stay until the store is closed. */
#include "cache/store/fill/internal.h"

int fill_start_worker_locked(Fills *fills, Store *store)
{
    FillWorker *worker = g_new(FillWorker, 1);
    *worker = (FillWorker){store, fills->buffers + store->config.chunk_bytes * fills->n_threads};
    int rc = pthread_create(&fills->threads[fills->n_threads], NULL, fills->run_worker, worker);
    if (rc == 0)
        fills->n_threads++;
    else
        g_free(worker);
    return rc;
}

void fill_wake_worker_locked(Fills *fills, Store *store)
{
    if (fills->idle)
        pthread_cond_signal(&fills->work);
    else if (fills->n_threads < fills->most && !fills->stop)
        fill_start_worker_locked(fills, store); /* without one more, those there are do it */
}
