/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/faith.h"
#include <pthread.h>
#include <string.h>
#include "cache/origin/deferred.h"

typedef struct Claim {
    char *dataset;
    VolumeSpec *spec;
    Origin *origin;
} Claim;

struct Faith {
    pthread_mutex_t lock; /* a leaf */
    GPtrArray *claims;    /* lock */
};

static void free_claim(gpointer data)
{
    Claim *c = data;
    origin_close(c->origin);
    spec_free(c->spec);
    g_free(c->dataset);
    g_free(c);
}

Faith *faith_new(void)
{
    Faith *f = g_new0(Faith, 1);
    pthread_mutex_init(&f->lock, NULL);
    f->claims = g_ptr_array_new_with_free_func(free_claim);
    return f;
}

void faith_free(Faith *f)
{
    if (!f)
        return;
    g_ptr_array_unref(f->claims);
    pthread_mutex_destroy(&f->lock);
    g_free(f);
}

static gboolean is_known_locked(const Faith *f, const char *dataset, const VolumeSpec *spec)
{
    for (guint i = 0; i < f->claims->len; i++) {
        const Claim *c = f->claims->pdata[i];
        if (strcmp(c->dataset, dataset) == 0 && spec_same_authority(c->spec, spec))
            return TRUE;
    }
    return FALSE;
}

gboolean faith_take(Faith *f, const char *dataset, const VolumeSpec *spec, Origin *origin)
{
    if (!origin_is_deferred(origin) ||
        origin_deferred_wait(origin, 0, NULL) == ORIGIN_DEFERRED_HERE)
        return FALSE;
    pthread_mutex_lock(&f->lock);
    const gboolean takes = f->claims->len < FAITH_MAX && !is_known_locked(f, dataset, spec);
    if (takes) {
        Claim *c = g_new0(Claim, 1);
        c->dataset = g_strdup(dataset);
        c->spec = spec_copy(spec);
        c->origin = origin;
        g_ptr_array_add(f->claims, c);
    }
    pthread_mutex_unlock(&f->lock);
    return takes;
}

/* Removes and returns the claims for which Ceph has a final answer. */
static GPtrArray *steal_answered(Faith *f)
{
    GPtrArray *answered = g_ptr_array_new_with_free_func(free_claim);
    pthread_mutex_lock(&f->lock);
    for (guint i = f->claims->len; i > 0; i--) {
        Claim *c = f->claims->pdata[i - 1];
        const OriginDeferredState state = origin_deferred_wait(c->origin, 0, NULL);
        if (state != ORIGIN_DEFERRED_AWAY && state != ORIGIN_DEFERRED_FAILED)
            g_ptr_array_add(answered, g_ptr_array_steal_index_fast(f->claims, i - 1));
    }
    pthread_mutex_unlock(&f->lock);
    return answered;
}

void faith_check(Faith *f, void (*refused)(const char *dataset, const VolumeSpec *spec, void *data),
                 void *data)
{
    g_autoptr(GPtrArray) answered = steal_answered(f);
    for (guint i = 0; i < answered->len; i++) {
        const Claim *c = answered->pdata[i];
        if (origin_deferred_wait(c->origin, 0, NULL) == ORIGIN_DEFERRED_REFUSED)
            refused(c->dataset, c->spec, data);
    }
}
