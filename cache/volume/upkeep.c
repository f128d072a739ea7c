/* SPDX-License-Identifier: Apache-2.0 */
/* The upkeep thread: it holds volumes to their quotas, ends what Ceph has refused, and measures
 * volumes from time to time. */
#include <errno.h>
#include "cache/volume/internal.h"
#include "common/monotonic.h"

#define UPKEEP_SEC 5
#define MEASURE_EVERY 3 /* upkeeps */

static void keep_quota(Volumes *vs, const Volume *v)
{
    uint64_t bytes, objects;
    uint64_t quota = volume_quota_bytes(v);
    if (!vs->store || !quota)
        return;
    g_autofree char *tag = volumes_tag(vs, v->id);
    store_tag_usage(vs->store, tag, &bytes, &objects);
    if (bytes > quota)
        store_evict_over_quota(vs->store, tag, bytes - quota);
}

/* Quotas first: measuring asks Ceph, and may wait for long. */
static void upkeep_once(Volumes *vs, gboolean measuring)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, NULL);
    for (int pass = 0; pass <= measuring; pass++) {
        for (guint i = 0; i < ids->len; i++) {
            Volume *v = volumes_use(vs, ids->pdata[i], NULL);
            if (!v)
                continue;
            if (pass == 0) {
                keep_quota(vs, v);
            } else {
                int64_t total = volumes_measure(v->origin);
                pthread_mutex_lock(&vs->lock);
                v->bytes_total = total;
                pthread_mutex_unlock(&vs->lock);
            }
            volumes_done(vs, v);
        }
    }
}

void *volumes_run_upkeep(void *data)
{
    Volumes *vs = data;
    unsigned round = 0;
    pthread_mutex_lock(&vs->lock);
    while (!vs->stopping) {
        struct timespec next = deadline_after_ms(UPKEEP_SEC * 1000);
        while (!vs->stopping && pthread_cond_timedwait(&vs->changed, &vs->lock, &next) != ETIMEDOUT)
            ;
        if (vs->stopping)
            break;
        pthread_mutex_unlock(&vs->lock);
        volumes_end_refused(vs);
        upkeep_once(vs, ++round % MEASURE_EVERY == 0);
        pthread_mutex_lock(&vs->lock);
    }
    pthread_mutex_unlock(&vs->lock);
    return NULL;
}
