/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/live/known_names.h"
#include <string.h>
#include <time.h>

struct KnownNames {
    pthread_mutex_t mutex; /* guards the set, and with Node.mutex each node's parent and name */
    GHashTable *set;       /* of Node, by parent and name */
};

static guint name_hash(gconstpointer key)
{
    const Node *node = key;
    return g_str_hash(node->name) ^ (guint)(node->parent * 0x9e3779b97f4a7c15ull >> 32);
}

static gboolean name_equal(gconstpointer a, gconstpointer b)
{
    const Node *x = a, *y = b;
    return x->parent == y->parent && strcmp(x->name, y->name) == 0;
}

KnownNames *known_names_new(void)
{
    KnownNames *names = g_new0(KnownNames, 1);
    pthread_mutex_init(&names->mutex, NULL);
    names->set = g_hash_table_new(name_hash, name_equal);
    return names;
}

void known_names_free(KnownNames *names)
{
    g_hash_table_unref(names->set);
    pthread_mutex_destroy(&names->mutex);
    g_free(names);
}

void known_names_lock(KnownNames *names)
{
    pthread_mutex_lock(&names->mutex);
}

void known_names_unlock(KnownNames *names)
{
    pthread_mutex_unlock(&names->mutex);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

gboolean known_name_is_used(const Node *node)
{
    return atomic_load(&node->name_until) > now_ms();
}

Node *known_names_find_locked(KnownNames *names, const Node *parent, const char *name)
{
    const Node wanted = {.parent = parent->id, .name = (char *)name};
    return g_hash_table_lookup(names->set, &wanted);
}

void known_names_rename_locked(KnownNames *names, Node *node, const Node *parent, const char *name)
{
    if (node->name && g_hash_table_lookup(names->set, node) == node)
        g_hash_table_remove(names->set, node);
    pthread_mutex_lock(&node->mutex);
    g_free(node->name);
    node->name = g_strdup(name);
    node->parent = name ? parent->id : 0;
    pthread_mutex_unlock(&node->mutex);
    if (name)
        g_hash_table_add(names->set, node);
    else
        atomic_store(&node->name_until, 0);
}

gboolean known_name_found(KnownNames *names, Node *node, const NameAsked *asked, gboolean is_dir,
                          gboolean keep)
{
    gboolean granted = FALSE;
    pthread_mutex_lock(&names->mutex);
    gboolean is_same =
        node->name && node->parent == asked->parent->id && strcmp(node->name, asked->name) == 0;
    gboolean is_current = atomic_load(&asked->parent->changes) == asked->changes;
    /* A directory has one name: the kernel moves it when it finds it elsewhere. */
    if (is_current && (is_same || is_dir || !known_name_is_used(node))) {
        if (!is_same)
            known_names_rename_locked(names, node, asked->parent, asked->name);
        atomic_store(&node->name_until, keep ? now_ms() + NAME_VALID_MS : 0);
        granted = keep;
    }
    pthread_mutex_unlock(&names->mutex);
    return granted;
}

void known_names_forget(KnownNames *names, Node *node)
{
    pthread_mutex_lock(&names->mutex);
    if (node->name)
        known_names_rename_locked(names, node, NULL, NULL);
    pthread_mutex_unlock(&names->mutex);
}
