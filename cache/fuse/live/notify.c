/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lane for each inode whose pages are dropped, one for each directory whose names are, and one
 * for each number that the origin has notified. Leases go back in finish_work(), after their pages.
 */
#include "cache/fuse/live/notify.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "cache/fuse/lanes.h"
#include "cache/fuse/prune.h"
#include "cache/fuse/live/session_internal.h"
#include "common/monotonic.h"

/* Mostly threads that are blocked by inodes whose requests no reader has read yet. */
#define THREADS_MAX 64

/* Kinds of lanes. The origin's numbers are looked up in a lane of their own, because the callbacks
 * of the origin must not do that. */
enum {
    PAGES,         /* of a node: by its ID */
    NAMES,         /* in a directory: by its ID */
    CHANGED_PAGES, /* by inode and snapshot, as all below */
    CHANGED_NAMES, /* in that directory */
    UNWANTED,
    FORGOTTEN, /* one of the session: a sync, which may wait for Ceph */
    UNUSED,    /* one of the session: inodes that the kernel is to forget */
};

typedef struct Work {
    Node *node;    /* PAGES */
    unsigned uses; /* of the node, by this */
    PageRange range;
    unsigned unsettled; /* what it counts for in node->unsettled */
    uint64_t pages_of;  /* what node->pages_of is behind it; 0: as it was */
    GPtrArray *leases;  /* handles whose leases go back behind it; NULL: none */
    GHashTable *names;  /* NULL: none */
    uint64_t unused;    /* UNUSED: how many */
} Work;

/* Pages to be dropped, wherever the work is by then. */
typedef struct Aim {
    Node *node; /* in use */
    PageRange range;
    uint64_t pages_of;
} Aim;

struct Notifier {
    Session *session;
    const NotifierLeases *leases;
    Lanes *lanes;
    _Atomic gboolean prunes; /* the kernel can */
    pthread_mutex_t lock;    /* guards all below */
    pthread_cond_t returned;
};

static const PageRange all_pages = {0, INT64_MAX};

static PageRange range_of(int64_t off, int64_t len)
{
    return (PageRange){off, len > 0 ? off + len : INT64_MAX};
}

static void *merge_work(void *into, void *more)
{
    Work *a = into, *b = more;
    a->range.off = MIN(a->range.off, b->range.off);
    a->range.end = MAX(a->range.end, b->range.end);
    a->unsettled += b->unsettled;
    a->pages_of = MAX(a->pages_of, b->pages_of);
    if (!a->leases)
        a->leases = g_steal_pointer(&b->leases);
    else if (b->leases)
        g_ptr_array_extend_and_steal(a->leases, g_steal_pointer(&b->leases));
    if (!a->names) {
        a->names = g_steal_pointer(&b->names);
    } else if (b->names) {
        GHashTableIter iter;
        gpointer name;
        g_hash_table_iter_init(&iter, b->names);
        while (g_hash_table_iter_next(&iter, &name, NULL))
            g_hash_table_add(a->names, g_strdup(name));
        g_hash_table_unref(b->names);
    }
    a->uses += b->uses;
    a->unused = MAX(a->unused, b->unused);
    g_free(b);
    return a;
}

static void add_pages(Notifier *n, Node *node, PageRange range, unsigned unsettled, Handle *lease,
                      uint64_t pages_of)
{
    Work *work = g_new0(Work, 1);
    *work = (Work){
        .node = nodes_use(n->session->nodes, node->id),
        .uses = 1,
        .range = range,
        .unsettled = unsettled,
        .pages_of = pages_of,
    };
    if (lease) {
        work->leases = g_ptr_array_new();
        g_ptr_array_add(work->leases, lease);
    }
    lanes_add(n->lanes, &(LaneKey){PAGES, node->id, 0}, work);
}

static void add_name(Notifier *n, uint64_t kind, uint64_t ino, uint64_t snapshot, const char *name)
{
    Work *work = g_new0(Work, 1);
    work->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_hash_table_add(work->names, g_strdup(name));
    lanes_add(n->lanes, &(LaneKey){kind, ino, snapshot}, work);
}

static void *take_aim(void *data, const LaneKey *key, const void *data_of_work)
{
    Session *s = ((Notifier *)data)->session;
    const Work *work = data_of_work;
    if (key->kind != PAGES)
        return NULL;
    Aim *a = g_new(Aim, 1);
    *a = (Aim){nodes_use(s->nodes, work->node->id), work->range, work->pages_of};
    return a;
}

/* Another way around is there once another request was read. */
static unsigned blocking_state(void *data, const LaneKey *key, const void *data_of_work)
{
    (void)data;
    const Work *work = data_of_work;
    return key->kind == PAGES ? atomic_load(&work->node->page_waits) : 0;
}

static void pages_are_of(Node *node, uint64_t session)
{
    uint64_t before = atomic_load(&node->pages_of);
    while (before < session && !atomic_compare_exchange_weak(&node->pages_of, &before, session)) {
    }
}

