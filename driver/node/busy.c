#include "driver/node/busy.h"
#include <pthread.h>

struct Busy {
    pthread_mutex_t lock;
    GHashTable *held; /* "volume <id>", "path <path>"; guarded by lock */
};

struct BusyHold {
    Busy *busy;
    char *volume, *path; /* keys in `held`, owned here */
};

Busy *busy_new(void)
{
    Busy *b = g_new0(Busy, 1);
    pthread_mutex_init(&b->lock, NULL);
    b->held = g_hash_table_new(g_str_hash, g_str_equal);
    return b;
}

void busy_free(Busy *b)
{
    if (!b)
        return;
    g_hash_table_unref(b->held);
    pthread_mutex_destroy(&b->lock);
    g_free(b);
}

BusyHold *busy_take(Busy *b, const char *volume, const char *path, GError **error)
{
    BusyHold *hold = g_new0(BusyHold, 1);
    hold->busy = b;
    hold->volume = g_strconcat("volume ", volume, NULL);
    hold->path = path ? g_strconcat("path ", path, NULL) : NULL;

    pthread_mutex_lock(&b->lock);
    const char *taken = NULL;
    if (g_hash_table_contains(b->held, hold->volume))
        taken = hold->volume;
    else if (path && g_hash_table_contains(b->held, hold->path))
        taken = hold->path;
    if (!taken) {
        g_hash_table_add(b->held, hold->volume);
        if (path)
            g_hash_table_add(b->held, hold->path);
    }
    pthread_mutex_unlock(&b->lock);
    if (!taken)
        return hold;

    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED,
                "another operation on %s is running; try again when it has ended", taken);
    g_free(hold->volume);
    g_free(hold->path);
    g_free(hold);
    return NULL;
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
    pthread_mutex_unlock(&b->lock);
    g_free(hold->volume);
    g_free(hold->path);
    g_free(hold);
}
