/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on open files. A read is answered from the store while the bytes are guaranteed
 * (handles.c), else by the origin, and then the kernel's pages of it are dropped behind the reply.
 * Lost writes are reported by fsync and close (unsynced.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include "cache/fuse/live/contents.h"
#include "cache/fuse/live/handles.h"
#include "cache/fuse/live/resume.h"
#include "cache/fuse/live/session_internal.h"
#include "cache/fuse/object_reply.h"
#include "cache/fuse/reply_buffer.h"

/* Decides whether the kernel's pages and attributes are of the version now open. */
static void open_reader(Handle *h, struct fuse_file_info *fi)
{
    Session *s = h->session;
    Node *node = h->node;
    OriginAttr attr;
    int r;
    gboolean leased = handle_take_lease(h, TRUE, &attr, &r);
    if (!leased || r < 0 || atomic_load(&node->attr_version) != attr.version)
        fuse_lowlevel_notify_inval_inode(s->fuse, node->id, -1, 0);
    if (!leased)
        return;
    fi->keep_cache = (h->joined || atomic_load(&node->page_version) == attr.version) &&
                     atomic_load(&node->unsettled) == 0;
    if (h->content)
        atomic_fetch_add(content_was_held(h->content) ? &s->counters.hits : &s->counters.misses, 1);
}

/* Under the lease of another handle of this node the kernel keeps its pages. */
static void open_writer(Handle *h, struct fuse_file_info *fi)
{
    Node *node = h->node;
    OriginAttr attr;
    int r;
    if (h->reader && !(fi->flags & O_TRUNC) && handles_leased(node) &&
        handle_take_lease(h, TRUE, &attr, &r) && h->joined)
        fi->keep_cache = atomic_load(&node->unsettled) == 0;
    else
        fuse_lowlevel_notify_inval_inode(h->session->fuse, node->id, -1, 0);
}

/*
 * Before `caller` truncates by opening: setuid and setgid go, as the kernel has it done for every
 * other write (op_init). 0 or -errno.
 */
static int drop_setuid(Session *s, Node *node, uid_t caller)
{
    const uint64_t session = unsynced_session(s);
    OriginAttr attr;
    /* root has CAP_FSETID; for others it is not known. */
    if (caller == 0)
        return 0;
    int r = s->origin->ops->getattr(s->origin, node->origin, &attr);
    if (r < 0 || !S_ISREG(attr.st.st_mode))
        return r;
    mode_t dropped = attr.st.st_mode & S_ISUID;
    if (attr.st.st_mode & S_IXGRP)
        dropped |= attr.st.st_mode & S_ISGID;
    if (!dropped)
        return 0;
    const struct stat st = {.st_mode = attr.st.st_mode & ~dropped};
    return unsynced_changed(
        s, node, session,
        s->origin->ops->setattr(s->origin, node->origin, &st, ORIGIN_SET_MODE, &attr));
}

static void add_time(_Atomic uint64_t *sum_us, gint64 began_us)
{
    atomic_fetch_add_explicit(sum_us, (uint64_t)(g_get_monotonic_time() - began_us),
                              memory_order_relaxed);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    const uint64_t session = unsynced_session(s);
    const gint64 began_us = g_get_monotonic_time();
    gboolean writer = (fi->flags & O_ACCMODE) != O_RDONLY;
    OriginFile *file;
    if (fi->flags & O_TRUNC || (writer && atomic_load(&node->writers) == 0))
        handles_return_leases(s, node);
    if (fi->flags & O_TRUNC)
        contents_resize_begin(s, node);
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
        fi->noflush = !s->locks; /* a close gives back locks */
        open_reader(h, fi);
    } else {
        open_writer(h, fi);
    }
    fi->fh = h->fh;
    add_time(&s->counters.open_us, began_us);
    if (fuse_reply_open(req, fi) != 0)
        handle_release(h);
    nodes_done(s->nodes, node);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    Session *s = session_of(req);
    if (resume_release_file(s, fi->fh)) {
        fuse_reply_err(req, 0);
        return;
    }
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    fuse_reply_err(req, 0);
    if (s->locks)
        locks_release(s->locks, h->node->id, h->fh);
    handle_release(h);
}

/* A request past the page cache locks none: those that are there can be read, and dropped. */
static gboolean locks_pages(const struct fuse_file_info *fi)
{
    return fi->writepage || !(fi->flags & O_DIRECT);
}

/* What is open, for a request that keeps pages locked: opening it again may wait in Ceph for a
 * lease that goes back behind a drop of these pages. */
