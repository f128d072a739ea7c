/* SPDX-License-Identifier: Apache-2.0 */
/* Sharded by ID. A node is freed when the kernel has forgotten it and no operation uses it. */
#include "cache/fuse/live/nodes.h"
#include <errno.h>
#include "cache/fuse/inode_budget.h"
#include "cache/fuse/live/known_names.h"

#define SHARDS 16
#define ROOT_ID 1
#define TAG_MAX 0xffff

typedef struct Shard {
    pthread_mutex_t mutex;
    GHashTable *by_id; /* &Node.id -> Node */
    TAILQ_HEAD(NodeTurns, Node)
    turns; /* all of them, in the order that nodes_unused() looks at them */
} Shard;

struct Nodes {
    Origin *origin;
    uint64_t root_ino, root_snapshot;
    _Atomic uint64_t count;
    KnownNames *names;
    Forgotten *forgotten;
    pthread_mutex_t tags_mutex;
    GHashTable *tags; /* snapshot id -> tag, from 1; tags_mutex */
    Shard shards[SHARDS];
};

static Shard *shard_of(Nodes *nodes, uint64_t id)
{
    return &nodes->shards[(id ^ id >> 8) % SHARDS];
}

/* g_int64_hash() takes the lower half, and the versions of one inode differ in the upper. */
static guint id_hash(gconstpointer id)
{
    return (guint)(*(const uint64_t *)id * 0x9e3779b97f4a7c15ull >> 32);
}

/* Tags are given in order of first sight; 0 on overflow. */
static uint64_t tag_of(Nodes *nodes, uint64_t snapshot)
{
    pthread_mutex_lock(&nodes->tags_mutex);
    uint64_t tag = GPOINTER_TO_SIZE(g_hash_table_lookup(nodes->tags, &snapshot));
    if (!tag && g_hash_table_size(nodes->tags) < TAG_MAX) {
        tag = g_hash_table_size(nodes->tags) + 1;
        g_hash_table_insert(nodes->tags, g_memdup2(&snapshot, sizeof(snapshot)),
                            GSIZE_TO_POINTER(tag));
    }
    pthread_mutex_unlock(&nodes->tags_mutex);
    return tag;
}

/* 0: cannot be numbered. */
static uint64_t id_of(Nodes *nodes, uint64_t ino, uint64_t snapshot)
{
    if (ino == nodes->root_ino && snapshot == nodes->root_snapshot)
        return ROOT_ID;
    if (snapshot == 0)
        return ino;
    uint64_t tag = tag_of(nodes, snapshot);
    return tag && ino >> NODE_TAG_SHIFT == 0 ? ino | tag << NODE_TAG_SHIFT : 0;
}

static Node *node_new(Nodes *nodes, uint64_t id, OriginNode *origin_node)
{
    Node *node = g_new0(Node, 1);
    node->id = id;
    node->origin = origin_node;
    pthread_mutex_init(&node->mutex, NULL);
    atomic_fetch_add(&nodes->count, 1);
    inode_budget_added();
    return node;
}

static void node_free(Nodes *nodes, Node *node)
{
    known_names_forget(nodes->names, node);
    nodes->origin->ops->put(nodes->origin, node->origin);
    kept_free(node->kept);
    pthread_mutex_destroy(&node->mutex);
    g_free(node);
    atomic_fetch_sub(&nodes->count, 1);
    inode_budget_removed();
}

static void insert_locked(Shard *shard, Node *node)
{
    g_hash_table_insert(shard->by_id, &node->id, node);
    TAILQ_INSERT_TAIL(&shard->turns, node, turn);
}

Nodes *nodes_new(Origin *origin, OriginNode *root, const OriginAttr *attr)
{
    Nodes *nodes = g_new0(Nodes, 1);
    nodes->origin = origin;
    nodes->root_ino = attr->st.st_ino;
    nodes->root_snapshot = attr->snapshot;
    nodes->names = known_names_new();
    nodes->forgotten = forgotten_new();
    pthread_mutex_init(&nodes->tags_mutex, NULL);
    nodes->tags = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&nodes->shards[i].mutex, NULL);
        nodes->shards[i].by_id = g_hash_table_new(id_hash, g_int64_equal);
        TAILQ_INIT(&nodes->shards[i].turns);
    }
    Node *node = node_new(nodes, ROOT_ID, root);
    node->lookups = 1;
    insert_locked(shard_of(nodes, ROOT_ID), node);
    return nodes;
}

