/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a manifest: the name (names.h) that each object belongs to. The fill layer knows
 * only an object's id; with the table it knows its size without asking Ceph, and can fetch its
 * bytes. Records are sorted by the id's first 8 bytes; the rest of the id follows from the key.
 * Written in runs that are merged, so that memory does not grow with the number of files.
 */
#ifndef HEARTH_CACHE_MANIFEST_TABLE_H
#define HEARTH_CACHE_MANIFEST_TABLE_H

#include <gio/gio.h>
#include <stdint.h>
#include "cache/store/store.h"

/* On disk, little-endian. */
typedef struct __attribute__((packed)) TableRecord {
    uint8_t id[8];
    uint64_t at; /* a place in the names */
} TableRecord;

typedef struct TableWriter TableWriter;

/* Runs go to unnamed files in `dir`. */
TableWriter *table_writer_new(const char *dir);
void table_writer_free(TableWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TableWriter, table_writer_free)
gboolean table_add(TableWriter *writer, const ObjectId *id, uint64_t at, GError **error);
/* Of what was added so far. */
uint64_t table_bytes(const TableWriter *writer);
/* Writes the sorted records to fd at its position. The names of a hard link are one each. */
gboolean table_finish(TableWriter *writer, int fd, uint64_t *records, GError **error);

/* The first record that may be of an object; n: there is none. Others follow it. */
uint64_t table_first(const TableRecord *records, uint64_t n, const ObjectId *id);
gboolean table_may_be(const TableRecord *record, const ObjectId *id);

#endif
