/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest in the cache directory that is damaged in a way its checksums do not show: they are
 * made right here. Whatever is in it, reading it ends, within its bytes, and names lead nowhere but
 * beneath the root.
 *
 * The first byte: bit 0: the rest is a whole file; else it is names and table, and the second byte
 * says how many records. Bit 1: the format's version is left as it is.
 */
#include "tests/fuzz/fuzz.h"
#include <endian.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include "cache/warm/walk_names.h"
#include "cache/manifest/erofs.h"
#include "cache/manifest/manifest.h"
#include "cache/store/disk/key.h"

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
        if (name.next <= at || name.next > m->names.bytes)
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
        if (manifest_find(m, &id, &found) == 0 && (!leads && found >= m->footer.records))
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
static void fix_footer(GByteArray *file, gboolean any_version)
{
    ManifestFooter f;
    if (file->len < sizeof(f))
        return;
    size_t content = file->len - sizeof(f);
    memcpy(&f, file->data + content, sizeof(f));
    memcpy(f.magic, MANIFEST_MAGIC, sizeof(f.magic));
    if (!any_version)
        f.version = htole32(MANIFEST_VERSION);
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
    fix_footer(file, steer & 2);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t steer = *data++;
    size--;
    g_autoptr(GByteArray) file = make_file(steer, data, size);
    if (file->len == 0)
        return 0;
    int fd = file_of(file->data, file->len);
    g_autoptr(GError) error = NULL;
    g_autoptr(Manifest) manifest = manifest_open(fd, TRUE, &error);
    if (!manifest && !error)
        abort();
    if (manifest)
        read_manifest(manifest);
    close(fd);
    return 0;
}
