/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing threads take directories from a stack and give batches of entries to the writer through a
 * bounded queue. A directory is pushed after the batch that names it, and the queue is in order, so
 * the writer has met a directory before its first batch comes.
 *
 * A waiting directory holds a reference to its inode only while few wait; otherwise it is looked up
 * by name again in its parent, whose reference is kept for that.
 */
#include "cache/manifest/build.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/image.h"
#include "common/io_error.h"

#define BATCH 256
#define BATCH_BYTES (1u << 20) /* of texts, beyond which a batch takes no more entries */
#define QUEUE_MAX 32
/* Waiting directories that may hold a reference of their own. */
#define HELD_MAX 4096
#define XATTR_NAMES_MAX 65536
/* Names of a path in an error: a tree may be deeper than a stack. */
#define SHOWN_MAX 32

typedef struct Dir Dir;
struct Dir {
    atomic_uint references; /* of the directory itself and of those beneath it that still wait */
    Dir *parent;            /* with a reference; NULL: the root */
    OriginNode *node;       /* NULL: to be looked up */
    ErofsImageDir *image;   /* the writer's, and its place among the names */
    uint64_t place;
    char *name;
};

typedef struct Entry {
    ErofsImageEntry entry;
    ObjectKey key; /* of the object */
    ObjectId object;
    Dir *child; /* of a directory; a reference */
} Entry;

typedef struct Batch {
    Dir *dir;
    GArray *entries;     /* Entry */
    GStringChunk *texts; /* names, targets, attributes of the entries */
    size_t bytes;        /* of the attributes, as the largest of the texts */
    gboolean last;       /* of the directory */
} Batch;

typedef struct Build {
    Origin *origin;
    BuildProgress *progress;
    pthread_mutex_t mutex;
    pthread_cond_t work, room, batches;
    GPtrArray *stack; /* Dir: to be listed */
    GQueue queue;     /* Batch: to be written */
    uint64_t open;    /* directories that have not ended */
    unsigned held;    /* of those in the stack, the ones with a node */
    gboolean stopping;
    GError *error; /* the first one of a listing thread */
} Build;

static void dir_unref(Build *b, Dir *dir)
{
    while (dir && atomic_fetch_sub(&dir->references, 1) == 1) {
        Dir *parent = dir->parent;
        if (dir->node)
            b->origin->ops->put(b->origin, dir->node);
        erofs_image_dir_free(dir->image);
        g_free(dir->name);
        g_free(dir);
        dir = parent;
    }
}

static Dir *dir_ref(Dir *dir)
{
    atomic_fetch_add(&dir->references, 1);
    return dir;
}

static Dir *dir_new(Dir *parent, const char *name, OriginNode *node)
{
    Dir *dir = g_new0(Dir, 1);
    atomic_init(&dir->references, 1);
    dir->parent = parent ? dir_ref(parent) : NULL;
    dir->name = g_strdup(name);
    dir->node = node;
    return dir;
}

/* For an error: of a long one the end. */
static char *path_of(const Dir *dir, const char *name)
{
    const char *names[SHOWN_MAX];
    guint n = 0;
    for (; dir->parent && n < SHOWN_MAX; dir = dir->parent)
        names[n++] = dir->name;
    GString *path = g_string_new(dir->parent ? ".../" : "");
    while (n-- > 0)
        g_string_append_printf(path, "%s/", names[n]);
    return g_string_free(g_string_append(path, name), FALSE);
}

static void set_errno(GError **error, const Dir *dir, const char *name, int code)
{
    g_autofree char *path = path_of(dir, name);
    g_autofree char *shown = g_strescape(path, NULL);
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code), "reading \"/%s\": %s", shown,
                g_strerror(code));
}

static void batch_free(Build *b, Batch *batch)
{
    for (guint i = 0; i < batch->entries->len; i++) {
        Entry *e = &g_array_index(batch->entries, Entry, i);
        g_free((ErofsImageXattr *)e->entry.xattrs);
        if (e->child)
            dir_unref(b, e->child);
    }
    g_array_unref(batch->entries);
    g_string_chunk_free(batch->texts);
    dir_unref(b, batch->dir);
    g_free(batch);
}

