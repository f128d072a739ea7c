/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RBD's files share. A location is a pool and a RADOS namespace of a cluster. A call is a job
 * at a location. It runs on a thread that may be left behind (driver/backend/ceph/internal.h), so
 * it owns all it uses, and its answer. One call is one step of provisioning, with as many requests
 * to librbd and librados as the step needs. From the lowest file up: call, records, image; trash,
 * interrupted; remove; volume, snap, group, clone; ops.
 */
#ifndef HEARTH_DRIVER_BACKEND_RBD_INTERNAL_H
#define HEARTH_DRIVER_BACKEND_RBD_INTERNAL_H

#include <rados/librados.h>
#include <rbd/librbd.h>
#include "driver/backend/backend.h"
#include "driver/backend/ceph/conn.h"

typedef struct RbdLocation {
    CephConn *conn;
    char *pool, *nspace; /* "": the pool's default one */
    guint max_clone_depth;
} RbdLocation;

typedef struct RbdCall {
    RbdLocation at;
    char *image, *snapshot; /* its subject; image is a record's name for records */
    char *source;           /* the image to copy from, and its location: */
    char *source_pool, *source_nspace;
    char *text; /* of a record, of the request or the answer */
    char *data_pool;
    rbd_image_options_t options;
    gint64 bytes, deadline_us;
    guint limit;
    gboolean flag;
    char **images, **snapshots; /* of a group */

    rados_ioctx_t io; /* while it runs */

    GError *error; /* set by run(): the call has failed */
    BackendVolume *volume;
    GPtrArray *names;
    gsize length;
} RbdCall;

/* Copies the names, which may be NULL. */
RbdCall *rbd_call_new(const RbdLocation *location, const char *image, const char *snapshot);
void rbd_call_free(RbdCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RbdCall, rbd_call_free)

/* The longest time that an answer takes on a healthy cluster. Removing and shrinking have only the
 * deadline. */
#define RBD_LOOK_MS (20 * 1000)
#define RBD_CHANGE_MS (60 * 1000)

/*
 * Runs run(call), with call->io open. TRUE: the call, with its answer, is still the caller's.
 * FALSE: it is gone, and the error says why.
 */
gboolean rbd_call_run(RbdCall *call, const char *what, void (*run)(RbdCall *), gint64 limit_ms,
                      gint64 deadline_us, GError **error);
/* The same without an answer; frees the call. */
gboolean rbd_call_do(RbdCall *call, const char *what, void (*run)(RbdCall *), gint64 limit_ms,
                     gint64 deadline_us, GError **error);

/* POOL[/NAMESPACE]/NAME, the caller's. */
char *rbd_spec(const RbdLocation *location, const char *image);

/*
 * Sets call->error from an answer of librbd or librados, once. `what` is done to call->image (or
 * to the location when that is NULL). Always FALSE.
 */
gboolean rbd_call_fail(RbdCall *call, int rc, const char *what);
gboolean rbd_call_refuse(RbdCall *call, HearthError code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* NOT_FOUND. Always FALSE. */
gboolean rbd_call_missing(RbdCall *call);
/* Opens the image of the call for `use`, whose answers other than 0 and `fine` are errors of
 * `what`. */
void rbd_call_on_image(RbdCall *call, int (*use)(RbdCall *call, rbd_image_t image), int fine,
                       const char *what);

/* records.c: BackendOps of a RbdLocation as its session, see there. */
gboolean rbd_record_create(void *session, const char *name, const char *text, gboolean *existed,
                           gint64 deadline_us, GError **error);
char *rbd_record_read(void *session, const char *name, gsize *length, gint64 deadline_us,
                      GError **error);
gboolean rbd_record_remove(void *session, const char *name, gint64 deadline_us, GError **error);
gboolean rbd_record_replace(void *session, const RecordChange *change, gboolean *same,
                            gint64 deadline_us, GError **error);
GPtrArray *rbd_record_list(void *session, gint64 deadline_us, GError **error);

/*
 * Notes beside the records: facts about an image that the image itself does not show. A note is a
 * key with a text. Functions return 0 or -errno.
 */
typedef enum RbdNote {
    RBD_NOTE_CLONE, /* "clone.NAME": a copy that is not complete while the note exists; its value is
                       one of the two below */
    RBD_NOTE_SHELL, /* "shell.NAME": the volume is deleted, only its snapshots are kept; its value
                       is the image's ID, so that it says nothing of a later one */
    RBD_NOTE_COPIED, /* "copied.NAME": the ID of an image that is a complete copy, or has become one
                        but for its parent. It outranks "begun", which an attempt that was stopped
                        for a while may write after a later attempt has ended. */
    RBD_NOTE_TRASH,  /* "trash.ID": a deleted image, in the trash for as long as it has clones */
} RbdNote;
#define RBD_CLONE_BEGUN "begun"
#define RBD_CLONE_FLATTEN "flatten" /* cloned; usable once it has no parent */

int rbd_note_set(rados_ioctx_t io, RbdNote note, const char *name, const char *value);
int rbd_note_clear(rados_ioctx_t io, RbdNote note, const char *name);
/* Sets RBD_NOTE_COPIED, and RBD_NOTE_CLONE to "flatten" or clears it: both or neither. */
int rbd_note_copied(rados_ioctx_t io, const char *name, const char *id, gboolean flatten);
/* NULL when there is none; the caller's. Both in one request. */
int rbd_notes_read(rados_ioctx_t io, const char *name, char **clone, char **shell);
/* Whether this image is half a copy, which may be removed. */
int rbd_note_is_half(rados_ioctx_t io, const char *name, const char *id, gboolean *half);
/* The notes of the trash, ID -> name the image had; the caller's. *elsewhere, unless that is NULL:
 * images here may depend on some at other locations. */
int rbd_notes_of_trash(rados_ioctx_t io, GHashTable **trash, gboolean *elsewhere);
/* Sets that note, for good, before the first such image is made. */
int rbd_note_elsewhere(rados_ioctx_t io);
/* Whether records are kept at the location. */
int rbd_records_there(rados_ioctx_t io);

/* volume.c */
BackendVolume *rbd_volume_create(void *session, const VolumeId *id, const VolumeParams *params,
                                 gint64 bytes, gint64 deadline_us, GError **error);
BackendVolume *rbd_volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                               GError **error);
gboolean rbd_volume_resize(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                           GError **error);
GPtrArray *rbd_volume_list(void *session, const VolumeId *where, gint64 deadline_us,
                           GError **error);
