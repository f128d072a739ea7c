/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a manifest, in the order of the walk: directories, each before its entries, and
 * files that have bytes, with the identity of these. A file is found in its origin by its path,
 * because an MDS finds an inode of a snapshot by its number only while it has the inode in memory.
 * A reader of all files reads them here from front to back, directory by directory, as the origin
 * lists them.
 *
 * An entry is identified by its offset in the list. The root is at 0.
 */
#ifndef HEARTH_CACHE_MANIFEST_NAMES_H
#define HEARTH_CACHE_MANIFEST_NAMES_H

#include <gio/gio.h>
#include <stdatomic.h>
#include <stdint.h>
#include "cache/store/store.h"

/* On disk, little-endian; the name follows, without a NUL. */
typedef struct __attribute__((packed)) NameRecord {
    uint64_t parent; /* its offset; smaller than the entry's own, except for the root */
    uint64_t ino, version, size, mtime_sec;
    uint32_t mtime_nsec;
    uint8_t is_file, length; /* of a directory the numbers before are 0 */
} NameRecord;

_Static_assert(sizeof(NameRecord) == 46, "name record layout");

typedef struct NamesWriter NamesWriter;

/* Writes the root. Later entries go to an unnamed file in `dir`. */
NamesWriter *names_writer_new(const char *dir, GError **error);
void names_writer_free(NamesWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NamesWriter, names_writer_free)
/* `key` NULL: a directory. *at: its offset. */
gboolean names_add(NamesWriter *writer, uint64_t parent, const char *name, const ObjectKey *key,
                   uint64_t *at, GError **error);
/* Added so far. */
uint64_t names_bytes(const NamesWriter *writer);
/* Copies all to fd at its position. */
gboolean names_finish(NamesWriter *writer, int fd, uint64_t *bytes, GError **error);

/* A list in a mapped file. */
typedef struct Names {
    const uint8_t *list;
    uint64_t bytes;
    atomic_bool *unreadable; /* set when a page cannot be read; may be NULL */
} Names;

typedef struct Name {
    uint64_t at, next; /* offsets of this entry and of the next */
    uint64_t parent;
    gboolean is_file;
    ObjectKey key;  /* of a file; without its space */
    char text[256]; /* without a NUL */
    size_t length;
} Name;

/* FALSE: there is no entry at that offset (or it is the end of the list), its name is impossible,
 * or the page cannot be read. */
gboolean names_read(const Names *names, uint64_t at, Name *name);
/* Its path beneath the root, "" for the root's; NULL: it has none. */
char *names_path(const Names *names, uint64_t at);

#endif
