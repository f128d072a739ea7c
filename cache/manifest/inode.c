/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inode with its attributes and what is kept inline. A regular file is a hole of its size; its
 * overlayfs attributes lead to the object that has the bytes.
 */
#include <endian.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "cache/manifest/erofs.h"
#include "cache/manifest/image_internal.h"
#include "cache/store/disk/key.h"

typedef struct Link {
    uint64_t ino, nid;
    uint64_t left;
    mode_t type;
} Link;

/* "trusted." */
#define TRUSTED 4

static const struct {
    const char *prefix;
    uint8_t index;
    gboolean whole; /* the prefix is all of the name */
} prefixes[] = {
    {"user.", 1, FALSE},
    {"system.posix_acl_access", 2, TRUE},
    {"system.posix_acl_default", 3, TRUE},
    {"security.", 6, FALSE},
};

static void append_xattr(GByteArray *out, uint8_t index, const char *suffix, const void *value,
                         size_t size)
{
    static const uint8_t zeros[4];
    ErofsXattr head = {.name_length = (uint8_t)strlen(suffix),
                       .name_index = index,
                       .value_size = htole16((uint16_t)size)};
    g_byte_array_append(out, (const guint8 *)&head, sizeof(head));
    g_byte_array_append(out, (const guint8 *)suffix, head.name_length);
    g_byte_array_append(out, value ? value : zeros, (guint)size);
    g_byte_array_append(out, zeros, (guint)(erofs_image_align(out->len, 4) - out->len));
}

/*
 * overlayfs acts on its own attributes, so a source's are left out: a tenant can set any. Of
 * "trusted." none is shown, as only root reads them.
 */
static gboolean is_overlays(const char *name)
{
    return g_str_has_prefix(name, "user.overlay.");
}

static gboolean append_source_xattrs(GByteArray *out, const ErofsImageEntry *entry, GError **error)
{
    for (size_t i = 0; i < entry->n_xattrs; i++) {
        const ErofsImageXattr *x = &entry->xattrs[i];
        size_t k = 0;
        while (k < G_N_ELEMENTS(prefixes) &&
               (prefixes[k].whole ? strcmp(x->name, prefixes[k].prefix) != 0
                                  : !g_str_has_prefix(x->name, prefixes[k].prefix)))
            k++;
        if (k == G_N_ELEMENTS(prefixes) || is_overlays(x->name))
            continue;
        const char *suffix = x->name + strlen(prefixes[k].prefix);
        if (strlen(suffix) > EROFS_NAME_MAX || x->size > EROFS_XATTR_VALUE_MAX)
            return erofs_image_bad(error, entry, "has an extended attribute of more than 64 KiB");
        append_xattr(out, prefixes[k].index, suffix, x->value, x->size);
    }
    return TRUE;
}

/* Appends the attributes to the inode in `body`, unless it has none. */
static gboolean append_xattrs(ErofsImage *image, const ErofsImageEntry *entry, GError **error)
{
    GByteArray *out = image->body;
    guint start = out->len;
    const ErofsXattrHeader header = {0};
    g_byte_array_append(out, (const guint8 *)&header, sizeof(header));
    if (entry->object) {
        char hex[OBJECT_ID_HEX + 1], path[OBJECT_ID_HEX + 5];
        object_id_hex(entry->object, hex);
        g_snprintf(path, sizeof(path), "/%.2s/%s", hex, hex);
        append_xattr(out, TRUSTED, "overlay.metacopy", NULL, 0);
        append_xattr(out, TRUSTED, "overlay.redirect", path, strlen(path));
    }
    if (!append_source_xattrs(out, entry, error))
        return FALSE;
    guint size = out->len - start;
    if (size == sizeof(header)) {
        g_byte_array_set_size(out, start);
        return TRUE;
    }
    if (size > EROFS_XATTRS_MAX)
        return erofs_image_bad(error, entry, "has more than 256 KiB of extended attributes");
    ErofsInode *inode = (ErofsInode *)out->data;
    inode->xattr_count = htole16((uint16_t)((size - sizeof(header)) / 4 + 1));
    return TRUE;
}

/* As the kernel's new_encode_dev(). */
static uint32_t encode_device(dev_t dev)
{
    uint32_t high = major(dev), low = minor(dev);
    return (low & 0xff) | high << 8 | (low & ~0xffu) << 12;
}

static unsigned chunk_bits(uint64_t size)
{
    unsigned bits = 0;
    while (bits < EROFS_CHUNK_BITS_MAX && ((uint64_t)EROFS_BLOCK << bits) < size)
        bits++;
    return bits;
}