void nodes_free(Nodes *nodes)
{
    if (!nodes)
        return;
    for (int i = 0; i < SHARDS; i++) {
        GHashTableIter iter;
        gpointer node;
        g_hash_table_iter_init(&iter, nodes->shards[i].by_id);
        while (g_hash_table_iter_next(&iter, NULL, &node)) {
            g_hash_table_iter_steal(&iter);
            node_free(nodes, node);
        }
        g_hash_table_unref(nodes->shards[i].by_id);
        pthread_mutex_destroy(&nodes->shards[i].mutex);
    }
    known_names_free(nodes->names);
    forgotten_free(nodes->forgotten);
    g_hash_table_unref(nodes->tags);
    pthread_mutex_destroy(&nodes->tags_mutex);
    g_free(nodes);
}

Node *nodes_use(Nodes *nodes, uint64_t id)
{
    Shard *shard = shard_of(nodes, id);
    pthread_mutex_lock(&shard->mutex);
    Node *node = g_hash_table_lookup(shard->by_id, &id);
    if (node) {
        node->uses++;
        node->asked_for = TRUE;
    }
    pthread_mutex_unlock(&shard->mutex);
    return node;
}

Node *nodes_use_inode(Nodes *nodes, uint64_t ino, uint64_t snapshot)
{
    uint64_t id = id_of(nodes, ino, snapshot);
    return id ? nodes_use(nodes, id) : NULL;
}

/* Gives back `uses` and `lookups`; frees a node without any of them, outside the lock. */
static void drop_counts(Nodes *nodes, uint64_t id, Node *node, unsigned uses, uint64_t lookups)
{
    Shard *shard = shard_of(nodes, id);
    gboolean gone = FALSE;
    pthread_mutex_lock(&shard->mutex);
    if (!node)
        node = g_hash_table_lookup(shard->by_id, &id);
    if (node) {
        node->uses -= uses;
        node->lookups -= MIN(lookups, node->lookups);
        gone = node->uses == 0 && node->lookups == 0;
        if (gone) {
            g_hash_table_remove(shard->by_id, &id);
            TAILQ_REMOVE(&shard->turns, node, turn);
            /* Under the lock: the next node of the inode is to find it. */
            forgotten_keep(nodes->forgotten, id, &node->unsynced);
        }
    }
    pthread_mutex_unlock(&shard->mutex);
    if (gone)
        node_free(nodes, node);
}

void nodes_done(Nodes *nodes, Node *node)
{
    if (node)
        drop_counts(nodes, node->id, node, 1, 0);
}

void nodes_forget(Nodes *nodes, uint64_t id, uint64_t count)
{
    drop_counts(nodes, id, NULL, 0, count);
}

/* `again`: the kernel has it from an earlier process; only a new node counts that. */
static Node *found(Nodes *nodes, OriginNode *origin_node, const OriginAttr *attr, gboolean again,
                   int *error)
{
    uint64_t id = id_of(nodes, attr->st.st_ino, attr->snapshot);
    if (id == 0) {
        nodes->origin->ops->put(nodes->origin, origin_node);
        *error = -EOVERFLOW;
        return NULL;
    }
    Shard *shard = shard_of(nodes, id);
    pthread_mutex_lock(&shard->mutex);
    Node *node = g_hash_table_lookup(shard->by_id, &id);
    gboolean known = node != NULL;
    if (!known) {
        node = node_new(nodes, id, origin_node);
        node->unsynced = forgotten_take(nodes->forgotten, id);
        atomic_store(&node->dirty, node->unsynced.writes != node->unsynced.synced);
        insert_locked(shard, node);
    }
    node->asked_for = known; /* the first time may be a listing of a large directory */
    if (!again || !known)
        node->lookups++;
    node->uses++;
    pthread_mutex_unlock(&shard->mutex);
    if (known)
        nodes->origin->ops->put(nodes->origin, origin_node);
    return node;
}

Node *nodes_found(Nodes *nodes, OriginNode *origin_node, const OriginAttr *attr, int *error)
{
    return found(nodes, origin_node, attr, FALSE, error);
}

/* ---- of an earlier process ---- */

/* FALSE: a tag that was never given. */
static gboolean numbers_of(Nodes *nodes, uint64_t id, uint64_t *ino, uint64_t *snapshot)
{
    const uint64_t tag = id >> NODE_TAG_SHIFT;
    GHashTableIter iter;
    gpointer of, is;
    *ino = id & ((1ull << NODE_TAG_SHIFT) - 1);
    *snapshot = 0;
    if (!tag)
        return TRUE;
    gboolean found = FALSE;
    pthread_mutex_lock(&nodes->tags_mutex);
    g_hash_table_iter_init(&iter, nodes->tags);
    while (!found && g_hash_table_iter_next(&iter, &of, &is)) {
        found = GPOINTER_TO_SIZE(is) == tag;
        if (found)
            *snapshot = *(const uint64_t *)of;
    }
    pthread_mutex_unlock(&nodes->tags_mutex);
    return found;
}

