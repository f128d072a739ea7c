/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings. READDIRPLUS spares the kernel a lookup per name; such a name is valid for a moment and
 * checked when it is opened (names_check).
 */
#include <errno.h>
#include <string.h>
#include "cache/fuse/live/session_internal.h"

typedef struct Listing {
    uint64_t fh; /* in Session.listings */
    Session *session;
    Node *node;
    OriginDir *dir;
    pthread_mutex_t mutex; /* guards pending and the position of dir */
    gboolean has_pending;  /* read, but did not fit in the last reply */
    int64_t pending_at;
    OriginEntry pending;
    UnsyncedSeen seen; /* Node.mutex */
    unsigned changes;  /* of the directory's names here, when it was begun */
} Listing;

static void drop_pending(Listing *l)
{
    if (l->has_pending && l->pending.node)
        l->session->origin->ops->put(l->session->origin, l->pending.node);
    l->has_pending = FALSE;
}

static void listing_close(Listing *l)
{
    Session *s = l->session;
    opened_remove(s->listings, l->fh);
    drop_pending(l);
    s->origin->ops->closedir(s->origin, l->dir);
    atomic_fetch_sub(&l->node->listings, 1);
    nodes_done(s->nodes, l->node);
    pthread_mutex_destroy(&l->mutex);
    g_free(l);
}

/* Takes over the use of the node. */
static Listing *listing_new(Session *s, Node *node, OriginDir *dir)
{
    Listing *l = g_new0(Listing, 1);
    l->session = s;
    l->node = node;
    l->dir = dir;
    l->seen = unsynced_seen(s, node);
    atomic_fetch_add(&node->listings, 1);
    pthread_mutex_init(&l->mutex, NULL);
    return l;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    OriginDir *dir;
    int r = names_check(s, node);
    if (r == 0)
        r = s->origin->ops->opendir(s->origin, node->origin, &dir);
    if (r < 0) {
        fuse_reply_err(req, -r);
        nodes_done(s->nodes, node);
        return;
    }
    Listing *l = listing_new(s, node, dir);
    l->fh = opened_add(s->listings, l);
    fi->fh = l->fh;
    if (fuse_reply_open(req, fi) != 0)
        listing_close(l); /* the kernel does not have it */
}

void listing_reopen(const void *listing, Reopen *what)
{
    const Listing *l = listing;
    *what = (Reopen){l->fh, l->node->id, 0, l->seen.by_fsync, l->seen.by_close};
}

static void *open_again(void *session, const Reopen *o, int *error)
{
    Session *s = session;
    OriginDir *dir;
    Node *node = nodes_use_again(s->nodes, o->node, error);
    if (!node)
        return NULL;
    *error = s->origin->ops->opendir(s->origin, node->origin, &dir);
    if (*error < 0) {
        nodes_done(s->nodes, node);
        return NULL;
    }
    Listing *l = listing_new(s, node, dir);
    l->fh = o->fh;
    l->seen = (UnsyncedSeen){o->seen_by_fsync, o->seen_by_close};
    opened_add_as(s->listings, o->fh, l);
    return l;
}

static void *listing_again(Session *s, uint64_t fh, int *error)
{
    return reopens_find(s->old_listings, s->listings, fh, open_again, s, error);
}

void dirs_close_all(Session *s)
{
    Listing *l;
    while ((l = opened_any(s->listings)))
        listing_close(l);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    Session *s = session_of(req);
    Reopen before;
    if (reopens_close(s->old_listings, fi->fh, &before)) {
        fuse_reply_err(req, 0);
        return;
    }
    Listing *l = FIND_OPEN_OR_REPLY(s, s->listings, listing_again, req, fi);
    listing_close(l);
    fuse_reply_err(req, 0);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    (void)datasync;
    Session *s = session_of(req);
    Listing *l = FIND_OPEN_OR_REPLY(s, s->listings, listing_again, req, fi);
    const uint64_t mark = unsynced_mark(l->node);
    int r = s->origin->ops->sync_node(s->origin, l->node->origin);
    if (r == 0)
        unsynced_synced(s, l->node, mark);
    int lost = unsynced_error(s, l->node, &l->seen);
    fuse_reply_err(req, -(lost ? lost : r));
}

