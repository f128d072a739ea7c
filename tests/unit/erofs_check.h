/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an EROFS image of cache/manifest/ as the kernel does, from the root down, and aborts at
 * whatever is not well formed or could do harm: overlayfs's attributes anywhere but on files that
 * have bytes, a redirect to anything but an object, any other "trusted." attribute.
 */
#ifndef HEARTH_TESTS_EROFS_CHECK_H
#define HEARTH_TESTS_EROFS_CHECK_H

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cache/manifest/erofs.h"
#include "cache/store/disk/key.h"

typedef struct ErofsCheck {
    const uint8_t *image;
    uint64_t bytes;
    /* For each file with bytes; NULL: nothing to do. */
    void (*object)(void *data, const ObjectId *id, uint64_t size);
    void *data;
    uint64_t names, xattrs; /* found: entries but the dots; attributes but overlayfs's */
    GHashTable *dirs;       /* nid */
} ErofsCheck;

#define EROFS_WANT(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "image: %s\n", #condition);                                            \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline const void *erofs_at(const ErofsCheck *c, uint64_t at, uint64_t size)
{
    EROFS_WANT(at <= c->bytes && size <= c->bytes - at);
    return c->image + at;
}

/* TRUE: it is a redirect, to *id. */
static inline gboolean erofs_check_xattr(ErofsCheck *c, uint8_t index, const char *name,
                                         size_t length, const char *value, size_t size,
                                         ObjectId *id, gboolean *metacopy)
{
    EROFS_WANT(index == 1 || index == 2 || index == 3 || index == 4 || index == 6);
    if (index == 1) /* "user." */
        EROFS_WANT(length < 8 || memcmp(name, "overlay.", 8) != 0);
    if (index != 4) {
        c->xattrs++;
        return FALSE;
    }
    char hex[OBJECT_ID_HEX + 1];
    if (length == strlen("overlay.metacopy") && memcmp(name, "overlay.metacopy", length) == 0) {
        EROFS_WANT(size == 0 && !*metacopy);
        *metacopy = TRUE;
        return FALSE;
    }
    EROFS_WANT(length == strlen("overlay.redirect") &&
               memcmp(name, "overlay.redirect", length) == 0);
    EROFS_WANT(size == OBJECT_ID_HEX + 4 && value[0] == '/' && value[3] == '/');
    memcpy(hex, value + 4, OBJECT_ID_HEX);
    hex[OBJECT_ID_HEX] = '\0';
    EROFS_WANT(object_id_parse(hex, id) && memcmp(value + 1, hex, 2) == 0);
    return TRUE;
}

/* The attributes behind the inode at `at`; returns where they end. */
static inline uint64_t erofs_check_xattrs(ErofsCheck *c, uint64_t at, const ErofsInode *inode,
                                          ObjectId *id, gboolean *is_object)
{
    gboolean metacopy = FALSE;
    uint64_t end = at + sizeof(*inode);
    *is_object = FALSE;
    if (inode->xattr_count == 0)
        return end;
    uint64_t from = end + sizeof(ErofsXattrHeader);
    end = from + 4 * ((uint64_t)inode->xattr_count - 1);
    erofs_at(c, from, end - from);
    while (from < end) {
        ErofsXattr x;
        memcpy(&x, erofs_at(c, from, sizeof(x)), sizeof(x));
        uint64_t size = sizeof(x) + x.name_length + x.value_size;
        EROFS_WANT(from + size <= end);
        const char *name = erofs_at(c, from + sizeof(x), x.name_length + x.value_size);
        gboolean redirect = erofs_check_xattr(c, x.name_index, name, x.name_length,
                                              name + x.name_length, x.value_size, id, &metacopy);
        EROFS_WANT(!redirect || !*is_object);
        *is_object |= redirect;
        from += (size + 3) / 4 * 4;
    }
    EROFS_WANT(metacopy == *is_object);
    return end;
}

static inline void erofs_check_inode(ErofsCheck *c, uint64_t nid, unsigned type, unsigned depth);

