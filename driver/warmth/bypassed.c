/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/bypassed.h"
#include "driver/kube/event.h"

struct Bypassed {
    GHashTable *nodes; /* that bypass their disk -> whether the Event is due */
};

Bypassed *bypassed_new(void)
{
    Bypassed *b = g_new(Bypassed, 1);
    b->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return b;
}

void bypassed_free(Bypassed *b)
{
    if (!b)
        return;
    g_hash_table_unref(b->nodes);
    g_free(b);
}

void bypassed_report(Bypassed *b, const char *node, const char *disk)
{
    if (!disk || !g_str_equal(disk, "bypass"))
        g_hash_table_remove(b->nodes, node);
    else if (!g_hash_table_contains(b->nodes, node))
        g_hash_table_insert(b->nodes, g_strdup(node), GINT_TO_POINTER(TRUE));
}

GPtrArray *bypassed_take(Bypassed *b)
{
    GPtrArray *due = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer node, is_due;
    g_hash_table_iter_init(&iter, b->nodes);
    while (g_hash_table_iter_next(&iter, &node, &is_due)) {
        if (!is_due)
            continue;
        g_ptr_array_add(due, g_strdup(node));
        g_hash_table_iter_replace(&iter, GINT_TO_POINTER(FALSE));
    }
    return due;
}

void bypassed_again(Bypassed *b, const char *node)
{
    if (g_hash_table_contains(b->nodes, node))
        g_hash_table_insert(b->nodes, g_strdup(node), GINT_TO_POINTER(TRUE));
}

gboolean bypassed_post(KubeClient *client, const char *node, GCancellable *cancel, GError **error)
{
    g_autofree char *name = kube_event_name("hearth-cache-bypassed", node);
    g_autofree char *message = g_strdup_printf(
        "The disk of Hearth's cache on node %s fails and is not used: every read goes to Ceph. "
        "'hearthctl doctor' in the node plugin's pod of the node says more; replace the disk",
        node);
    const KubeEvent event = {.name = name,
                             .api_version = "v1",
                             .kind = "Node",
                             .object = node,
                             .uid = node, /* by which kubectl describe finds them */
                             .warning = TRUE,
                             .reason = BYPASSED_REASON,
                             .message = message};
    return kube_event_post(client, &event, cancel, error);
}
