/*
 * The table of a manifest: the key of each object, so that the fill layer, which knows an object by
 * its name alone, can tell its size without asking Ceph and fetch its bytes. Records are sorted by
 * the id's first 8 bytes; the rest of the id follows from the key. Written in runs that are merged,
 * so that memory does not grow with the number of files.
 */
#ifndef HEARTH_MANIFEST_TABLE_H
#define HEARTH_MANIFEST_TABLE_H

#include <gio/gio.h>
#include <stdint.h>
#include "cache/store/store.h"

/* On disk, little-endian. */
typedef struct __attribute__((packed)) TableRecord {
    uint8_t id[8];
    uint64_t ino, version, size, mtime_sec;
    uint32_t mtime_nsec, reserved;
} TableRecord;

typedef struct TableWriter TableWriter;

/* Runs go to unnamed files in `dir`. */
TableWriter *table_writer_new(const char *dir);
void table_writer_free(TableWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TableWriter, table_writer_free)
gboolean table_add(TableWriter *writer, const ObjectId *id, const ObjectKey *key, GError **error);
/* Writes the sorted records to fd at its position; hard links' repetitions once. */
gboolean table_finish(TableWriter *writer, int fd, uint64_t *records, GError **error);

/*
 * The place of an object; FALSE when it is not in the table. `records` is mapped, n is their
 * number; `space` is the origin's, which all keys of a table share.
 */
gboolean table_find(const TableRecord *records, uint64_t n, const uint8_t space[24],
                    const ObjectId *id, uint64_t *index);
void table_key(const TableRecord *record, const uint8_t space[24], ObjectKey *key);

#endif
