#include "cache/fuse/notify.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "cache/fuse/session_internal.h"

/* Two, so that one inode whose page waits for a slow read does not hold up a recall of another. */
#define THREADS 2

typedef enum Kind {
    RECALL,
    PAGES,
    INODE,
    ENTRY,
    UNWANTED,
} Kind;

typedef struct Item {
    struct Item *next;
    Kind kind;
    Handle *handle;
    uint64_t ino, snapshot; /* PAGES: ino is the node ID */
    int64_t off, len;
    char name[];
} Item;

struct Notifier {
    Session *session;
    pthread_mutex_t mutex; /* guards the list and stopping */
    pthread_cond_t wake;
    Item *head, **tail;
    gboolean stopping;
    pthread_t threads[THREADS];
};

static Item *item_new(Kind kind, const char *name)
{
    size_t len = name ? strlen(name) + 1 : 0;
    Item *item = g_malloc0(sizeof(*item) + len);
    item->kind = kind;
    if (name)
        memcpy(item->name, name, len);
    return item;
}

static void push(Notifier *n, Item *item)
{
    pthread_mutex_lock(&n->mutex);
    *n->tail = item;
    n->tail = &item->next;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->mutex);
}

static Item *pop(Notifier *n)
{
    pthread_mutex_lock(&n->mutex);
    while (!n->head && !n->stopping)
        pthread_cond_wait(&n->wake, &n->mutex);
    Item *item = n->head;
    if (item) {
        n->head = item->next;
        if (!n->head)
            n->tail = &n->head;
    }
    pthread_mutex_unlock(&n->mutex);
    return item;
}

static void drop_inode(Session *s, const Item *item)
{
    Node *node = nodes_use_inode(s->nodes, item->ino, item->snapshot);
    if (!node)
        return;
    atomic_store(&node->page_version, 0);
    atomic_store(&node->attr_version, 0);
    fuse_lowlevel_notify_inval_inode(s->fuse, node->id, item->off, item->len);
    nodes_done(s->nodes, node);
}

/* Dropping its dentry is the one way to have the kernel forget an inode. */
static void drop_unwanted(Session *s, const Item *item)
{
    Node *node = nodes_use_inode(s->nodes, item->ino, item->snapshot);
    if (!node)
        return;
    pthread_mutex_lock(&node->mutex);
    uint64_t parent = node->parent;
    g_autofree char *name = g_strdup(node->name);
    pthread_mutex_unlock(&node->mutex);
    nodes_done(s->nodes, node);
    if (name)
        fuse_lowlevel_notify_inval_entry(s->fuse, parent, name, strlen(name));
}

static void drop_entry(Session *s, const Item *item)
{
    Node *parent = nodes_use_inode(s->nodes, item->ino, item->snapshot);
    if (!parent)
        return;
    fuse_lowlevel_notify_inval_entry(s->fuse, parent->id, item->name, strlen(item->name));
    nodes_done(s->nodes, parent);
}

static void *notifier_thread(void *data)
{
    Notifier *n = data;
    Item *item;
    while ((item = pop(n))) {
        switch (item->kind) {
        case RECALL:
            handle_recalled(n->session, item->handle);
            break;
        case PAGES:
            fuse_lowlevel_notify_inval_inode(n->session->fuse, item->ino, item->off, item->len);
            break;
        case INODE:
            drop_inode(n->session, item);
            break;
        case ENTRY:
            drop_entry(n->session, item);
            break;
        case UNWANTED:
            drop_unwanted(n->session, item);
            break;
        }
        g_free(item);
    }
    return NULL;
}

static void inode_changed(void *data, uint64_t ino, uint64_t snapshot, int64_t off, int64_t len)
{
    Item *item = item_new(INODE, NULL);
    item->ino = ino;
    item->snapshot = snapshot;
    item->off = off;
    item->len = len;
    push(data, item);
}

static void entry_changed(void *data, uint64_t parent, uint64_t snapshot, const char *name)
{
    Item *item = item_new(ENTRY, name);
    item->ino = parent;
    item->snapshot = snapshot;
    push(data, item);
}

static void inode_unwanted(void *data, uint64_t ino, uint64_t snapshot)
{
    Item *item = item_new(UNWANTED, NULL);
    item->ino = ino;
    item->snapshot = snapshot;
    push(data, item);
}

void notifier_listen(Notifier *n, Origin *origin)
{
    const OriginListener listener = {
        .inode_changed = inode_changed,
        .entry_changed = entry_changed,
        .inode_unwanted = inode_unwanted,
        .data = n,
    };
    if (origin->ops->listen)
        origin->ops->listen(origin, &listener);
}

void notifier_recall(Notifier *n, Handle *handle)
{
    Item *item = item_new(RECALL, NULL);
    item->handle = handle;
    push(n, item);
}

void notifier_drop_pages(Notifier *n, uint64_t node_id, int64_t off, int64_t len)
{
    Item *item = item_new(PAGES, NULL);
    item->ino = node_id;
    item->off = off;
    item->len = len;
    push(n, item);
}

Notifier *notifier_start(Session *session)
{
    Notifier *n = g_new0(Notifier, 1);
    n->session = session;
    n->tail = &n->head;
    pthread_mutex_init(&n->mutex, NULL);
    pthread_cond_init(&n->wake, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&n->threads[i], NULL, notifier_thread, n);
    return n;
}

void notifier_stop(Notifier *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->mutex);
    n->stopping = TRUE;
    pthread_cond_broadcast(&n->wake);
    pthread_mutex_unlock(&n->mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(n->threads[i], NULL);
    pthread_cond_destroy(&n->wake);
    pthread_mutex_destroy(&n->mutex);
    g_free(n);
}
