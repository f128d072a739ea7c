/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index on LMDB. Chosen over a log of our own because it needs no replay (a million objects open in
 * a moment), no cache of its own, and survives a kill at any point: its transactions are
 * copy-on-write and synced before they count.
 *
 * LMDB does not checksum its pages. Visible damage is handled: a file that is not LMDB's, or is
 * shorter than its meta page says, is replaced, and so is the index of a store whose owners crash
 * again and again soon after start (store.c). LMDB reads by mapping, so a page that cannot be read
 * is a SIGBUS (guard.h): the environment and its locks are lost then, and every operation answers
 * -EUCLEAN until index_reset().
 */
#include <endian.h>
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cache/store/index/internal.h"

#define MAP_BYTES ((size_t)16 << 30) /* address space only: some 60 million objects */
#define MAX_READERS 1024
#define PAGES_TO_CHANGE 9 /* of a record: its own and those that lead to it, of each database */

static const char totals_key[] = "totals";

/* --- opening --- */

static gboolean is_as_long_as_it_says(MDB_env *env, const char *path)
{
    MDB_envinfo info;
    MDB_stat stat_env;
    struct stat st;
    if (mdb_env_info(env, &info) != 0 || mdb_env_stat(env, &stat_env) != 0)
        return FALSE;
    if (stat(path, &st) < 0)
        return FALSE;
    /* A new environment has two meta pages that are written with the first transaction. */
    return st.st_size == 0 ||
           (uint64_t)st.st_size >= ((uint64_t)info.me_last_pgno + 1) * stat_env.ms_psize;
}

static int get_totals(MDB_txn *txn, MDB_dbi dbi, MDB_val key, IndexTotals *totals)
{
    MDB_val data;
    *totals = (IndexTotals){0, 0};
    int rc = index_errno(mdb_get(txn, dbi, &key, &data));
    if (rc == -ENOENT)
        return 0;
    return rc < 0 ? rc : index_decode_totals(&data, totals);
}

/* The totals, the objects and their order must agree in number. 0 or an error of LMDB. */
static int check_totals(const Index *index, MDB_txn *txn)
{
    MDB_stat objects, order;
    IndexTotals totals;
    int rc = mdb_stat(txn, index->objects, &objects);
    if (rc == 0)
        rc = mdb_stat(txn, index->order, &order);
    if (rc != 0)
        return rc;
    if (get_totals(txn, index->meta, index_val(totals_key, sizeof(totals_key)), &totals) != 0 ||
        totals.objects != objects.ms_entries || objects.ms_entries != order.ms_entries)
        return MDB_CORRUPTED;
    return 0;
}