Node *nodes_use_again(Nodes *nodes, uint64_t id, int *error)
{
    uint64_t ino, snapshot;
    OriginNode *origin_node;
    OriginAttr attr;
    Node *node = nodes_use(nodes, id);
    *error = -ESTALE;
    if (node || !numbers_of(nodes, id, &ino, &snapshot))
        return node;
    int r = nodes->origin->ops->resolve(nodes->origin, ino, snapshot, &origin_node, &attr);
    if (r < 0) {
        *error = r == -ENOENT ? -ESTALE : r;
        return NULL;
    }
    /* It counts one lookup: the kernel forgets at least as many. */
    node = found(nodes, origin_node, &attr, TRUE, error);
    if (node && node->id != id) {
        nodes_forget(nodes, node->id, 1);
        nodes_done(nodes, node);
        *error = -ESTALE;
        return NULL;
    }
    return node;
}

void nodes_restore_unsynced(Nodes *nodes, uint64_t id, const Unsynced *unsynced)
{
    Node *node = nodes_use(nodes, id);
    if (!node) {
        forgotten_restore(nodes->forgotten, id, unsynced);
        return;
    }
    pthread_mutex_lock(&node->mutex);
    node->unsynced = *unsynced;
    pthread_mutex_unlock(&node->mutex);
    nodes_done(nodes, node);
}

void nodes_each(Nodes *nodes, void (*visit)(Node *node, void *data), void *data)
{
    for (int i = 0; i < SHARDS; i++) {
        Shard *shard = &nodes->shards[i];
        Node *node;
        pthread_mutex_lock(&shard->mutex);
        TAILQ_FOREACH (node, &shard->turns, turn)
            visit(node, data);
        pthread_mutex_unlock(&shard->mutex);
    }
}

json_t *nodes_tags(Nodes *nodes)
{
    json_t *tags = json_array();
    GHashTableIter iter;
    gpointer snapshot, tag;
    pthread_mutex_lock(&nodes->tags_mutex);
    g_hash_table_iter_init(&iter, nodes->tags);
    while (g_hash_table_iter_next(&iter, &snapshot, &tag))
        json_array_append_new(tags, json_pack("[I, I]", (json_int_t) * (const uint64_t *)snapshot,
                                              (json_int_t)GPOINTER_TO_SIZE(tag)));
    pthread_mutex_unlock(&nodes->tags_mutex);
    return tags;
}

void nodes_set_tags(Nodes *nodes, const json_t *tags)
{
    size_t i;
    const json_t *pair;
    pthread_mutex_lock(&nodes->tags_mutex);
    json_array_foreach (tags, i, pair) {
        const uint64_t snapshot = (uint64_t)json_integer_value(json_array_get(pair, 0));
        const json_int_t tag = json_integer_value(json_array_get(pair, 1));
        if (tag > 0 && tag <= TAG_MAX)
            g_hash_table_insert(nodes->tags, g_memdup2(&snapshot, sizeof(snapshot)),
                                GSIZE_TO_POINTER((gsize)tag));
    }
    pthread_mutex_unlock(&nodes->tags_mutex);
}

KnownNames *nodes_names(Nodes *nodes)
{
    return nodes->names;
}

Forgotten *nodes_forgotten(Nodes *nodes)
{
    return nodes->forgotten;
}

/* Looks at each node once at most, beginning with the one that was looked at longest ago. */
static void add_unused_locked(Shard *shard, guint n, GArray *ids)
{
    const guint until = ids->len + n;
    for (guint left = g_hash_table_size(shard->by_id); left && ids->len < until; left--) {
        Node *node = TAILQ_FIRST(&shard->turns);
        const gboolean unused = !node->asked_for && node->uses == 0 && node->id != ROOT_ID;
        TAILQ_REMOVE(&shard->turns, node, turn);
        TAILQ_INSERT_TAIL(&shard->turns, node, turn);
        node->asked_for = FALSE;
        if (unused)
            g_array_append_val(ids, node->id);
    }
}

GArray *nodes_unused(Nodes *nodes, uint64_t n)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (int i = 0; i < SHARDS; i++) {
        Shard *shard = &nodes->shards[i];
        pthread_mutex_lock(&shard->mutex);
        add_unused_locked(shard, (guint)(n / SHARDS + 1), ids);
        pthread_mutex_unlock(&shard->mutex);
    }
    return ids;
}

uint64_t nodes_count(Nodes *nodes)
{
    return atomic_load(&nodes->count);
}