static Handle *find_under_pages(Session *s, fuse_ino_t ino, const struct fuse_file_info *fi,
                                uint64_t off, size_t size, int *error)
{
    Handle *h = opened_find(s->files, fi->fh);
    PageUse use;
    *error = -EBADF;
    if (h || !session_is_resumed(s))
        return h;
    if (!locks_pages(fi))
        return resume_file(s, fi->fh, error);
    Node *node = nodes_use_again(s->nodes, ino, error);
    if (!node)
        return NULL;
    pages_wait_begin(node, &use, off, size, fi->writepage);
    h = resume_file(s, fi->fh, error);
    if (pages_wait_end(node, &use))
        notifier_drop_pages(s->notifier, node, (int64_t)off, (int64_t)size);
    nodes_done(s->nodes, node);
    return h;
}

/* What the store has of these bytes, the caller's. NULL: nothing, or they were written since. */
static Content *content_for(Handle *h, size_t len, uint64_t off)
{
    Content *c;
    g_autoptr(Written) written = NULL;
    if (!contents_of(h, &c, &written) || !written_touches(written, off, len, content_key(c)->size))
        return c;
    content_unref(c);
    return NULL;
}

/* Whether what is read now is guaranteed, without asking the origin. */
static gboolean is_leased(Handle *h)
{
    return node_is_snapshot(h->node) ||
           (origin_vouches(h->session->origin) && atomic_load(&h->lease) == LEASE_HELD);
}

/* The same when it asks. *again: it was not guaranteed since the open. */
static gboolean lease_again(Handle *h, gboolean *again)
{
    if (!origin_vouches(h->session->origin) || !handle_may_ask(h))
        return FALSE;
    OriginAttr attr;
    int r;
    gboolean leased = handle_take_lease(h, FALSE, &attr, &r);
    *again =
        leased && !h->joined && atomic_load(&h->node->page_version) != atomic_load(&h->version);
    return leased;
}

/*
 * Pages from before this handle's lease were dropped by open(), or are unsettled when the lease was
 * taken later. So with nothing unsettled the pages are of the leased version, and of what was
 * written since: then they have no version that another open could compare.
 */
static void label_pages(Handle *h)
{
    Node *node = h->node;
    uint64_t version = atomic_load(&h->version);
    if (atomic_load(&node->page_version) == version || atomic_load(&node->unsettled))
        return;
    pthread_mutex_lock(&h->mutex);
    const gboolean written = h->written != NULL;
    pthread_mutex_unlock(&h->mutex);
    if (!written && !h->writer)
        atomic_store(&node->page_version, version);
}

static ssize_t read_content(Handle *h, Content *c, void *buf, size_t len, uint64_t off)
{
    Session *s = h->session;
    ContentSource source = CONTENT_OBJECT;
    ssize_t n = content_read(c, h->node->origin, buf, len, off, &source);
    if (n >= 0)
        atomic_fetch_add(source == CONTENT_OBJECT ? &s->counters.bytes_store
                                                  : &s->counters.bytes_fill,
                         (uint64_t)n);
    return n;
}

/* TRUE: it is answered, from the object, and the handle may be gone. */
static gboolean reply_object(fuse_req_t req, Handle *h, Content *c, size_t len, uint64_t off)
{
    Session *s = h->session;
    const int fd = content_object(c, &len, off);
    if (fd < 0 || !object_reply_fill(fd, len, off))
        return FALSE;
    label_pages(h);
    atomic_fetch_add(&s->counters.bytes_store, len);
    if (object_reply_send(req, fuse_session_fd(s->fuse)))
        return TRUE;
    atomic_fetch_sub(&s->counters.bytes_store, len);
    return FALSE;
}

