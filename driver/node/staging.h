/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging and publishing of volumes of all kinds (served/kind.h): what the Node service does after
 * it has checked its arguments.
 *
 * The mount table is the only record of what is staged and published, so every operation begins by
 * reading it, and a repetition after a crash at any step continues from there:
 *   - mounts appear complete (mount/mount.h), and an operation that fails takes back its steps;
 *   - a mount of ours that is not served (hearthd was killed) is stale: the next operation that
 *     needs it unmounts it lazily and mounts the volume again;
 *   - a volume is detached from hearthd when its last mount is gone, in whatever order its staging
 *     and target mounts go.
 * Calls on one volume or one path exclude each other: the later one gets ABORTED.
 */
#ifndef HEARTH_DRIVER_NODE_STAGING_H
#define HEARTH_DRIVER_NODE_STAGING_H

#include "driver/node/served/kind.h"

/* Takes the mounter over. Starts to watch hearthd (hearthd/watch.h; wait_sec: WatchConfig). Images
 * and datasets need image_init() and dataset_init() too, before the first call. */
Staging *staging_new(NodeMounter *mounter, const char *hearthd_socket, unsigned wait_sec);
/* No call may be running. Mounts stay. */
void staging_free(Staging *staging);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Staging, staging_free)

/* Whether the volume, which hearthd does not serve, waits for the next hearthd. */
gboolean staging_waits(Staging *staging, const char *volume);

const NodeKind *staging_kind(const VolumeAttributes *attributes);

/*
 * Paths are canonical (mount_canonical_path()). Errors are HEARTH_ERROR. The deadline bounds the
 * waiting for hearthd and for file systems; taking back after a failure has some seconds of its
 * own.
 *
 * ALREADY_EXISTS: staged there with other parameters, or with another SELinux context, or as a
 * device and not a file system, or the reverse. FAILED_PRECONDITION: something else is at the path;
 * or the image is damaged, in use elsewhere, or has content that is not mounted. ABORTED while the
 * manifest of a dataset is being built, with the progress: the next call continues.
 */
gboolean staging_stage(Staging *s, const NodeKind *kind, const NodeCall *call, GError **error);
/* Fine when nothing is there. path NULL: its directory is gone. FAILED_PRECONDITION: in use. */
gboolean staging_unstage(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         GError **error);
/*
 * One mount shows its files for one group, so FAILED_PRECONDITION while the volume is published for
 * another group than call->use.group. FAILED_PRECONDITION too: it is exclusive and has a target; it
 * is not staged at call->staged, or with another SELinux context; something else is at the target.
 * ALREADY_EXISTS: published there but for reading only instead of writing, or the reverse. A
 * publication that requests no context takes that of the staging. The target of a device is a file.
 */
gboolean staging_publish(Staging *s, const NodeKind *kind, const NodeCall *call, GError **error);
/* Removes the target directory too. Fine when nothing is there. target NULL: its directory is gone.
 */
gboolean staging_unpublish(Staging *s, const char *volume, const char *target, gint64 timeout_ms,
                           GError **error);
/* Takes over the volume's new size on this node, to the file system if it has one of its own.
 * *bytes is the size that is asked for, and then the one that it has. FAILED_PRECONDITION: it has
 * less. NOT_FOUND: the volume is not mounted at `path`. */
gboolean staging_expand(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                        guint64 *bytes, GError **error);
/* NOT_FOUND: the volume is not mounted at `path`. */
gboolean staging_statvfs(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         struct statvfs *st, GError **error);

#endif
