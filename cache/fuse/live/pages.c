/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/live/pages.h"
#include <unistd.h>
#include "cache/fuse/live/nodes.h"

void pages_wait_begin(Node *node, PageUse *use, uint64_t off, size_t size, gboolean writeback)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    *use = (PageUse){
        .off = (int64_t)off / page * page,
        .end = ((int64_t)(off + size) + page - 1) / page * page,
        .writeback = writeback,
    };
    pthread_mutex_lock(&node->mutex);
    LIST_INSERT_HEAD(&node->page_uses, use, link);
    atomic_fetch_add(&node->page_waits, 1);
    pthread_mutex_unlock(&node->mutex);
}

gboolean pages_wait_end(Node *node, PageUse *use)
{
    pthread_mutex_lock(&node->mutex);
    LIST_REMOVE(use, link);
    pthread_mutex_unlock(&node->mutex);
    return use->gone_around;
}

static gint by_offset(gconstpointer a, gconstpointer b)
{
    const PageRange *left = a, *right = b;
    return (left->off > right->off) - (left->off < right->off);
}

GArray *pages_around(Node *node, PageRange range)
{
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(PageRange));
    PageUse *use;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH (use, &node->page_uses, link) {
        if (use->off >= range.end || use->end <= range.off)
            continue;
        const PageRange r = {use->off, use->end};
        g_array_append_val(kept, r);
        if (!use->gone_around)
            atomic_fetch_add(&node->unsettled, 1);
        use->gone_around = TRUE;
    }
    pthread_mutex_unlock(&node->mutex);
    g_array_sort(kept, by_offset);
    GArray *around = g_array_new(FALSE, FALSE, sizeof(PageRange));
    int64_t at = range.off;
    for (guint i = 0; i < kept->len; i++) {
        const PageRange *k = &g_array_index(kept, PageRange, i);
        const PageRange gap = {at, k->off};
        if (gap.end > gap.off)
            g_array_append_val(around, gap);
        at = MAX(at, k->end);
    }
    const PageRange rest = {at, range.end};
    if (rest.end > rest.off)
        g_array_append_val(around, rest);
    return around;
}

gboolean pages_written_back(Node *node)
{
    gboolean any = FALSE;
    PageUse *use;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH (use, &node->page_uses, link)
        any |= use->writeback;
    pthread_mutex_unlock(&node->mutex);
    return any;
}
