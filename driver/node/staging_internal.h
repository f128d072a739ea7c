/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What staging.c (mounts that hearthd serves) and image*.c (what is on images) share. Functions
 * below need the volume held (common/busy.h).
 */
#ifndef HEARTH_DRIVER_NODE_STAGING_INTERNAL_H
#define HEARTH_DRIVER_NODE_STAGING_INTERNAL_H

#include "driver/node/image/block.h"
#include "common/busy.h"
#include "driver/node/mount/fsgroup.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/keeper.h"
#include "driver/node/staging.h"
#include "driver/node/hearthd/watch.h"

struct Staging {
    NodeMounter *mounter;
    char *socket_path;
    Keeper *keeper;
    Busy *busy;
    Watch *watch;
    NodeBlock *block; /* NULL: no images on this node */
    char *device_dir;
    struct NodeDatasets *datasets; /* NULL: likewise */
    GMutex walks_lock;             /* a leaf */
    GHashTable *walks;             /* volume -> FsgroupWalk that waits for the next call */
};

/* For one question to hearthd that needs no Ceph. */
#define STAGING_ASK_MS 5000
/* For taking back, also when the caller's time is over. */
#define STAGING_CLEANUP_MS 5000

/* A moment in monotonic time until which an operation may wait. */
typedef gint64 Deadline;

static inline Deadline deadline_in(gint64 ms)
{
    return g_get_monotonic_time() + CLAMP(ms, 0, 24 * 3600 * 1000) * 1000;
}

static inline gint64 left_ms(Deadline deadline, gint64 at_most)
{
    return CLAMP((deadline - g_get_monotonic_time()) / 1000, 0, at_most);
}

/* Gives hearthd and the keeper the newer spec of a volume that is served: it counts at once. */
gboolean staging_renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                       Deadline deadline, GError **error);
/* Has the files of the mount `dev` at `staged` shown for the group (-1: no matter which).
 * FAILED_PRECONDITION: it is published for another. */
gboolean staging_take_group(Staging *s, const char *volume, const char *staged, dev_t dev,
                            gint64 group, Deadline deadline, GError **error);
/* Where a mount is published, but at `target` (NULL: nowhere is left out); borrowed, or NULL. */
const MountEntry *staging_find_publication(const GPtrArray *table, dev_t dev, const char *staged,
                                           const char *target);
/* FALSE with FAILED_PRECONDITION. */
gboolean staging_other_group(const char *volume, const MountEntry *other, gint64 group,
                             GError **error);
/* Where the giving of the volume's files to a group has ended; the caller's, or NULL. */
FsgroupWalk *staging_take_walk(Staging *s, const char *volume);
/* Keeps it until it is taken. Takes it over; NULL: nothing is done. */
void staging_keep_walk(Staging *s, const char *volume, FsgroupWalk *walk);
GPtrArray *staging_list(Staging *s, GError **error);
/* FALSE with the error when something other than the volume is mounted there. */
gboolean staging_check_owner(Staging *s, const MountEntry *entry, const char *volume,
                             GError **error);
/* Whether the mount's connection is gone for good. One that merely hangs is not dead. */
gboolean staging_is_dead(Staging *s, const char *path);
/* Takes all mounts of the volume away from `path`. `stale`: the caller knows that they are dead. */
gboolean staging_clear(Staging *s, const char *volume, const char *path, gboolean stale,
                       Deadline deadline, GError **error);
/*
 * Closes our duplicate when hearthd no longer serves the volume and the watch has not noticed yet:
 * it would have the unmounts wait for answers that never come.
 */
void staging_release_if_lost(Staging *s, const char *volume);
/* Lets hearthd and the keeper forget the volume if no mount that it serves is left. */
gboolean staging_detach_if_last(Staging *s, const char *volume, Deadline deadline, GError **error);
/* Mounts what hearthd serves of the volume at `path`, unless that is so. layer: hearthd_attach().
 */
gboolean staging_mount_at(Staging *s, const char *volume, const char *path, const json_t *spec,
                          const char *layer, const MountOptions *options, Deadline deadline,
                          GError **error);
/*
 * Whether what is mounted has the SELinux context that is asked for (NULL: any will do). FALSE with
 * the code.
 */
gboolean staging_check_context(const MountEntry *entry, const char *volume, const char *context,
                               int code, GError **error);
/* Binds the mount `dev` at `staged` on `target`; see staging_publish(). */
gboolean staging_bind(Staging *s, const char *volume, const char *staged, const char *target,
                      dev_t dev, uint64_t attrs, gboolean exclusive, Deadline deadline,
                      GError **error);

/* driver/node/dataset/dataset.c */
void node_datasets_free(Staging *s);

/* driver/node/image/image.c, driver/node/image/mounts.c */

/* Whether the mount is of something on the volume's image: its file system, or its device. */
gboolean image_is_mount_of(Staging *s, const MountEntry *entry, const char *volume);
/*
 * Takes away what is published of the volume at `target` when its loop device is gone, or is
 * another's by now; also when nobody knows whose it was, and the device is gone. Else does nothing.
 */
gboolean image_clear_lost(Staging *s, const char *volume, const char *target, gint64 timeout_ms,
                          GError **error);
/*
 * Takes away what is beneath an image's file system or device, unless that is still mounted.
 * Nothing is done for a volume that is no image. `unstaging`: else a device that is not mounted
 * stays, for it is staged as long as it is there.
 */
gboolean image_remove_if_unused(Staging *s, const char *volume, gboolean unstaging,
                                Deadline deadline, GError **error);

#endif
