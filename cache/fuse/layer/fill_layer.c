/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants:
 * 1. Names, node IDs and sizes come from the manifest alone: a lookup never waits for Ceph.
 * 2. Bytes are those of the object the manifest names, or an error.
 */
#include "cache/fuse/layer/fill_layer.h"
#include <errno.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cache/fuse/layer/bypass.h"
#include "cache/fuse/readers.h"
#include "cache/fuse/reply_buffer.h"
#include "cache/fuse/layer/sources.h"
#include "cache/fuse/layer/waiters.h"
#include "common/monotonic.h"
#include "cache/store/disk/key.h"

#define DEFAULT_WAIT_MS 20000
/* The kernel asks twice, once to read ahead. For this time after a read has timed out, others wait
 * only AGAIN_MS. */
#define SILENCE_MS 5000
#define AGAIN_MS 250
/* A read that takes longer goes to a waiter thread, so that reads that wait for Ceph do not block
 * reads of cached bytes. */
#define SOON_MS 100
#define WAITERS_MAX 64
#define BYPASS_THREADS 4
/* Nothing changes, ever. */
#define VALID_SEC 1e9
/* Directories 00 to ff, then the files. */
#define FIRST_DIR 2
#define FIRST_FILE 1024

struct FillLayer {
    Origin *origin;
    Store *store;
    const Manifest *manifest;
    char *dataset;
    unsigned wait_ms;
    struct fuse_session *fuse;
    Readers *readers;
    Waiters *waiters;
    Bypass *bypass;
    Sources *sources;
    atomic_bool refused;
    _Atomic uint64_t silent_ms; /* when a read last timed out; 0: never */
    _Atomic uint64_t reads, bytes_store, bytes_fill, bytes_origin, failed;
};

static FillLayer *layer_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* ---- reading */

static unsigned patience_ms(FillLayer *l)
{
    uint64_t silent = atomic_load(&l->silent_ms);
    return silent && monotonic_ms() - silent < SILENCE_MS ? MIN(AGAIN_MS, l->wait_ms) : l->wait_ms;
}

static ssize_t timed_out(FillLayer *l, unsigned waited_ms)
{
    if (waited_ms >= l->wait_ms)
        atomic_store(&l->silent_ms, monotonic_ms());
    return -ETIMEDOUT;
}

