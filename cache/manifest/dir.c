/* SPDX-License-Identifier: Apache-2.0 */
/* A directory: its names as they come, then its sorted blocks. */
#include <endian.h>
#include <string.h>
#include "cache/manifest/erofs.h"
#include "cache/manifest/image_internal.h"
#include "common/io_error.h"

typedef struct Name {
    uint64_t nid;
    uint32_t at; /* in the directory's text */
    uint8_t length, type;
} Name;

struct ErofsImageDir {
    uint64_t nid, parent;
    uint32_t links;
    GArray *names;    /* Name; NULL until the first comes: many directories may be waiting */
    GByteArray *text; /* with a NUL after each */
};

static void append_name(ErofsImageDir *dir, const char *name, uint64_t nid, uint8_t type)
{
    size_t length = strlen(name);
    Name n = {nid, dir->text->len, (uint8_t)length, type};
    g_byte_array_append(dir->text, (const guint8 *)name, (guint)length + 1);
    g_array_append_val(dir->names, n);
}

ErofsImageDir *erofs_image_dir_new(uint64_t nid, uint64_t parent)
{
    ErofsImageDir *dir = g_new0(ErofsImageDir, 1);
    *dir = (ErofsImageDir){.nid = nid, .parent = parent, .links = 2};
    return dir;
}

static void begin_names(ErofsImageDir *dir)
{
    if (dir->names)
        return;
    dir->names = g_array_new(FALSE, FALSE, sizeof(Name));
    dir->text = g_byte_array_new();
    append_name(dir, ".", dir->nid, 2);
    append_name(dir, "..", dir->parent, 2);
}

void erofs_image_dir_free(ErofsImageDir *dir)
{
    if (!dir)
        return;
    g_clear_pointer(&dir->names, g_array_unref);
    g_clear_pointer(&dir->text, g_byte_array_unref);
    g_free(dir);
}

static uint8_t type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return 1;
    case S_IFDIR:
        return 2;
    case S_IFCHR:
        return 3;
    case S_IFBLK:
        return 4;
    case S_IFIFO:
        return 5;
    case S_IFSOCK:
        return 6;
    case S_IFLNK:
        return 7;
    default:
        return 0;
    }
}

gboolean erofs_image_add(ErofsImage *image, ErofsImageDir *dir, const ErofsImageEntry *entry,
                         ErofsImageDir **child, GError **error)
{
    const char *name = entry->name;
    uint64_t nid;
    begin_names(dir);
    if (!*name || strlen(name) > EROFS_NAME_MAX || strchr(name, '/') || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return erofs_image_bad(error, entry, "is no name");
    if (dir->text->len > G_MAXINT32) {
        return io_fail(error, G_IO_ERROR_INVALID_DATA, "a directory has more than 2 GiB of names");
    }
    if (!erofs_image_write_inode(image, entry, &nid, error))
        return FALSE;
    append_name(dir, name, nid, type_of(entry->st.st_mode));
    if (S_ISDIR(entry->st.st_mode)) {
        *child = erofs_image_dir_new(nid, dir->nid);
        dir->links++;
    }
    return TRUE;
}

/* The order lookups rely on: bytes, then length. */
static int compare_names(const void *a, const void *b, void *text)
{
    const Name *x = a, *y = b;
    return strcmp((const char *)text + x->at, (const char *)text + y->at);
}

/* How many of the names fit into one block, and the bytes they take. */
static size_t count_fitting(const Name *names, size_t n, size_t *bytes)
{
    size_t i = 0;
    *bytes = 0;
    while (i < n && *bytes + sizeof(ErofsDirent) + names[i].length <= EROFS_BLOCK) {
        *bytes += sizeof(ErofsDirent) + names[i].length;
        i++;
    }
    return i;
}

static void fill_block(uint8_t *block, const uint8_t *text, const Name *names, size_t n)
{
    size_t offset = n * sizeof(ErofsDirent);
    for (size_t i = 0; i < n; i++) {
        ErofsDirent entry = {.nid = htole64(names[i].nid),
                             .name_offset = htole16((uint16_t)offset),
                             .file_type = names[i].type};
        memcpy(block + i * sizeof(entry), &entry, sizeof(entry));
        memcpy(block + offset, text + names[i].at, names[i].length);
        offset += names[i].length;
    }
}

/* Writes the names; *size is the directory's. */
static gboolean write_names(ErofsImage *image, const ErofsImageDir *dir, uint64_t *size,
                            uint32_t *block, GError **error)
{
    const Name *names = (const Name *)dir->names->data;
    size_t n = dir->names->len;
    *size = 0;
    g_byte_array_set_size(image->block, 0);
    for (size_t done = 0; done < n;) {
        size_t bytes, fit = count_fitting(names + done, n - done, &bytes);
        guint start = image->block->len;
        g_byte_array_set_size(image->block, start + EROFS_BLOCK);
        memset(image->block->data + start, 0, EROFS_BLOCK);
        fill_block(image->block->data + start, dir->text->data, names + done, fit);
        done += fit;
        *size += done < n ? EROFS_BLOCK : bytes;
    }
    return erofs_image_write_blocks(image, image->block->data, image->block->len, block, error);
}

gboolean erofs_image_end(ErofsImage *image, ErofsImageDir *dir, GError **error)
{
    begin_names(dir);
    Name *names = (Name *)dir->names->data;
    const char *text = (const char *)dir->text->data;
    uint64_t size;
    uint32_t block;
    gboolean good = TRUE;
    qsort_r(names, dir->names->len, sizeof(Name), compare_names, dir->text->data);
    for (guint i = 1; good && i < dir->names->len; i++) {
        const ErofsImageEntry twice = {.name = text + names[i].at};
        if (strcmp(text + names[i - 1].at, twice.name) == 0)
            good = erofs_image_bad(error, &twice, "is there twice");
    }
    good = good && write_names(image, dir, &size, &block, error);
    if (good) {
        uint64_t size_le = htole64(size);
        uint32_t block_le = htole32(block), links_le = htole32(dir->links);
        good = erofs_image_patch(image, dir->nid, offsetof(ErofsInode, size), &size_le, 8, error) &&
               erofs_image_patch(image, dir->nid, offsetof(ErofsInode, u), &block_le, 4, error) &&
               erofs_image_patch(image, dir->nid, offsetof(ErofsInode, nlink), &links_le, 4, error);
    }
    erofs_image_dir_free(dir);
    return good;
}