/* The next entry at `off`, in l->pending. 1, 0 at the end, -errno. */
static int next_entry(Listing *l, int64_t off, gboolean plus)
{
    if (l->has_pending && l->pending_at == off && (!plus || l->pending.node))
        return 1;
    drop_pending(l);
    int r = l->session->origin->ops->readdir(l->session->origin, l->dir, off, plus, &l->pending);
    l->has_pending = r == 1;
    l->pending_at = off;
    return r;
}

/* Adds the pending entry to buf; its length, or more than `size` when it does not fit. */
static size_t add_entry(fuse_req_t req, Listing *l, char *buf, size_t size)
{
    const OriginEntry *p = &l->pending;
    struct stat st = {.st_ino = p->ino, .st_mode = p->type};
    return fuse_add_direntry(req, buf, size, p->name, &st, p->next);
}

/* An entry with a lookup, of `*counted`, if it is not 0. */
static size_t add_entry_plus(fuse_req_t req, Listing *l, char *buf, size_t size, uint64_t *counted)
{
    Session *s = l->session;
    OriginEntry *p = &l->pending;
    struct fuse_entry_param e = {.attr = {.st_ino = p->ino, .st_mode = p->type}};
    size_t need = fuse_add_direntry_plus(req, NULL, 0, p->name, NULL, 0);
    *counted = 0;
    if (need > size)
        return need;
    /* The kernel counts no lookup for these two. */
    gboolean dots = strcmp(p->name, ".") == 0 || strcmp(p->name, "..") == 0;
    if (p->node && !dots) {
        int r = 0;
        Node *node = nodes_found(s->nodes, g_steal_pointer(&p->node), &p->attr, &r);
        if (node) {
            const NameAsked asked = {l->node, p->name, l->changes};
            entry_fill(s, node, &p->attr, &asked, TRUE, &e);
            *counted = node->id;
            nodes_done(s->nodes, node);
        }
    }
    return fuse_add_direntry_plus(req, buf, size, p->name, &e, p->next);
}

static void reply_listing(fuse_req_t req, size_t size, int64_t off, Listing *l, gboolean plus)
{
    Session *s = l->session;
    g_autofree char *buf = g_malloc(size);
    g_autoptr(GArray) counted = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    size_t used = 0;
    int r;
    pthread_mutex_lock(&l->mutex);
    if (off == 0)
        l->changes = atomic_load(&l->node->changes);
    while ((r = next_entry(l, off, plus)) == 1) {
        size_t room = size - used;
        uint64_t id = 0;
        size_t added = plus ? add_entry_plus(req, l, buf + used, room, &id)
                            : add_entry(req, l, buf + used, room);
        if (added > room)
            break;
        if (id)
            g_array_append_val(counted, id);
        used += added;
        off = l->pending.next;
        drop_pending(l);
    }
    pthread_mutex_unlock(&l->mutex);
    int sent = r < 0 && used == 0 ? fuse_reply_err(req, -r) : fuse_reply_buf(req, buf, used);
    /* The kernel did not get the reply: it does not count the lookups either. */
    for (guint i = 0; sent != 0 && i < counted->len; i++)
        nodes_forget(s->nodes, g_array_index(counted, uint64_t, i), 1);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)ino;
    Session *s = session_of(req);
    Listing *l = FIND_OPEN_OR_REPLY(s, s->listings, listing_again, req, fi);
    reply_listing(req, size, off, l, FALSE);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                           struct fuse_file_info *fi)
{
    (void)ino;
    Session *s = session_of(req);
    Listing *l = FIND_OPEN_OR_REPLY(s, s->listings, listing_again, req, fi);
    reply_listing(req, size, off, l, TRUE);
}

void dirs_ops(struct fuse_lowlevel_ops *ops)
{
    ops->opendir = op_opendir;
    ops->releasedir = op_releasedir;
    ops->fsyncdir = op_fsyncdir;
    ops->readdir = op_readdir;
    ops->readdirplus = op_readdirplus;
}
