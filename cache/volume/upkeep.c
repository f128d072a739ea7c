/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upkeep thread: it holds volumes to their quotas, ends what Ceph has refused, and has volumes
 * measured, a few at a time and one after the other: those that were used since, so that the others
 * can rest (cache/origin/reconnect/rest.c). It never waits for Ceph: each measuring has a thread of
 * its own.
 */
#include <errno.h>
#include <string.h>
#include "cache/origin/aside.h"
#include "cache/volume/internal.h"
#include "common/monotonic.h"

#define UPKEEP_SEC 5
#define MEASURE_EVERY 3 /* upkeeps */
/* Each is a request to an MDS, which may have thousands of nodes. */
#define MEASURE_MAX 16

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

typedef struct Measuring {
    Volumes *vs;
    Volume *v; /* in use */
} Measuring;

static void measure(void *data)
{
    g_autofree Measuring *m = data;
    Volumes *vs = m->vs;
    int64_t total = volumes_measure(m->v->origin);
    pthread_mutex_lock(&vs->lock);
    m->v->bytes_total = total;
    m->v->measuring = FALSE;
    vs->measuring--;
    pthread_mutex_unlock(&vs->lock);
    volumes_done(vs, m->v);
}

/* FALSE: enough are under way. */
static gboolean begin_measuring(Volumes *vs, Volume *v)
{
    FuseStats stats = {0};
    pthread_mutex_lock(&vs->lock);
    volume_stats(v, &stats);
    const gboolean used = memcmp(&stats, &v->measured, sizeof(stats)) != 0;
    pthread_mutex_unlock(&vs->lock);
    const gboolean asks = used && !origin_rests(v->origin) && origin_silent_ms(v->origin) == 0;
    pthread_mutex_lock(&vs->lock);
    const gboolean room = vs->measuring < MEASURE_MAX;
    /* While Ceph is silent it would not end, and the volume could not be detached. */
    const gboolean begins = room && !v->measuring && asks;
    if (begins)
        v->measured = stats;
    vs->measuring += begins;
    v->measuring = v->measuring || begins;
    pthread_mutex_unlock(&vs->lock);
    if (!begins) {
        volumes_done(vs, v);
        return room;
    }
    Measuring *m = g_new(Measuring, 1);
    *m = (Measuring){vs, v};
    aside_begin(measure, m);
    return TRUE;
}

/* Those that come after *last. */
static void measure_some(Volumes *vs, char **last)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, *last);
    guint i = 0;
    for (; i < ids->len && i < MEASURE_MAX; i++) {
        Volume *v = volumes_use(vs, ids->pdata[i], NULL);
        if (v && !begin_measuring(vs, v))
            break;
    }
    if (i == 0 && ids->len > 0)
        return; /* from there again, next time */
    g_free(*last);
    *last = i < ids->len ? g_strdup(ids->pdata[i - 1]) : NULL;
}

static void keep_quotas(Volumes *vs)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, NULL);
    for (guint i = 0; i < ids->len; i++) {
        Volume *v = volumes_use(vs, ids->pdata[i], NULL);
        if (!v)
            continue;
        keep_quota(vs, v);
        volumes_done(vs, v);
    }
}

void *volumes_run_upkeep(void *data)
{
    Volumes *vs = data;
    g_autofree char *last = NULL; /* measured */
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
        keep_quotas(vs);
        if (++round % MEASURE_EVERY == 0)
            measure_some(vs, &last);
        pthread_mutex_lock(&vs->lock);
    }
    pthread_mutex_unlock(&vs->lock);
    return NULL;
}