static void drop_range(Session *s, uint64_t id, PageRange range)
{
    fuse_lowlevel_notify_inval_inode(s->fuse, id, range.off,
                                     range.end == INT64_MAX ? 0 : range.end - range.off);
}

static void drop_around(Session *s, Node *node, PageRange range)
{
    g_autoptr(GArray) ranges = pages_around(node, range);
    for (guint i = 0; i < ranges->len; i++)
        drop_range(s, node->id, g_array_index(ranges, PageRange, i));
    if (ranges->len == 0)
        fuse_lowlevel_notify_inval_inode(s->fuse, node->id, -1, 0); /* the attributes */
}

/*
 * The kernel writes back pages that a mapping has changed before it drops them, and waits for that
 * write, which comes here and may wait in Ceph for the lease that is to go back. Then the lease
 * goes first, and the rest of the drop, which must not be overtaken, goes on behind the write.
 */
static void drop_pages(Notifier *n, Aim *a, unsigned tries)
{
    Session *s = n->session;
    if (tries && pages_written_back(a->node)) {
        atomic_fetch_add(&a->node->unsettled, 1);
        add_pages(n, a->node, a->range, 1, NULL, a->pages_of);
    } else {
        drop_around(s, a->node, a->range);
        pages_are_of(a->node, a->pages_of);
    }
    nodes_done(s->nodes, a->node);
    g_free(a);
}

static void drop_names(Session *s, uint64_t id, const Work *work)
{
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, work->names);
    while (g_hash_table_iter_next(&iter, &name, NULL) && !atomic_load(&s->leaves))
        fuse_lowlevel_notify_inval_entry(s->fuse, id, name, strlen(name));
}

/* FALSE: this kernel cannot. */
static gboolean prune(Notifier *n, const GArray *ids)
{
    if (!atomic_load(&n->prunes))
        return FALSE;
    atomic_store(&n->prunes, fuse_prune(n->session->fuse, ids));
    return atomic_load(&n->prunes);
}

/* The MDS wants it back. The kernel forgets an inode only when its dentry is dropped; one that
 * cannot prune also ends the mounts on it then. */
static void drop_unwanted(Notifier *n, Node *node)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_array_append_val(ids, node->id);
    if (prune(n, ids))
        return;
    pthread_mutex_lock(&node->mutex);
    const uint64_t parent = node->parent;
    g_autofree char *name = g_strdup(node->name);
    pthread_mutex_unlock(&node->mutex);
    if (name)
        add_name(n, NAMES, parent, 0, name);
}

/* A kernel that cannot prune could only be told that names are not valid. Then it also ends the
 * mounts on them, such as a Secret that a pod has mounted on a file of the volume. */
static void ask_to_forget(Notifier *n, uint64_t count)
{
    if (!atomic_load(&n->prunes))
        return;
    g_autoptr(GArray) unused = nodes_unused(n->session->nodes, count);
    prune(n, unused);
}

static void inode_has_changed(Notifier *n, Node *node, const Work *work)
{
    atomic_store(&node->page_version, 0);
    atomic_store(&node->attr_version, 0);
    /* The whole file: the capabilities are gone. With a lease that happens only when the session is
     * lost. */
    if (work->range.off == 0 && work->range.end == INT64_MAX)
        n->leases->lost(node);
    add_pages(n, node, work->range, 0, NULL, 0);
}

static void entries_have_changed(Notifier *n, Node *node, const Work *work)
{
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, work->names);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        add_name(n, NAMES, node->id, 0, name);
}

static void run_work(void *data, const LaneKey *key, void *aim_or_work, unsigned tries)
{
    Notifier *n = data;
    Session *s = n->session;
    if (key->kind == PAGES) {
        drop_pages(n, aim_or_work, tries);
        return;
    }
    /* A request that is not answered may hold the directory. Names are too old for the next process
     * (resume.h). */
    if (key->kind != PAGES && atomic_load(&s->leaves))
        return;
    if (key->kind == NAMES) {
        drop_names(s, key->a, aim_or_work);
        return;
    }
    if (key->kind == FORGOTTEN) {
        forgotten_sync(nodes_forgotten(s->nodes), s->origin);
        return;
    }
    if (key->kind == UNUSED) {
        ask_to_forget(n, ((Work *)aim_or_work)->unused);
        return;
    }
    Node *node = nodes_use_inode(s->nodes, key->a, key->b);
    if (!node)
        return;
    if (key->kind == CHANGED_PAGES)
        inode_has_changed(n, node, aim_or_work);
    else if (key->kind == CHANGED_NAMES)
        entries_have_changed(n, node, aim_or_work);
    else
        drop_unwanted(n, node);
    nodes_done(s->nodes, node);
}

