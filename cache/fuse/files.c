/*
 * Open files. A reader holds a read lease where the origin grants one: while it is held nobody
 * writes the file, so the version seen at open() names the bytes, the store may serve them and the
 * kernel may keep its pages. A recall takes the lease away: later reads go to the origin and drop
 * the pages behind them, until a lease is granted again. A snapshot's files need no lease.
 *
 *   NONE -> TRYING -> HELD (take_lease) -> RECALLED (recall) -> NONE (handle_recalled)
 *             \-> NONE (refused)  \-> NONE (handles_return_leases, handle_release)
 *
 * HELD is set only when the content belongs to the leased version, so whoever sees it may use it.
 * From TRYING to the way back to NONE the lease owns one reference to the handle.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cache/fuse/reply_buffer.h"
#include "cache/fuse/content.h"
#include "cache/fuse/session_internal.h"

/* For leases of our own that are in the way of a writer here. */
#define RETURN_WAIT_MS 1000

enum {
    LEASE_NONE,
    LEASE_TRYING,
    LEASE_HELD,
    LEASE_RECALLED,
};

struct Handle {
    LIST_ENTRY(Handle) in_session;
    LIST_ENTRY(Handle) in_node;
    Session *session;
    Node *node;
    OriginFile *file;
    gboolean writer, reader, append;
    OriginLease kind;
    _Atomic unsigned refs;
    _Atomic int lease;
    _Atomic int taking;       /* a lease: by one at a time, from its beginning to its end */
    pthread_mutex_t mutex;    /* guards content, plain */
    _Atomic uint64_t version; /* seen when the lease was taken */
    Content *content;         /* what the store has of the leased version; NULL: nothing */
    OriginFile *plain;        /* for pages written back through an O_APPEND handle */
    UnsyncedSeen seen;        /* Node.mutex */
};

static gboolean immutable(const Node *node)
{
    return node->id >> 48 != 0;
}

static Handle *handle_of(struct fuse_file_info *fi)
{
    return (Handle *)(uintptr_t)fi->fh;
}

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
    pthread_mutex_lock(&s->open_mutex);
    LIST_INSERT_HEAD(&s->handles, h, in_session);
    pthread_mutex_unlock(&s->open_mutex);
    pthread_mutex_lock(&node->mutex);
    LIST_INSERT_HEAD(&node->handles, h, in_node);
    pthread_mutex_unlock(&node->mutex);
    /* Of the first one the kernel drops what it has, as it is not told to keep it. Now that the
     * handle is listed, the end of that session is heard of here. */
    if (h->writer && atomic_fetch_add(&node->writers, 1) == 0)
        atomic_store(&node->pages_of, unsynced_session(s));
    if (h->writer || flags & O_TRUNC) {
        spoil_fills(s, node);
        atomic_store(&node->dirty, 1);
        atomic_store(&node->page_version, 0);
    }
    return h;
}

/* An origin may tell here, too, of writes that failed after they were answered. What went with a
 * session is known otherwise. */
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

/* Pages first, then the lease: whoever waits for it may write as soon as it is back. */
static void recalled(Handle *h)
{
    atomic_store(&h->node->page_version, 0);
    atomic_store(&h->node->attr_version, 0);
    notifier_recall(h->session->notifier, h->node, h);
}

/* May hold the origin's locks. A handle that is being released is NONE by then and is left alone.
 */
static void recall(OriginFile *file, void *data)
{
    (void)file;
    Handle *h = data;
    int state = atomic_load(&h->lease);
    do {
        if (state != LEASE_HELD && state != LEASE_TRYING)
            return;
    } while (!atomic_compare_exchange_weak(&h->lease, &state, LEASE_RECALLED));
    recalled(h);
}

void handle_recalled(Session *s, Handle *h)
{
    s->origin->ops->lease(s->origin, h->file, ORIGIN_LEASE_NONE, NULL, NULL);
    int recalled = LEASE_RECALLED;
    atomic_compare_exchange_strong(&h->lease, &recalled, LEASE_NONE);
    notifier_returned(s->notifier);
    handle_unref(h);
}

/* Whether the node is open through a handle that is not guaranteed the content unchanged. */
static gboolean open_without_lease(Node *node)
{
    gboolean found = FALSE;
    Handle *h;
    if (immutable(node))
        return FALSE;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH(h, &node->handles, in_node)
    found |= atomic_load(&h->lease) != LEASE_HELD;
    pthread_mutex_unlock(&node->mutex);
    return found;
}

double attr_valid(Node *node)
{
    return open_without_lease(node) ? 0 : VALID_SEC;
}

