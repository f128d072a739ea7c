/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files. A reader holds a read lease where the origin grants one. While it is held no client
 * writes the file, so the version seen at open() names the bytes, the store may serve them and the
 * kernel may keep its pages. A recall takes the lease away: later reads go to the origin and drop
 * the pages behind them, until a lease is granted again. A snapshot's files need no lease.
 *
 *   NONE -> TRYING -> HELD (handle_take_lease) -> RECALLED (on_recall) -> NONE
 *             |         |                           when return_recalled_lease() gives it back
 *             |         +-> NONE (handles_return_leases, handle_release)
 *             +-> NONE (refused)
 *
 * HELD is set only when the content belongs to the leased version, so a thread that sees it may use
 * it. From TRYING to the way back to NONE the lease owns one reference to the handle.
 */
#include "cache/fuse/live/handles.h"
#include <errno.h>
#include <fcntl.h>
#include "cache/fuse/live/session_internal.h"

/* For leases of our own that are in the way of a writer here. */
#define RETURN_WAIT_MS 1000

/* Before anything here writes the file. */
static void spoil_fills(Session *s, Node *node)
{
    atomic_fetch_add(&node->writes_begun, 1);
    if (s->store)
        store_spoil_fills(s->store, s->origin, node->id);
}

Handle *handle_new(Session *s, Node *node, OriginFile *file, int flags)
{
    Handle *h = g_new0(Handle, 1);
    h->session = s;
    h->node = nodes_use(s->nodes, node->id);
    h->file = file;
    h->writer = (flags & O_ACCMODE) != O_RDONLY;
    h->reader = (flags & O_ACCMODE) != O_WRONLY;
    h->append = (flags & O_APPEND) != 0;
    h->kind = h->writer ? ORIGIN_LEASE_WRITE : ORIGIN_LEASE_READ;
    h->refs = 1;
    h->seen = unsynced_seen(s, node);
    pthread_mutex_init(&h->mutex, NULL);
    h->fh = opened_add(s->files, h);
    pthread_mutex_lock(&node->mutex);
    LIST_INSERT_HEAD(&node->handles, h, in_node);
    pthread_mutex_unlock(&node->mutex);
    /* When the first writer opens a file, the kernel drops its pages, because it is not told to
     * keep them. From now on the handle is listed, so the end of this session is reported to it. */
    if (h->writer && atomic_fetch_add(&node->writers, 1) == 0)
        atomic_store(&node->pages_of, unsynced_session(s));
    if (h->writer || flags & O_TRUNC) {
        spoil_fills(s, node);
        atomic_store(&node->dirty, 1);
        atomic_store(&node->page_version, 0);
    }
    return h;
}

/* The origin may report here that writes failed after they were answered. Writes that were lost
 * with a session are known already (unsynced.h). */
static void close_file(Handle *h, OriginFile *file)
{
    int r = h->session->origin->ops->close(h->session->origin, file);
    if (r == 0 || r == -ENOTCONN || r == -ESHUTDOWN || !h->writer)
        return;
    unsynced_report(h->session->volume, h->node->id, r);
    unsynced_failed(h->node, r);
}

static void handle_unref(Handle *h)
{
    if (atomic_fetch_sub(&h->refs, 1) != 1)
        return;
    Session *s = h->session;
    content_unref(h->content);
    if (h->plain)
        close_file(h, h->plain);
    close_file(h, h->file);
    nodes_done(s->nodes, h->node);
    pthread_mutex_destroy(&h->mutex);
    g_free(h);
}

/* Pages first, then the lease: the client that waits for it may write as soon as it is back. */
static void queue_return(Handle *h)
{
    atomic_store(&h->node->page_version, 0);
    atomic_store(&h->node->attr_version, 0);
    notifier_recall(h->session->notifier, h->node, h);
}

/* May hold the origin's locks. A handle that is being released is NONE by then and is left alone.
 */
