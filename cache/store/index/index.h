/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: an LMDB file of one record per object, the objects of each tag by age, and totals. A
 * record says that the object's bytes are on stable storage: sync them before you put one. Changes
 * are applied in batches, each one durable transaction. All functions may be called from any thread
 * and return 0 or -errno: -EUCLEAN means that the file is damaged.
 */
#ifndef HEARTH_CACHE_STORE_INDEX_INDEX_H
#define HEARTH_CACHE_STORE_INDEX_INDEX_H

#include "cache/store/disk/record.h"

typedef struct Index Index;

typedef struct IndexTotals {
    uint64_t bytes, objects; /* bytes as charged */
} IndexTotals;

typedef enum IndexOp {
    INDEX_PUT,    /* record */
    INDEX_DELETE, /* record.tag, used_again and last_use_ms as listed, or 0; none: nothing happens
                   */
    INDEX_TOUCH,  /* record.last_use_ms, when the record has an older one by `slack_ms` at least; it
                     is used again then */
    INDEX_RETAG,  /* record.tag; no such record: nothing happens */
} IndexOp;

typedef struct IndexChange {
    IndexOp op;
    ObjectId id;
    Record record;
} IndexChange;

/* An object as listed. */
typedef struct IndexEntry {
    ObjectId id;
    TagId tag;
    gboolean used_again;
    uint64_t last_use_ms;
    uint64_t size;
} IndexEntry;

typedef struct IndexTag {
    TagId tag;
    IndexTotals totals;
} IndexTag;

/*
 * Opens `path`, or makes it. A file too damaged to open is replaced. *created: the index began
 * empty. NULL: the file system's error, G_IO_ERROR, naming the path.
 */
Index *index_open(const char *path, gboolean *created, GError **error);
/* Removes the file and begins again, while other threads may be using the index. */
int index_reset(Index *index);
void index_close(Index *index);

/* -ENOENT: no record. A damaged record counts as none. */
int index_get(Index *index, const ObjectId *id, Record *record);
gboolean index_has(Index *index, const ObjectId *id);

/*
 * Applies all changes in the order given or none, durably. *delta gets what was added to the
 * totals (as two's complement: it may be less than nothing). slack_ms is for INDEX_TOUCH.
 */
int index_apply(Index *index, const IndexChange *changes, size_t n, uint64_t slack_ms,
                IndexTotals *delta);

typedef enum IndexFrom {
    INDEX_FROM_OLDEST,      /* least recently used first */
    INDEX_FROM_NEWEST_ONCE, /* those not used since they were fetched, the last fetched first */
} IndexFrom;
typedef struct IndexCursor {
    gboolean started;
    uint64_t last_use_ms;
    ObjectId id;
} IndexCursor;
typedef struct IndexList {
    const TagId *tag;
    IndexFrom from;
    IndexCursor *after;      /* NULL: from the beginning; else it becomes where to continue */
    uint64_t bytes, objects; /* enough: that much as charged, and that many */
    IndexEntry *out;         /* at most `max` */
    size_t max;
    gboolean *end; /* becomes TRUE when there is nothing beyond */
} IndexList;
/* Lists objects of a tag until they are enough. Looks at no others, however many there are. Returns
 * the number or -errno. */
ssize_t index_list(Index *index, const IndexList *query);
/* Lists up to `max` tags that have objects and follow *after (NULL: from the beginning). Returns
 * the number or -errno. */
ssize_t index_tags(Index *index, const TagId *after, IndexTag *out, size_t max);

/* Lists up to `max` objects by id, those greater than *after. *end: there are no more. */
ssize_t index_by_id(Index *index, const ObjectId *after, IndexEntry *out, size_t max,
                    gboolean *end);

int index_totals(Index *index, IndexTotals *totals);
int index_tag_totals(Index *index, const TagId *tag, IndexTotals *totals);

#endif
