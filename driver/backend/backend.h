/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend makes volumes. It is a table of primitives; the order of steps that makes provisioning
 * safe to repeat is written once, over the table, in driver/provision/provision.h. In driver/, only
 * this folder includes Ceph headers.
 *
 * All functions may block until `deadline_us` (of g_get_monotonic_time()) and no longer, and may be
 * called from many threads; a session is used by one at a time. Errors are in HEARTH_ERROR:
 *   NOT_FOUND            where a function says so, and nowhere else
 *   UNAUTHENTICATED      the cluster rejects this user or key
 *   PERMISSION_DENIED    the user is not allowed to do it
 *   UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED   try again
 *   FAILED_PRECONDITION, RESOURCE_EXHAUSTED, INTERNAL   an admin must act
 *   INVALID_ARGUMENT     the request cannot work; nothing was made
 */
#ifndef HEARTH_DRIVER_BACKEND_BACKEND_H
#define HEARTH_DRIVER_BACKEND_BACKEND_H

#include <glib.h>
#include <jansson.h>
#include "common/error.h"
#include "driver/volume/adopted_id.h"
#include "driver/volume/id.h"
#include "driver/volume/params.h"
#include "driver/cluster/secrets.h"

typedef struct BackendVolume {
    /* Half of it exists, for volume_create() to finish; or it is being copied to. */
    gboolean incomplete, copying;
    gboolean resume;   /* copying, and volume_copy() must be called to continue */
    char *failure;     /* why copying to it failed; it is incomplete and useless */
    gboolean no_space; /* the failure was that the cluster is full */
    char *path;        /* what to mount: in the file system, or on the node for VOLUME_DIR; of an
                          image its spec, POOL[/NAMESPACE]/NAME */
    gint64 bytes;      /* its quota or size; 0: none */
    gint64 created;    /* seconds since 1970; 0: not known */
} BackendVolume;

void backend_volume_free(BackendVolume *volume);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BackendVolume, backend_volume_free)

/* An entry of ceph-csi's journal for a volume or snapshot (driver/backend/ceph/csi_journal.h). */
typedef enum JournalKind { JOURNAL_VOLUME, JOURNAL_SNAPSHOT } JournalKind;
typedef struct JournalEntry {
    char *request_name;      /* NULL: not known */
    char *name;              /* of the image, subvolume or snapshot */
    char *source;            /* of a snapshot: the name of its volume; NULL: not known */
    gboolean encrypted;      /* with a key in a KMS */
    gboolean shows_snapshot; /* a volume without bytes of its own */
    gboolean shown;          /* a snapshot that such volumes show, or did */
    gint64 directory_pool;   /* number of the pool with the request's name; -1: its own */
} JournalEntry;

void journal_entry_free(JournalEntry *entry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JournalEntry, journal_entry_free)

/* A snapshot of a volume. Borrowed. */
typedef struct BackendSnapshot {
    const VolumeId *volume;
    const char *name;
} BackendSnapshot;

/* A change of a record. It is made only if the record still is as it was read. Borrowed. */
typedef struct RecordChange {
    const char *name;
    const char *expected, *text; /* before and after; text NULL: it is removed */
} RecordChange;