static Batch *batch_new(Dir *dir)
{
    Batch *batch = g_new0(Batch, 1);
    batch->dir = dir_ref(dir);
    batch->entries = g_array_sized_new(FALSE, TRUE, sizeof(Entry), BATCH);
    batch->texts = g_string_chunk_new(4096);
    return batch;
}

/* ---- listing */

/* The extended attributes of an inode; those Ceph computes are not listed. */
static int read_xattrs(Build *b, OriginNode *node, Batch *batch, ErofsImageEntry *entry)
{
    const OriginOps *ops = b->origin->ops;
    ssize_t length = ops->listxattr(b->origin, node, NULL, 0);
    if (length <= 0)
        return length == -EOPNOTSUPP ? 0 : (int)length;
    if (length > XATTR_NAMES_MAX)
        return -E2BIG;
    g_autofree char *names = g_malloc((gsize)length + 1);
    length = ops->listxattr(b->origin, node, names, (size_t)length);
    if (length < 0)
        return (int)length;
    names[length] = '\0';
    g_autoptr(GArray) list = g_array_new(FALSE, TRUE, sizeof(ErofsImageXattr));
    for (const char *name = names; name < names + length; name += strlen(name) + 1) {
        ssize_t size = ops->getxattr(b->origin, node, name, NULL, 0);
        g_autofree char *value = size >= 0 ? g_malloc((gsize)size + 1) : NULL;
        if (value)
            size = ops->getxattr(b->origin, node, name, value, (size_t)size);
        if (size == -ENODATA)
            continue;
        if (size < 0)
            return (int)size;
        ErofsImageXattr x = {.name = g_string_chunk_insert(batch->texts, name),
                             .value = g_string_chunk_insert_len(batch->texts, value, size),
                             .size = (size_t)size};
        batch->bytes += strlen(name) + (size_t)size;
        g_array_append_val(list, x);
    }
    entry->n_xattrs = list->len;
    entry->xattrs = (ErofsImageXattr *)g_array_free(g_steal_pointer(&list), FALSE);
    return 0;
}

static int read_entry(Build *b, Batch *batch, const OriginEntry *from, Entry *e)
{
    const struct stat *st = &from->attr.st;
    e->entry.name = g_string_chunk_insert(batch->texts, from->name);
    e->entry.st = *st;
    if (S_ISLNK(st->st_mode)) {
        char target[4096];
        int r = b->origin->ops->readlink(b->origin, from->node, target, sizeof(target));
        if (r < 0)
            return r;
        e->entry.target = g_string_chunk_insert_len(batch->texts, target, r);
    } else if (S_ISREG(st->st_mode) && st->st_size > 0) {
        object_key_init(&e->key, b->origin, &from->attr);
        object_key_id(&e->key, &e->object);
    }
    return read_xattrs(b, from->node, batch, &e->entry);
}

/* Puts the directories of a batch on the stack. Those that may not keep their node give it to
 * `dropped`. */
static void push_children(Build *b, const Batch *batch, GPtrArray *dropped)
{
    for (guint i = 0; i < batch->entries->len; i++) {
        Dir *child = g_array_index(batch->entries, Entry, i).child;
        if (!child)
            continue;
        b->open++;
        if (b->held < HELD_MAX)
            b->held++;
        else
            g_ptr_array_add(dropped, g_steal_pointer(&child->node));
        g_ptr_array_add(b->stack, child);
    }
}

/* Gives a batch to the writer; waits for room. When the build is ending, it is freed instead. */
static void submit(Build *b, Batch *batch)
{
    g_autoptr(GPtrArray) dropped = g_ptr_array_new();
    pthread_mutex_lock(&b->mutex);
    while (b->queue.length >= QUEUE_MAX && !b->stopping)
        pthread_cond_wait(&b->room, &b->mutex);
    /* The batch comes before any of its children: the writer must meet them first. */
    push_children(b, batch, dropped);
    g_queue_push_tail(&b->queue, batch);
    pthread_cond_signal(&b->batches);
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->mutex);
    for (guint i = 0; i < dropped->len; i++)
        b->origin->ops->put(b->origin, dropped->pdata[i]);
}