void handles_lose_leases(Node *node)
{
    Handle *h;
    pthread_mutex_lock(&node->mutex);
    LIST_FOREACH(h, &node->handles, in_node)
    recall(h->file, h);
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
    LIST_FOREACH(h, &node->handles, in_node)
    {
        int is_held = LEASE_HELD;
        if (h->writer || !atomic_compare_exchange_strong(&h->lease, &is_held, LEASE_RECALLED))
            continue;
        atomic_fetch_add(&h->refs, 1);
        g_ptr_array_add(held, h);
        recalled(h);
    }
    pthread_mutex_unlock(&node->mutex);
    /* Whoever goes on before that is made to wait by the origin, which recalls them too. */
    if (held->len)
        notifier_await(s->notifier, none_recalled, held, RETURN_WAIT_MS);
}

void handles_void_leases(Session *s)
{
    Handle *h;
    pthread_mutex_lock(&s->open_mutex);
    LIST_FOREACH(h, &s->handles, in_session)
    {
        recall(h->file, h);
        atomic_store(&h->node->page_version, 0);
        atomic_store(&h->node->attr_version, 0);
        notifier_drop_soon(s->notifier, h->node);
    }
    pthread_mutex_unlock(&s->open_mutex);
}

/* What was written here must be in the origin under its final version before it is cached. */
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
        content = content_open(s->store, s->origin, attr, &guard);
    pthread_mutex_lock(&h->mutex);
    old = h->content;
    h->content = content;
    pthread_mutex_unlock(&h->mutex);
    content_unref(old);
    return 0;
}

/*
 * Tries to get the file guaranteed unchanged, with h->content of that version. FALSE: somebody uses
 * it in a way that conflicts; *attr is then filled for an opener only: a read holds pages locked
 * and must not ask for more than its bytes.
 */
