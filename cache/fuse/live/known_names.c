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

static Node *find_locked(KnownNames *names, const Node *parent, const char *name)
{
    const Node wanted = {.parent = parent->id, .name = (char *)name};
    return g_hash_table_lookup(names->set, &wanted);
}

/* name NULL: none. Another node that was known by the name is not found by it any more. */
static void rename_locked(KnownNames *names, Node *node, const Node *parent, const char *name)
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
            rename_locked(names, node, asked->parent, asked->name);
        atomic_store(&node->name_until, keep ? now_ms() + NAME_VALID_MS : 0);
        granted = keep;
    }
    pthread_mutex_unlock(&names->mutex);
    return granted;
}

static Node *begin_locked(Nodes *nodes, const Node *parent, const char *name)
{
    Node *node = parent ? find_locked(nodes_names(nodes), parent, name) : NULL;
    /* One that is about to be freed is not in use any more. */
    node = node ? nodes_use(nodes, node->id) : NULL;
    if (node)
        atomic_fetch_add(&node->moving, 1);
    return node;
}

void known_names_begin(Nodes *nodes, NameChange *change)
{
    KnownNames *names = nodes_names(nodes);
    pthread_mutex_lock(&names->mutex);
    change->moving[0] = begin_locked(nodes, change->from, change->name);
    change->moving[1] = begin_locked(nodes, change->to, change->new_name);
    pthread_mutex_unlock(&names->mutex);
}

static void done_locked(KnownNames *names, const NameChange *change)
{
    Node *moved = find_locked(names, change->from, change->name);
    Node *there = change->to ? find_locked(names, change->to, change->new_name) : NULL;
    if (there)
        rename_locked(names, there, NULL, NULL);
    if (moved && moved != there)
        rename_locked(names, moved, change->to, change->new_name);
}

/* Both keep the rest of their time. */
static void exchanged_locked(KnownNames *names, const NameChange *change)
{
    Node *one = find_locked(names, change->from, change->name);
    Node *other = find_locked(names, change->to, change->new_name);
    if (one)
        rename_locked(names, one, change->to, change->new_name);
    if (other)
        rename_locked(names, other, change->from, change->name);
}

void known_names_end(Nodes *nodes, NameChange *change, gboolean done)
{
    KnownNames *names = nodes_names(nodes);
    pthread_mutex_lock(&names->mutex);
    atomic_fetch_add(&change->from->changes, 1);
    if (change->to)
        atomic_fetch_add(&change->to->changes, 1);
    if (done && change->exchange)
        exchanged_locked(names, change);
    else if (done)
        done_locked(names, change);
    for (int i = 0; i < 2; i++) {
        Node *node = change->moving[i];
        if (!node)
            continue;
        /* In this order: who sees none under way sees that one has ended. */
        atomic_fetch_add(&node->moves, 1);
        atomic_fetch_sub(&node->moving, 1);
    }
    pthread_mutex_unlock(&names->mutex);
    nodes_done(nodes, change->moving[0]);
    nodes_done(nodes, change->moving[1]);
}

void known_names_forget(KnownNames *names, Node *node)
{
    pthread_mutex_lock(&names->mutex);
    if (node->name)
        rename_locked(names, node, NULL, NULL);
    pthread_mutex_unlock(&names->mutex);
}
