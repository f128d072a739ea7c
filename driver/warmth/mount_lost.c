/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/mount_lost.h"
#include <gio/gio.h>
#include <string.h>
#include "common/field.h"
#include "driver/kube/event.h"
#include "driver/kube/list.h"

#define LIST_MS 10000

struct MountLost {
    GHashTable *nodes; /* name -> GHashTable of UID -> whether its Event is due */
};

MountLost *mount_lost_new(void)
{
    MountLost *m = g_new(MountLost, 1);
    m->nodes =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_unref);
    return m;
}

void mount_lost_free(MountLost *m)
{
    if (!m)
        return;
    g_hash_table_unref(m->nodes);
    g_free(m);
}

void mount_lost_report(MountLost *m, const char *node, const GPtrArray *uids)
{
    if (uids->len == 0) {
        g_hash_table_remove(m->nodes, node);
        return;
    }
    GHashTable *was = g_hash_table_lookup(m->nodes, node);
    GHashTable *now = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < uids->len; i++) {
        void *due = GINT_TO_POINTER(TRUE);
        if (was && g_hash_table_contains(was, uids->pdata[i]))
            due = g_hash_table_lookup(was, uids->pdata[i]);
        g_hash_table_insert(now, g_strdup(uids->pdata[i]), due);
    }
    g_hash_table_replace(m->nodes, g_strdup(node), now);
}

static void free_due(void *data)
{
    MountLostNode *due = data;
    g_free(due->node);
    g_ptr_array_unref(due->uids);
    g_free(due);
}

GPtrArray *mount_lost_take(MountLost *m)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(free_due);
    GHashTableIter nodes, pods;
    void *node, *table, *uid, *is_due;
    g_hash_table_iter_init(&nodes, m->nodes);
    while (g_hash_table_iter_next(&nodes, &node, &table)) {
        g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_iter_init(&pods, table);
        while (g_hash_table_iter_next(&pods, &uid, &is_due)) {
            if (!is_due)
                continue;
            g_ptr_array_add(uids, g_strdup(uid));
            g_hash_table_iter_replace(&pods, GINT_TO_POINTER(FALSE));
        }
        if (uids->len == 0)
            continue;
        MountLostNode *due = g_new(MountLostNode, 1);
        *due = (MountLostNode){g_strdup(node), g_steal_pointer(&uids)};
        g_ptr_array_add(all, due);
    }
    return all;
}

void mount_lost_again(MountLost *m, const MountLostNode *due)
{
    GHashTable *pods = g_hash_table_lookup(m->nodes, due->node);
    for (guint i = 0; pods && i < due->uids->len; i++)
        if (g_hash_table_contains(pods, due->uids->pdata[i]))
            g_hash_table_insert(pods, g_strdup(due->uids->pdata[i]), GINT_TO_POINTER(TRUE));
}

/* ---- Events ---- */

typedef struct Posting {
    KubeClient *client;
    const MountLostNode *due;
    GCancellable *cancel;
    GError **error;
    gboolean failed;
} Posting;

static gboolean post(const Posting *p, const json_t *meta)
{
    const char *namespace = field_text(meta, "namespace"), *pod = field_text(meta, "name");
    const char *uid = field_text(meta, "uid");
    g_autofree char *name = kube_event_name("hearth-mount-lost", uid);
    g_autofree char *message = g_strdup_printf(
        "hearthd on node %s was restarted and no longer serves a volume of this pod: each access "
        "to it fails. What was synced is in Ceph. Make the pod again: kubectl -n %s delete pod %s",
        p->due->node, namespace, pod);
    const KubeEvent event = {.name = name,
                             .namespace = namespace,
                             .api_version = "v1",
                             .kind = "Pod",
                             .object = pod,
                             .uid = uid,
                             .warning = TRUE,
                             .reason = MOUNT_LOST_REASON,
                             .message = message};
    return kube_event_post(p->client, &event, p->cancel, p->error);
}

static void on_pod(const json_t *object, void *data)
{
    Posting *p = data;
    const json_t *meta = json_object_get(object, "metadata");
    const char *uid = field_text(meta, "uid");
    if (!p->failed && *uid &&
        g_ptr_array_find_with_equal_func(p->due->uids, uid, g_str_equal, NULL))
        p->failed = !post(p, meta);
}

gboolean mount_lost_post(KubeClient *client, const MountLostNode *due, GCancellable *cancel,
                         GError **error)
{
    Posting posting = {.client = client, .due = due, .cancel = cancel, .error = error};
    g_autofree char *fields = g_strconcat("spec.nodeName=", due->node, NULL);
    const KubeSelection pods = {.resource = {"", "v1", "pods"}, .fields = fields, .metadata = TRUE};
    const KubeListing listing = {
        .timeout_ms = LIST_MS, .cancel = cancel, .on_object = on_pod, .data = &posting};
    g_autoptr(GError) cause = NULL;
    if (!kube_list(client, &pods, &listing, NULL, &cause)) {
        if (!posting.failed)
            g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    return !posting.failed;
}