static void stop_with_error(Build *b, const Dir *dir, const char *name, int code)
{
    pthread_mutex_lock(&b->mutex);
    if (!b->error)
        set_errno(&b->error, dir, name, code);
    b->stopping = TRUE;
    pthread_cond_broadcast(&b->batches);
    pthread_cond_broadcast(&b->work);
    pthread_cond_broadcast(&b->room);
    pthread_mutex_unlock(&b->mutex);
}

static gboolean is_stopping(Build *b)
{
    pthread_mutex_lock(&b->mutex);
    gboolean stopping = b->stopping;
    pthread_mutex_unlock(&b->mutex);
    return stopping;
}

/* Reads one entry into the batch, with its node given back or kept by its directory. */
static int take_entry(Build *b, Batch *batch, OriginEntry *from)
{
    Entry e = {0};
    int r = read_entry(b, batch, from, &e);
    if (r == 0 && S_ISDIR(from->attr.st.st_mode))
        e.child = dir_ref(dir_new(batch->dir, from->name, from->node));
    else
        b->origin->ops->put(b->origin, from->node);
    if (r == 0)
        g_array_append_val(batch->entries, e);
    else
        g_free((ErofsImageXattr *)e.entry.xattrs);
    return r;
}

/* Lists an open directory. 0, or -errno with the name at which it failed in *name. */
static int list_open(Build *b, Dir *dir, OriginDir *handle, char **name)
{
    Batch *batch = batch_new(dir);
    OriginEntry from;
    int64_t off = b->origin->ops->after_dots;
    int r;
    while ((r = b->origin->ops->readdir(b->origin, handle, off, TRUE, &from)) > 0) {
        off = from.next;
        if (strcmp(from.name, ".") == 0 || strcmp(from.name, "..") == 0) {
            if (from.node)
                b->origin->ops->put(b->origin, from.node);
            continue;
        }
        r = from.node ? take_entry(b, batch, &from) : -EIO;
        if (r < 0) {
            *name = g_strdup(from.name);
            break;
        }
        if (batch->entries->len == BATCH || batch->bytes >= BATCH_BYTES) {
            submit(b, batch);
            batch = batch_new(dir);
            if (is_stopping(b))
                break;
        }
    }
    batch->last = r == 0;
    submit(b, batch);
    return r;
}

static void list_dir(Build *b, Dir *dir)
{
    const OriginOps *ops = b->origin->ops;
    OriginAttr attr;
    OriginDir *handle;
    g_autofree char *name = NULL;
    int r = 0;
    if (!dir->node)
        r = ops->lookup(b->origin, dir->parent->node, dir->name, &dir->node, &attr);
    if (r == 0)
        r = ops->opendir(b->origin, dir->node, &handle);
    if (r == 0) {
        r = list_open(b, dir, handle, &name);
        ops->closedir(b->origin, handle);
    }
    if (r < 0 && name)
        stop_with_error(b, dir, name, -r);
    else if (r < 0)
        stop_with_error(b, dir->parent ? dir->parent : dir, dir->name, -r);
}

