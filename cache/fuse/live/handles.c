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
#include "cache/fuse/live/contents.h"
#include "cache/fuse/live/session_internal.h"
#include "common/monotonic.h"

/* For leases of our own that are in the way of a writer here. */
#define RETURN_WAIT_MS 1000

static void list_handle(Handle *h)
{
    g_autoptr(GPtrArray) forgotten = contents_array();
    Node *node = h->node;
    pthread_mutex_lock(&node->mutex);
    LIST_INSERT_HEAD(&node->handles, h, in_node);
    if (h->writer && atomic_fetch_add(&node->writers, 1) == 0) {
        /* The kernel drops its pages when the first writer opens a file, because it is not told to
         * keep them. The handle is listed, so the end of this session is reported to it. */
        atomic_store(&node->pages_of, unsynced_session(h->session));
        contents_begin_locked(node, forgotten);
    }
    pthread_mutex_unlock(&node->mutex);
}

/* `before`: what an earlier process had open; NULL: nothing. */
static Handle *make_handle(Session *s, Node *node, OriginFile *file, int flags,
                           const Reopen *before)
{
    Handle *h = g_new0(Handle, 1);
    h->session = s;
    h->node = nodes_use(s->nodes, node->id);
    h->file = file;
    h->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    h->writer = (flags & O_ACCMODE) != O_RDONLY;
    h->reader = (flags & O_ACCMODE) != O_WRONLY;
    h->append = (flags & O_APPEND) != 0;
    h->kind = h->writer ? ORIGIN_LEASE_WRITE : ORIGIN_LEASE_READ;
    h->refs = 1;
    h->seen = before ? (UnsyncedSeen){before->seen_by_fsync, before->seen_by_close}
                     : unsynced_seen(s, node);
    pthread_mutex_init(&h->mutex, NULL);
    h->fh = before ? before->fh : opened_add(s->files, h);
    list_handle(h);
    if (flags & O_TRUNC) {
        contents_resize_begin(s, node);
        contents_resize_end(node);
    }
    if (h->writer)
        atomic_store(&node->page_version, 0);
    if (before) /* other threads know its number: nothing of it may be missing */
        opened_add_as(s->files, h->fh, h);
    return h;
}

Handle *handle_new(Session *s, Node *node, OriginFile *file, int flags)
{
    return make_handle(s, node, file, flags, NULL);
}

Handle *handle_reopened(Session *s, Node *node, OriginFile *file, const Reopen *before)
{
    return make_handle(s, node, file, before->flags, before);
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
    written_unref(h->written);
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
    atomic_fetch_add(&h->node->recalls, 1);
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

gboolean handles_leased(Node *node)
{
    gboolean leased = FALSE;
    Handle *h;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH (h, &node->handles, in_node)
        leased |= handle_is_leased(h);
    pthread_mutex_unlock(&node->mutex);
    return leased;
}

/* Whether the node is open and not guaranteed unchanged. */
static gboolean is_open_without_lease(Session *s, Node *node)
{
    if (node_is_snapshot(node))
        return FALSE;
    pthread_mutex_lock(&node->mutex);
    gboolean open = !LIST_EMPTY(&node->handles);
    pthread_mutex_unlock(&node->mutex);
    open |= s->old_files && reopens_has(s->old_files, node->id);
    return open && !handles_leased(node);
}

double handles_attr_valid(Session *s, Node *node)
{
    return is_open_without_lease(s, node) ? 0 : VALID_SEC;
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

/* Whether another handle's lease holds, and guarantees the pages that the kernel has. */
static gboolean joins(Handle *h)
{
    gboolean joins = FALSE;
    Handle *other;
    pthread_mutex_lock(&h->node->mutex);
    LIST_FOREACH (other, &h->node->handles, in_node)
        joins |= other != h && handle_is_leased(other) &&
                 atomic_load(&other->settled) == atomic_load(&other->leases);
    pthread_mutex_unlock(&h->node->mutex);
    return joins;
}

/* A lease that was refused is asked for again after a while, which doubles. */
#define PATIENCE_MIN_MS 5
#define PATIENCE_MAX_MS 250

gboolean handle_may_ask(const Handle *h)
{
    const int64_t after = atomic_load(&h->node->lease_after);
    return after == 0 || monotonic_ms() >= after;
}

static void note_answer(Node *node, gboolean granted)
{
    const int patience = atomic_load(&node->lease_patience);
    const int next = granted ? 0 : CLAMP(2 * patience, PATIENCE_MIN_MS, PATIENCE_MAX_MS);
    atomic_store(&node->lease_patience, next);
    atomic_store(&node->lease_after, granted ? 0 : monotonic_ms() + next);
}

gboolean handle_take_lease(Handle *h, gboolean opener, OriginAttr *attr, int *r)
{
    Session *s = h->session;
    if (node_is_snapshot(h->node)) {
        *r = contents_look(h, opener, attr);
        return *r == 0;
    }
    if (atomic_load(&s->leaves)) { /* none would give it back */
        *r = opener ? contents_current_attr(s, h->node, attr) : -EAGAIN;
        return FALSE;
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
    note_answer(h->node, granted);
    atomic_fetch_add(&h->leases, 1);
    h->joined = granted && joins(h);
    if (granted)
        *r = contents_look(h, opener, attr);
    else
        *r = opener ? contents_current_attr(s, h->node, attr) : -EAGAIN;
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

gboolean handle_looks_again(const Handle *h)
{
    return atomic_load(&h->unasked) &&
           atomic_load(&h->node->readable_in) == origin_session(h->session->origin);
}

void handle_look_again(Handle *h)
{
    OriginAttr attr;
    /* No other lease begins meanwhile. */
    if (atomic_exchange(&h->taking, 1))
        return;
    if (handle_is_leased(h) && atomic_exchange(&h->unasked, FALSE))
        contents_look(h, FALSE, &attr);
    atomic_store(&h->taking, 0);
}

/* TRUE: it was the last that could write. */
static gboolean unlist_handle(Handle *h)
{
    Node *node = h->node;
    pthread_mutex_lock(&node->mutex);
    LIST_REMOVE(h, in_node);
    const gboolean last = h->writer && atomic_fetch_sub(&node->writers, 1) == 1;
    if (last)
        contents_end_locked(node);
    pthread_mutex_unlock(&node->mutex);
    return last;
}

void handle_release(Handle *h)
{
    Session *s = h->session;
    /* While it asks Ceph, the end of all leases is to find the handle among those that are open. */
    if (handle_is_leased(h))
        contents_keep(s, h->node);
    opened_remove(s->files, h->fh);
    const gboolean last_writer = unlist_handle(h);
    /* From here a recall finds nothing to do; the lease goes back with the file at the latest. */
    /* Pages outlive the lease only with their version known, for opens that compare it, or under
     * the lease of another handle. */
    const gboolean drop = last_writer || is_open_without_lease(s, h->node);
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
