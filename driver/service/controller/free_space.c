/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of answers that free_space.h describes. One lock guards everything; it is free while a
 * cluster is asked, and cluster->asking keeps other calls from asking it too. capacity.c calls
 * this.
 */
#include "driver/service/controller/free_space.h"
#include <pthread.h>

/* 2 to the power of this: steps from one power of two to the next. */
#define STEPS_BITS 5

typedef struct Pool {
    gint64 last;     /* answer; < 0: none yet */
    gint64 asked_ms; /* when that was learned */
    gboolean missing;
} Pool;

typedef struct Cluster {
    gboolean asking;
    GError *failure; /* of the last request; NULL: it was answered */
    gint64 failed_ms;
    GHashTable *pools; /* name -> Pool */
} Cluster;

struct Room {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    GHashTable *clusters; /* ID -> Cluster; all of them guarded by lock */
    gint64 aged_ms;
};

static void cluster_free(gpointer data)
{
    Cluster *cluster = data;
    g_clear_error(&cluster->failure);
    g_hash_table_unref(cluster->pools);
    g_free(cluster);
}

Room *room_new(void)
{
    Room *r = g_new0(Room, 1);
    pthread_condattr_t attr;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->answered, &attr);
    pthread_condattr_destroy(&attr);
    r->clusters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, cluster_free);
    return r;
}

void room_free(Room *r)
{
    if (!r)
        return;
    g_hash_table_unref(r->clusters);
    pthread_cond_destroy(&r->answered);
    pthread_mutex_destroy(&r->lock);
    g_free(r);
}

void room_age(Room *r, gint64 ms)
{
    pthread_mutex_lock(&r->lock);
    r->aged_ms += ms;
    pthread_mutex_unlock(&r->lock);
}

gint64 room_step(gint64 bytes, gint64 last)
{
    if (bytes <= 0)
        return 0;
    const guint bits = g_bit_storage((gulong)bytes);
    const gint64 step = G_GINT64_CONSTANT(1) << (bits > STEPS_BITS + 1 ? bits - STEPS_BITS - 1 : 0);
    const gint64 now = bytes / step * step;
    const gboolean barely_more = last >= 0 && now > last && bytes - last < step + step / 2;
    return barely_more ? last : now;
}

/* ---- under the lock ---- */

static gint64 now_ms_locked(const Room *r)
{
    return g_get_monotonic_time() / 1000 + r->aged_ms;
}

static Cluster *cluster_locked(Room *r, const char *id)
{
    Cluster *cluster = g_hash_table_lookup(r->clusters, id);
    if (!cluster) {
        cluster = g_new0(Cluster, 1);
        cluster->pools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        g_hash_table_insert(r->clusters, g_strdup(id), cluster);
    }
    return cluster;
}

static Pool *pool_locked(Cluster *cluster, const char *name)
{
    Pool *pool = g_hash_table_lookup(cluster->pools, name);
    if (!pool) {
        pool = g_new0(Pool, 1);
        pool->last = -1;
        g_hash_table_insert(cluster->pools, g_strdup(name), pool);
    }
    return pool;
}

/* Whether the cluster did not answer. One that refuses makes its earlier answers invalid. */
static gboolean is_silence(const GError *error)
{
    return g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED);
}

static gboolean is_known_locked(const Room *r, const Pool *pool, gint64 max_ms)
{
    return pool->last >= 0 && now_ms_locked(r) - pool->asked_ms < max_ms;
}

/* Whether the call can end without asking; *good: with an answer, else with the error. */
static gboolean answer_locked(const Room *r, const Cluster *cluster, const Pool *pool,
                              gint64 *bytes, gboolean *good, GError **error)
{
    const gboolean failed =
        cluster->failure && now_ms_locked(r) - cluster->failed_ms < ROOM_FAILED_MS;
    *bytes = pool->last;
    *good = is_known_locked(r, pool, ROOM_FRESH_MS) ||
            (failed && is_silence(cluster->failure) && is_known_locked(r, pool, ROOM_KNOWN_MS));
    if (!*good && failed)
        g_propagate_error(error, g_error_copy(cluster->failure));
    return *good || failed;
}

static void learn_locked(Room *r, Pool *pool, const char *name, gint64 bytes, const GError *missing)
{
    if (missing && !pool->missing)
        g_warning("%s has no room for volumes: %s", name, missing->message);
    pool->missing = missing != NULL;
    pool->last = room_step(bytes, missing ? -1 : pool->last);
    pool->asked_ms = now_ms_locked(r);
}

/* Unlocks while it asks the cluster. FALSE: the caller had less time than the cluster may take, so
 * the failure says nothing about the cluster. */
static gboolean ask_locked(Room *r, Cluster *cluster, Pool *pool, const RoomPool *of,
                           gint64 deadline_us, GError **error)
{
    gint64 bytes = 0;
    GError *failure = NULL;
    const gint64 bound_us = g_get_monotonic_time() + ROOM_ASK_MS * 1000;
    cluster->asking = TRUE;
    pthread_mutex_unlock(&r->lock);
    gboolean good = of->ask(of->data, MIN(bound_us, deadline_us), &bytes, &failure);
    pthread_mutex_lock(&r->lock);
    cluster->asking = FALSE;
    pthread_cond_broadcast(&r->answered);
    if (!good && deadline_us < bound_us && is_silence(failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    g_clear_error(&cluster->failure);
    if (good) {
        learn_locked(r, pool, of->name, bytes, NULL);
    } else if (g_error_matches(failure, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT)) {
        learn_locked(r, pool, of->name, 0, failure);
        g_error_free(failure);
    } else {
        cluster->failure = failure;
        cluster->failed_ms = now_ms_locked(r);
    }
    return TRUE;
}

static gboolean wait_locked(Room *r, const char *id, gint64 deadline_us, GError **error)
{
    const struct timespec until = {.tv_sec = deadline_us / G_USEC_PER_SEC,
                                   .tv_nsec = deadline_us % G_USEC_PER_SEC * 1000};
    if (pthread_cond_timedwait(&r->answered, &r->lock, &until) == 0)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_DEADLINE_EXCEEDED,
                       "cluster %s has not yet answered another call what room it has", id);
}

gboolean room_of(Room *r, const RoomPool *of, gint64 deadline_us, gint64 *bytes, GError **error)
{
    gboolean good = TRUE;
    pthread_mutex_lock(&r->lock);
    Cluster *cluster = cluster_locked(r, of->cluster);
    Pool *pool = pool_locked(cluster, of->name);
    while (!answer_locked(r, cluster, pool, bytes, &good, error)) {
        good = cluster->asking ? wait_locked(r, of->cluster, deadline_us, error)
                               : ask_locked(r, cluster, pool, of, deadline_us, error);
        if (!good)
            break;
    }
    pthread_mutex_unlock(&r->lock);
    return good;
}
