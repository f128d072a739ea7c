/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where volumes are made. A backend is a table of primitives; the order of steps that makes
 * provisioning safe to repeat is written once, over the table, in driver/provision/provision.h.
 * Only this folder includes Ceph headers.
 *
 * All functions may block until `deadline_us` (of g_get_monotonic_time()) and no longer, and may be
 * called from many threads; a session is used by one at a time. Errors are in HEARTH_ERROR:
 *   NOT_FOUND            where a function says so, and nowhere else
 *   UNAUTHENTICATED      the cluster does not take this user and key
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
    /* Something of its name is there, for volume_create() to finish, or it is being copied to. */
    gboolean incomplete, copying;
    gboolean resume;   /* copying, and volume_copy() sees to it that it goes on */
    char *failure;     /* why copying to it failed; it is incomplete and of no use */
    gboolean no_space; /* that was the failure */
    char *path;        /* what to mount: in the file system, or on the node for VOLUME_DIR; of an
                          image its spec, POOL[/NAMESPACE]/NAME */
    gint64 bytes;      /* its quota or size; 0: none */
    gint64 created;    /* seconds since 1970; 0: not known */
} BackendVolume;

void backend_volume_free(BackendVolume *volume);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BackendVolume, backend_volume_free)

/* What ceph-csi's journal says of a volume or a snapshot (driver/backend/ceph/csi_journal.h). */
typedef enum JournalKind { JOURNAL_VOLUME, JOURNAL_SNAPSHOT } JournalKind;
typedef struct JournalEntry {
    char *request_name;      /* NULL: not told */
    char *name;              /* of the image, subvolume or snapshot */
    char *source;            /* of a snapshot: the name of its volume; NULL: not told */
    gboolean encrypted;      /* with a key in a KMS */
    gboolean shows_snapshot; /* a volume without bytes of its own */
    gboolean shown;          /* a snapshot that such volumes show, or did */
    gint64 directory_pool;   /* number of the pool with the request's name; -1: its own */
} JournalEntry;

void journal_entry_free(JournalEntry *entry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JournalEntry, journal_entry_free)