static void start_inode(ErofsImage *image, const struct stat *st, unsigned layout, uint32_t u)
{
    ErofsInode inode = {
        .format = htole16(EROFS_FORMAT(layout)),
        .mode = htole16((uint16_t)st->st_mode),
        .size = htole64(S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? (uint64_t)st->st_size : 0),
        .u = htole32(u),
        .ino = htole32((uint32_t)(image->inodes + 1)),
        .uid = htole32(st->st_uid),
        .gid = htole32(st->st_gid),
        .mtime_sec = htole64((uint64_t)st->st_mtim.tv_sec),
        .mtime_nsec = htole32((uint32_t)st->st_mtim.tv_nsec),
        .nlink = htole32((uint32_t)st->st_nlink),
    };
    g_byte_array_set_size(image->body, 0);
    g_byte_array_append(image->body, (const guint8 *)&inode, sizeof(inode));
    image->inodes++;
}

/* A regular file: a hole of its size; overlayfs finds the bytes by the redirect. */
static gboolean write_file(ErofsImage *image, const ErofsImageEntry *entry, uint64_t *nid,
                           GError **error)
{
    static const uint32_t hole = EROFS_HOLE;
    uint64_t size = (uint64_t)entry->st.st_size;
    unsigned bits = chunk_bits(size);
    if (size > 0 && !entry->object)
        return erofs_image_bad(error, entry, "has bytes and no object");
    if (size > 0)
        start_inode(image, &entry->st, EROFS_CHUNK_BASED, bits);
    else
        start_inode(image, &entry->st, EROFS_FLAT_PLAIN, 0);
    if (!append_xattrs(image, entry, error))
        return FALSE;
    uint64_t chunks = size ? (size - 1) / ((uint64_t)EROFS_BLOCK << bits) + 1 : 0;
    if (chunks > 1024)
        return erofs_image_bad(error, entry, "is larger than a file can be");
    for (uint64_t i = 0; i < chunks; i++)
        g_byte_array_append(image->body, (const guint8 *)&hole, sizeof(hole));
    return erofs_image_place(image, image->body->data, image->body->len, 0, nid, error);
}

static gboolean write_link(ErofsImage *image, const ErofsImageEntry *entry, uint64_t *nid,
                           GError **error)
{
    const char *target = entry->target ? entry->target : "";
    size_t length = strlen(target);
    uint32_t block = 0;
    if (length == 0 || length >= EROFS_BLOCK)
        return erofs_image_bad(error, entry,
                               "is a symbolic link without a target of 1 to 4095 bytes");
    gboolean is_inline = length <= EROFS_BLOCK / 2;
    if (!is_inline) {
        g_byte_array_set_size(image->block, EROFS_BLOCK);
        memset(image->block->data, 0, EROFS_BLOCK);
        memcpy(image->block->data, target, length);
        if (!erofs_image_write_blocks(image, image->block->data, EROFS_BLOCK, &block, error))
            return FALSE;
    }
    struct stat st = entry->st;
    st.st_size = (off_t)length;
    start_inode(image, &st, is_inline ? EROFS_FLAT_INLINE : EROFS_FLAT_PLAIN, block);
    if (!append_xattrs(image, entry, error))
        return FALSE;
    if (is_inline)
        g_byte_array_append(image->body, (const guint8 *)target, (guint)length);
    return erofs_image_place(image, image->body->data, image->body->len, is_inline ? length : 0,
                             nid, error);
}

static gboolean write_new(ErofsImage *image, const ErofsImageEntry *entry, uint64_t *nid,
                          GError **error)
{
    mode_t mode = entry->st.st_mode;
    if (S_ISREG(mode))
        return write_file(image, entry, nid, error);
    if (S_ISLNK(mode))
        return write_link(image, entry, nid, error);
    gboolean is_device = S_ISCHR(mode) || S_ISBLK(mode);
    if (S_ISCHR(mode) && entry->st.st_rdev == 0)
        return erofs_image_bad(
            error, entry, "is a character device 0:0, which overlayfs takes for a deleted file");
    if (!is_device && !S_ISDIR(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode))
        return erofs_image_bad(error, entry, "is of no known type");
    start_inode(image, &entry->st, EROFS_FLAT_PLAIN,
                is_device ? encode_device(entry->st.st_rdev) : 0);
    return append_xattrs(image, entry, error) &&
           erofs_image_place(image, image->body->data, image->body->len, 0, nid, error);
}

gboolean erofs_image_write_inode(ErofsImage *image, const ErofsImageEntry *entry, uint64_t *nid,
                                 GError **error)
{
    const struct stat *st = &entry->st;
    if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
        return write_new(image, entry, nid, error);
    uint64_t ino = st->st_ino;
    Link *link = g_hash_table_lookup(image->links, &ino);
    if (link && link->type != (st->st_mode & S_IFMT))
        return erofs_image_bad(error, entry, "is of another type by another of its names");
    if (link) {
        *nid = link->nid;
        if (--link->left == 0)
            g_hash_table_remove(image->links, &ino);
        return TRUE;
    }
    if (!write_new(image, entry, nid, error))
        return FALSE;
    link = g_new(Link, 1);
    *link = (Link){ino, *nid, st->st_nlink - 1, st->st_mode & S_IFMT};
    g_hash_table_add(image->links, link);
    return TRUE;
}