static void *run_lister(void *data)
{
    Build *b = data;
    pthread_mutex_lock(&b->mutex);
    for (;;) {
        while (b->stack->len == 0 && !b->stopping)
            pthread_cond_wait(&b->work, &b->mutex);
        if (b->stopping)
            break;
        Dir *dir = g_ptr_array_steal_index_fast(b->stack, b->stack->len - 1);
        if (dir->node)
            b->held--;
        pthread_mutex_unlock(&b->mutex);
        list_dir(b, dir);
        dir_unref(b, dir);
        pthread_mutex_lock(&b->mutex);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

/* ---- writing */

typedef struct Output {
    ErofsImage *image;
    NamesWriter *names;
    TableWriter *table;
    ManifestFooter *footer;
    uint64_t max_bytes;
} Output;

/* One mode that excludes some users clears the flag. */
static void note_mode(ManifestFooter *footer, mode_t mode)
{
    mode_t wanted = 0;
    if (S_ISDIR(mode))
        wanted = 0005;
    else if (S_ISREG(mode))
        wanted = 0004;
    if ((mode & wanted) != wanted)
        footer->flags &= ~MANIFEST_READABLE;
}

static gboolean write_entry(Build *b, const Output *out, Dir *dir, Entry *e, GError **error)
{
    ErofsImageDir *child = NULL;
    if (S_ISREG(e->entry.st.st_mode) && e->entry.st.st_size > 0)
        e->entry.object = &e->object;
    g_autoptr(GError) cause = NULL;
    if (!erofs_image_add(out->image, dir->image, &e->entry, &child, &cause)) {
        g_autofree char *path = path_of(dir, "");
        g_autofree char *shown = g_strescape(path, NULL);
        g_propagate_prefixed_error(error, g_steal_pointer(&cause), "in \"/%s\": ", shown);
        return FALSE;
    }
    note_mode(out->footer, e->entry.st.st_mode);
    if (e->child) {
        e->child->image = child;
        out->footer->directories++;
        atomic_fetch_add(&b->progress->directories, 1);
        return names_add(out->names, dir->place, e->entry.name, NULL, &e->child->place, error);
    }
    if (!S_ISREG(e->entry.st.st_mode))
        return TRUE;
    out->footer->files++;
    out->footer->bytes += (uint64_t)e->entry.st.st_size;
    atomic_fetch_add(&b->progress->files, 1);
    atomic_fetch_add(&b->progress->bytes, (uint64_t)e->entry.st.st_size);
    uint64_t at;
    return !e->entry.object ||
           (names_add(out->names, dir->place, e->entry.name, &e->key, &at, error) &&
            table_add(out->table, &e->object, at, error));
}

static gboolean check_size(const Output *out, GError **error)
{
    uint64_t bytes =
        erofs_image_bytes(out->image) + names_bytes(out->names) + table_bytes(out->table);
    if (bytes <= out->max_bytes)
        return TRUE;
    return io_fail(error, G_IO_ERROR_NO_SPACE,
                   "it would be larger than %" G_GUINT64_FORMAT
                   " bytes, the most that this cache has room for; give the cache more room",
                   out->max_bytes);
}

static gboolean write_batch(Build *b, const Output *out, Batch *batch, GError **error)
{
    for (guint i = 0; i < batch->entries->len; i++) {
        if (!write_entry(b, out, batch->dir, &g_array_index(batch->entries, Entry, i), error))
            return FALSE;
    }
    if (!check_size(out, error))
        return FALSE;
    return !batch->last || erofs_image_end(out->image, g_steal_pointer(&batch->dir->image), error);
}

/* The next batch; NULL when all is written, or the build is ending. */
static Batch *next_batch(Build *b)
{
    pthread_mutex_lock(&b->mutex);
    while (b->queue.length == 0 && b->open > 0 && !b->stopping)
        pthread_cond_wait(&b->batches, &b->mutex);
    Batch *batch = b->stopping ? NULL : g_queue_pop_head(&b->queue);
    if (batch && batch->last)
        b->open--;
    pthread_cond_broadcast(&b->room);
    pthread_mutex_unlock(&b->mutex);
    return batch;
}

static gboolean write_all(Build *b, const Output *out, GError **error)
{
    gboolean good = TRUE;
    for (Batch *batch; good && (batch = next_batch(b));) {
        good = write_batch(b, out, batch, error);
        batch_free(b, batch);
        if (good && atomic_load(&b->progress->cancel)) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled");
            good = FALSE;
        }
    }
    return good;
}

/* Ends the listing threads and frees what waits. FALSE with their error, if they had one. */
static gboolean finish_listing(Build *b, pthread_t *threads, unsigned n, GError **error)
{
    pthread_mutex_lock(&b->mutex);
    b->stopping = TRUE;
    pthread_cond_broadcast(&b->work);
    pthread_cond_broadcast(&b->room);
    pthread_mutex_unlock(&b->mutex);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (Batch *batch; (batch = g_queue_pop_head(&b->queue));)
        batch_free(b, batch);
    for (guint i = 0; i < b->stack->len; i++)
        dir_unref(b, b->stack->pdata[i]);
    if (!b->error)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&b->error));
    return FALSE;
}

