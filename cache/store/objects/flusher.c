/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher's thread. It flushes every few seconds, and repairs what it finds broken: a disk in
 * bypass is used again after a trial write; a directory that was removed is made again; an index
 * that was lost is replaced and filled by a scan.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cache/store/objects/internal.h"

/* If hearthd ran this long, the index did not crash it. */
#define YOUNG_MS 60000

static int probe_write(Store *store)
{
    static const char text[4096] = "hearth";
    char back[sizeof(text)];
    Partial partial;
    int rc = layout_partial_create(&store->layout, NULL, &partial);
    if (rc < 0)
        return rc;
    ssize_t n = store->hooks.pwrite
                    ? store->hooks.pwrite(store->hooks.data, partial.fd, text, sizeof(text), 0)
                    : pwrite(partial.fd, text, sizeof(text), 0);
    if (n != sizeof(text))
        rc = n < 0 ? -errno : -EIO;
    else if (fsync(partial.fd) < 0)
        rc = -errno;
    else if (pread(partial.fd, back, sizeof(back), 0) != sizeof(back) ||
             memcmp(text, back, sizeof(back)) != 0)
        rc = -EIO;
    layout_partial_forget(&store->layout, &partial);
    close(partial.fd);
    return rc;
}

static int begin_index_again(Store *store)
{
    /* No eviction between an index that is gone and one that is not scanned yet. */
    evict_begin(store, TRUE);
    pthread_mutex_lock(&store->flush_lock);
    int rc = index_reset(store->index);
    if (rc == 0) {
        ledger_reset(&store->ledger, &(IndexTotals){0, 0});
        atomic_store(&store->index_lost, FALSE);
        atomic_store(&store->scanned, FALSE);
    }
    pthread_mutex_unlock(&store->flush_lock);
    evict_end(store);
    return rc;
}

static int probe(Store *store)
{
    if (!layout_present(&store->layout)) {
        g_autoptr(GError) error = NULL;
        LayoutTrust trust;
        LayoutOptions options = {.boot_id = store->hooks.boot_id,
                                 .any_filesystem = store->hooks.any_filesystem};
        if (!layout_reopen(&store->layout, &options, &trust, &error)) {
            g_warning("%s", error->message);
            return -EIO;
        }
        if (trust == LAYOUT_UNTRUSTED)
            atomic_store(&store->trust, LAYOUT_UNTRUSTED);
        atomic_store(&store->index_lost, TRUE);
        space_forget(store);
        pthread_mutex_lock(&store->pins_lock);
        tags_save(&store->tags, store->layout.dir_fd);
        pthread_mutex_unlock(&store->pins_lock);
    }
    if (atomic_load(&store->index_lost)) {
        int rc = begin_index_again(store);
        if (rc < 0)
            return rc;
    }
    return probe_write(store);
}

static void scan_if_due(Store *store)
{
    if (atomic_load(&store->scanned))
        return;
    int rc = store_scan(store);
    if (rc < 0) {
        if (rc != -ECANCELED)
            disk_failed(&store->disk, rc, monotonic_ms());
        return;
    }
    if (layout_mark(&store->layout, FORMAT_STATE_OPEN, store->layout.crashes + 1) < 0)
        return;
    atomic_store(&store->trust, LAYOUT_SAME_BOOT);
    atomic_store(&store->scanned, TRUE);
}

void *store_flusher(void *data)
{
    Store *store = data;
    uint64_t started = monotonic_ms();
    gboolean grown_up = FALSE;
    do {
        uint64_t now = monotonic_ms();
        if (disk_tick(&store->disk, now))
            disk_probed(&store->disk, probe(store));
        if (disk_state(&store->disk) == STORE_DISK_BYPASS)
            continue;
        if (atomic_load(&store->index_lost))
            begin_index_again(store);
        scan_if_due(store);
        store_flush(store);
        if (!grown_up && now - started > YOUNG_MS && atomic_load(&store->scanned))
            grown_up = layout_mark(&store->layout, FORMAT_STATE_OPEN, 0) == 0;
    } while (wake_wait(&store->flusher, store->hooks.flush_ms));
    return NULL;
}
