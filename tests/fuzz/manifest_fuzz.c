/*
 * What another node has left in Ceph: the header of a shared manifest, and the manifest itself. A
 * checksum proves nothing of who wrote it, so checksums are made right here. Whatever is in it,
 * reading it ends, within its bytes, and names lead nowhere but beneath the root.
 *
 * The first byte: bit 0: the rest is a whole file; else it is names and table, and the second byte
 * says how many records. Bit 1: it comes through a ShareHeader, which are its first bytes then.
 */
#include "tests/fuzz/fuzz.h"
#include <endian.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include "cache/control/walk_names.h"
#include "cache/manifest/erofs.h"
#include "cache/manifest/manifest.h"
#include "cache/manifest/share.h"
#include "cache/store/key.h"

/* ---- an origin that has only blobs: the header, and one part */

static struct {
    const uint8_t *header, *part;
    size_t header_bytes, part_bytes;
    unsigned calls;
} blobs;

static int blobs_open(Origin *o, OriginBlobs **out)
{
    (void)o;
    *out = (OriginBlobs *)&blobs;
    return 0;
}

static void blobs_close(OriginBlobs *b)
{
    (void)b;
}

static ssize_t blob_read(OriginBlobs *b, const char *name, void *buf, size_t len, uint64_t off)
{
    (void)b;
    const char *part = strrchr(name, '.');
    gboolean is_header = g_str_has_suffix(name, "manifest.f");
    gboolean is_first = strcmp(part, ".00000000") == 0;
    const uint8_t *from = is_header ? blobs.header : blobs.part;
    size_t size = is_header ? blobs.header_bytes : blobs.part_bytes;
    __atomic_add_fetch(&blobs.calls, 1, __ATOMIC_RELAXED);
    if (!is_header && !is_first)
        return -ENOENT;
    size_t n = off < size ? MIN(len, size - off) : 0;
    memcpy(buf, from + off, n);
    return (ssize_t)n;
}

static int blob_write(OriginBlobs *b, const char *name, const void *buf, size_t len,
                      gboolean exclusive)
{
    (void)b, (void)name, (void)buf, (void)len, (void)exclusive;
    return 0;
}

static int blob_remove(OriginBlobs *b, const char *name)
{
    (void)b, (void)name;
    if (++blobs.calls > 100000)
        abort(); /* as many as the header says is no bound */
    return strcmp(strrchr(name, '.'), ".00000000") == 0 ? 0 : -ENOENT;
}

static const OriginOps ops = {.type = "fuzz",
                              .blobs_open = blobs_open,
                              .blobs_close = blobs_close,
                              .blob_read = blob_read,
                              .blob_write = blob_write,
                              .blob_remove = blob_remove};

/* ---- reading all of it */

static void check_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (char **part = parts; path[0] && *part; part++)
        if (!(*part)[0] || strcmp(*part, ".") == 0 || strcmp(*part, "..") == 0)
            abort();
}

static gboolean visit(void *data, const NamedFile *file)
{
    unsigned *left = data;
    check_path(file->path);
    return --*left > 0;
}

static void read_manifest(const Manifest *m)
{
    unsigned left = 1000;
    Name name;
    for (uint64_t at = 0, n = 0; n < 1000 && names_read(&m->names, at, &name);
         at = name.next, n++) {
        if (name.next <= at || name.text + name.length > (char *)m->names.list + m->names.bytes)
            abort();
        g_autofree char *path = names_path(&m->names, at);
        if (path)
            check_path(path);
        if (path && n < 8) {
            unsigned few = 100;
            walk_names(m, path, visit, &few);
        }
    }
    for (uint64_t i = 0; i < MIN(m->footer.records, 1000); i++) {
        ObjectKey key;
        ObjectId id;
        uint64_t found;
        gboolean leads = manifest_key(m, i, &key);
        g_autofree char *path = manifest_path(m, i);
        if (path)
            check_path(path);
        object_key_id(&key, &id);
        if (manifest_find(m, &id, &found) && (!leads && found >= m->footer.records))
            abort();
    }
    walk_names(m, "", visit, &left);
    left = 1000;
    walk_names(m, "a/b", visit, &left);
}

/* ---- making it */

static int file_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("manifest", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    return fd;
}

/* The footer's checksum, and that of the content, when there is one. */
static void fix_footer(GByteArray *file)
{
    ManifestFooter f;
    if (file->len < sizeof(f))
        return;
    size_t content = file->len - sizeof(f);
    memcpy(&f, file->data + content, sizeof(f));
    memcpy(f.magic, MANIFEST_MAGIC, sizeof(f.magic));
    f.content_checksum = htole64(XXH3_64bits(file->data, content));
    f.checksum = htole64(XXH3_64bits(&f, offsetof(ManifestFooter, checksum)));
    memcpy(file->data + content, &f, sizeof(f));
}

static GByteArray *make_file(uint8_t steer, const uint8_t *data, size_t size)
{
    static const uint8_t block[EROFS_BLOCK];
    GByteArray *file = g_byte_array_new();
    ManifestFooter f = {.version = htole32(MANIFEST_VERSION)};
    if (steer & 1) {
        g_byte_array_append(file, data, (guint)size);
    } else if (size > 0) {
        uint64_t records = MIN(data[0], (size - 1) / sizeof(TableRecord));
        f.image_bytes = htole64(sizeof(block));
        f.records = htole64(records);
        f.names_bytes = htole64(size - 1 - records * sizeof(TableRecord));
        g_byte_array_append(file, block, sizeof(block));
        g_byte_array_append(file, data + 1, (guint)size - 1);
        g_byte_array_append(file, (const guint8 *)&f, sizeof(f));
    }
    fix_footer(file);
    return file;
}

/* Through Ceph: as it was fetched. -1: it was refused. */
static int fetch(const uint8_t *header, const GByteArray *file)
{
    ShareHeader h;
    Origin origin = {.ops = &ops};
    atomic_bool cancel = FALSE;
    memcpy(&h, header, sizeof(h));
    memcpy(h.magic, SHARE_MAGIC, sizeof(h.magic));
    h.version = htole32(SHARE_VERSION);
    h.part_bytes = htole32(SHARE_PART);
    h.checksum = htole64(XXH3_64bits(&h, offsetof(ShareHeader, checksum)));
    blobs.header = (const uint8_t *)&h;
    blobs.header_bytes = sizeof(h);
    blobs.part = file->data;
    blobs.part_bytes = file->len;
    blobs.calls = 0;
    int fd = memfd_create("fetched", MFD_CLOEXEC), source = file_of(file->data, file->len);
    g_autoptr(GError) error = NULL;
    gboolean fetched = share_fetch(&origin, "f", fd, &cancel, &error);
    if (!fetched && !error)
        abort();
    share_put(&origin, "f", source, TRUE, &cancel, NULL);
    close(source);
    if (fetched)
        return fd;
    close(fd);
    return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t steer = *data++;
    size--;
    const uint8_t *header = data;
    if (steer & 2) {
        if (size < sizeof(ShareHeader))
            return 0;
        data += sizeof(ShareHeader);
        size -= sizeof(ShareHeader);
    }
    g_autoptr(GByteArray) file = make_file(steer, data, size);
    if (file->len == 0)
        return 0;
    int fd = steer & 2 ? fetch(header, file) : file_of(file->data, file->len);
    if (fd < 0)
        return 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(Manifest) manifest = manifest_open(fd, TRUE, &error);
    if (!manifest && !error)
        abort();
    if (manifest)
        read_manifest(manifest);
    close(fd);
    return 0;
}