/* image.c: the options of a class, for rbd_create4() and rbd_clone3(). */
void rbd_call_set_options(RbdCall *call, const VolumeParams *params);
#define RBD_ID_MAX 64
/* The ID that the pool's directory has for a name, in id[RBD_ID_MAX]; -ENOENT. It is there from the
 * first step of making an image to the last of removing it. librbd takes ten times as long to find
 * that there is none, and answers the same for half an image. */
int rbd_name_id(rados_ioctx_t io, const char *name, char *id);
/* Everything rbd_list2() knows, the caller's: rbd_image_spec_list_cleanup(), then g_free().
 * Removals that were cut short are among them, by the names they had. */
int rbd_list_all(rados_ioctx_t io, rbd_image_spec_t **list, gsize *n);
/* Whether a note of this value is about `image`. */
gboolean rbd_image_is(rbd_image_t image, const char *id);

/* Grows it; 0 empties it. */
int rbd_image_resize(rbd_image_t image, gint64 bytes);
/* Sets the error when creating or cloning failed. Always FALSE. */
gboolean rbd_create_failed(RbdCall *call, int rc);

/* limit.c */
gboolean rbd_volume_limit(void *session, const VolumeId *id, const json_t *limits,
                          gint64 deadline_us, GError **error);

/* describe.c */
#define RBD_TEXT_MAX 4096 /* a text that is longer is written again */
/* Whether it is in the image's metadata already. */
gboolean rbd_image_has_text(rbd_image_t image, const char *key, const char *text);
gboolean rbd_volume_describe(void *session, const VolumeId *id, const char *snapshot,
                             const json_t *texts, gint64 deadline_us, GError **error);

/* snap.c */
gboolean rbd_snapshot_create(void *session, const VolumeId *volume, const char *snapshot,
                             gint64 deadline_us, GError **error);
gboolean rbd_snapshot_remove(void *session, const VolumeId *volume, const char *snapshot,
                             gint64 deadline_us, GError **error);
gboolean rbd_snapshot_look(void *session, const VolumeId *volume, const char *snapshot,
                           gint64 deadline_us, GError **error);
GPtrArray *rbd_snapshot_list(void *session, const VolumeId *volume, gint64 deadline_us,
                             GError **error);
/* image.c: adds the names of all snapshots, ours and others', and counts the hidden ones, which are
 * kept only for clones. */
int rbd_snapshots_read(rbd_image_t image, GPtrArray *names, guint *hidden);

/* group.c */
gboolean rbd_snapshot_create_group(void *session, const VolumeId *const *volumes,
                                   const char *const *snapshots, gsize n, gint64 deadline_us,
                                   GError **error);

/* clone.c */
gboolean rbd_volume_copy(void *session, const VolumeId *id, const VolumeParams *params,
                         const BackendSnapshot *source, gint64 deadline_us, GError **error);

/* trash.c: images, at this location or others, that nothing may depend on any more. */
typedef struct RbdFreed RbdFreed;
void rbd_freed_clear(GQueue *freed);
/* Adds an image of the call's location by its ID. */
void rbd_trash_note(rados_ioctx_t io, const char *id, GQueue *freed);
/* Adds the image that `image` depends on, when it is in the trash. */
void rbd_trash_note_parent(rbd_image_t image, GQueue *freed);
/* Removes those images that nothing depends on, if they are ours, and some others of `trash`, which
 * is from rbd_notes_of_trash(). After a failure the next sweep tries again. */
void rbd_trash_sweep(rados_ioctx_t io, GHashTable *trash, GQueue *freed);
GPtrArray *rbd_leftovers(void *session, gint64 deadline_us, GError **error);
gboolean rbd_leftover_remove(void *session, const char *name, gint64 deadline_us, GError **error);

/* interrupted.c */
/* Within a call: ends the removals of images that had the name call->image. ABORTED if an image has
 * that name now. */
gboolean rbd_end_removals(RbdCall *call);
gboolean rbd_volume_clear(void *session, const VolumeId *id, gint64 deadline_us, GError **error);

/* remove.c */
/* Within a call: removes call->image; a missing one is fine. call->flag: snapshots are kept. */
gboolean rbd_remove_image(RbdCall *call);
/* Removes the remains of call->image, which cannot be opened though its name is taken. */
gboolean rbd_clear_name(RbdCall *call);
gboolean rbd_volume_remove(void *session, const VolumeId *id, gboolean keep_snapshots,
                           gint64 deadline_us, GError **error);

/* adopt.c: BackendOps.adopt with a connection. */
VolumeId *rbd_adopt(CephConn *conn, const char *nspace, const AdoptedId *adopted,
                    gint64 deadline_us, GError **error);

#endif