static ssize_t read_object(const Source *s, char *buf, size_t len, uint64_t off)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(s->fd, buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Reads bytes that are cached or arrive soon; -EINPROGRESS: they do not. */
static ssize_t read_soon(FillLayer *l, const Source *s, char *buf, size_t len, uint64_t off)
{
    ssize_t n = -EIO;
    if (s->fd >= 0) {
        n = read_object(s, buf, len, off);
        if (n < 0)
            store_report_bad(l->store, &s->id, (int)-n);
        else
            atomic_fetch_add(&l->bytes_store, (uint64_t)n);
    } else if (s->fill) {
        n = store_fill_read_within(s->fill, buf, len, off, MIN(SOON_MS, patience_ms(l)));
        if (n >= 0)
            atomic_fetch_add(&l->bytes_fill, (uint64_t)n);
    }
    return n < 0 ? -EINPROGRESS : n;
}

/* For reads that read_soon() could not answer. */
static ssize_t read_slowly(FillLayer *l, Source *s, char *buf, size_t len, uint64_t off)
{
    const uint64_t start = monotonic_ms();
    unsigned wait_ms = patience_ms(l);
    if (s->fill) {
        ssize_t n = store_fill_read_within(s->fill, buf, len, off, wait_ms);
        if (n >= 0) {
            atomic_fetch_add(&l->bytes_fill, (uint64_t)n);
            return n;
        }
        if (n == -ETIMEDOUT) {
            /* The fill may have ended, if the timeout is an error of the origin. */
            sources_drop(l->sources, s);
            return timed_out(l, wait_ms);
        }
    }
    sources_drop(l->sources, s);
    /* The time spent waiting for the store counts. */
    unsigned waited = (unsigned)MIN(monotonic_ms() - start, UINT_MAX);
    wait_ms = wait_ms > waited + AGAIN_MS ? wait_ms - waited : MIN(wait_ms, AGAIN_MS);
    g_autofree char *path = manifest_path(l->manifest, s->index);
    const BypassRead read = {
        .path = path, .key = &s->key, .off = off, .len = len, .timeout_ms = wait_ms};
    ssize_t n = path ? bypass_read(l->bypass, &read, buf) : -EIO;
    if (n >= 0)
        atomic_fetch_add(&l->bytes_origin, (uint64_t)n);
    return n == -ETIMEDOUT ? timed_out(l, waited + wait_ms) : n;
}

static void reply_read(FillLayer *l, fuse_req_t req, const char *buf, ssize_t n)
{
    if (n < 0) {
        atomic_fetch_add(&l->failed, 1);
        fuse_reply_err(req, atomic_load(&l->refused) ? EACCES : EIO);
    } else {
        fuse_reply_buf(req, buf, (size_t)n);
    }
}

typedef struct SlowRead {
    fuse_req_t req;
    Source *source; /* a reference */
    size_t len;
    uint64_t off;
} SlowRead;

static void finish_slowly(void *data, gpointer job)
{
    FillLayer *l = data;
    g_autofree SlowRead *r = job;
    char *buf = reply_buffer(r->len);
    reply_read(l, r->req, buf, read_slowly(l, r->source, buf, r->len, r->off));
    source_unref(r->source);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
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
    if (s->key.size == 0) { /* no file of the manifest is empty: its record leads nowhere */
        reply_read(l, req, NULL, -EIO);
        source_unref(s);
        return;
    }
    if ((uint64_t)off >= s->key.size) {
        fuse_reply_buf(req, NULL, 0);
        source_unref(s);
        return;
    }
    size_t len = MIN(size, s->key.size - (uint64_t)off);
    char *buf = reply_buffer(len);
    atomic_fetch_add(&l->reads, 1);
    ssize_t n = read_soon(l, s, buf, len, (uint64_t)off);
    if (n >= 0) {
        reply_read(l, req, buf, n);
        source_unref(s);
        return;
    }
    SlowRead *slow = g_new(SlowRead, 1);
    *slow = (SlowRead){req, s, len, (uint64_t)off};
    if (!waiters_give(l->waiters, slow))
        finish_slowly(l, slow);
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
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_AUTO_INVAL_DATA);
    conn->max_write = READERS_MAX_WRITE;
    conn->max_background = 64;
    conn->congestion_threshold = 48;
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

FillLayer *fill_layer_start(const FillLayerConfig *config, int fuse_fd, void (*ended)(void *data),
                            void *data, GError **error)
{
    FillLayer *l = g_new0(FillLayer, 1);
    l->origin = config->origin;
    l->store = config->store;
    l->manifest = config->manifest;
    l->dataset = g_strdup(config->dataset);
    l->wait_ms = config->wait_ms ? config->wait_ms : DEFAULT_WAIT_MS;
    l->sources = sources_new(l->store, l->origin, l->manifest, l->dataset);
    l->fuse = readers_serve(&operations, l, fuse_fd, error);
    if (!l->fuse) {
        close(fuse_fd);
        fill_layer_stop(l);
        return NULL;
    }
    l->waiters = waiters_new(WAITERS_MAX, finish_slowly, l);
    l->bypass = bypass_start(l->origin, BYPASS_THREADS);
    l->readers = readers_start(l->fuse, ended, data, error);
    if (!l->readers)
        g_clear_pointer(&l, fill_layer_stop);
    return l;
}

int fill_layer_fd(FillLayer *l)
{
    return fuse_session_fd(l->fuse);
}

void fill_layer_refuse(FillLayer *l)
{
    atomic_store(&l->refused, TRUE);
}

void fill_layer_stats(FillLayer *l, FillLayerStats *stats)
{
    *stats = (FillLayerStats){.reads = atomic_load(&l->reads),
                              .bytes_store = atomic_load(&l->bytes_store),
                              .bytes_fill = atomic_load(&l->bytes_fill),
                              .bytes_origin = atomic_load(&l->bytes_origin),
                              .failed = atomic_load(&l->failed)};
}

void fill_layer_stop(FillLayer *l)
{
    if (!l)
        return;
    readers_stop(l->readers);
    waiters_stop(l->waiters);
    bypass_stop(l->bypass);
    sources_free(l->sources);
    if (l->fuse)
        fuse_session_destroy(l->fuse);
    g_free(l->dataset);
    g_free(l);
}
