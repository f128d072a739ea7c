/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/counts.h"
#include <pthread.h>

typedef struct Count {
    const char *method;
    int status;
    guint64 count;
} Count;

struct KubeCounts {
    pthread_mutex_t lock;
    GArray *rows; /* of Count, a dozen; guarded by lock */
};

KubeCounts *kube_counts_new(void)
{
    KubeCounts *c = g_new0(KubeCounts, 1);
    pthread_mutex_init(&c->lock, NULL);
    c->rows = g_array_new(FALSE, FALSE, sizeof(Count));
    return c;
}

void kube_counts_free(KubeCounts *c)
{
    if (!c)
        return;
    g_array_unref(c->rows);
    pthread_mutex_destroy(&c->lock);
    g_free(c);
}

static Count *row_locked(KubeCounts *c, const char *method, int status)
{
    for (guint i = 0; i < c->rows->len; i++) {
        Count *row = &g_array_index(c->rows, Count, i);
        if (row->status == status && g_str_equal(row->method, method))
            return row;
    }
    const Count row = {.method = method, .status = status};
    g_array_append_val(c->rows, row);
    return &g_array_index(c->rows, Count, c->rows->len - 1);
}

void kube_counts_add(KubeCounts *c, const char *method, int status)
{
    pthread_mutex_lock(&c->lock);
    row_locked(c, method, status)->count++;
    pthread_mutex_unlock(&c->lock);
}

void kube_counts_each(KubeCounts *c, void (*each)(const char *, int, guint64, void *), void *data)
{
    pthread_mutex_lock(&c->lock);
    g_autoptr(GArray) copy = g_array_copy(c->rows);
    pthread_mutex_unlock(&c->lock);
    for (guint i = 0; i < copy->len; i++) {
        const Count *row = &g_array_index(copy, Count, i);
        each(row->method, row->status, row->count, data);
    }
}
