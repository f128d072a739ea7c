/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/opened.h"
#include <glib.h>
#include <pthread.h>

struct Opened {
    pthread_mutex_t mutex; /* guards all below */
    GHashTable *by_fh;     /* number -> what is open */
    uint64_t last;         /* number given */
};

Opened *opened_new(void)
{
    Opened *opened = g_new0(Opened, 1);
    pthread_mutex_init(&opened->mutex, NULL);
    opened->by_fh = g_hash_table_new(NULL, NULL);
    return opened;
}

void opened_free(Opened *opened)
{
    if (!opened)
        return;
    g_hash_table_unref(opened->by_fh);
    pthread_mutex_destroy(&opened->mutex);
    g_free(opened);
}

uint64_t opened_add(Opened *opened, void *what)
{
    pthread_mutex_lock(&opened->mutex);
    const uint64_t fh = ++opened->last;
    g_hash_table_insert(opened->by_fh, GSIZE_TO_POINTER(fh), what);
    pthread_mutex_unlock(&opened->mutex);
    return fh;
}

void opened_remove(Opened *opened, uint64_t fh)
{
    pthread_mutex_lock(&opened->mutex);
    g_hash_table_remove(opened->by_fh, GSIZE_TO_POINTER(fh));
    pthread_mutex_unlock(&opened->mutex);
}

void *opened_find(Opened *opened, uint64_t fh)
{
    pthread_mutex_lock(&opened->mutex);
    void *what = g_hash_table_lookup(opened->by_fh, GSIZE_TO_POINTER(fh));
    pthread_mutex_unlock(&opened->mutex);
    return what;
}

void *opened_any(Opened *opened)
{
    GHashTableIter iter;
    gpointer what = NULL;
    pthread_mutex_lock(&opened->mutex);
    g_hash_table_iter_init(&iter, opened->by_fh);
    if (!g_hash_table_iter_next(&iter, NULL, &what))
        what = NULL;
    pthread_mutex_unlock(&opened->mutex);
    return what;
}

void opened_each(Opened *opened, void (*visit)(void *what, void *data), void *data)
{
    GHashTableIter iter;
    gpointer what;
    pthread_mutex_lock(&opened->mutex);
    g_hash_table_iter_init(&iter, opened->by_fh);
    while (g_hash_table_iter_next(&iter, NULL, &what))
        visit(what, data);
    pthread_mutex_unlock(&opened->mutex);
}
