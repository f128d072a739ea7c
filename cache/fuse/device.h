/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device serves one image as a FUSE mount of one file, "image", over which the node plugin puts a
 * loop device with direct I/O. Requests go to the image as they come and are answered when it
 * completes them, so as many are under way as the kernel sends, and no thread waits for one.
 *
 *     fsync(2)   (the loop device's FLUSH)             -> flush
 *     fallocate(2), punching a hole or zeroing         -> zero
 *     statfs(2)  block size: the smallest discard worth sending; the loop device reads it there
 *     extended attributes user.hearth.NAME             -> notes kept with the image
 */
#ifndef HEARTH_CACHE_FUSE_DEVICE_H
#define HEARTH_CACHE_FUSE_DEVICE_H

#include <glib.h>
#include <stdint.h>
#include "cache/fuse/stats.h"
#include "cache/origin/image.h"

#define DEVICE_FILE "image"
#define DEVICE_NOTE_PREFIX "user.hearth."

typedef struct Device Device;

/*
 * Begins to serve `fuse_fd`, a mounted /dev/fuse descriptor, taken over also on error. The image is
 * borrowed until device_stop() has returned TRUE. `ended` is called once from some thread when the
 * kernel has unmounted or aborted the connection, or when the image is lost to another client: then
 * every request fails. It must not call device_stop() itself.
 */
Device *device_start(Image *image, int fuse_fd, void (*ended)(void *data), void *data,
                     GError **error);
/* As above, of a mount that another process has left (mount_state.h). */
Device *device_take_over(Image *image, int fuse_fd, int state_fd, void (*ended)(void *data),
                         void *data, GError **error);
/* Whether another process could go on. */
gboolean device_can_be_left(Device *device);
/*
 * Before device_stop(): from now on requests wait for another process, which goes on with
 * `state_fd`. All that was written is in Ceph. FALSE: it is not, within timeout_ms.
 */
gboolean device_leave(Device *device, int state_fd, gint64 timeout_ms, GError **error);
/* The descriptor, borrowed: to hand a duplicate to the keeper. */
int device_fd(Device *device);
uint64_t device_bytes(Device *device);
/* Of these numbers a device has opens, bytes_origin (read) and bytes_written. */
void device_stats(Device *device, FuseStats *stats);
/* Asks for the image's size again, and notifies the kernel. Blocks on Ceph. */
gboolean device_resize(Device *device, uint64_t *bytes, GError **error);
/*
 * Stops the threads, waits for what is under way, frees. FALSE: something still is after timeout_ms
 * (Ceph does not answer); the device stays, without threads, and this may be called again.
 */
gboolean device_stop(Device *device, gint64 timeout_ms);

#endif
