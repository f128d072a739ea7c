/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease says that no other client writes the file; this node's own writes are noted here, before
 * the origin has them (written.h), and reads of what they touch go to the origin. So a file that is
 * open for writing stays cached.
 *
 * Node.written collects writes for as long as there are writers, and each content that is opened
 * meanwhile is read together with it, which says too much at worst. When there is none it ends, and
 * contents that are still read keep theirs. A change of the size, or the first writer of a file,
 * has all contents forgotten.
 *
 * A lease is lost by each sync of a file that was written, since its handles are replaced then
 * (cache/origin/cephfs/file.c). So before that, and at the last close, it is remembered which
 * object and which writes make up the current version (kept.h).
 */
#include "cache/fuse/live/contents.h"
#include <errno.h>
#include "cache/fuse/live/session_internal.h"

/* Before anything here writes the file. */
static void spoil_fills(Session *s, Node *node)
{
    atomic_fetch_add(&node->writes_begun, 1);
    if (s->store)
        store_spoil_fills(s->store, s->origin, node->id);
}

/* Kept without writers, at most, of a file. */
#define KEPT_BLOCKS_MAX 4096

static void unref_content(gpointer content)
{
    content_unref(content);
}

/* For contents that are given up when no lock is held. */
GPtrArray *contents_array(void)
{
    return g_ptr_array_new_with_free_func(unref_content);
}

/* What the handles read from the store is not to be read any more. */
static void forget_locked(Node *node, GPtrArray *forgotten)
{
    Handle *h;
    LIST_FOREACH (h, &node->handles, in_node) {
        pthread_mutex_lock(&h->mutex);
        if (h->content)
            g_ptr_array_add(forgotten, g_steal_pointer(&h->content));
        written_unref(h->written);
        h->written = written_ref(node->written);
        pthread_mutex_unlock(&h->mutex);
    }
}

void contents_begin_locked(Node *node, GPtrArray *forgotten)
{
    node->written = node->kept ? written_ref(node->kept->written) : written_new();
    forget_locked(node, forgotten);
}

/* Half of the memory is left to files that have writers. */
static gboolean may_keep(Written *written)
{
    return written_blocks(written) <= KEPT_BLOCKS_MAX &&
           written_memory_held() <= written_memory_most() / 2;
}

void contents_end_locked(Node *node)
{
    if (node->kept && (node->kept->written != node->written || !may_keep(node->written)))
        g_clear_pointer(&node->kept, kept_free);
    g_clear_pointer(&node->written, written_unref);
}

/* The object that a handle with a lease reads. FALSE: none. */
static gboolean object_in_use_locked(Node *node, ObjectKey *object)
{
    gboolean found = FALSE;
    Handle *h;
    LIST_FOREACH (h, &node->handles, in_node) {
        if (found || !handle_is_leased(h))
            continue;
        pthread_mutex_lock(&h->mutex);
        found = h->content && h->written && h->written == node->written;
        if (found)
            *object = *content_key(h->content);
        pthread_mutex_unlock(&h->mutex);
    }
    return found;
}

void contents_keep(Session *s, Node *node)
{
    Kept kept = {.session = origin_session(s->origin), .writes = atomic_load(&node->writes_begun)};
    const unsigned recalls = atomic_load(&node->recalls);
    OriginAttr attr;
    pthread_mutex_lock(&node->mutex);
    const gboolean used = object_in_use_locked(node, &kept.object);
    g_autoptr(Written) written = used ? written_ref(node->written) : NULL;
    pthread_mutex_unlock(&node->mutex);
    if (!used || s->origin->ops->getattr(s->origin, node->origin, &attr) < 0)
        return;
    kept.written = written;
    object_key_init(&kept.current, s->origin, &attr);
    pthread_mutex_lock(&node->mutex);
    /* The lease was there all the time, so the attributes are of what is read: no recall of it, not
     * of that of a handle which is being released either (handle_release), no other session, and
     * leases count now. */
    if (atomic_load(&node->recalls) == recalls && node->written == written &&
        origin_vouches(s->origin) && origin_session(s->origin) == kept.session) {
        kept_free(node->kept);
        node->kept = kept_new(&kept);
    }
    pthread_mutex_unlock(&node->mutex);
}

static Written *written_of(Node *node)
{
    pthread_mutex_lock(&node->mutex);
    Written *w = written_ref(node->written);
    pthread_mutex_unlock(&node->mutex);
    return w;
}

/* Who counts this write as one of before, and so asks for a version that may not be the final one,
 * finds the file dirty and fetches nothing. */
static void change_begins(Session *s, Node *node)
{
    atomic_store(&node->dirty, 1);
    spoil_fills(s, node);
}

static void note(Written *w, const BytesChange *c)
{
    if (c->at_end)
        written_add_at_end(w);
    else
        written_add(w, c->off, c->len);
}

static void write_begins(Session *s, Node *node, BytesChange *c)
{
    c->written = written_of(node);
    if (c->written)
        note(c->written, c);
    change_begins(s, node);
}

