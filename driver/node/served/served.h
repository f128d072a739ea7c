/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts that hearthd serves by FUSE. Every kind of volume is built on them (served/kind.h). Except
 * where it says otherwise, a function needs the volume held (common/busy.h).
 */
#ifndef HEARTH_DRIVER_NODE_SERVED_SERVED_H
#define HEARTH_DRIVER_NODE_SERVED_SERVED_H

#include "common/busy.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/keeper.h"
#include "driver/node/hearthd/watch.h"
#include "driver/node/mount/fsgroup.h"
#include "driver/node/served/kind.h"
#include "driver/node/served/usages.h"

struct Staging {
    const NodeKind *const *kinds; /* NULL at the end; the last one is for any volume */
    NodeMounter *mounter;
    char *socket_path;
    Keeper *keeper;
    struct KeptCopy *kept_copy;
    Busy *busy;
    Watch *watch;
    Usages *usages;
    struct NodeBlock *block;       /* of image/; NULL: no images on this node */
    char *device_dir;              /* of image/ and dataset/ */
    struct NodeDatasets *datasets; /* of dataset/; NULL: datasets are not mounted natively */
    GMutex walks_lock;             /* a leaf */
    GHashTable *walks;             /* volume -> FsgroupWalk that waits for the next call */
};

/* For one question to hearthd that needs no Ceph. */
#define SERVED_ASK_MS 5000
/* For taking back after a failure, also when the caller's time is over. */
#define SERVED_CLEANUP_MS 5000

extern const NodeKind live_kind;

/* The mount table; no hold is needed. Array of MountEntry. */
static inline GPtrArray *served_list(Staging *s, GError **error)
{
    return s->mounter->ops->list(s->mounter, error);
}

/* What is mounted at a path, without reading that table; no hold is needed. *entry is the caller's;
 * NULL: nothing. */
static inline gboolean served_find(Staging *s, const char *path, MountEntry **entry, GError **error)
{
    return s->mounter->ops->find(s->mounter, path, entry, error);
}

/* ---- served.c ---- */

/* Whether the mount is the volume, or is on top of it; no hold is needed. */
gboolean served_owns(Staging *s, const MountEntry *entry, const char *volume);
/* The kind that the mount shows; the last one when it shows none, or is NULL; no hold is needed. */
const NodeKind *served_kind_of(Staging *s, const MountEntry *entry);
/* FALSE with the error when something other than the volume is mounted there. */
gboolean served_check_owner(Staging *s, const MountEntry *entry, const char *volume,
                            GError **error);
/* Whether the mount's connection is gone for good. One that merely hangs is not dead. */
gboolean served_is_dead(Staging *s, const char *path);
/* Whether hearthd serves the volume, and its mount at `path` answers. */
gboolean served_is_alive(Staging *s, const char *volume, const char *path, gboolean *alive,
                         Deadline deadline, GError **error);

/* What is mounted of a volume at a path. */
typedef struct MountState {
    MountEntry *entry; /* NULL: nothing is mounted there */
    gboolean alive;    /* as served_is_alive() */
} MountState;

static inline void mount_state_clear(MountState *state)
{
    g_clear_pointer(&state->entry, mount_entry_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MountState, mount_state_clear)

/* FALSE with the error when something other than the volume is mounted there. Asks hearthd only if
 * something is. */
gboolean served_read_state(Staging *s, const char *volume, const char *path, MountState *state,
                           Deadline deadline, GError **error);
/* FALSE with the code when the mount does not have the SELinux context (NULL: any is right). */
gboolean served_check_context(const MountEntry *entry, const char *volume, const char *context,
                              int code, GError **error);
/* Removes all mounts of the volume from `path`. `stale`: the caller knows that they are dead. */
gboolean served_clear(Staging *s, const char *volume, const char *path, gboolean stale,
                      Deadline deadline, GError **error);
/* Binds the mount `dev` from the staging path to the call's target; see staging_publish(). */
gboolean served_bind(Staging *s, const NodeCall *call, dev_t dev, GError **error);
/* The device of the mount at `path`; ABORTED when there is none any more. */
gboolean served_device_at(Staging *s, const char *path, dev_t *dev, GError **error);
/*
 * Closes our duplicate when hearthd no longer serves the volume and the watch has not noticed yet:
 * with it the unmounts would wait for answers that never come.
 */
void served_release_if_lost(Staging *s, const char *volume);
/* Has hearthd and the keeper forget the volume if no mount that hearthd serves of it is left. */
gboolean served_detach_if_last(Staging *s, const char *volume, Deadline deadline, GError **error);
/* What is wrong with the volume at hearthd, and how to fix it; the caller's. NULL: nothing. No hold
 * is needed. *rests (may be NULL): nobody has used it for a while, so it has no connection to Ceph
 * now. */
char *served_fault(Staging *s, const char *volume, Deadline deadline, gboolean *rests);

/* ---- attach.c ---- */

/* A mount to be made. Borrowed. */
typedef struct ServedMount {
    const char *volume, *path;
    const json_t *spec;
    const char *layer; /* see hearthd_attach() */
    MountOptions options;
} ServedMount;

/* Mounts the volume, unless it is mounted at the path already, and is served as `spec` says. */
gboolean served_mount(Staging *s, const ServedMount *mount, Deadline deadline, GError **error);

/* ---- group.c ---- */

/* Gives hearthd and the keeper the newer spec of a volume that is served: it counts at once. */
gboolean served_renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                      Deadline deadline, GError **error);

/* What a volume that is served is to become. Borrowed. */
typedef struct ServedUpdate {
    const char *volume, *staged;
    dev_t dev;          /* of the mount at `staged` */
    const json_t *spec; /* as it is staged now, with its group; NULL: only the group counts */
    gint64 group;       /* for which files are to be shown; -1: any is right */
} ServedUpdate;

/* ALREADY_EXISTS: it is served as another volume than the spec says. FAILED_PRECONDITION: it is
 * published for another group. */
gboolean served_update(Staging *s, const ServedUpdate *update, Deadline deadline, GError **error);
/* A mount point other than `staged` where `dev` is mounted; borrowed. NULL: there is none. */
const MountEntry *served_find_publication(const GPtrArray *table, dev_t dev, const char *staged);
/* FALSE with FAILED_PRECONDITION. */
gboolean served_refuse_group(const char *volume, const MountEntry *other, gint64 group,
                             GError **error);
/* The point at which giving the volume's files to a group has stopped; the caller's, or NULL. */
FsgroupWalk *served_steal_walk(Staging *s, const char *volume);
/* Keeps it for the next call. Takes it over; NULL: nothing is done. */
void served_keep_walk(Staging *s, const char *volume, FsgroupWalk *walk);

#endif