static void finish_work(void *data, const LaneKey *key, void *data_of_work)
{
    (void)key;
    Notifier *n = data;
    Session *s = n->session;
    Work *work = data_of_work;
    if (work->unsettled)
        atomic_fetch_sub(&work->node->unsettled, work->unsettled);
    for (guint i = 0; work->leases && i < work->leases->len; i++)
        n->leases->pages_dropped(s, g_ptr_array_index(work->leases, i));
    for (unsigned i = 0; i < work->uses; i++)
        nodes_done(s->nodes, work->node);
    g_clear_pointer(&work->leases, g_ptr_array_unref);
    g_clear_pointer(&work->names, g_hash_table_unref);
    g_free(work);
}

/* ---- notifications of the origin ---- */

static void inode_changed(void *data, uint64_t ino, uint64_t snapshot, int64_t off, int64_t len)
{
    Notifier *n = data;
    Work *work = g_new0(Work, 1);
    work->range = range_of(off, len);
    lanes_add(n->lanes, &(LaneKey){CHANGED_PAGES, ino, snapshot}, work);
}

static void entry_changed(void *data, uint64_t parent, uint64_t snapshot, const char *name)
{
    add_name(data, CHANGED_NAMES, parent, snapshot, name);
}

static void inode_unwanted(void *data, uint64_t ino, uint64_t snapshot)
{
    lanes_add(((Notifier *)data)->lanes, &(LaneKey){UNWANTED, ino, snapshot}, g_new0(Work, 1));
}

static void inode_failed(void *data, uint64_t ino, int r)
{
    Session *s = ((Notifier *)data)->session;
    unsynced_report(s->volume, ino, r);
    Node *node = nodes_use_inode(s->nodes, ino, 0);
    if (node) {
        unsynced_failed(node, r);
        nodes_done(s->nodes, node);
    } else {
        forgotten_failed(nodes_forgotten(s->nodes), ino, r);
    }
}

static void leases_void(void *data)
{
    Notifier *n = data;
    n->leases->all_void(n->session);
}

void notifier_listen(Notifier *n, Origin *origin)
{
    const OriginListener listener = {
        .inode_changed = inode_changed,
        .entry_changed = entry_changed,
        .inode_unwanted = inode_unwanted,
        .inode_failed = inode_failed,
        .leases_void = leases_void,
        .data = n,
    };
    if (origin->ops->listen)
        origin->ops->listen(origin, &listener);
}

void notifier_recall(Notifier *n, Node *node, Handle *handle)
{
    atomic_fetch_add(&node->unsettled, 1);
    add_pages(n, node, all_pages, 1, handle, 0);
}

void notifier_drop_soon(Notifier *n, Node *node)
{
    atomic_fetch_add(&node->unsettled, 1);
    add_pages(n, node, all_pages, 1, NULL, origin_session(n->session->origin));
}

void notifier_drop_now(Notifier *n, Node *node)
{
    atomic_store(&node->page_version, 0);
    atomic_store(&node->attr_version, 0);
    drop_around(n->session, node, all_pages);
}

void notifier_drop_pages(Notifier *n, Node *node, int64_t off, int64_t len)
{
    add_pages(n, node, range_of(off, len), 1, NULL, 0);
}

void notifier_sync_forgotten(Notifier *n)
{
    lanes_add(n->lanes, &(LaneKey){FORGOTTEN, 0, 0}, g_new0(Work, 1));
}

void notifier_forget(Notifier *n, uint64_t count)
{
    Work *work = g_new0(Work, 1);
    work->unused = count;
    lanes_add(n->lanes, &(LaneKey){UNUSED, 0, 0}, work);
}

void notifier_await(Notifier *n, gboolean (*gone)(void *data), void *data, unsigned ms)
{
    const struct timespec until = deadline_after_ms(ms);
    int r = 0;
    pthread_mutex_lock(&n->lock);
    while (!gone(data) && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&n->returned, &n->lock, &until);
    pthread_mutex_unlock(&n->lock);
}

gboolean notifier_await_idle(Notifier *n, unsigned timeout_ms)
{
    return lanes_await_idle(n->lanes, timeout_ms);
}

void notifier_returned(Notifier *n)
{
    pthread_mutex_lock(&n->lock);
    pthread_cond_broadcast(&n->returned);
    pthread_mutex_unlock(&n->lock);
}

static void notifier_free(Notifier *n)
{
    pthread_cond_destroy(&n->returned);
    pthread_mutex_destroy(&n->lock);
    g_free(n);
}

Notifier *notifier_start(Session *session, const NotifierLeases *leases, GError **error)
{
    static const LaneOps ops = {
        .merge = merge_work,
        .state = blocking_state,
        .aim = take_aim,
        .run = run_work,
        .done = finish_work,
        .threads_max = THREADS_MAX,
    };
    Notifier *n = g_new0(Notifier, 1);
    n->session = session;
    n->leases = leases;
    atomic_store(&n->prunes, TRUE);
    pthread_mutex_init(&n->lock, NULL);
    cond_init_monotonic(&n->returned);
    n->lanes = lanes_start(&ops, n, error);
    if (n->lanes)
        return n;
    notifier_free(n);
    return NULL;
}

void notifier_stop(Notifier *n)
{
    if (!n)
        return;
    lanes_stop(n->lanes);
    notifier_free(n);
}
