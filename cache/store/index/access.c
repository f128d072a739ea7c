/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the index: its locks, guards and transactions, and reading one record or total. Readers
 * never block on a commit. `gate` is held shared by every operation and exclusively only while the
 * environment is replaced. LMDB serialises writers itself; `writing` is our own lock, beside
 * LMDB's, so that no thread waits for a lock that was lost.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "cache/store/index/internal.h"

#define PAGES_TO_READ 3 /* a record's own and those that lead to it */

int index_errno(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_MAP_FULL:
        return -ENOSPC;
    case MDB_READERS_FULL:
        return -EAGAIN;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_PANIC:
    case MDB_BAD_VALSIZE:
    case MDB_INCOMPATIBLE:
        return -EUCLEAN;
    default:
        return rc > 0 ? -rc : -EIO;
    }
}

void index_lock(Index *index, gboolean write)
{
    pthread_rwlock_rdlock(&index->gate);
    if (write)
        pthread_mutex_lock(&index->writing);
}

static int unlock(Index *index, gboolean write, int rc)
{
    if (write)
        pthread_mutex_unlock(&index->writing);
    pthread_rwlock_unlock(&index->gate);
    return rc;
}

int index_leave(Index *index, gboolean write, int rc)
{
    guard_leave();
    return unlock(index, write, rc);
}

int index_lost(Index *index, gboolean write)
{
    if (!atomic_exchange(&index->lost, TRUE))
        g_warning("cache index %s cannot be read: it is rebuilt", index->path);
    return unlock(index, write, -EUCLEAN);
}

int index_begin(Index *index, unsigned flags, MDB_txn **txn)
{
    gboolean usable = index->env && !atomic_load(&index->lost);
    return usable ? index_errno(mdb_txn_begin(index->env, NULL, flags, txn)) : -EUCLEAN;
}

int index_finish(MDB_txn *txn, int rc, gboolean commit)
{
    if (commit && rc == 0)
        return index_errno(mdb_txn_commit(txn));
    mdb_txn_abort(txn);
    return rc;
}

int index_read(Index *index, MDB_txn *txn, const ObjectId *id, Record *record)
{
    MDB_val key = index_val(id->bytes, sizeof(id->bytes)), data;
    int rc = index_errno(mdb_get(txn, index->objects, &key, &data));
    if (rc == 0)
        rc = index_record_decode(data.mv_data, data.mv_size, id, record);
    mapped_looked(&index->mapped, PAGES_TO_READ);
    return rc;
}

int index_decode_totals(const MDB_val *data, IndexTotals *totals)
{
    FormatTotals disk;
    if (data->mv_size != sizeof(disk))
        return -EUCLEAN;
    memcpy(&disk, data->mv_data, sizeof(disk));
    *totals = (IndexTotals){le64toh(disk.bytes), le64toh(disk.objects)};
    return 0;
}
