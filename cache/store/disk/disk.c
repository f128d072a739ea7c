/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h for the states. Changes of state are logged here, where no caller hears of them. */
#include "cache/store/disk/disk.h"
#include <errno.h>
#include <stdlib.h>

#define WINDOW_MS 60000
#define ERRORS_TO_BYPASS 3
#define SUCCESSES_TO_OK 16

void disk_init(Disk *disk, uint64_t retry_ms)
{
    *disk = (Disk){.retry_ms = retry_ms};
    pthread_mutex_init(&disk->lock, NULL);
}

void disk_destroy(Disk *disk)
{
    pthread_mutex_destroy(&disk->lock);
}

static void enter_locked(Disk *disk, StoreDisk state)
{
    atomic_store_explicit(&disk->state, (int)state, memory_order_release);
    disk->recent = 0;
    disk->successes = 0;
}

static gboolean tells_nothing(int error)
{
    switch (error) {
    case 0:
    case EINTR:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean will_not_pass(int error)
{
    switch (error) {
    case EROFS:
    case ENODEV:
    case ENXIO:
    case ENOENT:
    case ENOTDIR:
    case ESHUTDOWN:
        return TRUE;
    default:
        return FALSE;
    }
}

void disk_failed(Disk *disk, int error, uint64_t now_ms)
{
    error = abs(error);
    if (tells_nothing(error))
        return;
    atomic_fetch_add(&disk->errors, 1);
    pthread_mutex_lock(&disk->lock);
    StoreDisk state = disk_state(disk);
    gboolean bypass = FALSE;
    if (state != STORE_DISK_BYPASS) {
        if (state == STORE_DISK_OK || now_ms - disk->last_error_ms > WINDOW_MS)
            enter_locked(disk, STORE_DISK_SUSPECT);
        disk->recent++;
        disk->successes = 0;
        disk->last_error_ms = now_ms;
        if (will_not_pass(error) || disk->recent >= ERRORS_TO_BYPASS) {
            enter_locked(disk, STORE_DISK_BYPASS);
            disk->probe_at_ms = now_ms + disk->retry_ms;
            bypass = TRUE;
        }
    }
    pthread_mutex_unlock(&disk->lock);
    if (bypass)
        g_warning("cache disk: %s: not used until a trial write succeeds; reads go to the origin",
                  g_strerror(error));
    else if (state == STORE_DISK_OK)
        g_warning("cache disk: %s: suspect", g_strerror(error));
}

void disk_succeeded(Disk *disk, uint64_t now_ms)
{
    if (disk_state(disk) != STORE_DISK_SUSPECT)
        return;
    pthread_mutex_lock(&disk->lock);
    if (disk_state(disk) == STORE_DISK_SUSPECT &&
        (++disk->successes >= SUCCESSES_TO_OK || now_ms - disk->last_error_ms > WINDOW_MS))
        enter_locked(disk, STORE_DISK_OK);
    pthread_mutex_unlock(&disk->lock);
}

gboolean disk_tick(Disk *disk, uint64_t now_ms)
{
    if (disk_state(disk) == STORE_DISK_OK)
        return FALSE;
    pthread_mutex_lock(&disk->lock);
    if (disk_state(disk) == STORE_DISK_SUSPECT && now_ms - disk->last_error_ms > WINDOW_MS)
        enter_locked(disk, STORE_DISK_OK);
    gboolean due = disk_state(disk) == STORE_DISK_BYPASS && now_ms >= disk->probe_at_ms;
    if (due)
        disk->probe_at_ms = now_ms + disk->retry_ms;
    pthread_mutex_unlock(&disk->lock);
    return due;
}

void disk_probed(Disk *disk, int rc)
{
    pthread_mutex_lock(&disk->lock);
    gboolean back = rc == 0 && disk_state(disk) == STORE_DISK_BYPASS;
    if (back)
        enter_locked(disk, STORE_DISK_OK);
    pthread_mutex_unlock(&disk->lock);
    if (back)
        g_message("cache disk: a trial write succeeded: in use again");
}