static inline void erofs_check_block(ErofsCheck *c, const uint8_t *block, uint64_t size,
                                     GString *last, unsigned depth)
{
    ErofsDirent first, e, next;
    EROFS_WANT(size >= sizeof(first));
    memcpy(&first, block, sizeof(first));
    size_t n = first.name_offset / sizeof(e);
    EROFS_WANT(n > 0 && first.name_offset % sizeof(e) == 0 && first.name_offset < size);
    for (size_t i = 0; i < n; i++) {
        memcpy(&e, block + i * sizeof(e), sizeof(e));
        memcpy(&next, block + (i + 1 < n ? i + 1 : i) * sizeof(e), sizeof(next));
        uint64_t end = i + 1 < n ? next.name_offset : size;
        EROFS_WANT(e.name_offset < end && end <= size);
        g_autofree char *name = g_strndup((const char *)block + e.name_offset, end - e.name_offset);
        EROFS_WANT(*name && strlen(name) <= EROFS_NAME_MAX && !strchr(name, '/'));
        EROFS_WANT(last->len == 0 || strcmp(last->str, name) < 0);
        g_string_assign(last, name);
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        c->names++;
        erofs_check_inode(c, e.nid, e.file_type, depth + 1);
    }
}

static inline void erofs_check_dir(ErofsCheck *c, const ErofsInode *inode, uint64_t nid,
                                   unsigned depth)
{
    EROFS_WANT(inode->size > 0 && depth < 1000);
    EROFS_WANT(g_hash_table_add(c->dirs, g_memdup2(&nid, sizeof(nid)))); /* no loop */
    g_autoptr(GString) last = g_string_new(NULL);
    for (uint64_t off = 0; off < inode->size; off += EROFS_BLOCK) {
        uint64_t size = MIN(EROFS_BLOCK, inode->size - off);
        erofs_check_block(c, erofs_at(c, (uint64_t)inode->u * EROFS_BLOCK + off, size), size, last,
                          depth);
    }
}

static inline void erofs_check_inode(ErofsCheck *c, uint64_t nid, unsigned type, unsigned depth)
{
    static const mode_t types[] = {0,       S_IFREG, S_IFDIR,  S_IFCHR,
                                   S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK};
    ErofsInode inode;
    ObjectId id;
    gboolean is_object;
    EROFS_WANT(nid <= c->bytes / EROFS_SLOT);
    memcpy(&inode, erofs_at(c, nid * EROFS_SLOT, sizeof(inode)), sizeof(inode));
    EROFS_WANT(type > 0 && type < G_N_ELEMENTS(types) && (inode.mode & S_IFMT) == types[type]);
    uint64_t end = erofs_check_xattrs(c, nid * EROFS_SLOT, &inode, &id, &is_object);
    EROFS_WANT(is_object == (S_ISREG(inode.mode) && inode.size > 0));
    EROFS_WANT(!S_ISREG(inode.mode) || inode.size <= INT64_MAX);
    EROFS_WANT(!S_ISCHR(inode.mode) || inode.u != 0);
    if (is_object && c->object)
        c->object(c->data, &id, inode.size);
    if (S_ISDIR(inode.mode))
        erofs_check_dir(c, &inode, nid, depth);
    if (S_ISLNK(inode.mode)) {
        uint64_t at =
            inode.format == EROFS_FORMAT(EROFS_FLAT_INLINE) ? end : (uint64_t)inode.u * EROFS_BLOCK;
        EROFS_WANT(inode.size > 0 && inode.size < EROFS_BLOCK);
        EROFS_WANT(!memchr(erofs_at(c, at, inode.size), '\0', inode.size));
    }
}

static inline void erofs_check(ErofsCheck *c)
{
    const ErofsSuper *super = erofs_at(c, EROFS_SUPER_OFFSET, sizeof(*super));
    EROFS_WANT(super->magic == EROFS_MAGIC && super->block_bits == EROFS_BLOCK_BITS);
    EROFS_WANT((uint64_t)super->blocks * EROFS_BLOCK == c->bytes);
    c->names = c->xattrs = 0;
    c->dirs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    erofs_check_inode(c, super->root_nid, 2, 0);
    g_hash_table_unref(c->dirs);
}

#endif
