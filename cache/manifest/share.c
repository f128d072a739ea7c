#include "cache/manifest/share.h"
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define THREADS 4
#define NAME_BYTES 96
#define MISSING_MAX 64

static void header_name(const char *id, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "manifest.%s", id);
}

static void part_name(const char *id, uint64_t nonce, uint64_t part, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "manifest.%s.%016" G_GINT64_MODIFIER "x.%08" G_GINT64_MODIFIER "x",
             id, nonce, part);
}

static gboolean fail(GError **error, const char *name, int code)
{
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code), "object %s: %s", name,
                g_strerror(code));
    return FALSE;
}

static uint64_t header_checksum(const ShareHeader *as_stored)
{
    return htole64(XXH3_64bits(as_stored, offsetof(ShareHeader, checksum)));
}

static OriginBlobs *open_blobs(Origin *origin, GError **error)
{
    OriginBlobs *blobs;
    if (!origin->ops->blobs_open) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "an origin of type %s keeps none",
                    origin->ops->type);
        return NULL;
    }
    int r = origin->ops->blobs_open(origin, &blobs);
    if (r == 0)
        return blobs;
    fail(error, "namespace of manifests", -r);
    return NULL;
}

static gboolean read_header(const OriginOps *ops, OriginBlobs *blobs, const char *id,
                            ShareHeader *h, GError **error)
{
    char name[NAME_BYTES];
    header_name(id, name);
    ssize_t n = ops->blob_read(blobs, name, h, sizeof(*h), 0);
    if (n < 0)
        return fail(error, name, (int)-n);
    gboolean good = n == sizeof(*h) && memcmp(h->magic, SHARE_MAGIC, sizeof(h->magic)) == 0 &&
                    h->checksum == header_checksum(h) && le32toh(h->version) == SHARE_VERSION &&
                    le32toh(h->part_bytes) == SHARE_PART && le64toh(h->bytes) > 0;
    if (!good)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "object %s is damaged, or of another version", name);
    return good;
}

/* ---- fetching */

typedef struct Fetch {
    const OriginOps *ops;
    OriginBlobs *blobs;
    const char *id;
    uint64_t bytes, nonce;
    int fd;
    atomic_bool *cancel;
    _Atomic uint64_t next; /* part */
    pthread_mutex_t lock;
    GError *error;    /* lock; the first one */
    gboolean damaged; /* lock; a part is missing or cut short */
} Fetch;

static void set_failed(Fetch *f, const char *name, int code)
{
    pthread_mutex_lock(&f->lock);
    if (!f->error) {
        fail(&f->error, name, code);
        f->damaged = code == ENOENT || code == EBADMSG;
    }
    pthread_mutex_unlock(&f->lock);
    atomic_store(&f->next, UINT64_MAX / SHARE_PART);
}

static void *run_fetch(void *data)
{
    Fetch *f = data;
    g_autofree char *buf = g_malloc(SHARE_PART);
    for (;;) {
        char name[NAME_BYTES];
        uint64_t part = atomic_fetch_add(&f->next, 1), off = part * SHARE_PART;
        if (off >= f->bytes)
            return NULL;
        size_t length = MIN(SHARE_PART, f->bytes - off);
        part_name(f->id, f->nonce, part, name);
        ssize_t n =
            atomic_load(f->cancel) ? -ECANCELED : f->ops->blob_read(f->blobs, name, buf, length, 0);
        if (n == (ssize_t)length && pwrite(f->fd, buf, length, (off_t)off) != (ssize_t)length)
            n = errno ? -errno : -EIO;
        if (n != (ssize_t)length) {
            set_failed(f, name, n < 0 ? (int)-n : EBADMSG);
            return NULL;
        }
    }
}

static gboolean fetch_parts(Fetch *f, GError **error)
{
    pthread_t threads[THREADS];
    unsigned started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, run_fetch, f) == 0)
        started++;
    if (started == 0)
        run_fetch(f);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (!f->error)
        return TRUE;
    if (f->damaged)
        f->error->code = G_IO_ERROR_INVALID_DATA;
    g_propagate_error(error, f->error);
    return FALSE;
}

