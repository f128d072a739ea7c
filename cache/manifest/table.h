/*
 * The table of a manifest: which inode each object comes from, so that the fill layer, which knows
 * an object by its name alone, can fetch it. Records are sorted by the object's first 8 bytes; the
 * inode's attributes then tell whether it is really this object's. Written in runs that are merged,
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
    uint64_t ino;
} TableRecord;

typedef struct TableWriter TableWriter;

/* Runs go to unnamed files in `dir`. */
TableWriter *table_writer_new(const char *dir);
void table_writer_free(TableWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TableWriter, table_writer_free)
gboolean table_add(TableWriter *writer, const ObjectId *id, uint64_t ino, GError **error);
/* Writes the sorted records to fd at its position; hard links' repetitions once. */
gboolean table_finish(TableWriter *writer, int fd, uint64_t *records, GError **error);

/*
 * Calls found(ino) for each record that may be the object's, until one returns TRUE. `records` is
 * mapped; n is their number.
 */
gboolean table_find(const TableRecord *records, uint64_t n, const ObjectId *id,
                    gboolean (*found)(uint64_t ino, void *data), void *data);

#endif
