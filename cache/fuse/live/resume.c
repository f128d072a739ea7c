/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/live/resume.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <linux/fuse.h>
#include <string.h>
#include <time.h>
#include "cache/fuse/live/handles.h"
#include "common/monotonic.h"

/* ---- leaving ---- */

/* A drop of pages takes less, unless a request keeps it. */
#define DROP_MS 200
/* Bytes of requests; what does not fit is served. */
#define PARKED_MAX (32u << 20)

/* A parked request that keeps pages locked. */
struct Parked {
    LIST_ENTRY(Parked) link;
    Node *node; /* in use */
    PageUse use;
    size_t len;
    char request[]; /* as it was read */
};

/* FALSE: there is no room for it. */
static gboolean park_pages(Session *s, const struct fuse_in_header *in, size_t len, uint64_t off,
                           uint32_t size)
{
    pthread_mutex_lock(&s->parked_mutex);
    const gboolean fits = s->parked_bytes + len <= PARKED_MAX;
    s->parked_bytes += fits ? len : 0;
    pthread_mutex_unlock(&s->parked_mutex);
    Node *node = fits ? nodes_use(s->nodes, in->nodeid) : NULL;
    if (!node)
        return fits;
    struct Parked *p = g_malloc0(sizeof(*p) + len);
    p->node = node;
    p->len = len;
    memcpy(p->request, in, len);
    pages_wait_begin(node, &p->use, off, size, FALSE);
    pthread_mutex_lock(&s->parked_mutex);
    LIST_INSERT_HEAD(&s->parked, p, link);
    pthread_mutex_unlock(&s->parked_mutex);
    return TRUE;
}

/* All that are parked now, the oldest last. */
static GPtrArray *take_parked(Session *s)
{
    GPtrArray *all = g_ptr_array_new();
    struct Parked *p;
    pthread_mutex_lock(&s->parked_mutex);
    while ((p = LIST_FIRST(&s->parked))) {
        LIST_REMOVE(p, link);
        g_ptr_array_add(all, p);
    }
    s->parked_bytes = 0;
    pthread_mutex_unlock(&s->parked_mutex);
    return all;
}

static void parked_free(Session *s, struct Parked *p)
{
    nodes_done(s->nodes, p->node);
    g_free(p);
}

/* A request that was read only after a drop of its pages had begun keeps that from its end. Parked
 * ones are served after all. */
static void serve_parked(Session *s)
{
    g_autoptr(GPtrArray) all = take_parked(s);
    for (guint i = all->len; i-- > 0;) {
        struct Parked *p = all->pdata[i];
        const struct fuse_buf buf = {.mem = p->request, .size = p->len};
        if (pages_wait_end(p->node, &p->use))
            notifier_drop_pages(s->notifier, p->node, p->use.off, p->use.end - p->use.off);
        fuse_session_process_buf(s->fuse, &buf);
        parked_free(s, p);
    }
}

/* The body of a request; NULL: it is shorter than that. */
static const void *body_of(const struct fuse_in_header *in, size_t len, size_t size)
{
    return len >= sizeof(*in) + size ? in + 1 : NULL;
}

/* While it waits, the kernel sends no page that a mapping has changed. */
static gboolean truncates(const struct fuse_in_header *in, size_t len)
{
    const struct fuse_setattr_in *set = body_of(in, len, sizeof(*set));
    const struct fuse_open_in *open =
        body_of(in, len, sizeof(*open)); /* fuse_create_in begins so */
    if (in->opcode == FUSE_SETATTR)
        return set && set->valid & FATTR_SIZE;
    return (in->opcode == FUSE_OPEN || in->opcode == FUSE_CREATE) && open && open->flags & O_TRUNC;
}

/* Whether it is served although the session leaves. */
static gboolean serves(void *data, const struct fuse_in_header *in, size_t len)
{
    Session *s = data;
    const struct fuse_write_in *write = body_of(in, len, sizeof(*write));
    const struct fuse_read_in *read = body_of(in, len, sizeof(*read));
    if (in->opcode == FUSE_WRITE && write && write->write_flags & FUSE_WRITE_CACHE)
        return TRUE;
    if (in->opcode == FUSE_WRITE && write && !(write->flags & O_DIRECT))
        return !park_pages(s, in, len, write->offset, write->size);
    if (in->opcode == FUSE_READ && read && !(read->flags & O_DIRECT))
        return !park_pages(s, in, len, read->offset, read->size);
    return truncates(in, len);
}

