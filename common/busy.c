/* SPDX-License-Identifier: Apache-2.0 */
#include "common/busy.h"
#include <pthread.h>

struct Busy {
    pthread_mutex_t lock;
    pthread_cond_t released;
    GHashTable *held; /* "volume <id>", "path <path>" -> BusyHold; guarded by lock */
};

struct BusyHold {
    Busy *busy;
    char *volume, *path; /* keys in `held`, owned here */
    gboolean background;
};

Busy *busy_new(void)
{
    Busy *b = g_new0(Busy, 1);
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->released, &attr);
    pthread_condattr_destroy(&attr);
    b->held = g_hash_table_new(g_str_hash, g_str_equal);
    return b;
}

void busy_free(Busy *b)
{
    if (!b)
        return;
    g_hash_table_unref(b->held);
    pthread_cond_destroy(&b->released);
    pthread_mutex_destroy(&b->lock);
    g_free(b);
}

static BusyHold *hold_new(Busy *b, const char *volume, const char *path, gboolean background)
{
    BusyHold *hold = g_new0(BusyHold, 1);
    hold->busy = b;
    hold->volume = g_strconcat("volume ", volume, NULL);
    hold->path = path ? g_strconcat("path ", path, NULL) : NULL;
    hold->background = background;
    return hold;
}

static void hold_free(BusyHold *hold)
{
    g_free(hold->volume);
    g_free(hold->path);
    g_free(hold);
}

/* The holder of the volume or path that `hold` needs; *key is which of both. */
static const BusyHold *holder_locked(Busy *b, const BusyHold *hold, const char **key)
{
    *key = hold->volume;
    const BusyHold *other = g_hash_table_lookup(b->held, hold->volume);
    if (other || !hold->path)
        return other;
    *key = hold->path;
    return g_hash_table_lookup(b->held, hold->path);
}

static BusyHold *take(Busy *b, BusyHold *hold, gint64 until_us, GError **error)
{
    const char *key;
    const struct timespec until = {.tv_sec = until_us / G_USEC_PER_SEC,
                                   .tv_nsec = until_us % G_USEC_PER_SEC * 1000};
    int rc = 0;
    pthread_mutex_lock(&b->lock);
    const BusyHold *other = holder_locked(b, hold, &key);
    while (other && !hold->background && rc == 0 && (other->background || until_us > 0)) {
        rc = other->background ? pthread_cond_wait(&b->released, &b->lock)
                               : pthread_cond_timedwait(&b->released, &b->lock, &until);
        other = holder_locked(b, hold, &key);
    }
    if (!other) {
        g_hash_table_insert(b->held, hold->volume, hold);
        if (hold->path)
            g_hash_table_insert(b->held, hold->path, hold);
    }
    pthread_mutex_unlock(&b->lock);
    if (!other)
        return hold;
    hearth_fail(error, HEARTH_ERROR_ABORTED,
                "another operation on %s is running; try again when it has ended", key);
    hold_free(hold);
    return NULL;
}

BusyHold *busy_take(Busy *b, const char *volume, const char *path, GError **error)
{
    return take(b, hold_new(b, volume, path, FALSE), 0, error);
}

BusyHold *busy_take_background(Busy *b, const char *volume)
{
    return take(b, hold_new(b, volume, NULL, TRUE), 0, NULL);
}

BusyHold *busy_take_until(Busy *b, const char *volume, gint64 until_us, GError **error)
{
    return take(b, hold_new(b, volume, NULL, FALSE), until_us, error);
}

void busy_release(BusyHold *hold)
{
    if (!hold)
        return;
    Busy *b = hold->busy;
    pthread_mutex_lock(&b->lock);
    g_hash_table_remove(b->held, hold->volume);
    if (hold->path)
        g_hash_table_remove(b->held, hold->path);
    pthread_cond_broadcast(&b->released);
    pthread_mutex_unlock(&b->lock);
    hold_free(hold);
}