static void on_recall(OriginFile *file, void *data)
{
    (void)file;
    Handle *h = data;
    int state = atomic_load(&h->lease);
    do {
        if (state != LEASE_HELD && state != LEASE_TRYING)
            return;
    } while (!atomic_compare_exchange_weak(&h->lease, &state, LEASE_RECALLED));
    queue_return(h);
}

/* The pages of a recalled lease are dropped: gives it back. */
static void return_recalled_lease(Session *s, Handle *h)
{
    s->origin->ops->lease(s->origin, h->file, ORIGIN_LEASE_NONE, NULL, NULL);
    int recalled = LEASE_RECALLED;
    atomic_compare_exchange_strong(&h->lease, &recalled, LEASE_NONE);
    notifier_returned(s->notifier);
    handle_unref(h);
}

/* Whether the node is open through a handle that is not guaranteed the content unchanged. */
static gboolean is_open_without_lease(Node *node)
{
    gboolean found = FALSE;
    Handle *h;
    if (node_is_snapshot(node))
        return FALSE;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH (h, &node->handles, in_node)
        found |= atomic_load(&h->lease) != LEASE_HELD;
    pthread_mutex_unlock(&node->mutex);
    return found;
}

double handles_attr_valid(Node *node)
{
    return is_open_without_lease(node) ? 0 : VALID_SEC;
}

/* The leases of a node are void, without a recall: the origin has lost its session. */
static void lose_leases(Node *node)
{
    Handle *h;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH (h, &node->handles, in_node)
        on_recall(h->file, h);
    pthread_mutex_unlock(&node->mutex);
}

static gboolean none_recalled(void *data)
{
    const GPtrArray *handles = data;
    for (guint i = 0; i < handles->len; i++)
        if (atomic_load(&((Handle *)g_ptr_array_index(handles, i))->lease) == LEASE_RECALLED)
            return FALSE;
    return TRUE;
}

void handles_return_leases(Session *s, Node *node)
{
    g_autoptr(GPtrArray) held = g_ptr_array_new_with_free_func((GDestroyNotify)handle_unref);
    Handle *h;
    spoil_fills(s, node);
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH (h, &node->handles, in_node) {
        int is_held = LEASE_HELD;
        if (h->writer || !atomic_compare_exchange_strong(&h->lease, &is_held, LEASE_RECALLED))
            continue;
        atomic_fetch_add(&h->refs, 1);
        g_ptr_array_add(held, h);
        queue_return(h);
    }
    pthread_mutex_unlock(&node->mutex);
    /* A writer that goes on before that waits in the origin, which recalls the leases too. */
    if (held->len)
        notifier_await(s->notifier, none_recalled, held, RETURN_WAIT_MS);
}

static void void_lease(void *what, void *data)
{
    Handle *h = what;
    (void)data;
    on_recall(h->file, h);
    atomic_store(&h->node->page_version, 0);
    atomic_store(&h->node->attr_version, 0);
    notifier_drop_soon(h->session->notifier, h->node);
}

/* All leases of the session are void: Ceph does not answer, or has ended its session. Queues only.
 */
static void void_all_leases(Session *s)
{
    opened_each(s->files, void_lease, NULL);
}

/* Writes of this session must be in the origin, with their final version, before the file is
 * cached. */
static int current_attr(Session *s, Node *node, OriginAttr *attr)
{
    if (atomic_load(&node->writers) == 0 && atomic_exchange(&node->dirty, 0)) {
        const uint64_t mark = unsynced_mark(node);
        int r = s->origin->ops->sync_node(s->origin, node->origin);
        if (r < 0) {
            atomic_store(&node->dirty, 1);
            return r;
        }
        unsynced_synced(s, node, mark);
        if (atomic_load(&node->writers)) /* opened meanwhile */
            atomic_store(&node->dirty, 1);
    }
    return s->origin->ops->getattr(s->origin, node->origin, attr);
}

static gboolean cacheable(const Session *s, const OriginAttr *attr)
{
    return s->store && S_ISREG(attr->st.st_mode) && attr->st.st_size > 0;
}

/*
 * Whether the origin lets this user read the file: others may have had fetched what the store
 * holds. It is asked by an opener; a read holds pages locked, and finds out by what it reads.
 */