void contents_write_begin(Session *s, Node *node, BytesChange *c, uint64_t off, uint64_t len)
{
    *c = (BytesChange){.off = off, .len = len};
    write_begins(s, node, c);
}

void contents_append_begin(Session *s, Node *node, BytesChange *c)
{
    *c = (BytesChange){.at_end = TRUE};
    write_begins(s, node, c);
}

void contents_write_end(Node *node, BytesChange *c)
{
    /* A truncation came between: what was opened since may be older than this write. */
    g_autoptr(Written) now = written_of(node);
    if (now && now != c->written)
        note(now, c);
    written_unref(g_steal_pointer(&c->written));
}

void contents_resize_begin(Session *s, Node *node)
{
    contents_resize_end(node);
    change_begins(s, node);
    atomic_store(&node->page_version, 0);
}

void contents_resize_end(Node *node)
{
    g_autoptr(GPtrArray) forgotten = contents_array();
    pthread_mutex_lock(&node->mutex);
    g_clear_pointer(&node->kept, kept_free);
    if (node->written) {
        written_unref(node->written);
        node->written = written_new();
    }
    forget_locked(node, forgotten);
    pthread_mutex_unlock(&node->mutex);
}

/* Writes of this session must be in the origin, with their final version, before the file is
 * cached. */
int contents_current_attr(Session *s, Node *node, OriginAttr *attr)
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

gboolean contents_of(Handle *h, Content **content, Written **written)
{
    pthread_mutex_lock(&h->mutex);
    *content = h->content ? content_ref(h->content) : NULL;
    *written = *content ? written_ref(h->written) : NULL;
    pthread_mutex_unlock(&h->mutex);
    return *content != NULL;
}

/* What another handle, whose lease holds, reads from the store: with what was written since, it is
 * still the content. NULL: nothing. */
static Content *content_of_another(Handle *h, Written *written)
{
    Content *content = NULL;
    Handle *other;
    pthread_mutex_lock(&h->node->mutex);
    LIST_FOREACH (other, &h->node->handles, in_node) {
        if (other == h || content || !handle_is_leased(other))
            continue;
        pthread_mutex_lock(&other->mutex);
        if (other->content && other->written == written)
            content = content_ref(other->content);
        pthread_mutex_unlock(&other->mutex);
    }
    pthread_mutex_unlock(&h->node->mutex);
    return content;
}

/* What was kept of the file, if it has not changed since. */
static Content *content_kept(Handle *h, const OriginAttr *attr, Written *written,
                             const ContentGuard *guard)
{
    Session *s = h->session;
    Node *node = h->node;
    Kept now = {.session = origin_session(s->origin), .writes = guard->seen, .written = written};
    ObjectKey object;
    object_key_init(&now.current, s->origin, attr);
    pthread_mutex_lock(&node->mutex);
    const gboolean good = kept_is_good(node->kept, &now);
    if (good)
        object = node->kept->object;
    pthread_mutex_unlock(&node->mutex);
    return good ? content_open_key(s->store, s->origin, s->volume, &object, guard) : NULL;
}

static Content *if_held(Content *content)
{
    if (!content || content_was_held(content))
        return content;
    content_unref(content);
    return NULL;
}

/* What the store has of the version. While writes are not synced it is not fetched. */
static Content *content_of_version(Handle *h, const OriginAttr *attr, Written *written,
                                   const ContentGuard *guard)
{
    Session *s = h->session;
    Content *content = content_open(s->store, s->origin, s->volume, attr, guard);
    if (!atomic_load(&h->node->dirty))
        return content;
    content = if_held(content);
    if (!content && written)
        content = if_held(content_kept(h, attr, written, guard));
    return content;
}

/* Takes over the content, unless it was forgotten since `written` was the node's. */
static void set_content(Handle *h, Content *content, Written *written)
{
    pthread_mutex_lock(&h->node->mutex);
    const gboolean current = h->node->written == written;
    pthread_mutex_lock(&h->mutex);
    Content *old = h->content;
    h->content = current ? g_steal_pointer(&content) : NULL;
    written_unref(h->written);
    h->written = written_ref(h->node->written);
    pthread_mutex_unlock(&h->mutex);
    pthread_mutex_unlock(&h->node->mutex);
    content_unref(old);
    content_unref(content);
}

/* What the version is now and what the store has of it. */
int contents_look(Handle *h, gboolean opener, OriginAttr *attr)
{
    Session *s = h->session;
    const ContentGuard guard = {
        .writes_begun = &h->node->writes_begun,
        .seen = atomic_load(&h->node->writes_begun),
    };
    g_autoptr(Written) written = written_of(h->node);
    int r = contents_current_attr(s, h->node, attr);
    if (r < 0)
        return r;
    atomic_store(&h->version, attr->version);
    Content *content = NULL;
    const gboolean wanted = h->reader && cacheable(s, attr);
    const gboolean may = wanted && may_read(s, h->node, opener);
    atomic_store(&h->unasked, wanted && !may && !opener);
    if (may) {
        content = written ? content_of_another(h, written) : NULL;
        if (!content)
            content = content_of_version(h, attr, written, &guard);
    }
    set_content(h, content, written);
    return 0;
}