static gboolean take_lease(Handle *h, gboolean opener, OriginAttr *attr, int *r)
{
    Session *s = h->session;
    if (immutable(h->node)) {
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
    gboolean granted = s->origin->ops->lease(s->origin, h->file, h->kind, recall, h) == 0;
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

/* Decides whether the kernel's pages and attributes are of the version now open. */
static void open_reader(Handle *h, struct fuse_file_info *fi)
{
    Session *s = h->session;
    Node *node = h->node;
    OriginAttr attr;
    int r;
    gboolean leased = take_lease(h, TRUE, &attr, &r);
    if (!leased || r < 0 || atomic_load(&node->attr_version) != attr.version)
        fuse_lowlevel_notify_inval_inode(s->fuse, node->id, -1, 0);
    if (!leased)
        return;
    fi->keep_cache =
        atomic_load(&node->page_version) == attr.version && atomic_load(&node->unsettled) == 0;
    if (h->content)
        atomic_fetch_add(content_was_held(h->content) ? &s->counters.hits : &s->counters.misses, 1);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    const uint64_t session = unsynced_session(s);
    gboolean writer = (fi->flags & O_ACCMODE) != O_RDONLY;
    OriginFile *file;
    if (writer || fi->flags & O_TRUNC)
        handles_return_leases(s, node);
    int r = names_check(s, node);
    if (r == 0 && fi->flags & O_TRUNC)
        r = drop_setuid(s, node, fuse_req_ctx(req)->uid);
    if (r == 0)
        r = s->origin->ops->open(s->origin, node->origin, fi->flags & ~(O_CREAT | O_EXCL), &file);
    if (fi->flags & O_TRUNC)
        unsynced_changed(s, node, session, r);
    if (r < 0) {
        fuse_reply_err(req, -r);
        nodes_done(s->nodes, node);
        return;
    }
    Handle *h = handle_new(s, node, file, fi->flags);
    atomic_fetch_add(&s->counters.opens, 1);
    if (!writer) {
        fi->noflush = 1;
        open_reader(h, fi);
    } else {
        fuse_lowlevel_notify_inval_inode(s->fuse, node->id, -1, 0);
    }
    fi->fh = (uintptr_t)h;
    if (fuse_reply_open(req, fi) != 0)
        handle_release(h);
    nodes_done(s->nodes, node);
}

void handle_release(Handle *h)
{
    Session *s = h->session;
    pthread_mutex_lock(&s->open_mutex);
    LIST_REMOVE(h, in_session);
    pthread_mutex_unlock(&s->open_mutex);
    pthread_mutex_lock(&h->node->mutex);
    LIST_REMOVE(h, in_node);
    pthread_mutex_unlock(&h->node->mutex);
    if (h->writer)
        atomic_fetch_sub(&h->node->writers, 1);
    /* From here a recall finds nothing to do; the lease goes back with the file at the latest. */
    /* Pages outlive the lease only with their version known, for opens that compare it. */
    const gboolean drop = h->writer || open_without_lease(h->node);
    int held = LEASE_HELD;
    if (atomic_compare_exchange_strong(&h->lease, &held, drop ? LEASE_RECALLED : LEASE_NONE)) {
        if (drop)
            recalled(h);
        else
            handle_unref(h);
    }
    handle_unref(h);
}

void handles_close_all(Session *s)
{
    Handle *h;
    while ((h = LIST_FIRST(&s->handles)))
        handle_release(h);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fuse_reply_err(req, 0);
    handle_release(handle_of(fi));
}

static Content *content_of(Handle *h)
{
    pthread_mutex_lock(&h->mutex);
    Content *c = h->content ? content_ref(h->content) : NULL;
    pthread_mutex_unlock(&h->mutex);
    return c;
}

/* Whether what is read now is guaranteed, without asking the origin. */
static gboolean is_leased(Handle *h)
{
    return immutable(h->node) ||
           (origin_vouches(h->session->origin) && atomic_load(&h->lease) == LEASE_HELD);
}

/* The same when it asks. *again: it was not guaranteed since the open. */
static gboolean lease_again(Handle *h, gboolean *again)
{
    if (!origin_vouches(h->session->origin))
        return FALSE;
    OriginAttr attr;
    int r;
    gboolean leased = take_lease(h, FALSE, &attr, &r);
    *again = leased && atomic_load(&h->node->page_version) != atomic_load(&h->version);
    return leased;
}

/*
 * What was there before this handle's lease has been dropped by open(), or is unsettled when the
 * lease was taken later. So with nothing unsettled the pages are of the leased version.
 */
static void label_pages(Handle *h)
{
    Node *node = h->node;
    uint64_t version = atomic_load(&h->version);
    if (!h->writer && atomic_load(&node->page_version) != version &&
        atomic_load(&node->unsettled) == 0)
        atomic_store(&node->page_version, version);
}

/* A request past the page cache locks none: those that are there can be read, and dropped. */
static gboolean locks_pages(const struct fuse_file_info *fi)
{
    return fi->writepage || !(fi->flags & O_DIRECT);
}

static ssize_t read_content(Handle *h, Content *c, void *buf, size_t len, uint64_t off)
{
    Session *s = h->session;
    ContentSource source = CONTENT_OBJECT;
    ssize_t n = content_read(c, h->node->origin, s->volume, buf, len, off, &source);
    if (n >= 0)
        atomic_fetch_add(source == CONTENT_OBJECT ? &s->counters.bytes_store
                                                  : &s->counters.bytes_fill,
                         (uint64_t)n);
    return n;
}

static ssize_t read_origin(Handle *h, void *buf, size_t len, uint64_t off)
{
    Session *s = h->session;
    const uint64_t session = origin_session(s->origin);
    ssize_t n = s->origin->ops->read(s->origin, h->file, buf, len, off);
    if (n > 0) {
        atomic_fetch_add(&s->counters.bytes_origin, (uint64_t)n);
        atomic_store(&h->node->readable_in, session);
    }
    return n;
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    (void)ino;
    Handle *h = handle_of(fi);
    Session *s = h->session;
    Node *node = nodes_use(s->nodes, h->node->id);
    char *buf = reply_buffer(size);
    PageUse use;
    gboolean again = FALSE, leased = is_leased(h);
    Content *c = leased ? content_of(h) : NULL;
    /* Before anything is asked of the origin, the lease too: it may wait for another's lease, which
     * goes back behind a drop of these pages. */
    gboolean waits = locks_pages(fi) && (!c || !content_was_held(c));
    if (waits)
        pages_wait_begin(node, &use, (uint64_t)off, size, FALSE);
    if (!leased) {
        leased = lease_again(h, &again);
        c = leased ? content_of(h) : NULL;
    }
    gboolean stay = leased && !again;
    if (!stay) {
        atomic_fetch_add(&node->unsettled, 1);
        atomic_store(&node->page_version, 0);
    }
    ssize_t n = c ? read_content(h, c, buf, size, (uint64_t)off) : -EAGAIN;
    if (n < 0 && !waits && locks_pages(fi)) {
        waits = TRUE;
        pages_wait_begin(node, &use, (uint64_t)off, size, FALSE);
    }
    if (n < 0)
        n = read_origin(h, buf, size, (uint64_t)off);
    content_unref(c);
    /* TRUE: a drop went around the pages. */
    const gboolean gone_around = waits && pages_wait_end(node, &use);
    if (stay && !gone_around)
        label_pages(h);
    /* The handle may be gone once the reply is out. */
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_buf(req, buf, (size_t)n);
    if (gone_around)
        notifier_drop_pages(s->notifier, node, off, (int64_t)size);
    if (!stay)
        notifier_drop_pages(s->notifier, node, again ? 0 : off, again ? 0 : (int64_t)size);
    nodes_done(s->nodes, node);
}

/* O_APPEND is the origin's to honour, but a page written back from a mapping has its place. */
static int file_for_write(Handle *h, gboolean page, OriginFile **file)
{
    int r = 0;
    *file = h->file;
    if (!page || !h->append)
        return 0;
    Session *s = h->session;
    pthread_mutex_lock(&h->mutex);
    OriginFile *plain = h->plain;
    pthread_mutex_unlock(&h->mutex);
    if (!plain) {
        r = s->origin->ops->open(s->origin, h->node->origin, O_WRONLY, &plain);
        if (r < 0)
            return r;
        pthread_mutex_lock(&h->mutex);
        OriginFile *first = h->plain;
        if (!first)
            h->plain = plain;
        pthread_mutex_unlock(&h->mutex);
        if (first) {
            s->origin->ops->close(s->origin, plain);
            plain = first;
        }
    }
    *file = plain;
    return 0;
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    (void)ino;
    Handle *h = handle_of(fi);
    Session *s = h->session;
    Node *node = nodes_use(s->nodes, h->node->id);
    OriginFile *file;
    PageUse use;
    const gboolean waits = locks_pages(fi);
    if (waits)
        pages_wait_begin(node, &use, (uint64_t)off, size, fi->writepage);
    ssize_t n = file_for_write(h, fi->writepage, &file);
    /* Where the kernel believes the end to be may be long gone; a page of a mapping has its place.
     */
    uint64_t at = h->append && !fi->writepage ? ORIGIN_APPEND : (uint64_t)off;
    const uint64_t session = unsynced_session(s);
    if (n == 0 && fi->writepage && atomic_load(&node->pages_of) != session)
        n = -EIO; /* the kernel reports it as it does each page that cannot be written */
    if (n == 0)
        n = s->origin->ops->write(s->origin, file, buf, size, at);
    const gboolean gone_around = waits && pages_wait_end(node, &use);
    if (n > 0)
        unsynced_wrote(s, node, session);
    atomic_store(&node->dirty, 1);
    atomic_store(&node->page_version, 0);
    /* The kernel keeps what was written, also what a mapping had changed and failed here; and puts
     * an append where it believes the end to be. */
    gboolean stay = n == (ssize_t)size && atomic_load(&h->lease) == LEASE_HELD && !h->append;
    if (!stay)
        atomic_fetch_add(&node->unsettled, 1);
    if (n > 0)
        atomic_fetch_add(&s->counters.bytes_written, (uint64_t)n);
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_write(req, (size_t)n);
    /* After the reply: what is read in between is older than the write, and dropped too. */
    if (!stay)
        notifier_drop_pages(s->notifier, node, 0, 0);
    if (gone_around)
        notifier_drop_pages(s->notifier, node, 0, 0);
    nodes_done(s->nodes, node);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    Handle *h = handle_of(fi);
    Session *s = h->session;
    const uint64_t mark = unsynced_mark(h->node);
    int r = s->origin->ops->fsync(s->origin, h->file, datasync);
    pthread_mutex_lock(&h->mutex);
    OriginFile *plain = h->plain;
    pthread_mutex_unlock(&h->mutex);
    if (r == 0 && plain)
        r = s->origin->ops->fsync(s->origin, plain, datasync);
    if (r == 0)
        unsynced_synced(s, h->node, mark);
    int lost = unsynced_error(s, h->node, &h->seen);
    fuse_reply_err(req, -(lost ? lost : r));
}

/* close(2), also of a duplicate. It waits for nothing, and reports what is known. */
static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    Handle *h = handle_of(fi);
    fuse_reply_err(req, -unsynced_error_at_close(h->session, h->node, &h->seen));
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                         struct fuse_file_info *fi)
{
    (void)ino;
    Handle *h = handle_of(fi);
    Session *s = h->session;
    const uint64_t session = unsynced_session(s);
    int r = s->origin->ops->fallocate(s->origin, h->file, mode, (uint64_t)off, (uint64_t)len);
    if (r == 0)
        unsynced_wrote(s, h->node, session);
    atomic_store(&h->node->dirty, 1);
    atomic_store(&h->node->page_version, 0);
    fuse_reply_err(req, -r);
}

void files_ops(struct fuse_lowlevel_ops *ops)
{
    ops->open = op_open;
    ops->release = op_release;
    ops->read = op_read;
    ops->write = op_write;
    ops->fsync = op_fsync;
    ops->flush = op_flush;
    ops->fallocate = op_fallocate;
}