static gboolean may_read(Session *s, Node *node, gboolean opener)
{
    const uint64_t session = origin_session(s->origin);
    if (!s->origin->ops->may_read || atomic_load(&node->readable_in) == session)
        return TRUE;
    if (!opener || origin_may_read(s->origin, node->origin) < 0)
        return FALSE;
    atomic_store(&node->readable_in, session);
    return TRUE;
}

/* What the version is now and what the store has of it. */
static int look_at_version(Handle *h, gboolean opener, OriginAttr *attr)
{
    Session *s = h->session;
    const ContentGuard guard = {
        .writes_begun = &h->node->writes_begun,
        .seen = atomic_load(&h->node->writes_begun),
    };
    int r = current_attr(s, h->node, attr);
    if (r < 0)
        return r;
    atomic_store(&h->version, attr->version);
    Content *content = NULL, *old;
    if (!h->writer && cacheable(s, attr) && !atomic_load(&h->node->dirty) &&
        may_read(s, h->node, opener))
        content = content_open(s->store, s->origin, s->volume, attr, &guard);
    pthread_mutex_lock(&h->mutex);
    old = h->content;
    h->content = content;
    pthread_mutex_unlock(&h->mutex);
    content_unref(old);
    return 0;
}

gboolean handle_take_lease(Handle *h, gboolean opener, OriginAttr *attr, int *r)
{
    Session *s = h->session;
    if (node_is_snapshot(h->node)) {
        *r = look_at_version(h, opener, attr);
        return *r == 0;
    }
    int state = LEASE_NONE;
    if (atomic_exchange(&h->taking, 1)) {
        *r = -EAGAIN;
        return atomic_load(&h->lease) == LEASE_HELD;
    }
    atomic_fetch_add(&h->refs, 1);
    if (!atomic_compare_exchange_strong(&h->lease, &state, LEASE_TRYING)) {
        atomic_store(&h->taking, 0);
        handle_unref(h);
        *r = -EAGAIN;
        return state == LEASE_HELD;
    }
    gboolean granted = s->origin->ops->lease(s->origin, h->file, h->kind, on_recall, h) == 0;
    if (granted)
        *r = look_at_version(h, opener, attr);
    else
        *r = opener ? current_attr(s, h->node, attr) : -EAGAIN;
    gboolean usable = granted && *r == 0;
    state = LEASE_TRYING;
    gboolean kept =
        atomic_compare_exchange_strong(&h->lease, &state, usable ? LEASE_HELD : LEASE_NONE);
    /* Nothing was read under it. One that was recalled meanwhile, and has gone back before it was
     * granted, goes again. */
    if (granted && !(kept && usable))
        s->origin->ops->lease(s->origin, h->file, ORIGIN_LEASE_NONE, NULL, NULL);
    atomic_store(&h->taking, 0);
    if (kept && !usable)
        handle_unref(h);
    return kept && usable;
}

void handle_release(Handle *h)
{
    Session *s = h->session;
    opened_remove(s->files, h->fh);
    pthread_mutex_lock(&h->node->mutex);
    LIST_REMOVE(h, in_node);
    pthread_mutex_unlock(&h->node->mutex);
    if (h->writer)
        atomic_fetch_sub(&h->node->writers, 1);
    /* From here a recall finds nothing to do; the lease goes back with the file at the latest. */
    /* Pages outlive the lease only with their version known, for opens that compare it. */
    const gboolean drop = h->writer || is_open_without_lease(h->node);
    int held = LEASE_HELD;
    if (atomic_compare_exchange_strong(&h->lease, &held, drop ? LEASE_RECALLED : LEASE_NONE)) {
        if (drop)
            queue_return(h);
        else
            handle_unref(h);
    }
    handle_unref(h);
}

void handles_close_all(Session *s)
{
    Handle *h;
    while ((h = opened_any(s->files)))
        handle_release(h);
}

const NotifierLeases handles_notifier_leases = {
    .pages_dropped = return_recalled_lease,
    .lost = lose_leases,
    .all_void = void_all_leases,
};
