/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/watch/seen.h"

typedef struct Entry {
    char *namespace; /* NULL: none */
    char *name, *uid, *version;
    guint64 listed; /* the list it was last in, or the stream after that */
} Entry;

struct KubeKnown {
    void (*on_change)(KubeChange, const json_t *, void *);
    void *data;
    GHashTable *entries; /* "namespace/name" -> Entry */
    guint64 list;        /* number of the latest */
};

static void entry_free(void *data)
{
    Entry *e = data;
    g_free(e->namespace);
    g_free(e->name);
    g_free(e->uid);
    g_free(e->version);
    g_free(e);
}

KubeKnown *kube_known_new(void (*on_change)(KubeChange, const json_t *, void *), void *data)
{
    KubeKnown *k = g_new0(KubeKnown, 1);
    k->on_change = on_change;
    k->data = data;
    k->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    return k;
}

void kube_known_free(KubeKnown *k)
{
    if (!k)
        return;
    g_hash_table_unref(k->entries);
    g_free(k);
}

static const char *meta(const json_t *object, const char *key)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *text = json_string_value(json_object_get(metadata, key));
    return text ? text : "";
}

static char *key_of(const json_t *object)
{
    const char *name = meta(object, "name");
    return *name ? g_strdup_printf("%s/%s", meta(object, "namespace"), name) : NULL;
}

static void tell_gone(KubeKnown *k, const Entry *e)
{
    json_auto_t *object =
        json_pack("{s:{s:s, s:s*, s:s, s:s}}", "metadata", "name", e->name, "namespace",
                  e->namespace, "uid", e->uid, "resourceVersion", e->version);
    if (object)
        k->on_change(KUBE_DELETED, object, k->data);
}

void kube_known_put(KubeKnown *k, const json_t *object)
{
    g_autofree char *key = key_of(object);
    if (!key)
        return;
    const char *uid = meta(object, "uid"), *version = meta(object, "resourceVersion");
    Entry *e = g_hash_table_lookup(k->entries, key);
    if (e && !g_str_equal(e->uid, uid)) {
        tell_gone(k, e);
        g_hash_table_remove(k->entries, key);
        e = NULL;
    }
    const gboolean added = !e;
    if (added) {
        const char *namespace = meta(object, "namespace");
        e = g_new0(Entry, 1);
        e->namespace = *namespace ? g_strdup(namespace) : NULL;
        e->name = g_strdup(meta(object, "name"));
        e->uid = g_strdup(uid);
        g_hash_table_insert(k->entries, g_steal_pointer(&key), e);
    }
    e->listed = k->list;
    if (!added && g_str_equal(e->version, version))
        return;
    g_free(e->version);
    e->version = g_strdup(version);
    k->on_change(added ? KUBE_ADDED : KUBE_MODIFIED, object, k->data);
}

void kube_known_remove(KubeKnown *k, const json_t *object)
{
    g_autofree char *key = key_of(object);
    const Entry *e = key ? g_hash_table_lookup(k->entries, key) : NULL;
    /* The object was created again since: this deletion is of the earlier one. */
    if (!e || !g_str_equal(e->uid, meta(object, "uid")))
        return;
    g_hash_table_remove(k->entries, key);
    k->on_change(KUBE_DELETED, object, k->data);
}

void kube_known_list_begin(KubeKnown *k)
{
    k->list++;
}

void kube_known_list_end(KubeKnown *k)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, k->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Entry *e = value;
        if (e->listed == k->list)
            continue;
        tell_gone(k, e);
        g_hash_table_iter_remove(&iter);
    }
}

guint kube_known_count(const KubeKnown *k)
{
    return g_hash_table_size(k->entries);
}
