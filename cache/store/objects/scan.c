/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan after a crash or the loss of the index. It runs beside normal work, on the flusher's
 * thread: opening the store must not make file systems wait while a million names are read.
 *
 * Objects without a record are complete, because only complete ones are linked in. If the machine
 * stayed up their bytes are good too, and they are adopted: through the ledger, so that they get
 * their records after a sync like any other. If it did not, they are removed; until that is done
 * store_open_present() serves only objects with a record.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/objects/internal.h"

static gboolean recorded(Store *store, const ObjectId *id)
{
    switch (ledger_find(&store->ledger, id)) {
    case LEDGER_HELD:
    case LEDGER_DROPPED: /* or being linked: another thread takes care of it */
        return TRUE;
    case LEDGER_UNKNOWN:
        break;
    }
    return index_has(store->index, id);
}

static int read_record(Store *store, const ObjectId *id, Record *record)
{
    FormatRecord raw;
    struct stat st;
    hearth_autofd int fd = layout_open_object(&store->layout, id);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_mtim.tv_sec != object_id_seal(id))
        return -EBADMSG;
    ssize_t n = fgetxattr(fd, FORMAT_RECORD_XATTR, &raw, sizeof(raw));
    if (n >= 0 && index_record_decode(&raw, (size_t)n, id, record) == 0)
        return record->key.size == (uint64_t)st.st_size ? 0 : -EBADMSG;
    if (n < 0 && errno != ENODATA && errno != ENOTSUP)
        return errno == ERANGE ? -EBADMSG : -errno;
    if (n >= 0)
        return -EBADMSG;
    *record = (Record){.anonymous = TRUE,
                       .key.size = (uint64_t)st.st_size,
                       .last_use_ms = (uint64_t)MAX(st.st_ctim.tv_sec, 0) * 1000};
    return 0;
}

/* 0 also if there is nothing to adopt. */
static int adopt_object(Store *store, const ObjectId *id)
{
    Record record;
    int rc = read_record(store, id, &record);
    if (rc == -ENOENT)
        return 0;
    if (rc == -EBADMSG || rc == -ELOOP) {
        layout_unlink_object(&store->layout, id);
        return 0;
    }
    if (rc < 0)
        return rc;
    rc = ledger_announce(&store->ledger, id, &record);
    if (rc == -EBUSY) {
        rc = store_flush(store);
        return rc < 0 ? rc : -EAGAIN;
    }
    if (rc == -EEXIST)
        return 0;
    /* It may have been evicted and recorded again since: this check keeps the sums right. */
    ledger_linked(&store->ledger, id, !index_has(store->index, id), 0);
    return 0;
}

static int deal_with(Store *store, const ObjectId *id)
{
    if (recorded(store, id))
        return 0;
    if (atomic_load(&store->trust) == LAYOUT_UNTRUSTED) {
        /* Announced, so that no fill links the same name between the check and the removal. */
        int rc = ledger_announce(&store->ledger, id, &(Record){.anonymous = TRUE});
        if (rc == -EBUSY)
            rc = store_flush(store) < 0 ? -EIO : -EAGAIN;
        if (rc < 0)
            return rc == -EEXIST ? 0 : rc;
        rc = index_has(store->index, id) ? 0 : layout_unlink_object(&store->layout, id);
        ledger_linked(&store->ledger, id, FALSE, 0);
        return rc == -ENOENT ? 0 : rc;
    }
    return adopt_object(store, id);
}

static int scan_dir(Store *store, const char *name)
{
    int fd =
        openat(store->layout.objects_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc == -ENOENT ? 0 : rc;
    }
    int rc = 0;
    errno = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)); errno = 0) {
        ObjectId id;
        if (!object_id_parse(e->d_name, &id) || strncmp(e->d_name, name, 2) != 0)
            continue;
        do
            rc = deal_with(store, &id);
        while (rc == -EAGAIN);
        if (wake_stopping(&store->flusher))
            rc = -ECANCELED;
    }
    if (rc == 0 && errno != 0)
        rc = -errno;
    closedir(dir);
    return rc;
}

int store_scan(Store *store)
{
    uint64_t last_flush = monotonic_ms();
    for (unsigned i = 0; i < 256; i++) {
        char name[3];
        snprintf(name, sizeof(name), "%02x", i);
        int rc = scan_dir(store, name);
        if (rc < 0)
            return rc;
        if (monotonic_ms() - last_flush > store->hooks.flush_ms) {
            rc = store_flush(store);
            if (rc < 0)
                return rc;
            last_flush = monotonic_ms();
        }
    }
    return store_flush(store);
}
