/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumes hearthd serves.
 *
 *   (none) --open--> OPENED --attach--> ATTACHED --unmounted--> ENDED
 *      ^                |                  |                      |
 *      +----------------+-----detach-------+----------------------+
 *
 * A volume stays in the table for two reasons:
 *  - it is reserved: one of open, attach, detach, fetch is running on it, which may block on Ceph
 * for long. A second one waits until the first has ended; other volumes do not wait;
 *  - it has uses: jobs and measurements use its origin. Closing sets volume_closing() for them, and
 *    waits until they are done.
 */
#ifndef HEARTH_CACHE_VOLUME_VOLUMES_H
#define HEARTH_CACHE_VOLUME_VOLUMES_H

#include <glib.h>
#include <stdint.h>
#include "cache/block/images.h"
#include "cache/dataset/datasets.h"
#include "cache/volume/report.h"
#include "cache/volume/spec.h"
#include "cache/store/store.h"

typedef struct Volumes Volumes;
typedef struct Volume Volume;

/* The caches; all borrowed. NULL: there is none. */
typedef struct VolumesCaches {
    Store *store;
    Datasets *datasets;
    ImageCache *images;
} VolumesCaches;

/* `incarnation` is borrowed; NULL: no names for sessions. */
Volumes *volumes_new(const VolumesCaches *caches, const Incarnation *incarnation);
/*
 * Detaches all volumes, each on a thread of its own, so that one that waits for Ceph does not keep
 * the others. No volume is opened any more. FALSE: not all are detached after timeout_ms; threads
 * are still at it, so volumes_free() must not follow.
 */
gboolean volumes_detach_all(Volumes *volumes, gint64 timeout_ms);
/* Detaches all, however long it takes, and frees. No other call may run or follow. Jobs must have
 * ended. */
void volumes_free(Volumes *volumes);

/* Takes the spec. `connection` is the caller's: see volumes_connection_ended(). */
gboolean volumes_open(Volumes *volumes, VolumeSpec *spec, uint64_t connection, gboolean *attached,
                      GError **error);
/* A mount that is to be served. */
typedef struct VolumeMount {
    int fuse_fd;
    gboolean fill_layer; /* that of the volume's dataset, not the tree */
    gboolean restored;   /* it goes on with what volumes_restore() took */
    const char *note;    /* of a mount that another process served; NULL: of a new one */
} VolumeMount;

/* Takes the descriptor, also on error. */
gboolean volumes_attach(Volumes *volumes, const char *id, const VolumeMount *mount, GError **error);
/* What another process needs to serve the volume's mount after this one, the caller's; NULL: none
 * can. */
char *volumes_mount_note(Volumes *volumes, const char *id);
/* The same for a volume that has no note: a descriptor of the state that this process leaves
 * (cache/fuse/mount_state.h), the caller's. -1 with FAILED_PRECONDITION: none can. */
int volumes_mount_state(Volumes *volumes, const char *id, GError **error);
/* Takes what another process has left of the mount, which is attached next, with `restored`. */
gboolean volumes_restore(Volumes *volumes, const char *id, int left_fd, GError **error);
/*
 * Finds or begins to make the manifest of an open volume that is a dataset, and waits for it as
 * long as asked. *dataset is a reference of the caller's.
 */
gboolean volumes_manifest(Volumes *volumes, const char *id, gint64 wait_ms, Dataset **dataset,
                          DatasetReport *report, GError **error);
/* Whether the spec asks for a warm job once it is attached. */
gboolean volumes_wants_warm(Volumes *volumes, const char *id);
gboolean volumes_detach(Volumes *volumes, const char *id, GError **error);
/* The spec (caller's) and a duplicate of the descriptor. */
json_t *volumes_fetch(Volumes *volumes, const char *id, int *fuse_fd, GError **error);
/* Asks for an image's size again: op "resize". */
gboolean volumes_resize(Volumes *volumes, const char *id, uint64_t *bytes, GError **error);
/* Closes the volumes that this connection was the last to open and that were not attached. */
void volumes_connection_ended(Volumes *volumes, uint64_t connection);

guint volumes_count(Volumes *volumes);
/* The volumes whose ID is greater than `after`, by ID: VolumeReport, freed with the array. Never
 * waits for an operation. */
GPtrArray *volumes_list(Volumes *volumes, const char *after, guint max);
#define VOLUMES_UNCACHED_MAX 64
/* "uncached" of op "status" (docs/design/protocol.md): at most this many, in the order of their
 * IDs. */
json_t *volumes_uncached(Volumes *volumes);
/* One; NULL when unknown. */
VolumeReport *volumes_report(Volumes *volumes, const char *id);

/* The volumes that Ceph has refused since they were opened while it did not answer; a JSON
 * array. They serve nothing more, and are in the list until they are opened again. */
json_t *volumes_refused(Volumes *volumes);

/* The claims that were opened as a dataset and never attached, because their mounts are native: a
 * JSON array of {"volume", "dataset", "claim", "persistentVolume"}, each a text that may be "". The
 * last VOLUMES_CLAIMS_MAX; of some the mount has gone since. The caller's. */
json_t *volumes_claims(Volumes *volumes);
#define VOLUMES_CLAIMS_MAX 1024

/* The name in the image cache of the image that a volume is served from, the caller's; NULL: it is
 * not served from an image. */
char *volumes_image_name(Volumes *volumes, const char *id);

/* NULL with WIRE_ERROR_NOT_FOUND, ABORTED when it is being closed, or FAILED_PRECONDITION when it
 * is an image, which has no files. */
Volume *volumes_use(Volumes *volumes, const char *id, GError **error);
void volumes_done(Volumes *volumes, Volume *volume);
/* Of a volume in use; they do not change while it is in use. */
const char *volume_id(const Volume *volume);
Origin *volume_origin(const Volume *volume);
gboolean volume_cached(const Volume *volume);
/* Newer specs may change it at any time. */
uint64_t volume_quota_bytes(const Volume *volume);
/* Whether to stop using a volume. */
gboolean volume_closing(Volume *volume);
/* The tag of a volume, which need not be open: the caller's. */
char *volumes_tag(Volumes *volumes, const char *id);
/* The tag of what is fetched ahead for a volume in use: its own, or, when it is a dataset that
 * is not attached, the dataset's. The caller's. */
char *volumes_tag_ahead(Volumes *volumes, const Volume *volume);
/* The ID of the volume that has a tag, the caller's. */
char *volumes_of_tag(const char *tag);
/* The manifest of a volume in use that is a dataset, once it is ready; else NULL. */
const Manifest *volumes_ready_manifest(Volumes *volumes, const Volume *volume);
/* The bytes that a walk over all its files has counted; an origin that knows them is asked again
 * later. */
void volumes_set_counted(Volumes *volumes, Volume *volume, uint64_t bytes);

#endif
