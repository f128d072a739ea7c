/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants:
 * 1. Names, node IDs and sizes come from the manifest alone: a lookup never waits for Ceph.
 * 2. Bytes are those of the object the manifest names, or an error.
 * 3. No thread of the layer waits for Ceph: reads.h.
 */
#include "cache/fuse/layer/fill_layer.h"
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "cache/fuse/readers.h"
#include "cache/fuse/take_over.h"
#include "cache/fuse/layer/reads.h"
#include "cache/store/disk/key.h"

#define DEFAULT_SILENT_MS 20000
/* Requests in the background, such as reading ahead. With more of them the kernel lets no reader of
 * the mount go on, not even in bytes that are cached. */
#define BACKGROUND_MAX 65535
/* Nothing changes, ever. */
#define VALID_SEC 1e9
/* Directories 00 to ff, then the files. */
#define FIRST_DIR 2
#define FIRST_FILE 1024

struct FillLayer {
    const Manifest *manifest;
    char *dataset;
    struct fuse_session *fuse;
    GBytes *init; /* NULL: no other process can take the mount over */
    Readers *readers;
    Sources *sources;
    Reads *reads;
    atomic_bool refused;
};

static FillLayer *layer_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* ---- reading */

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t len, off_t off,
                    struct fuse_file_info *fi)
{
    (void)fi;
    FillLayer *l = layer_of(req);
    if (atomic_load(&l->refused)) {
        fuse_reply_err(req, EACCES);
        return;
    }
    if (ino < FIRST_FILE || ino - FIRST_FILE >= l->manifest->footer.records) {
        fuse_reply_err(req, EISDIR);
        return;
    }
    Source *s = sources_get(l->sources, ino - FIRST_FILE);
    const uint64_t size = s->key.size;
    if (size > 0 && (uint64_t)off < size) {
        reads_begin(l->reads, req, s, MIN(len, size - (uint64_t)off), (uint64_t)off);
        return;
    }
    source_unref(s);
    if (size == 0) /* no file of the manifest is empty: its record leads nowhere */
        reads_fail(l->reads, req);
    else
        fuse_reply_buf(req, NULL, 0);
}

/* ---- names */

/* -EIO: the manifest cannot be read. */
static int fill_stat(const FillLayer *l, fuse_ino_t ino, struct stat *st)
{
    *st = (struct stat){.st_ino = ino, .st_nlink = 1, .st_blksize = 4096};
    if (ino < FIRST_FILE) {
        st->st_mode = S_IFDIR | 0555;
        st->st_nlink = 2;
        return 0;
    }
    ObjectKey key;
    if (!manifest_key(l->manifest, ino - FIRST_FILE, &key))
        return -EIO;
    st->st_mode = S_IFREG | 0444;
    st->st_size = (off_t)key.size;
    st->st_blocks = (st->st_size + 511) / 512;
    st->st_mtim.tv_sec = key.mtime_sec;
    st->st_mtim.tv_nsec = key.mtime_nsec;
    return 0;
}

/* The node ID of a name. -ENOENT: there is none, and never will be; -EIO: the manifest cannot be
 * read. */
static int find_name(const FillLayer *l, fuse_ino_t parent, const char *name, fuse_ino_t *ino)
{
    char hex[OBJECT_ID_HEX + 1] = "00000000000000000000000000000000";
    ObjectId id;
    uint64_t index = 0;
    gboolean is_dir = parent == FUSE_ROOT_ID && strlen(name) == 2;
    if (!is_dir &&
        (parent < FIRST_DIR || parent >= FIRST_DIR + 256 || strlen(name) != OBJECT_ID_HEX))
        return -ENOENT;
    memcpy(hex, name, strlen(name));
    if (!object_id_parse(hex, &id))
        return -ENOENT;
    *ino = FIRST_DIR + id.bytes[0];
    if (is_dir)
        return 0;
    if (id.bytes[0] != parent - FIRST_DIR)
        return -ENOENT;
    int r = manifest_find(l->manifest, &id, &index);
    *ino = FIRST_FILE + index;
    return r;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    FillLayer *l = layer_of(req);
    struct fuse_entry_param e = {.attr_timeout = VALID_SEC, .entry_timeout = VALID_SEC};
    int r = atomic_load(&l->refused) ? -EACCES : find_name(l, parent, name, &e.ino);
    if (r == 0)
        r = fill_stat(l, e.ino, &e.attr);
    if (r == -ENOENT)
        e.ino = 0; /* the kernel caches that, too */
    if (r == 0 || r == -ENOENT)
        fuse_reply_entry(req, &e);
    else
        fuse_reply_err(req, -r);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
    (void)ino, (void)nlookup;
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    (void)count, (void)forgets;
    fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    FillLayer *l = layer_of(req);
    struct stat st;
    if (ino >= FIRST_FILE && ino - FIRST_FILE >= l->manifest->footer.records) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    int r = fill_stat(l, ino, &st);
    if (r == 0)
        fuse_reply_attr(req, &st, VALID_SEC);
    else
        fuse_reply_err(req, -r);
}

