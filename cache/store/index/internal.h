/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index, for the files of this folder, from the bottom up: access.c (locks, guards,
 * transactions), order.c (the objects of a tag by age), index.c (the rest).
 *
 *   Guard guard;
 *   index_lock(index, write);
 *   if (GUARD_ENTER(&guard))
 *       return index_lost(index, write);
 *   ...
 *   return index_leave(index, write, rc);
 *
 * Functions return 0 or -errno where they do not say otherwise.
 */
#ifndef HEARTH_CACHE_STORE_INDEX_INTERNAL_H
#define HEARTH_CACHE_STORE_INDEX_INTERNAL_H

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cache/store/disk/guard.h"
#include "cache/store/disk/mapped.h"
#include "cache/store/index/index.h"

struct Index {
    char *path;
    pthread_rwlock_t gate;
    MDB_env *env;            /* gate; NULL after a reset that failed */
    atomic_bool lost;        /* env is not to be touched any more */
    pthread_mutex_t writing; /* taken after the gate */
    MDB_dbi objects, order, tags, meta;
    Mapped mapped;
};

static inline MDB_val index_val(const void *data, size_t size)
{
    return (MDB_val){.mv_size = size, .mv_data = (void *)data};
}

/* --- access.c --- */
/* The -errno of an error of LMDB. */
int index_errno(int rc);
void index_lock(Index *index, gboolean write);
int index_leave(Index *index, gboolean write, int rc);
/* After the guard was jumped out of, which has ended it. -EUCLEAN. */
int index_lost(Index *index, gboolean write);
/* Within a guard. Every success is paired with index_finish(). */
int index_begin(Index *index, unsigned flags, MDB_txn **txn);
int index_finish(MDB_txn *txn, int rc, gboolean commit);
int index_read(Index *index, MDB_txn *txn, const ObjectId *id, Record *record);
int index_decode_totals(const MDB_val *data, IndexTotals *totals);

/* --- order.c --- */
int index_order_put(Index *index, MDB_txn *txn, const ObjectId *id, const Record *record);
/* None: nothing happens. */
int index_order_delete(Index *index, MDB_txn *txn, const ObjectId *id, const Record *record);
/* Takes over what an index of an earlier version has instead, if it does. An error of LMDB. */
int index_order_take_over(Index *index, MDB_txn *txn);

#endif