static gboolean walk_and_write(Build *b, const Output *out, Dir *root, unsigned n, GError **error)
{
    g_autofree pthread_t *threads = g_new(pthread_t, n);
    unsigned started = 0;
    g_ptr_array_add(b->stack, root);
    b->open = b->held = 1;
    while (started < n && pthread_create(&threads[started], NULL, run_lister, b) == 0)
        started++;
    gboolean good = started > 0 && write_all(b, out, error);
    if (started == 0)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "no thread can be started");
    /* The writer's own error is reported, not its consequence. */
    return finish_listing(b, threads, started, good ? error : NULL) && good;
}

/* The image is written; the names and the table follow it, then the footer. */
static gboolean write_rest(int fd, const Output *out, GError **error)
{
    ManifestFooter *footer = out->footer;
    uint8_t uuid[16] = {0};
    memcpy(uuid, &footer->root_ino, 8);
    memcpy(uuid + 8, &footer->snapshot, 8);
    footer->inodes = erofs_image_inodes(out->image);
    if (!erofs_image_finish(out->image, uuid, &footer->image_bytes, error))
        return FALSE;
    if (lseek(fd, (off_t)footer->image_bytes, SEEK_SET) < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "the end of the image: %s",
                    g_strerror(errno));
        return FALSE;
    }
    if (!names_finish(out->names, fd, &footer->names_bytes, error))
        return FALSE;
    if (!table_finish(out->table, fd, &footer->records, error))
        return FALSE;
    return manifest_finish(fd, footer, error);
}

gboolean manifest_build(int fd, const char *dir, const BuildTree *tree, uint64_t max_bytes,
                        BuildProgress *progress, GError **error)
{
    Origin *origin = tree->origin;
    Build b = {.origin = origin,
               .progress = progress,
               .mutex = PTHREAD_MUTEX_INITIALIZER,
               .work = PTHREAD_COND_INITIALIZER,
               .room = PTHREAD_COND_INITIALIZER,
               .batches = PTHREAD_COND_INITIALIZER,
               .queue = G_QUEUE_INIT};
    ManifestFooter footer = {.root_ino = tree->attr.st.st_ino,
                             .snapshot = tree->attr.snapshot,
                             .root_version = tree->attr.version};
    memcpy(footer.space, origin->space, sizeof(footer.space));
    footer.flags = MANIFEST_READABLE;
    note_mode(&footer, tree->attr.st.st_mode);
    g_autoptr(NamesWriter) names = names_writer_new(dir, error);
    if (!names)
        return FALSE;
    Dir *top = dir_new(NULL, "", origin->ops->get(origin, tree->root));
    g_autoptr(TableWriter) table = table_writer_new(dir);
    g_autoptr(GPtrArray) stack = b.stack = g_ptr_array_new();
    Batch *of_root = batch_new(top);
    ErofsImageEntry entry = {.st = tree->attr.st};
    int r = read_xattrs(&b, tree->root, of_root, &entry);
    g_autoptr(ErofsImage) image = NULL;
    if (r < 0)
        set_errno(error, top, "", -r);
    else
        image = erofs_image_new(fd, &entry, &top->image, error);
    g_free((ErofsImageXattr *)entry.xattrs);
    batch_free(&b, of_root);
    if (!image) {
        dir_unref(&b, top);
        return FALSE;
    }
    const Output out = {image, names, table, &footer, max_bytes};
    if (!walk_and_write(&b, &out, top, tree->threads ? tree->threads : 8, error))
        return FALSE;
    return write_rest(fd, &out, error);
}