static ssize_t read_origin(Handle *h, void *buf, size_t len, uint64_t off)
{
    Session *s = h->session;
    const uint64_t session = origin_session(s->origin);
    const gint64 began_us = g_get_monotonic_time();
    ssize_t n = s->origin->ops->read(s->origin, h->file, buf, len, off);
    add_time(&s->counters.origin_us, began_us);
    atomic_fetch_add(&s->counters.origin_reads, 1);
    if (n > 0) {
        atomic_fetch_add(&s->counters.bytes_origin, (uint64_t)n);
        atomic_store(&h->node->readable_in, session);
    }
    return n;
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    Session *s = session_of(req);
    int not_open;
    Handle *h = find_under_pages(s, ino, fi, (uint64_t)off, size, &not_open);
    if (!h) {
        fuse_reply_err(req, -not_open);
        return;
    }
    if (is_unlocked_by_loss(s, h->node)) {
        fuse_reply_err(req, EIO);
        return;
    }
    const gint64 began_us = g_get_monotonic_time();
    Node *node = nodes_use(s->nodes, h->node->id);
    char *buf = reply_buffer(size);
    PageUse use;
    atomic_fetch_add_explicit(&s->counters.reads, 1, memory_order_relaxed);
    const unsigned lease = atomic_load(&h->leases);
    gboolean again = FALSE, leased = is_leased(h);
    /* Before anything is asked of the origin, the lease too: it may wait for another's lease, which
     * goes back behind a drop of these pages. */
    const gboolean looks = leased && handle_looks_again(h);
    gboolean waits = looks && locks_pages(fi);
    if (waits)
        pages_wait_begin(node, &use, (uint64_t)off, size, FALSE);
    if (looks)
        handle_look_again(h);
    Content *c = leased ? content_for(h, size, (uint64_t)off) : NULL;
    if (!waits && locks_pages(fi) && (!c || !content_was_held(c))) {
        waits = TRUE;
        pages_wait_begin(node, &use, (uint64_t)off, size, FALSE);
    }
    if (!leased) {
        leased = lease_again(h, &again);
        c = leased ? content_for(h, size, (uint64_t)off) : NULL;
    }
    gboolean stay = leased && !again;
    if (stay) {
        atomic_store(&h->settled, lease);
    } else {
        atomic_fetch_add(&node->unsettled, 1);
        atomic_store(&node->page_version, 0);
    }
    if (c && stay && !waits && reply_object(req, h, c, size, (uint64_t)off)) {
        add_time(&s->counters.read_us, began_us);
        content_unref(c);
        nodes_done(s->nodes, node);
        return;
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
    add_time(&s->counters.read_us, began_us);
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
    Session *s = session_of(req);
    int not_open;
    Handle *h = find_under_pages(s, ino, fi, (uint64_t)off, size, &not_open);
    if (!h) {
        fuse_reply_err(req, -not_open);
        return;
    }
    if (is_unlocked_by_loss(s, h->node)) {
        fuse_reply_err(req, EIO);
        return;
    }
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
        n = -EIO; /* the kernel reports it, as for each page that cannot be written */
    BytesChange change;
    if (at == ORIGIN_APPEND)
        contents_append_begin(s, node, &change);
    else
        contents_write_begin(s, node, &change, at, size);
    if (n == 0)
        n = s->origin->ops->write(s->origin, file, buf, size, at);
    contents_write_end(node, &change);
    const gboolean gone_around = waits && pages_wait_end(node, &use);
    if (n > 0)
        unsynced_wrote(s, node, session);
    atomic_store(&node->page_version, 0);
    /* The kernel keeps the written pages, also those of a mapping whose write failed here, and puts
     * an append at the end that it knows. */
    gboolean stay = n == (ssize_t)size && handles_leased(node) && !h->append;
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
    Session *s = session_of(req);
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    const uint64_t mark = unsynced_mark(h->node);
    contents_keep(s, h->node);
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

/* close(2), also of a duplicate. It reports what is known, and waits for nothing but locks to go
 * back. */
static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    Session *s = session_of(req);
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    if (s->locks)
        locks_flush(s->locks, h->node->id, h->fh, fi->lock_owner);
    fuse_reply_err(req, -unsynced_error_at_close(s, h->node, &h->seen));
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                         struct fuse_file_info *fi)
{
    (void)ino;
    Session *s = session_of(req);
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    const uint64_t session = unsynced_session(s);
    int r = -EIO;
    BytesChange change;
    contents_write_begin(s, h->node, &change, (uint64_t)off, (uint64_t)len);
    if (!is_unlocked_by_loss(s, h->node))
        r = s->origin->ops->fallocate(s->origin, h->file, mode, (uint64_t)off, (uint64_t)len);
    contents_write_end(h->node, &change);
    if (r == 0)
        unsynced_wrote(s, h->node, session);
    atomic_store(&h->node->page_version, 0);
    fuse_reply_err(req, -r);
}

/* ---- locks ---- */

static LocksFile file_to_lock(const Handle *h)
{
    return (LocksFile){h->node->id, node_is_snapshot(h->node) ? NULL : h->node->origin};
}

static void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
    (void)ino;
    Session *s = session_of(req);
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    const LockRequest r = {.fh = h->fh, .owner = fi->lock_owner, .lock = *lock};
    locks_get(s->locks, req, file_to_lock(h), &r);
}

static void op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                     int sleep)
{
    (void)ino;
    Session *s = session_of(req);
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    const LockRequest r = {.fh = h->fh, .owner = fi->lock_owner, .waits = sleep, .lock = *lock};
    locks_set(s->locks, req, file_to_lock(h), &r);
}

static void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
    (void)ino;
    Session *s = session_of(req);
    Handle *h = FIND_OPEN_OR_REPLY(s, s->files, resume_file, req, fi);
    LockRequest r = {.fh = h->fh, .owner = fi->lock_owner, .is_flock = TRUE};
    r.waits = !(op & LOCK_NB);
    r.lock.l_pid = fuse_req_ctx(req)->pid;
    if (op & LOCK_UN)
        r.lock.l_type = F_UNLCK;
    else
        r.lock.l_type = op & LOCK_EX ? F_WRLCK : F_RDLCK;
    locks_set(s->locks, req, file_to_lock(h), &r);
}

void files_lock_ops(struct fuse_lowlevel_ops *ops)
{
    ops->getlk = op_getlk;
    ops->setlk = op_setlk;
    ops->flock = op_flock;
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