typedef struct BackendOps {
    VolumeType type;
    gboolean needs_secrets;
    /* volume_remove() names the volume only. One that Ceph gets late, from a controller that was
     * frozen, removes what has the name by then. */
    gboolean removal_may_be_late;

    /* The ID that a volume of these parameters will have, without the name. INVALID_ARGUMENT,
     * FAILED_PRECONDITION. */
    VolumeId *(*locate)(void *backend, const VolumeParams *params, GError **error);

    /* A session with the location `where` names (its name does not matter). `secrets` may be NULL
     * unless needed. */
    void *(*open)(void *backend, const VolumeId *where, const Secrets *secrets, gint64 deadline_us,
                  GError **error);
    void (*close)(void *session);
    /*
     * Copies between locations. check_reach(): whether a copy is possible; when the clusters have
     * different IDs, it asks both whether they are the same. INVALID_ARGUMENT says why not.
     * open_beside(): a session with another location of the session's cluster, under any ID of that
     * cluster; NOT_FOUND: the location does not exist. Both NULL: copies stay within a location.
     */
    gboolean (*check_reach)(void *backend, const VolumeId *from, const VolumeId *to,
                            const Secrets *secrets, gint64 deadline_us, GError **error);
    void *(*open_beside)(void *session, const VolumeId *where, gint64 deadline_us, GError **error);

    /*
     * Records: small texts by name (record.h gives the names). Creation is exclusive and atomic:
     * when the record exists, *existed is TRUE and nothing changes. Reading: NOT_FOUND. Removing a
     * missing record succeeds. A list has the names of all, in no order; it owns them.
     */
    gboolean (*record_create)(void *session, const char *name, const char *text, gboolean *existed,
                              gint64 deadline_us, GError **error);
    char *(*record_read)(void *session, const char *name, gsize *length, gint64 deadline_us,
                         GError **error);
    gboolean (*record_remove)(void *session, const char *name, gint64 deadline_us, GError **error);
    GPtrArray *(*record_list)(void *session, gint64 deadline_us, GError **error);
    /* Changes a record, atomically. *same FALSE: it has another text than expected, and nothing
     * changes. NOT_FOUND. */
    gboolean (*record_replace)(void *session, const RecordChange *change, gboolean *same,
                               gint64 deadline_us, GError **error);
    /*
     * Holders of a record: names of volumes that need the record's snapshot. Sealing refuses
     * further holders and then returns the present ones (owned by the array), so either a removal
     * sees the holder, or the holder sees the seal. Holding and sealing: NOT_FOUND; *held FALSE: it
     * is sealed. Releasing a missing hold succeeds. All NULL where no volume needs them.
     */
    gboolean (*record_hold)(void *session, const char *name, const char *holder, gboolean *held,
                            gint64 deadline_us, GError **error);
    gboolean (*record_release)(void *session, const char *name, const char *holder,
                               gint64 deadline_us, GError **error);
    GPtrArray *(*record_seal)(void *session, const char *name, gint64 deadline_us, GError **error);
    gboolean (*record_unseal)(void *session, const char *name, gint64 deadline_us, GError **error);

    /*
     * Volumes. Creating one that a crashed attempt left complete or in part succeeds, and returns
     * what volume_look() would. Removing a missing volume succeeds; a removal also stops a copy to
     * the volume. FAILED_PRECONDITION when it has snapshots, unless they are to be kept: then they
     * outlive it. Looking: NOT_FOUND. The volumes returned are the caller's.
     */
    BackendVolume *(*volume_create)(void *session, const VolumeId *id, const VolumeParams *params,
                                    gint64 bytes, gint64 deadline_us, GError **error);
    gboolean (*volume_remove)(void *session, const VolumeId *id, gboolean keep_snapshots,
                              gint64 deadline_us, GError **error);
    BackendVolume *(*volume_look)(void *session, const VolumeId *id, gint64 deadline_us,
                                  GError **error);

    /* Finishes a removal that was cut short. NULL where creating a volume of the name does that. */
    gboolean (*volume_clear)(void *session, const VolumeId *id, gint64 deadline_us, GError **error);

    /* *is_free: a listing that is at most 30 s old lacks the name. It costs less than
     * volume_look(); NULL where that is cheap. */
    gboolean (*volume_is_free)(void *session, const VolumeId *id, gboolean *is_free,
                               gint64 deadline_us, GError **error);

    /* The names of all volumes in the location and group of `where`, ours and others', also of
     * those that are half made or only keep snapshots. For the audit. */
    GPtrArray *(*volume_list)(void *session, const VolumeId *where, gint64 deadline_us,
                              GError **error);

    /* Leftovers of this driver's deleted volumes that nothing needs, by the backend's names; and
     * their removal, which checks again that nothing needs them. For the audit; NULL where nothing
     * is left. */
    GPtrArray *(*leftovers)(void *session, gint64 deadline_us, GError **error);
    gboolean (*leftover_remove)(void *session, const char *name, gint64 deadline_us,
                                GError **error);

    /* Sets the size, which never shrinks. NULL where sizes are not enforced. */
    gboolean (*volume_resize)(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                              GError **error);
    /* Assigns a volume to metadata servers, in the form of parameter mdsPin. NULL for a type
     * without that parameter. FAILED_PRECONDITION. */
    gboolean (*volume_pin)(void *session, const VolumeId *id, const char *pin, gint64 deadline_us,
                           GError **error);
    /* Sets limits, an object with the names of volume/mutable.h, and stores them with the volume.
     * NULL where nothing would enforce them. */
    gboolean (*volume_limit)(void *session, const VolumeId *id, const json_t *limits,
                             gint64 deadline_us, GError **error);
    /*
     * Stores texts (an object of names and strings) with a volume, or with its snapshot unless that
     * is NULL, for people and tools. Does nothing where Ceph cannot store them: for an image's
     * snapshot, and on an older Ceph after a first error. NULL where no volume can have them.
     */
    gboolean (*volume_describe)(void *session, const VolumeId *id, const char *snapshot,
                                const json_t *texts, gint64 deadline_us, GError **error);
    /*
     * Snapshots of a volume, by name; NULL where there are none. Creating one that exists succeeds;
     * NOT_FOUND: no volume. Removing a missing one succeeds; FAILED_PRECONDITION: it is being
     * copied from. Looking: NOT_FOUND. A list has the names of all, ours and others', and is empty
     * for a missing volume.
     */
    gboolean (*snapshot_create)(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error);
    /* Snapshots of n volumes at one moment, of volume i with the name snapshots[i]: a write is in
     * them only with all the writes that it depends on, across the volumes. Snapshots that exist
     * after a failure are not of one moment. NULL where this is impossible; FAILED_PRECONDITION
     * where it is for one of the volumes. */
    gboolean (*snapshot_create_group)(void *session, const VolumeId *const *volumes,
                                      const char *const *snapshots, gsize n, gint64 deadline_us,
                                      GError **error);
    gboolean (*snapshot_remove)(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error);
    gboolean (*snapshot_look)(void *session, const VolumeId *volume, const char *snapshot,
                              gint64 deadline_us, GError **error);
    GPtrArray *(*snapshot_list)(void *session, const VolumeId *volume, gint64 deadline_us,
                                GError **error);
    /* The path to mount, read only, for a snapshot of a volume whose path is or was `path`; the
     * caller's. NULL where a snapshot cannot be mounted itself. */
    char *(*snapshot_path)(const char *path, const char *snapshot);
    /* Begins a volume as a copy of a snapshot; volume_look() reports when it is complete. One that
     * has begun is fine. The source may be at another location. NOT_FOUND: no such snapshot.
     * `source` NULL: continues a copy that volume_look() reports to resume. */
    gboolean (*volume_copy)(void *session, const VolumeId *id, const VolumeParams *params,
                            const BackendSnapshot *source, gint64 deadline_us, GError **error);

    /* Bytes that the location can still store. `pool` NULL: in its own pool. */
    gboolean (*capacity)(void *session, const char *pool, gint64 *available, gint64 deadline_us,
                         GError **error);

    /*
     * For lists and audits, where no parameters name a location: all clusters (only cluster_id is
     * set, NULL where a type has no clusters), and the locations of one, for open(). VolumeId*,
     * owned by the array.
     */
    GPtrArray *(*clusters)(void *backend, GError **error);
    GPtrArray *(*locations)(void *backend, const VolumeId *cluster, const Secrets *secrets,
                            gint64 deadline_us, GError **error);

    /* The ID of a volume of ceph-csi, whether it exists or not. NULL without an error: there is no
     * such location. NULL where none can be adopted. */
    VolumeId *(*adopt)(void *backend, const AdoptedId *id, const Secrets *secrets,
                       gint64 deadline_us, GError **error);

    /* Finds the entry of ceph-csi's journal for a handle (*entry is NULL when there is none), and
     * removes it, once its volume or snapshot is gone. Both NULL where none can be adopted. */
    gboolean (*journal_find)(void *session, JournalKind kind, const char *handle,
                             JournalEntry **entry, gint64 deadline_us, GError **error);
    gboolean (*journal_forget)(void *session, JournalKind kind, const char *handle,
                               const JournalEntry *entry, gint64 deadline_us, GError **error);

    /* Whether the cluster can be reached now; without a request's secrets. */
    gboolean (*probe)(void *backend, gint64 deadline_us, GError **error);
    void (*free)(void *backend);
} BackendOps;

typedef struct Backend {
    const BackendOps *ops;
    void *impl; /* passed to ops as `backend` */
} Backend;

/* Frees impl by ops->free, and the struct. NULL is fine. */
void backend_free(Backend *backend);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Backend, backend_free)

/* CephFS subvolumes through the mgr; `config_path` is ceph-csi's config.json
 * (driver/cluster/config.h). */
Backend *backend_cephfs_new(const char *config_path);
/* On a node, which may reach a cluster in a network of its own (netNamespaceFilePath). */
Backend *backend_cephfs_new_on_node(const char *config_path);
/* RBD images through librbd; likewise. A copy that depends on more images than `max_clone_depth` is
 * flattened. */
#define RBD_DEFAULT_CLONE_DEPTH 4
Backend *backend_rbd_new(const char *config_path, guint max_clone_depth);
/* Directories under `root`, for machines without Ceph; sizes are recorded, not enforced. */
Backend *backend_dir_new(const char *root, GError **error);

#endif
