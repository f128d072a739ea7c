/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/served/usages.h"

#define KEPT_US (10 * 60 * G_TIME_SPAN_SECOND)

typedef struct Usage {
    struct statvfs st;
    gint64 at_us;
} Usage;

struct Usages {
    GMutex lock;
    GHashTable *of; /* lock; volume -> Usage */
};

Usages *usages_new(void)
{
    Usages *u = g_new0(Usages, 1);
    g_mutex_init(&u->lock);
    u->of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return u;
}

void usages_free(Usages *u)
{
    if (!u)
        return;
    g_hash_table_unref(u->of);
    g_mutex_clear(&u->lock);
    g_free(u);
}

static gboolean is_old(gpointer volume, gpointer usage, gpointer now_us)
{
    (void)volume;
    return *(gint64 *)now_us - ((Usage *)usage)->at_us >= KEPT_US;
}

void usages_put(Usages *u, const char *volume, const struct statvfs *st, gint64 now_us)
{
    Usage *usage = g_new(Usage, 1);
    *usage = (Usage){*st, now_us};
    g_mutex_lock(&u->lock);
    g_hash_table_foreach_remove(u->of, is_old, &now_us);
    g_hash_table_replace(u->of, g_strdup(volume), usage);
    g_mutex_unlock(&u->lock);
}

gboolean usages_get(Usages *u, const char *volume, gint64 now_us, struct statvfs *st)
{
    g_mutex_lock(&u->lock);
    Usage *usage = g_hash_table_lookup(u->of, volume);
    const gboolean known = usage && !is_old(NULL, usage, &now_us);
    if (known)
        *st = usage->st;
    g_mutex_unlock(&u->lock);
    return known;
}