gboolean resume_park(Session *s, unsigned timeout_ms)
{
    const int64_t until = monotonic_ms() + timeout_ms;
    gboolean idle, voided = FALSE;
    if (s->locks)
        locks_stop_asking(s->locks);
    atomic_store(&s->leaves, TRUE);
    notifier_await_idle(s->notifier, DROP_MS); /* of names, which nothing may hold up later */
    readers_park(s->readers, serves, s);
    do {
        idle = readers_await_served(s->readers, DROP_MS);
        if (idle && !voided)
            handles_notifier_leases.all_void(s);
        voided |= idle;
        idle = idle && notifier_await_idle(s->notifier, DROP_MS) &&
               readers_await_served(s->readers, DROP_MS);
        if (!idle)
            serve_parked(s);
    } while (!idle && monotonic_ms() < until);
    return idle;
}

void resume_unpark(Session *s)
{
    g_autoptr(GPtrArray) all = take_parked(s);
    for (guint i = 0; i < all->len; i++) {
        struct Parked *p = all->pdata[i];
        pages_wait_end(p->node, &p->use);
        parked_free(s, p);
    }
}

static void add_id(Node *node, void *ids)
{
    g_array_append_val((GArray *)ids, node->id);
}

/* All that was written through it becomes safe, or is known to be lost. */
static void sync_node(Session *s, Node *node)
{
    const uint64_t mark = unsynced_mark(node);
    if (!unsynced_any(node))
        return;
    int r = s->origin->ops->sync_node(s->origin, node->origin);
    if (r == 0)
        unsynced_synced(s, node, mark);
    if (r < 0 || unsynced_any(node))
        unsynced_failed(node, r < 0 ? r : -EIO);
}

static void sync_all(Session *s)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    forgotten_sync(nodes_forgotten(s->nodes), s->origin);
    nodes_each(s->nodes, add_id, ids);
    for (guint i = 0; i < ids->len; i++) {
        Node *node = nodes_use(s->nodes, g_array_index(ids, uint64_t, i));
        if (node)
            sync_node(s, node);
        nodes_done(s->nodes, node);
    }
}

static void add_open(json_t *open, const Reopen *o)
{
    json_array_append_new(open, json_pack("[I, I, i, I, I]", (json_int_t)o->fh, (json_int_t)o->node,
                                          o->flags, (json_int_t)o->seen_by_fsync,
                                          (json_int_t)o->seen_by_close));
}

static void add_file(void *what, void *open)
{
    const Handle *h = what;
    const Reopen o = {h->fh, h->node->id, h->flags, h->seen.by_fsync, h->seen.by_close};
    add_open(open, &o);
}

static void add_listing(void *what, void *open)
{
    Reopen o;
    listing_reopen(what, &o);
    add_open(open, &o);
}

static json_t *all_open(Opened *opened, Reopens *before, void (*add)(void *what, void *open))
{
    json_t *open = json_array();
    opened_each(opened, add, open);
    g_autoptr(GArray) left = before ? reopens_left(before) : NULL;
    for (guint i = 0; left && i < left->len; i++)
        add_open(open, &g_array_index(left, Reopen, i));
    return open;
}

static void add_loss(json_t *losses, uint64_t id, const Unsynced *u)
{
    if (u->losses)
        json_array_append_new(losses,
                              json_pack("[I, I, I, i]", (json_int_t)id, (json_int_t)u->losses,
                                        (json_int_t)u->reported, u->error));
}

static void add_loss_of(Node *node, void *losses)
{
    add_loss(losses, node->id, &node->unsynced);
}

static void add_forgotten(uint64_t id, const Unsynced *u, void *losses)
{
    Unsynced lost = *u;
    if (lost.writes != lost.synced)
        unsynced_lose(&lost, -EIO);
    add_loss(losses, id, &lost);
}

json_t *resume_collect(Session *s)
{
    json_t *state = json_object(), *losses = json_array();
    sync_all(s);
    json_object_set_new(state, "files", all_open(s->files, s->old_files, add_file));
    json_object_set_new(state, "listings", all_open(s->listings, s->old_listings, add_listing));
    json_object_set_new(state, "lastFile", json_integer((json_int_t)opened_last(s->files)));
    json_object_set_new(state, "lastListing", json_integer((json_int_t)opened_last(s->listings)));
    json_object_set_new(state, "tags", nodes_tags(s->nodes));
    if (s->locks)
        json_object_set_new(state, "locks", locks_leave(g_steal_pointer(&s->locks)));
    /* Ceph may report only now that writes have failed. */
    dirs_close_all(s);
    handles_close_all(s);
    resume_unpark(s);
    nodes_each(s->nodes, add_loss_of, losses);
    forgotten_each(nodes_forgotten(s->nodes), add_forgotten, losses);
    json_object_set_new(state, "losses", losses);
    json_object_set_new(state, "leftMs", json_integer(monotonic_ms()));
    return state;
}