typedef struct BackendOps {
    VolumeType type;
    gboolean needs_secrets;

    /* The ID a volume of these parameters will have, but for the name. INVALID_ARGUMENT,
     * FAILED_PRECONDITION. */
    VolumeId *(*locate)(void *backend, const VolumeParams *params, GError **error);

    /* A session with the place `where` names (its name does not matter). `secrets` may be NULL
     * unless needed. */
    void *(*open)(void *backend, const VolumeId *where, const Secrets *secrets, gint64 deadline_us,
                  GError **error);
    void (*close)(void *session);
    /*
     * Copies between places. Whether there can be one, which asks both places' clusters whether
     * they are the same when they have different names: INVALID_ARGUMENT says why not. And a
     * session with another place of a session's cluster, whatever `where` calls that: NOT_FOUND
     * when there is no such place any more. Both NULL: copies stay within a place.
     */
    gboolean (*check_reach)(void *backend, const VolumeId *from, const VolumeId *to,
                            const Secrets *secrets, gint64 deadline_us, GError **error);
    void *(*open_beside)(void *session, const VolumeId *where, gint64 deadline_us, GError **error);

    /*
     * Records: small texts by name (record.h gives the names). Creation is exclusive and atomic:
     * when there is one already, *existed is TRUE and nothing changes. Reading: NOT_FOUND. Removing
     * what is not there succeeds. A list holds the names of all, in no order; it owns them.
     */
    gboolean (*record_create)(void *session, const char *name, const char *text, gboolean *existed,
                              gint64 deadline_us, GError **error);
    char *(*record_read)(void *session, const char *name, gsize *length, gint64 deadline_us,
                         GError **error);
    gboolean (*record_remove)(void *session, const char *name, gint64 deadline_us, GError **error);
    GPtrArray *(*record_list)(void *session, gint64 deadline_us, GError **error);
    /* Puts `text` in the place of `expected`, atomically. *same FALSE: it is not what is there, and
     * nothing changes. NOT_FOUND. */
    gboolean (*record_replace)(void *session, const char *name, const char *expected,
                               const char *text, gboolean *same, gint64 deadline_us,
                               GError **error);
    /*
     * Holders of a record: the names of those who need what it stands for. Sealing refuses further
     * ones and then gives those there are (owned by the array): so either who would remove it sees
     * the holder, or the holder sees the seal. Holding and sealing: NOT_FOUND; *held FALSE: it is
     * sealed. Releasing what is not there succeeds. All NULL where no volume needs them.
     */
    gboolean (*record_hold)(void *session, const char *name, const char *holder, gboolean *held,
                            gint64 deadline_us, GError **error);
    gboolean (*record_release)(void *session, const char *name, const char *holder,
                               gint64 deadline_us, GError **error);
    GPtrArray *(*record_seal)(void *session, const char *name, gint64 deadline_us, GError **error);
    gboolean (*record_unseal)(void *session, const char *name, gint64 deadline_us, GError **error);

    /*
     * Volumes. Creating one that a crashed attempt left complete or in part succeeds; *made is what
     * looking would give, the caller's, or NULL where that must be asked. Removing what
     * is not there succeeds, and ends what copies to it; FAILED_PRECONDITION when it has snapshots,
     * unless they are to be kept, which then outlive it. Looking: NOT_FOUND.
     */
    gboolean (*volume_create)(void *session, const VolumeId *id, const VolumeParams *params,
                              gint64 bytes, BackendVolume **made, gint64 deadline_us,
                              GError **error);
    gboolean (*volume_remove)(void *session, const VolumeId *id, gboolean keep_snapshots,
                              gint64 deadline_us, GError **error);
    BackendVolume *(*volume_look)(void *session, const VolumeId *id, gint64 deadline_us,
                                  GError **error);

    /* Ends what a removal that was cut short left of a volume that is not there any more. NULL
     * where creating one does. */
    gboolean (*volume_clear)(void *session, const VolumeId *id, gint64 deadline_us, GError **error);

    /* Whether nothing of the name was there half a minute ago at the latest, for less than looking
     * costs. NULL where looking is cheap. */
    gboolean (*volume_is_free)(void *session, const VolumeId *id, gboolean *is_free,
                               gint64 deadline_us, GError **error);

    /* Names of what is, was half made, or only keeps snapshots, in the place and group of `where`,
     * of anyone's. For the audit. */
    GPtrArray *(*volume_list)(void *session, const VolumeId *where, gint64 deadline_us,
                              GError **error);

    /* What deleted volumes left that nothing needs any more, by the backend's names, of this driver
     * only; and removing it, when nothing needs it. For the audit; NULL where nothing is left. */
    GPtrArray *(*leftovers)(void *session, gint64 deadline_us, GError **error);
    gboolean (*leftover_remove)(void *session, const char *name, gint64 deadline_us,
                                GError **error);

    /* Sets the size; only ever larger. NULL where sizes are not enforced. */
    gboolean (*volume_resize)(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                              GError **error);
    /* Says which metadata servers a volume is for, as parameter mdsPin has it. NULL for a type
     * without that parameter. FAILED_PRECONDITION. */
    gboolean (*volume_pin)(void *session, const VolumeId *id, const char *pin, gint64 deadline_us,
                           GError **error);
    /* Puts limits in force, an object of volume/mutable.h's names, and keeps them with the volume.
     * NULL where nothing would enforce them. */
    gboolean (*volume_limit)(void *session, const VolumeId *id, const json_t *limits,
                             gint64 deadline_us, GError **error);
    /*
     * Keeps texts (an object of names and strings) with a volume, or with its snapshot unless that
     * is NULL, for people and tools. Nothing happens where this cannot be: of an image's snapshot,
     * or, once that was an error, on an older Ceph. NULL where no volume has such a thing.
     */
    gboolean (*volume_describe)(void *session, const VolumeId *id, const char *snapshot,
                                const json_t *texts, gint64 deadline_us, GError **error);
    /*
     * Snapshots of a volume, by name; NULL where there are none. Creating one that is there
     * succeeds; NOT_FOUND: no volume. Removing what is not there succeeds; FAILED_PRECONDITION: it
     * is being copied from. Looking: NOT_FOUND. A list holds all names, of anyone's, and is empty
     * for a volume that is not there.
     */
    gboolean (*snapshot_create)(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error);
    /* Snapshots of n volumes as of one moment, volume i's of name snapshots[i]: writes that depend
     * on one another are in them or are not, across the volumes. What is there after a failure is
     * of no moment. NULL where that cannot be had; FAILED_PRECONDITION where a volume cannot. */
    gboolean (*snapshot_create_group)(void *session, const VolumeId *const *volumes,
                                      const char *const *snapshots, gsize n, gint64 deadline_us,
                                      GError **error);
    gboolean (*snapshot_remove)(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error);
    gboolean (*snapshot_look)(void *session, const VolumeId *volume, const char *snapshot,
                              gint64 deadline_us, GError **error);
    GPtrArray *(*snapshot_list)(void *session, const VolumeId *volume, gint64 deadline_us,
                                GError **error);
    /* What to mount of a snapshot, read only, of a volume whose path is or was `path`; the
     * caller's. NULL where a snapshot cannot be mounted as it is. */
    char *(*snapshot_path)(const char *path, const char *snapshot);
    /* Begins a volume as a copy of a snapshot; volume_look() tells when it is one. One that has
     * begun is fine. The source may be at another place. NOT_FOUND: no such snapshot. `source` and
     * `snapshot` NULL: sees to it that one goes on that volume_look() calls to be resumed. */
    gboolean (*volume_copy)(void *session, const VolumeId *id, const VolumeParams *params,
                            const VolumeId *source, const char *snapshot, gint64 deadline_us,
                            GError **error);

    /* Bytes that new data of such volumes can take. `pool` NULL: the place's own. */
    gboolean (*capacity)(void *session, const char *pool, gint64 *available, gint64 deadline_us,
                         GError **error);

    /*
     * For what no request's parameters lead to: the clusters there are (cluster_id alone, NULL
     * where there is no such thing), and the places of one, to open(). VolumeId*, owned by the
     * array.
     */
    GPtrArray *(*clusters)(void *backend, GError **error);
    GPtrArray *(*places)(void *backend, const VolumeId *cluster, const Secrets *secrets,
                         gint64 deadline_us, GError **error);

    /* Where a volume of ceph-csi would be, whether it is there or not. NULL without an error: there
     * is no such place. NULL where none can be adopted. */
    VolumeId *(*adopt)(void *backend, const AdoptedId *id, const Secrets *secrets,
                       gint64 deadline_us, GError **error);

    /* What ceph-csi's journal has for a handle: *entry is NULL for nothing; and taking it out of
     * there, once what it stands for is gone. Both NULL where none can be adopted. */
    gboolean (*journal_find)(void *session, JournalKind kind, const char *handle,
                             JournalEntry **entry, gint64 deadline_us, GError **error);
    gboolean (*journal_forget)(void *session, JournalKind kind, const char *handle,
                               const JournalEntry *entry, gint64 deadline_us, GError **error);

    /* Whether provisioning could work now, without a request's secrets. */
    gboolean (*probe)(void *backend, gint64 deadline_us, GError **error);
    void (*free)(void *backend);
} BackendOps;

typedef struct Backend {
    const BackendOps *ops;
    void *impl; /* passed to ops as `backend` */
} Backend;

/* Frees impl by ops->free and the struct. NULL is fine. */
void backend_free(Backend *backend);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Backend, backend_free)

/* CephFS subvolumes through the mgr; `config_path` is ceph-csi's config.json (volume/config.h). */
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
