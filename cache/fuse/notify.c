#include "cache/fuse/notify.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "cache/fuse/session_internal.h"
#include "cache/monotonic.h"

/*
 * Two queues, each with its threads. Dropping pages waits in the kernel for pages that a read is
 * filling, and that read may wait in Ceph for a lease of ours to go back. So a recall is never
 * behind such a wait: it has the pages dropped by the other threads and waits for them only so
 * long.
 */
#define THREADS 2
#define DROP_WAIT_MS 20

typedef enum Kind {
    RECALL,
    PAGES,
    INODE,
    ENTRY,
    UNWANTED,
} Kind;

/* Somebody waits for an item; freed by the last of the two. */
typedef struct Done {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned refs; /* mutex */
    gboolean done; /* mutex */
} Done;

typedef struct Item {
    struct Item *next;
    Kind kind;
    Handle *handle;
    Done *done;
    Node *node; /* PAGES: in use */
    uint64_t ino, snapshot;
    int64_t off, len;
    gboolean soon; /* the one node->drop_queued tells of */
    char name[];
} Item;

typedef struct Queue {
    Notifier *notifier;
    pthread_mutex_t mutex; /* guards the list and stopping */
    pthread_cond_t wake;
    Item *head, **tail;
    gboolean stopping;
    pthread_t threads[THREADS];
} Queue;

struct Notifier {
    Session *session;
    Queue recalls; /* give leases back; stopped first, as they use the other */
    Queue drops;   /* tell the kernel to forget */
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

static void push(Queue *q, Item *item)
{
    pthread_mutex_lock(&q->mutex);
    *q->tail = item;
    q->tail = &item->next;
    pthread_cond_signal(&q->wake);
    pthread_mutex_unlock(&q->mutex);
}

static Item *pop(Queue *q)
{
    pthread_mutex_lock(&q->mutex);
    while (!q->head && !q->stopping)
        pthread_cond_wait(&q->wake, &q->mutex);
    Item *item = q->head;
    if (item) {
        q->head = item->next;
        if (!q->head)
            q->tail = &q->head;
    }
    pthread_mutex_unlock(&q->mutex);
    return item;
}

/* Gives back a reference; `finished`: says that the item is done. */
static void done_put(Done *d, gboolean finished)
{
    pthread_mutex_lock(&d->mutex);
    d->done |= finished;
    gboolean last = --d->refs == 0;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->mutex);
    g_free(d);
}

static Item *pages_item(Notifier *n, Node *node, int64_t off, int64_t len)
{
    Item *item = item_new(PAGES, NULL);
    item->node = nodes_use(n->session->nodes, node->id);
    item->off = off;
    item->len = len;
    return item;
}

void notifier_drop_all_pages(Notifier *n, Node *node)
{
    atomic_fetch_add(&node->unsettled, 1);
    Done *d = g_new0(Done, 1);
    cond_init_monotonic(&d->changed);
    pthread_mutex_init(&d->mutex, NULL);
    d->refs = 2;
    Item *item = pages_item(n, node, 0, 0);
    item->done = d;
    const struct timespec until = deadline_after_ms(DROP_WAIT_MS);
    push(&n->drops, item);
    int r = 0;
    pthread_mutex_lock(&d->mutex);
    while (!d->done && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&d->changed, &d->mutex, &until);
    pthread_mutex_unlock(&d->mutex);
    done_put(d, FALSE);
}

void notifier_drop_soon(Notifier *n, Node *node)
{
    if (atomic_exchange(&node->drop_queued, 1))
        return;
    atomic_fetch_add(&node->unsettled, 1);
    Item *item = pages_item(n, node, 0, 0);
    item->soon = TRUE;
    push(&n->drops, item);
}

static void drop_inode(Session *s, const Item *item)
{
    Node *node = nodes_use_inode(s->nodes, item->ino, item->snapshot);
    if (!node)
        return;
    atomic_store(&node->page_version, 0);
    atomic_store(&node->attr_version, 0);
    /* All of it: capabilities are gone. With a lease that happens only when the session is lost. */
    if (item->off == 0 && item->len == 0)
        handles_lose_leases(node);
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

static void run(Session *s, const Item *item)
{
    switch (item->kind) {
    case RECALL:
        handle_recalled(s, item->handle);
        break;
    case PAGES:
        if (item->soon) /* first, so that who comes now queues another */
            atomic_store(&item->node->drop_queued, 0);
        fuse_lowlevel_notify_inval_inode(s->fuse, item->node->id, item->off, item->len);
        atomic_fetch_sub(&item->node->unsettled, 1);
        nodes_done(s->nodes, item->node);
        break;
    case INODE:
        drop_inode(s, item);
        break;
    case ENTRY:
        drop_entry(s, item);
        break;
    case UNWANTED:
        drop_unwanted(s, item);
        break;
    }
}

static void *queue_thread(void *data)
{
    Queue *q = data;
    Item *item;
    while ((item = pop(q))) {
        run(q->notifier->session, item);
        if (item->done)
            done_put(item->done, TRUE);
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
    push(&((Notifier *)data)->drops, item);
}

static void entry_changed(void *data, uint64_t parent, uint64_t snapshot, const char *name)
{
    Item *item = item_new(ENTRY, name);
    item->ino = parent;
    item->snapshot = snapshot;
    push(&((Notifier *)data)->drops, item);
}

static void inode_unwanted(void *data, uint64_t ino, uint64_t snapshot)
{
    Item *item = item_new(UNWANTED, NULL);
    item->ino = ino;
    item->snapshot = snapshot;
    push(&((Notifier *)data)->drops, item);
}

static void leases_void(void *data)
{
    handles_void_leases(((Notifier *)data)->session);
}

void notifier_listen(Notifier *n, Origin *origin)
{
    const OriginListener listener = {
        .inode_changed = inode_changed,
        .entry_changed = entry_changed,
        .inode_unwanted = inode_unwanted,
        .leases_void = leases_void,
        .data = n,
    };
    if (origin->ops->listen)
        origin->ops->listen(origin, &listener);
}

void notifier_recall(Notifier *n, Handle *handle)
{
    Item *item = item_new(RECALL, NULL);
    item->handle = handle;
    push(&n->recalls, item);
}

void notifier_drop_pages(Notifier *n, Node *node, int64_t off, int64_t len)
{
    push(&n->drops, pages_item(n, node, off, len));
}

static void queue_start(Queue *q, Notifier *n)
{
    q->notifier = n;
    q->tail = &q->head;
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->wake, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&q->threads[i], NULL, queue_thread, q);
}

/* What is queued is still done. */
static void queue_stop(Queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->stopping = TRUE;
    pthread_cond_broadcast(&q->wake);
    pthread_mutex_unlock(&q->mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(q->threads[i], NULL);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->mutex);
}

Notifier *notifier_start(Session *session)
{
    Notifier *n = g_new0(Notifier, 1);
    n->session = session;
    queue_start(&n->recalls, n);
    queue_start(&n->drops, n);
    return n;
}

void notifier_stop(Notifier *n)
{
    if (!n)
        return;
    queue_stop(&n->recalls);
    queue_stop(&n->drops);
    g_free(n);
}