gboolean share_fetch(Origin *origin, const char *id, int fd, atomic_bool *cancel, GError **error)
{
    ShareHeader h;
    const OriginOps *ops = origin->ops;
    OriginBlobs *blobs = open_blobs(origin, error);
    if (!blobs)
        return FALSE;
    gboolean good = read_header(ops, blobs, id, &h, error);
    if (good) {
        Fetch f = {.ops = ops,
                   .blobs = blobs,
                   .id = id,
                   .bytes = le64toh(h.bytes),
                   .nonce = le64toh(h.nonce),
                   .fd = fd,
                   .cancel = cancel,
                   .lock = PTHREAD_MUTEX_INITIALIZER};
        good = fetch_parts(&f, error);
    }
    ops->blobs_close(blobs);
    if (good && fsync(fd) != 0)
        return fail(error, id, errno);
    return good;
}

/* ---- putting */

/* A header may say any number: not further than they go, but for some that were lost. */
static void remove_parts(const OriginOps *ops, OriginBlobs *blobs, const char *id, uint64_t nonce,
                         uint64_t bytes)
{
    char name[NAME_BYTES];
    unsigned missing = 0;
    for (uint64_t part = 0; part <= bytes / SHARE_PART && missing < MISSING_MAX; part++) {
        part_name(id, nonce, part, name);
        missing = ops->blob_remove(blobs, name) == -ENOENT ? missing + 1 : 0;
    }
}

/* For who deletes the snapshot. */
static gboolean note(const OriginOps *ops, OriginBlobs *blobs, const char *snapshot, const char *id,
                     uint64_t nonce, uint64_t bytes, GError **error)
{
    g_autofree char *name = g_strconcat("manifest-of.", snapshot, NULL);
    g_autofree char *line =
        g_strdup_printf("%s %016" G_GINT64_MODIFIER "x %08" G_GINT64_MODIFIER "x\n", id, nonce,
                        (bytes + SHARE_PART - 1) / SHARE_PART);
    int r = ops->blob_append(blobs, name, line, strlen(line));
    return r >= 0 || fail(error, name, -r);
}

static gboolean put_parts(const OriginOps *ops, OriginBlobs *blobs, const char *id, uint64_t nonce,
                          int fd, uint64_t bytes, atomic_bool *cancel, GError **error)
{
    g_autofree char *buf = g_malloc(SHARE_PART);
    for (uint64_t off = 0; off < bytes; off += SHARE_PART) {
        char name[NAME_BYTES];
        size_t length = MIN(SHARE_PART, bytes - off);
        part_name(id, nonce, off / SHARE_PART, name);
        if (atomic_load(cancel))
            return fail(error, name, ECANCELED);
        if (pread(fd, buf, length, (off_t)off) != (ssize_t)length)
            return fail(error, name, EIO);
        int r = ops->blob_write(blobs, name, buf, length, FALSE);
        if (r < 0)
            return fail(error, name, -r);
    }
    return TRUE;
}

static gboolean put_all(const OriginOps *ops, OriginBlobs *blobs, const char *snapshot,
                        const char *id, int fd, gboolean replace, atomic_bool *cancel,
                        GError **error)
{
    struct stat st;
    uint64_t nonce;
    char name[NAME_BYTES];
    ShareHeader old, h = {.version = htole32(SHARE_VERSION), .part_bytes = htole32(SHARE_PART)};
    header_name(id, name);
    gboolean there = read_header(ops, blobs, id, &old, NULL);
    if (there && !replace)
        return TRUE;
    if (fstat(fd, &st) != 0 || getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
        return fail(error, name, errno);
    uint64_t bytes = (uint64_t)st.st_size;
    memcpy(h.magic, SHARE_MAGIC, sizeof(h.magic));
    h.bytes = htole64(bytes);
    h.nonce = htole64(nonce);
    h.checksum = header_checksum(&h);
    gboolean good = (!snapshot || note(ops, blobs, snapshot, id, nonce, bytes, error)) &&
                    put_parts(ops, blobs, id, nonce, fd, bytes, cancel, error);
    int r = good ? ops->blob_write(blobs, name, &h, sizeof(h), !replace) : 0;
    if (good && r < 0 && r != -EEXIST)
        good = fail(error, name, -r);
    if (!good || r == -EEXIST) /* -EEXIST: somebody was faster */
        remove_parts(ops, blobs, id, nonce, bytes);
    else if (there)
        remove_parts(ops, blobs, id, le64toh(old.nonce), le64toh(old.bytes));
    return good;
}

gboolean share_put(Origin *origin, const char *id, int fd, gboolean replace, atomic_bool *cancel,
                   GError **error)
{
    OriginBlobs *blobs = open_blobs(origin, error);
    if (!blobs)
        return FALSE;
    gboolean good =
        put_all(origin->ops, blobs, origin->snapshot_path, id, fd, replace, cancel, error);
    origin->ops->blobs_close(blobs);
    return good;
}
