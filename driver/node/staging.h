/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging and publishing of volumes: what the Node service does after it has checked its arguments.
 *
 * The mount table is the only record of what is staged and published, so every operation begins by
 * reading it and a repetition after a crash at any step continues from there:
 *   - mounts appear complete (driver/node/mount/mount.h); an operation that fails takes back what
 * it did;
 *   - a mount of ours that nobody serves (hearthd was killed) is stale: it is unmounted lazily and
 *     made anew by the next operation that needs it;
 *   - a volume is detached from hearthd when its last mount is gone, in whatever order its staging
 *     and target mounts go.
 * Calls on one volume or one path exclude each other: the later one gets ABORTED.
 */
#ifndef HEARTH_DRIVER_NODE_STAGING_H
#define HEARTH_DRIVER_NODE_STAGING_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include "driver/node/image/block.h"
#include "driver/node/mount/mount.h"

typedef struct Staging Staging;

/* Takes the mounter over. Starts the watch over hearthd (driver/node/hearthd/watch.h). */
Staging *staging_new(NodeMounter *mounter, const char *hearthd_socket);
/*
 * Lets it stage images (driver/node/image/image.h): `block` is taken over; beneath device_dir are
 * the mounts of what hearthd serves of them. Before the first call.
 */
void staging_take_images(Staging *staging, NodeBlock *block, const char *device_dir);
/* No call may be running. Mounts stay. */
void staging_free(Staging *staging);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Staging, staging_free)

/*
 * Paths are canonical (mount_canonical_path()). Errors are HEARTH_ERROR. timeout_ms bounds the
 * waiting for hearthd and for file systems; taking back after a failure has some seconds of its
 * own.
 *
 * spec: see hearthd_open(). ALREADY_EXISTS: staged there with other parameters, or with another
 * SELinux context. FAILED_PRECONDITION: something else is at the path.
 */
gboolean staging_stage(Staging *s, const char *volume, const char *path, const json_t *spec,
                       const MountOptions *options, gint64 timeout_ms, GError **error);
/* Fine when nothing is there. path NULL: its directory is gone. FAILED_PRECONDITION: in use. */
gboolean staging_unstage(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         GError **error);
/*
 * group: the pod's fsGroup, for which the staged volume's files are then; -1: the pod has none and
 * takes them as they are. One mount shows them for one group, so FAILED_PRECONDITION while it is
 * published for another.
 * exclusive: no second target is allowed, FAILED_PRECONDITION. ALREADY_EXISTS: published there but
 * for reading only instead of writing, or the reverse. FAILED_PRECONDITION: not staged at `staged`,
 * or with another SELinux context, or something else is at the target. A publication that asks for
 * no context takes that of the staging.
 */
gboolean staging_publish(Staging *s, const char *volume, const char *staged, const char *target,
                         const MountOptions *options, gboolean exclusive, gint64 group,
                         gint64 timeout_ms, GError **error);
/* Removes the target directory too. Fine when nothing is there. target NULL: its directory is gone.
 */
gboolean staging_unpublish(Staging *s, const char *volume, const char *target, gint64 timeout_ms,
                           GError **error);
/* NOT_FOUND: the volume is not mounted at `path`. */
gboolean staging_statvfs(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         struct statvfs *st, GError **error);

#endif
