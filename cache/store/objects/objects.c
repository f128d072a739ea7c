/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding objects, linking them in, dropping them. A name below objects/ always belongs to a
 * complete file. A record in the index says in addition that the file's bytes are on stable
 * storage, so a record of an earlier file must be gone before a new file gets the name.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/objects/internal.h"
#include "cache/store/objects/verity.h"

/* --- looking up --- */

static gboolean is_recorded(Store *store, const ObjectId *id)
{
    switch (ledger_find(&store->ledger, id)) {
    case LEDGER_HELD:
        return TRUE;
    case LEDGER_DROPPED:
        return FALSE;
    case LEDGER_UNKNOWN:
        break;
    }
    return index_has(store->index, id);
}

gboolean store_has(Store *store, const ObjectId *id)
{
    return disk_state(&store->disk) != STORE_DISK_BYPASS && is_recorded(store, id);
}

int store_open_present(Store *store, const ObjectId *id, uint64_t size)
{
    struct stat st;
    if (disk_state(&store->disk) == STORE_DISK_BYPASS ||
        (atomic_load(&store->trust) == LAYOUT_UNTRUSTED && !is_recorded(store, id)))
        return -ENOENT;
    hearth_autofd int fd = layout_open_object(&store->layout, id);
    if (fd == -ENOENT)
        return fd;
    if (fd == -ELOOP || fd == -ENXIO) { /* a symbolic link, a socket: none of ours */
        store_drop(store, id);
        return -ENOENT;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        int rc = fd < 0 ? fd : -errno;
        disk_failed(&store->disk, rc, monotonic_ms());
        return rc;
    }
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size ||
        st.st_mtim.tv_sec != object_id_seal(id)) {
        atomic_fetch_add(&store->disk.errors, 1);
        store_drop(store, id);
        return -ENOENT;
    }
    return hearth_steal_fd(&fd);
}

int store_open_object(Store *store, const ObjectId *id, uint64_t size)
{
    int fd = store_open_present(store, id, size);
    if (fd >= 0)
        ledger_used(&store->ledger, id);
    return fd;
}

/* --- linking in and dropping --- */

static int forget_record(Store *store, const ObjectId *id)
{
    IndexChange change = {.op = INDEX_DELETE, .id = *id};
    IndexTotals delta;
    int rc = index_apply(store->index, &change, 1, 0, &delta);
    if (rc == 0)
        ledger_indexed(&store->ledger, &delta);
    else if (rc == -EUCLEAN)
        atomic_store(&store->index_lost, TRUE);
    return rc;
}

static int seal_partial(Partial *partial, const ObjectId *id, const Record *record)
{
    FormatRecord raw;
    index_record_encode(record, &raw);
    /* A file system without attributes, or a full one: a rebuilt index will know less. */
    if (fsetxattr(partial->fd, FORMAT_RECORD_XATTR, &raw, sizeof(raw), 0) < 0 && errno == EIO)
        return -EIO;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = object_id_seal(id)}};
    return futimens(partial->fd, times) < 0 ? -errno : 0;
}

static int link_in(Store *store, Partial *partial, const ObjectId *id, const Record *record)
{
    Record old;
    int rc = seal_partial(partial, id, record);
    if (rc < 0)
        return rc;
    /*
     * A record whose file is gone would vouch for this one, whose bytes are not synced yet. It must
     * be gone, durably, before the name appears.
     */
    rc = index_get(store->index, id, &old);
    if (rc != -ENOENT)
        rc = forget_record(store, id);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    rc = layout_partial_link(&store->layout, partial, id);
    if (rc == -EEXIST) { /* one without a record: this one is known to be good */
        layout_unlink_object(&store->layout, id);
        rc = layout_partial_link(&store->layout, partial, id);
    }
    return rc;
}

int store_publish(Store *store, Partial *partial, const Record *record, gboolean patient)
{
    ObjectId id;
    object_key_id(&record->key, &id);
    int rc = ledger_announce(&store->ledger, &id, record);
    for (int tries = 0; rc == -EBUSY && patient && tries < 8; tries++) {
        rc = store_flush(store);
        if (rc == 0)
            rc = ledger_announce(&store->ledger, &id, record);
    }
    if (rc == -EBUSY)
        wake_kick(&store->flusher);
    if (rc < 0)
        return rc;
    if (store->verity)
        verity_stop_writing(partial->fd, 0);
    rc = link_in(store, partial, &id, record);
    uint64_t waiting = ledger_linked(&store->ledger, &id, rc == 0, record_charge(record->key.size));
    if (waiting >= LEDGER_PENDING_EARLY)
        wake_kick(&store->flusher);
    if (rc == 0) {
        const gboolean again = evicted_take(&store->evicted, &id);
        if (again)
            atomic_fetch_add(&store->refetched, 1);
        tags_fetched(&store->tags, &record->tag, again);
        disk_succeeded(&store->disk, monotonic_ms());
    } else {
        disk_failed(&store->disk, rc, monotonic_ms());
    }
    return rc;
}

void store_drop(Store *store, const ObjectId *id)
{
    if (!ledger_removing(&store->ledger, id, FALSE))
        return;
    gboolean noted = ledger_drop(&store->ledger, id);
    int rc = layout_unlink_object(&store->layout, id);
    if (rc < 0 && rc != -ENOENT)
        disk_failed(&store->disk, rc, monotonic_ms());
    if (!noted)
        forget_record(store, id);
    ledger_removed(&store->ledger, id);
}

void store_report_bad(Store *store, const ObjectId *id, int error)
{
    store_drop(store, id);
    disk_failed(&store->disk, error, monotonic_ms());
}
