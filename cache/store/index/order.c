/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a tag by age, from which eviction chooses. A list of a tag begins at its own place
 * in one tree, so that what it costs does not depend on how many objects other tags have. Objects
 * used since they were fetched are a list of their own: see FormatOrder.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "cache/store/index/internal.h"

#define OLD_NAME "uses" /* the database of earlier versions */
#define LISTED_PER_PAGE 32

static FormatOrder order_key(const TagId *tag, gboolean used_again, uint64_t ms, const ObjectId *id)
{
    FormatOrder order = {.used_again = used_again ? 1 : 0};
    uint64_t be = htobe64(ms);
    memcpy(order.tag, tag->bytes, sizeof(order.tag));
    memcpy(order.last_use_ms_be, &be, sizeof(be));
    memcpy(order.id, id->bytes, sizeof(order.id));
    return order;
}

static int put(Index *index, MDB_txn *txn, const FormatOrder *order, uint64_t size)
{
    uint64_t le = htole64(size);
    MDB_val key = index_val(order, sizeof(*order)), data = index_val(&le, sizeof(le));
    return mdb_put(txn, index->order, &key, &data, 0);
}

int index_order_put(Index *index, MDB_txn *txn, const ObjectId *id, const Record *record)
{
    FormatOrder order = order_key(&record->tag, record->used_again, record->last_use_ms, id);
    return index_errno(put(index, txn, &order, record->key.size));
}

int index_order_delete(Index *index, MDB_txn *txn, const ObjectId *id, const Record *record)
{
    FormatOrder order = order_key(&record->tag, record->used_again, record->last_use_ms, id);
    MDB_val key = index_val(&order, sizeof(order));
    int rc = index_errno(mdb_del(txn, index->order, &key, NULL));
    return rc == -ENOENT ? 0 : rc;
}

/* --- indexes of earlier versions --- */