static int open_databases(Index *index)
{
    const struct {
        const char *name;
        MDB_dbi *dbi;
    } databases[] = {{"objects", &index->objects},
                     {"order", &index->order},
                     {"tags", &index->tags},
                     {"meta", &index->meta}};
    MDB_txn *txn;
    int rc = mdb_txn_begin(index->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < G_N_ELEMENTS(databases); i++)
        rc = mdb_dbi_open(txn, databases[i].name, MDB_CREATE, databases[i].dbi);
    if (rc == 0)
        rc = index_order_take_over(index, txn);
    if (rc == 0)
        rc = check_totals(index, txn);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/* What LMDB finds wrong with its pages would end the process. */
static void on_assert(MDB_env *env, const char *what)
{
    (void)env;
    g_warning("cache index: %s", what);
    guard_jump();
}

/* 0 or an error of LMDB. */
static int fill_env(Index *index)
{
    /* Random reads of small records: readahead would only push objects out of memory. */
    const unsigned flags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD;
    int rc = mdb_env_set_assert(index->env, on_assert);
    if (rc == 0)
        rc = mdb_env_set_mapsize(index->env, MAP_BYTES);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(index->env, 5) /* one of an earlier version too */;
    if (rc == 0)
        rc = mdb_env_set_maxreaders(index->env, MAX_READERS);
    if (rc == 0)
        rc = mdb_env_open(index->env, index->path, flags, 0600);
    if (rc == 0 && !is_as_long_as_it_says(index->env, index->path))
        rc = MDB_CORRUPTED;
    return rc == 0 ? open_databases(index) : rc;
}

static int open_env(Index *index)
{
    int rc = mdb_env_create(&index->env);
    if (rc != 0)
        return rc;
    Guard guard;
    if (GUARD_ENTER(&guard)) {
        index->env = NULL; /* closing it would touch it */
        return MDB_CORRUPTED;
    }
    rc = fill_env(index);
    if (rc != 0) {
        mdb_env_close(index->env);
        index->env = NULL;
    }
    guard_leave();
    mapped_find(&index->mapped, index->path, index->env ? MAP_BYTES : 0);
    return rc;
}

static void remove_files(const char *path)
{
    g_autofree char *lock = g_strconcat(path, "-lock", NULL);
    unlink(path);
    unlink(lock);
}

Index *index_open(const char *path, gboolean *created, GError **error)
{
    Index *index = g_new0(Index, 1);
    index->path = g_strdup(path);
    pthread_rwlock_init(&index->gate, NULL);
    pthread_mutex_init(&index->writing, NULL);
    *created = access(path, F_OK) < 0;
    int rc = open_env(index);
    /* A full disk, on which the tables of an earlier version cannot be converted: a new index too.
     */
    if (rc != 0 && (index_errno(rc) == -EUCLEAN || index_errno(rc) == -ENOSPC)) {
        remove_files(path);
        *created = TRUE;
        rc = open_env(index);
    }
    if (rc != 0) {
        g_set_error(error, G_IO_ERROR, rc > 0 ? g_io_error_from_errno(rc) : G_IO_ERROR_FAILED,
                    "cache index %s: %s; remove the file, it is rebuilt", path, mdb_strerror(rc));
        index_close(index);
        return NULL;
    }
    return index;
}

int index_reset(Index *index)
{
    pthread_rwlock_wrlock(&index->gate);
    /* A lost environment is left behind: closing it would touch pages that cannot be read. */
    if (index->env && !atomic_load(&index->lost))
        mdb_env_close(index->env);
    index->env = NULL;
    remove_files(index->path);
    /* With the old files still there it would be the old locks. */
    int rc = atomic_load(&index->lost) && access(index->path, F_OK) == 0 ? EIO : open_env(index);
    if (rc == 0)
        atomic_store(&index->lost, FALSE);
    pthread_rwlock_unlock(&index->gate);
    return index_errno(rc);
}

void index_close(Index *index)
{
    if (!index)
        return;
    if (index->env && !atomic_load(&index->lost))
        mdb_env_close(index->env);
    pthread_mutex_destroy(&index->writing);
    pthread_rwlock_destroy(&index->gate);
    g_free(index->path);
    g_free(index);
}

/* --- reading --- */

static int get_by_id(Index *index, const ObjectId *id, Record *record)
{
    MDB_txn *txn;
    int rc = index_begin(index, MDB_RDONLY, &txn);
    if (rc < 0)
        return rc;
    rc = index_finish(txn, index_read(index, txn, id, record), FALSE);
    return rc == -EBADMSG || rc == -EPROTONOSUPPORT ? -ENOENT : rc;
}

int index_get(Index *index, const ObjectId *id, Record *record)
{
    Guard guard;
    index_lock(index, FALSE);
    if (GUARD_ENTER(&guard))
        return index_lost(index, FALSE);
    return index_leave(index, FALSE, get_by_id(index, id, record));
}

gboolean index_has(Index *index, const ObjectId *id)
{
    Record record;
    return index_get(index, id, &record) == 0;
}

static int read_totals(Index *index, const TagId *tag, IndexTotals *totals)
{
    MDB_txn *txn;
    *totals = (IndexTotals){0, 0};
    int rc = index_begin(index, MDB_RDONLY, &txn);
    if (rc < 0)
        return rc;
    if (tag)
        rc = get_totals(txn, index->tags, index_val(tag->bytes, sizeof(tag->bytes)), totals);
    else
        rc = get_totals(txn, index->meta, index_val(totals_key, sizeof(totals_key)), totals);
    return index_finish(txn, rc, FALSE);
}

int index_totals(Index *index, IndexTotals *totals)
{
    return index_tag_totals(index, NULL, totals);
}

int index_tag_totals(Index *index, const TagId *tag, IndexTotals *totals)
{
    Guard guard;
    index_lock(index, FALSE);
    if (GUARD_ENTER(&guard))
        return index_lost(index, FALSE);
    return index_leave(index, FALSE, read_totals(index, tag, totals));
}

static ssize_t list_tags(Index *index, const TagId *after, IndexTag *out, size_t max)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    size_t n = 0;
    int rc = index_begin(index, MDB_RDONLY, &txn);
    if (rc < 0)
        return rc;
    rc = mdb_cursor_open(txn, index->tags, &cursor);
    if (rc != 0)
        return index_finish(txn, index_errno(rc), FALSE);
    MDB_val key = after ? index_val(after->bytes, sizeof(after->bytes)) : index_val(NULL, 0), data;
    rc = mdb_cursor_get(cursor, &key, &data, after ? MDB_SET_RANGE : MDB_FIRST);
    for (; rc == 0 && n < max; rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) {
        IndexTag *tag = &out[n];
        if (key.mv_size != sizeof(tag->tag))
            continue;
        memcpy(tag->tag.bytes, key.mv_data, sizeof(tag->tag.bytes));
        if (after && memcmp(&tag->tag, after, sizeof(*after)) == 0)
            continue;
        if (index_decode_totals(&data, &tag->totals) == 0)
            n++;
    }
    mdb_cursor_close(cursor);
    index_finish(txn, 0, FALSE);
    return rc != 0 && rc != MDB_NOTFOUND ? index_errno(rc) : (ssize_t)n;
}