/* The kernel then opens without asking: NO_OPEN. */
static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    fuse_reply_err(req, ENOSYS);
}

/* overlayfs never lists a data-only layer; a listing by hand is empty. */
static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)ino, (void)size, (void)off, (void)fi;
    fuse_reply_buf(req, NULL, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    const ManifestFooter *f = &layer_of(req)->manifest->footer;
    const struct statvfs st = {.f_bsize = 4096,
                               .f_frsize = 4096,
                               .f_blocks = f->bytes / 4096,
                               .f_files = f->files,
                               .f_namemax = 255};
    fuse_reply_statfs(req, &st);
}

static void op_init(void *data, struct fuse_conn_info *conn)
{
    (void)data;
    /* The kernel cannot interrupt who waits for an ASYNC_DIO. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_DIO);
    conn->max_write = READERS_MAX_WRITE;
    conn->max_background = BACKGROUND_MAX;
    conn->congestion_threshold = BACKGROUND_MAX;
}

/* ---- life */

static const struct fuse_lowlevel_ops operations = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .open = op_open,
    .opendir = op_open,
    .read = op_read,
    .readdir = op_readdir,
    .statfs = op_statfs,
};

static FillLayer *layer_new(const FillLayerConfig *config)
{
    FillLayer *l = g_new0(FillLayer, 1);
    l->manifest = config->manifest;
    l->dataset = g_strdup(config->dataset);
    l->sources = sources_new(config->store, config->origin, l->manifest, l->dataset);
    const ReadsConfig reads = {
        .origin = config->origin,
        .store = config->store,
        .manifest = config->manifest,
        .sources = l->sources,
        .silent_ms = config->silent_ms ? config->silent_ms : DEFAULT_SILENT_MS,
        .timeout_ms = config->timeout_ms,
    };
    l->reads = reads_new(&reads);
    return l;
}

FillLayer *fill_layer_start(const FillLayerConfig *config, int fuse_fd, void (*ended)(void *data),
                            void *data, GError **error)
{
    FillLayer *l = layer_new(config);
    l->fuse = take_over_begin(&operations, l, fuse_fd, &l->init, error);
    if (!l->fuse) {
        close(fuse_fd);
        fill_layer_stop(l);
        return NULL;
    }
    l->readers = readers_start(l->fuse, ended, data, error);
    if (!l->readers)
        g_clear_pointer(&l, fill_layer_stop);
    return l;
}

static gboolean has_same_places(const Manifest *manifest, const LayerNote *note, GError **error)
{
    uint64_t places;
    if (manifest_places(manifest, &places) && places == note->places)
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "the mount was served with another manifest");
    return FALSE;
}

FillLayer *fill_layer_take_over(const FillLayerConfig *config, int fuse_fd, const LayerNote *note,
                                void (*ended)(void *data), void *data, GError **error)
{
    FillLayer *l = layer_new(config);
    if (has_same_places(l->manifest, note, error))
        l->fuse = take_over_serve(&operations, l, fuse_fd, note->init, error);
    if (!l->fuse) {
        close(fuse_fd);
        fill_layer_leave(l);
        return NULL;
    }
    l->init = g_bytes_ref(note->init);
    /* Before anything is read: what comes later is not sent again. */
    if (take_over_resend(l->fuse, error))
        l->readers = readers_start(l->fuse, ended, data, error);
    if (!l->readers)
        g_clear_pointer(&l, fill_layer_leave);
    return l;
}

gboolean fill_layer_note(FillLayer *l, LayerNote *note)
{
    *note = (LayerNote){0};
    if (!l->init || !manifest_places(l->manifest, &note->places))
        return FALSE;
    note->init = g_bytes_ref(l->init);
    return TRUE;
}

int fill_layer_fd(FillLayer *l)
{
    return fuse_session_fd(l->fuse);
}

void fill_layer_refuse(FillLayer *l)
{
    atomic_store(&l->refused, TRUE);
    reads_refuse(l->reads);
}

void fill_layer_stats(FillLayer *l, FillLayerStats *stats)
{
    const ReadCounts *c = reads_counts(l->reads);
    *stats = (FillLayerStats){.reads = atomic_load(&c->reads),
                              .read_us = atomic_load(&c->read_us),
                              .bytes_store = atomic_load(&c->bytes_store),
                              .bytes_fill = atomic_load(&c->bytes_fill),
                              .bytes_origin = atomic_load(&c->bytes_origin),
                              .failed = atomic_load(&c->failed)};
}

void fill_layer_stop(FillLayer *l)
{
    if (!l)
        return;
    readers_stop(l->readers);
    reads_free(l->reads);
    sources_free(l->sources);
    if (l->fuse)
        fuse_session_destroy(l->fuse);
    g_clear_pointer(&l->init, g_bytes_unref);
    g_free(l->dataset);
    g_free(l);
}

void fill_layer_leave(FillLayer *l)
{
    if (l)
        reads_leave(l->reads);
    fill_layer_stop(l);
}
