/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health of the cache disk, as a state machine fed with the results of what the store does:
 *
 *   ok --error--> suspect --2 more within a minute--> bypass --probe succeeds--> ok
 *                 suspect --16 successes, or a minute without error--> ok
 *   ok, suspect --an error that will not pass (read-only, gone)--> bypass
 *
 * In bypass only a probe touches the disk, every retry_ms. A full disk is not a failing one:
 * ENOSPC and EDQUOT are left to eviction, and running out of descriptors or memory says nothing
 * about the disk. Its lock is a leaf; disk_state() takes none.
 */
#ifndef HEARTH_CACHE_STORE_DISK_DISK_H
#define HEARTH_CACHE_STORE_DISK_DISK_H

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef enum StoreDisk {
    STORE_DISK_OK,
    STORE_DISK_SUSPECT, /* an I/O error was seen; the next few decide */
    STORE_DISK_BYPASS,  /* not used: reads go to Ceph; tried again after a while */
} StoreDisk;

typedef struct Disk {
    atomic_int state; /* StoreDisk; written under lock */
    atomic_ulong errors;
    pthread_mutex_t lock;
    unsigned recent, successes; /* lock: since it became suspect */
    uint64_t last_error_ms;     /* lock */
    uint64_t probe_at_ms;       /* lock */
    uint64_t retry_ms;
} Disk;

void disk_init(Disk *disk, uint64_t retry_ms);
void disk_destroy(Disk *disk);

static inline StoreDisk disk_state(Disk *disk)
{
    return (StoreDisk)atomic_load_explicit(&disk->state, memory_order_acquire);
}

/* `error` is an errno, positive or negative. Times are monotonic milliseconds. */
void disk_failed(Disk *disk, int error, uint64_t now_ms);
void disk_succeeded(Disk *disk, uint64_t now_ms);
/* Call now and then. TRUE: a probe is due now; the next one will be retry_ms later. */
gboolean disk_tick(Disk *disk, uint64_t now_ms);
void disk_probed(Disk *disk, int rc);

#endif