ssize_t index_tags(Index *index, const TagId *after, IndexTag *out, size_t max)
{
    Guard guard;
    index_lock(index, FALSE);
    if (GUARD_ENTER(&guard))
        return index_lost(index, FALSE);
    return index_leave(index, FALSE, (int)list_tags(index, after, out, max));
}

static ssize_t list_by_id(Index *index, const ObjectId *after, IndexEntry *out, size_t max,
                          gboolean *end)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    size_t n = 0;
    int rc = index_begin(index, MDB_RDONLY, &txn);
    if (rc < 0)
        return rc;
    MDB_val key = index_val(after->bytes, sizeof(after->bytes)), data;
    rc = mdb_cursor_open(txn, index->objects, &cursor);
    if (rc != 0)
        return index_finish(txn, index_errno(rc), FALSE);
    rc = mdb_cursor_get(cursor, &key, &data, MDB_SET_RANGE);
    for (; rc == 0 && n < max; rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT)) {
        IndexEntry *entry = &out[n];
        Record record;
        if (key.mv_size != sizeof(entry->id))
            continue;
        memcpy(entry->id.bytes, key.mv_data, sizeof(entry->id.bytes));
        if (memcmp(&entry->id, after, sizeof(*after)) == 0 ||
            index_record_decode(data.mv_data, data.mv_size, &entry->id, &record) < 0)
            continue;
        entry->tag = record.tag;
        entry->last_use_ms = record.last_use_ms;
        entry->size = record.key.size;
        n++;
    }
    mapped_looked(&index->mapped, (unsigned)(n / 16));
    *end = rc == MDB_NOTFOUND;
    mdb_cursor_close(cursor);
    index_finish(txn, 0, FALSE);
    return rc != 0 && rc != MDB_NOTFOUND ? index_errno(rc) : (ssize_t)n;
}

ssize_t index_by_id(Index *index, const ObjectId *after, IndexEntry *out, size_t max, gboolean *end)
{
    Guard guard;
    *end = FALSE;
    index_lock(index, FALSE);
    if (GUARD_ENTER(&guard))
        return index_lost(index, FALSE);
    return index_leave(index, FALSE, (int)list_by_id(index, after, out, max, end));
}

/* --- changing --- */

/* What a transaction has done to the totals so far; tag totals go straight to their database. */
typedef struct Change {
    Index *index;
    MDB_txn *txn;
    IndexTotals delta;
} Change;

static int put_totals(Change *c, MDB_dbi dbi, MDB_val key, const IndexTotals *totals)
{
    FormatTotals disk = {htole64(totals->bytes), htole64(totals->objects)};
    MDB_val data = index_val(&disk, sizeof(disk));
    if (totals->objects == 0 && dbi == c->index->tags) {
        int rc = index_errno(mdb_del(c->txn, dbi, &key, NULL));
        return rc == -ENOENT ? 0 : rc;
    }
    return index_errno(mdb_put(c->txn, dbi, &key, &data, 0));
}

/* sign is 1 or -1. Totals that would fall below nothing were damaged: they stop there. */
static int count(Change *c, const TagId *tag, uint64_t size, int sign)
{
    uint64_t charge = record_charge(size);
    IndexTotals totals;
    MDB_val key = index_val(tag->bytes, sizeof(tag->bytes));
    int rc = get_totals(c->txn, c->index->tags, key, &totals);
    if (rc < 0)
        return rc;
    if (sign > 0) {
        totals.bytes += charge;
        totals.objects++;
        c->delta.bytes += charge;
        c->delta.objects++;
    } else {
        totals.bytes -= MIN(totals.bytes, charge);
        totals.objects -= MIN(totals.objects, 1);
        c->delta.bytes -= charge;
        c->delta.objects--;
    }
    return put_totals(c, c->index->tags, key, &totals);
}