static int take_over_all(Index *index, MDB_txn *txn, MDB_cursor *cursor)
{
    MDB_val key, data;
    int rc = mdb_cursor_get(cursor, &key, &data, MDB_FIRST);
    for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) {
        FormatUse use;
        FormatOrder order = {.used_again = 0};
        ObjectId id;
        Record record;
        if (key.mv_size != sizeof(use) || data.mv_size != sizeof(order.tag))
            return MDB_CORRUPTED;
        memcpy(&use, key.mv_data, sizeof(use));
        memcpy(order.tag, data.mv_data, sizeof(order.tag));
        memcpy(order.last_use_ms_be, use.last_use_ms_be, sizeof(use.last_use_ms_be));
        memcpy(order.id, use.id, sizeof(use.id));
        memcpy(id.bytes, use.id, sizeof(use.id));
        int found = index_read(index, txn, &id, &record);
        rc = put(index, txn, &order, found == 0 ? record.key.size : 0);
        if (rc != 0)
            return rc;
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

int index_order_take_over(Index *index, MDB_txn *txn)
{
    MDB_dbi old;
    MDB_cursor *cursor;
    int rc = mdb_dbi_open(txn, OLD_NAME, 0, &old);
    if (rc != 0)
        return rc == MDB_NOTFOUND ? 0 : rc;
    rc = mdb_drop(txn, index->order, 0);
    if (rc == 0)
        rc = mdb_cursor_open(txn, old, &cursor);
    if (rc == 0) {
        rc = take_over_all(index, txn, cursor);
        mdb_cursor_close(cursor);
    }
    return rc == 0 ? mdb_drop(txn, old, 1) : rc;
}

/* --- listing --- */

/* One of the lists of a tag, and its next entry. */
typedef struct Stream {
    MDB_cursor *cursor;
    MDB_cursor_op next;
    TagId tag;
    uint8_t used_again;
    gboolean has;
    FormatOrder at;
    uint64_t size;
} Stream;

static int look(Stream *s, int rc, const MDB_val *key, const MDB_val *data)
{
    uint64_t le;
    s->has = FALSE;
    if (rc != 0)
        return rc == MDB_NOTFOUND ? 0 : index_errno(rc);
    if (key->mv_size != sizeof(s->at) || data->mv_size != sizeof(le))
        return -EUCLEAN;
    memcpy(&s->at, key->mv_data, sizeof(s->at));
    memcpy(&le, data->mv_data, sizeof(le));
    s->size = le64toh(le);
    s->has = s->at.used_again == s->used_again &&
             memcmp(s->at.tag, s->tag.bytes, sizeof(s->at.tag)) == 0;
    return 0;
}

static int step(Stream *s)
{
    MDB_val key, data;
    int rc = mdb_cursor_get(s->cursor, &key, &data, s->next);
    return look(s, rc, &key, &data);
}

/* To the first entry beyond `start`, which may be an entry itself. */
static int seek(Stream *s, const FormatOrder *start)
{
    MDB_val key = index_val(start, sizeof(*start)), data;
    int rc = mdb_cursor_get(s->cursor, &key, &data, MDB_SET_RANGE);
    if (s->next == MDB_PREV && (rc == 0 || rc == MDB_NOTFOUND))
        rc = mdb_cursor_get(s->cursor, &key, &data, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    else if (rc == 0 && key.mv_size == sizeof(*start) &&
             memcmp(key.mv_data, start, key.mv_size) == 0)
        rc = mdb_cursor_get(s->cursor, &key, &data, MDB_NEXT);
    return look(s, rc, &key, &data);
}

/* Of two lists the one whose next entry is older. */
static Stream *older(Stream *a, Stream *b)
{
    if (!a->has || !b->has)
        return a->has ? a : b;
    const size_t from = offsetof(FormatOrder, last_use_ms_be);
    return memcmp((char *)&a->at + from, (char *)&b->at + from, sizeof(a->at) - from) <= 0 ? a : b;
}

static void fill_entry(IndexEntry *entry, const Stream *s)
{
    uint64_t be;
    memcpy(&be, s->at.last_use_ms_be, sizeof(be));
    memcpy(entry->id.bytes, s->at.id, sizeof(s->at.id));
    entry->tag = s->tag;
    entry->used_again = s->used_again != 0;
    entry->last_use_ms = be64toh(be);
    entry->size = s->size;
}

static int begin_streams(const IndexList *q, Stream streams[2])
{
    const gboolean backwards = q->from == INDEX_FROM_NEWEST_ONCE;
    IndexCursor from = {.last_use_ms = 0};
    if (q->after && q->after->started) {
        from = *q->after;
    } else if (backwards) {
        from.last_use_ms = UINT64_MAX;
        memset(from.id.bytes, 0xff, sizeof(from.id.bytes));
    }
    int rc = 0;
    for (int i = 0; rc == 0 && i < (backwards ? 1 : 2); i++) {
        FormatOrder start = order_key(q->tag, i, from.last_use_ms, &from.id);
        streams[i].tag = *q->tag;
        streams[i].used_again = (uint8_t)i;
        streams[i].next = backwards ? MDB_PREV : MDB_NEXT;
        rc = seek(&streams[i], &start);
    }
    return rc;
}

static ssize_t list_streams(const IndexList *q, Stream streams[2])
{
    size_t n = 0;
    uint64_t got = 0;
    int rc = begin_streams(q, streams);
    Stream *s = older(&streams[0], &streams[1]);
    while (rc == 0 && s->has && n < q->max && (got < q->bytes || n < q->objects)) {
        fill_entry(&q->out[n], s);
        got += record_charge(s->size);
        n++;
        rc = step(s);
        s = older(&streams[0], &streams[1]);
    }
    *q->end = !s->has;
    if (q->after && n > 0) {
        const IndexEntry *last = &q->out[n - 1];
        *q->after = (IndexCursor){TRUE, last->last_use_ms, last->id};
    }
    return rc < 0 ? rc : (ssize_t)n;
}

static ssize_t list(Index *index, const IndexList *q)
{
    MDB_txn *txn;
    Stream streams[2] = {{.has = FALSE}, {.has = FALSE}};
    *q->end = TRUE;
    ssize_t n = index_begin(index, MDB_RDONLY, &txn);
    if (n < 0)
        return n;
    for (int i = 0; n == 0 && i < 2; i++)
        n = index_errno(mdb_cursor_open(txn, index->order, &streams[i].cursor));
    if (n == 0)
        n = list_streams(q, streams);
    for (int i = 0; i < 2; i++)
        if (streams[i].cursor)
            mdb_cursor_close(streams[i].cursor);
    index_finish(txn, 0, FALSE);
    mapped_looked(&index->mapped, 2 + (unsigned)(MAX(n, 0) / LISTED_PER_PAGE));
    return n;
}

ssize_t index_list(Index *index, const IndexList *query)
{
    Guard guard;
    index_lock(index, FALSE);
    if (GUARD_ENTER(&guard))
        return index_lost(index, FALSE);
    /* The cast to int is safe: the number is at most `max`. */
    return index_leave(index, FALSE, (int)list(index, query));
}