/* ---- going on ---- */

static uint64_t number_at(const json_t *array, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(array, i));
}

static Reopens *opens_in(const json_t *state, const char *key, uint64_t last)
{
    Reopens *all = reopens_new();
    size_t i;
    const json_t *one;
    json_array_foreach (json_object_get(state, key), i, one) {
        const Reopen o = {number_at(one, 0), number_at(one, 1), (int)number_at(one, 2),
                          (unsigned)number_at(one, 3), (unsigned)number_at(one, 4)};
        if (o.fh && o.fh <= last && o.node)
            reopens_add(all, &o);
    }
    return all;
}

static void restore_losses(Session *s, const json_t *losses)
{
    size_t i;
    const json_t *one;
    json_array_foreach (losses, i, one) {
        const Unsynced u = {.losses = (unsigned)number_at(one, 1),
                            .reported = (unsigned)number_at(one, 2),
                            .error = (int)number_at(one, 3)};
        if (u.losses && u.error < 0)
            nodes_restore_unsynced(s->nodes, number_at(one, 0), &u);
    }
}

/* FALSE: Ceph does not say whether a file is still there, or it could not be used meanwhile. */
static gboolean restore_locks(Session *s, const json_t *locks, GError **error)
{
    size_t i;
    const json_t *one;
    json_array_foreach (locks, i, one) {
        int r;
        Node *node = nodes_use_again(s->nodes, number_at(one, 0), &r);
        if (!node && r == -ESTALE)
            continue; /* nothing of it can be read or written either */
        if (!node) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "a file with locks: %s",
                        g_strerror(-r));
            return FALSE;
        }
        locks_add_lost(s->locks,
                       (LocksFile){node->id, node_is_snapshot(node) ? NULL : node->origin}, one);
        nodes_done(s->nodes, node);
    }
    return TRUE;
}

static void await_names(const json_t *state)
{
    const json_int_t left = json_integer_value(json_object_get(state, "leftMs"));
    const int64_t wait = NAME_VALID_MS - (monotonic_ms() - left);
    if (wait > 0)
        g_usleep((gulong)MIN(wait, NAME_VALID_MS) * 1000);
}

gboolean resume_begin(Session *s, const json_t *state, GError **error)
{
    static const char *const numbers[] = {"lastFile", "lastListing", "leftMs"};
    static const char *const arrays[] = {"files", "listings", "tags", "losses"};
    gboolean whole = TRUE;
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        whole &= json_is_integer(json_object_get(state, numbers[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        whole &= json_is_array(json_object_get(state, arrays[i]));
    if (!whole) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "the state that was left of the mount is not whole");
        return FALSE;
    }
    const json_int_t last_file = json_integer_value(json_object_get(state, numbers[0])),
                     last_listing = json_integer_value(json_object_get(state, numbers[1]));
    opened_continue(s->files, (uint64_t)last_file);
    opened_continue(s->listings, (uint64_t)last_listing);
    s->old_files = opens_in(state, "files", (uint64_t)last_file);
    s->old_listings = opens_in(state, "listings", (uint64_t)last_listing);
    nodes_set_tags(s->nodes, json_object_get(state, "tags"));
    restore_losses(s, json_object_get(state, "losses"));
    await_names(state);
    return !s->locks || restore_locks(s, json_object_get(state, "locks"), error);
}

/* As a new open, but for its number, and that it does not truncate. */
static void *open_again(void *session, const Reopen *o, int *error)
{
    Session *s = session;
    OriginFile *file;
    Node *node = nodes_use_again(s->nodes, o->node, error);
    if (!node)
        return NULL;
    if ((o->flags & O_ACCMODE) != O_RDONLY)
        handles_return_leases(s, node);
    const int r = s->origin->ops->open(s->origin, node->origin, o->flags, &file);
    Handle *h = r == 0 ? handle_reopened(s, node, file, o) : NULL;
    nodes_done(s->nodes, node);
    *error = r == -ENOENT ? -ESTALE : r;
    return h;
}

Handle *resume_file(Session *s, uint64_t fh, int *error)
{
    return reopens_find(s->old_files, s->files, fh, open_again, s, error);
}

gboolean resume_release_file(Session *s, uint64_t fh)
{
    Reopen o;
    if (!reopens_close(s->old_files, fh, &o))
        return FALSE;
    if (s->locks)
        locks_release(s->locks, o.node, fh);
    return TRUE;
}