static int put_record(Change *c, const ObjectId *id, const Record *record)
{
    FormatRecord disk;
    index_record_encode(record, &disk);
    MDB_val key = index_val(id->bytes, sizeof(id->bytes)), data = index_val(&disk, sizeof(disk));
    int rc = index_errno(mdb_put(c->txn, c->index->objects, &key, &data, 0));
    return rc < 0 ? rc : index_order_put(c->index, c->txn, id, record);
}

static int delete_record(Change *c, const ObjectId *id)
{
    Record old;
    int rc = index_read(c->index, c->txn, id, &old);
    if (rc == -ENOENT)
        return 0;
    if (rc == 0) {
        rc = index_order_delete(c->index, c->txn, id, &old);
        if (rc == 0)
            rc = count(c, &old.tag, old.key.size, -1);
    } else if (rc == -EBADMSG || rc == -EPROTONOSUPPORT) {
        rc = 0;
    }
    if (rc < 0)
        return rc;
    MDB_val key = index_val(id->bytes, sizeof(id->bytes));
    return index_errno(mdb_del(c->txn, c->index->objects, &key, NULL));
}

static int apply_one(Change *c, const IndexChange *change, uint64_t slack_ms)
{
    Record old;
    int rc;
    switch (change->op) {
    case INDEX_PUT:
        rc = delete_record(c, &change->id);
        if (rc == 0)
            rc = put_record(c, &change->id, &change->record);
        return rc < 0 ? rc : count(c, &change->record.tag, change->record.key.size, 1);
    case INDEX_DELETE:
        rc = delete_record(c, &change->id);
        /* A damaged record does not say where it is in the order of age. */
        return rc < 0 ? rc : index_order_delete(c->index, c->txn, &change->id, &change->record);
    case INDEX_RETAG:
        rc = index_read(c->index, c->txn, &change->id, &old);
        if (rc == -ENOENT || rc == -EBADMSG || rc == -EPROTONOSUPPORT)
            return 0;
        rc = rc < 0 ? rc : count(c, &old.tag, old.key.size, -1);
        rc = rc < 0 ? rc : index_order_delete(c->index, c->txn, &change->id, &old);
        old.tag = change->record.tag;
        rc = rc < 0 ? rc : put_record(c, &change->id, &old);
        return rc < 0 ? rc : count(c, &old.tag, old.key.size, 1);
    case INDEX_TOUCH:
        rc = index_read(c->index, c->txn, &change->id, &old);
        if (rc == -ENOENT || rc == -EBADMSG || rc == -EPROTONOSUPPORT)
            return 0;
        if (rc < 0 || change->record.last_use_ms < old.last_use_ms + slack_ms ||
            change->record.last_use_ms == old.last_use_ms)
            return rc;
        rc = index_order_delete(c->index, c->txn, &change->id, &old);
        old.last_use_ms = change->record.last_use_ms;
        old.used_again = TRUE;
        return rc < 0 ? rc : put_record(c, &change->id, &old);
    }
    return -EINVAL;
}

static int apply(Index *index, const IndexChange *changes, size_t n, uint64_t slack_ms,
                 IndexTotals *delta)
{
    Change c = {.index = index};
    int rc = index_begin(index, 0, &c.txn);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = apply_one(&c, &changes[i], slack_ms);
        mapped_looked(&index->mapped, PAGES_TO_CHANGE);
    }
    if (rc == 0 && (c.delta.bytes || c.delta.objects)) {
        IndexTotals totals;
        MDB_val key = index_val(totals_key, sizeof(totals_key));
        rc = get_totals(c.txn, index->meta, key, &totals);
        totals.bytes += c.delta.bytes;
        totals.objects += c.delta.objects;
        if (rc == 0)
            rc = put_totals(&c, index->meta, key, &totals);
    }
    rc = index_finish(c.txn, rc, TRUE);
    if (rc == 0)
        *delta = c.delta;
    return rc;
}

int index_apply(Index *index, const IndexChange *changes, size_t n, uint64_t slack_ms,
                IndexTotals *delta)
{
    Guard guard;
    *delta = (IndexTotals){0, 0};
    if (n == 0)
        return 0;
    index_lock(index, TRUE);
    if (GUARD_ENTER(&guard))
        return index_lost(index, TRUE);
    return index_leave(index, TRUE, apply(index, changes, n, slack_ms, delta));
}
