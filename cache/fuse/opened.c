/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/opened.h"
#include <errno.h>
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

void opened_add_as(Opened *opened, uint64_t fh, void *what)
{
    pthread_mutex_lock(&opened->mutex);
    g_hash_table_insert(opened->by_fh, GSIZE_TO_POINTER(fh), what);
    pthread_mutex_unlock(&opened->mutex);
}

uint64_t opened_last(Opened *opened)
{
    pthread_mutex_lock(&opened->mutex);
    const uint64_t last = opened->last;
    pthread_mutex_unlock(&opened->mutex);
    return last;
}

void opened_continue(Opened *opened, uint64_t last)
{
    pthread_mutex_lock(&opened->mutex);
    opened->last = last;
    pthread_mutex_unlock(&opened->mutex);
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

/* ---- of an earlier process ---- */

typedef struct Entry {
    Reopen what;
    gboolean busy;
} Entry;

struct Reopens {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t ended;
    GHashTable *by_fh;   /* &Reopen.fh -> Entry */
    GHashTable *of_node; /* &node -> how many */
};

Reopens *reopens_new(void)
{
    Reopens *all = g_new0(Reopens, 1);
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->ended, NULL);
    all->by_fh = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    all->of_node = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    return all;
}

void reopens_free(Reopens *all)
{
    if (!all)
        return;
    g_hash_table_unref(all->by_fh);
    g_hash_table_unref(all->of_node);
    pthread_cond_destroy(&all->ended);
    pthread_mutex_destroy(&all->mutex);
    g_free(all);
}

static void count_locked(Reopens *all, uint64_t node, int change)
{
    const int n = GPOINTER_TO_INT(g_hash_table_lookup(all->of_node, &node)) + change;
    if (n > 0)
        g_hash_table_insert(all->of_node, g_memdup2(&node, sizeof(node)), GINT_TO_POINTER(n));
    else
        g_hash_table_remove(all->of_node, &node);
}

void reopens_add(Reopens *all, const Reopen *what)
{
    Entry *e = g_new0(Entry, 1);
    e->what = *what;
    pthread_mutex_lock(&all->mutex);
    if (!g_hash_table_contains(all->by_fh, &what->fh)) {
        count_locked(all, what->node, 1);
        g_hash_table_insert(all->by_fh, &e->what.fh, e);
        e = NULL;
    }
    pthread_mutex_unlock(&all->mutex);
    g_free(e);
}

/* TRUE: the caller opens it again, or closes it, and calls end(). */
static gboolean begin(Reopens *all, uint64_t fh, Reopen *what)
{
    Entry *e;
    pthread_mutex_lock(&all->mutex);
    while ((e = g_hash_table_lookup(all->by_fh, &fh)) && e->busy)
        pthread_cond_wait(&all->ended, &all->mutex);
    if (e) {
        e->busy = TRUE;
        *what = e->what;
    }
    pthread_mutex_unlock(&all->mutex);
    return e != NULL;
}

/* `done`: it is no longer to be opened. */
static void end(Reopens *all, uint64_t fh, gboolean done)
{
    pthread_mutex_lock(&all->mutex);
    Entry *e = g_hash_table_lookup(all->by_fh, &fh);
    e->busy = FALSE;
    if (done) {
        count_locked(all, e->what.node, -1);
        g_hash_table_remove(all->by_fh, &fh);
    }
    pthread_cond_broadcast(&all->ended);
    pthread_mutex_unlock(&all->mutex);
}

void *reopens_find(Reopens *all, Opened *opened, uint64_t fh, ReopenOpen open, void *data,
                   int *error)
{
    Reopen what;
    *error = -EBADF;
    if (!all || !begin(all, fh, &what))
        return opened_find(opened, fh); /* another may have opened it */
    void *again = open(data, &what, error);
    end(all, fh, again != NULL);
    return again;
}

gboolean reopens_close(Reopens *all, uint64_t fh, Reopen *what)
{
    if (!all || !begin(all, fh, what))
        return FALSE;
    end(all, fh, TRUE);
    return TRUE;
}

gboolean reopens_has(Reopens *all, uint64_t node)
{
    pthread_mutex_lock(&all->mutex);
    const gboolean has = g_hash_table_contains(all->of_node, &node);
    pthread_mutex_unlock(&all->mutex);
    return has;
}

GArray *reopens_left(Reopens *all)
{
    GArray *left = g_array_new(FALSE, FALSE, sizeof(Reopen));
    GHashTableIter iter;
    gpointer entry;
    pthread_mutex_lock(&all->mutex);
    g_hash_table_iter_init(&iter, all->by_fh);
    while (g_hash_table_iter_next(&iter, NULL, &entry))
        g_array_append_val(left, ((const Entry *)entry)->what);
    pthread_mutex_unlock(&all->mutex);
    return left;
}
