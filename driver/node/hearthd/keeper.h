/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node plugin's state of each staged volume, in memory only: the spec given to hearthd,
 * which holds the Ceph key, a duplicate of the FUSE descriptor, and what its successor needs to
 * serve the mount: a note, or the state that a hearthd leaves when it is asked to end
 * (wire_state_is_left()). A restarted node plugin gets all back from hearthd ("fetch"), or from
 * hearth-keeper when hearthd has ended too (kept_copy.h).
 *
 * A duplicate keeps the connection from being aborted when hearthd dies: calls of applications
 * wait instead of failing. With a note, or a state that was left, they wait for the next hearthd
 * (hand_over.h). Without they would wait for ever: keeper_release() closes such duplicates, so that
 * they fail at once. Closing one never harms a volume that is served.
 *
 * Every function may be called from any thread.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_KEEPER_H
#define HEARTH_DRIVER_NODE_HEARTHD_KEEPER_H

#include <glib.h>
#include <jansson.h>

typedef struct Keeper Keeper;

Keeper *keeper_new(void);
/* Overwrites the secrets, closes the descriptors. */
void keeper_free(Keeper *keeper);
/* `changed` is called after each change of what keeper_look() shows of a volume, with a lock held:
 * it must not call the keeper. Set once, before other threads use the keeper. */
void keeper_on_change(Keeper *keeper, void (*changed)(void *data, const char *volume), void *data);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Keeper, keeper_free)

/* For the next hearthd: one of the two, or none. */
typedef struct KeptResume {
    const char *note; /* NULL: none */
    int state_fd;     /* -1: none */
} KeptResume;
#define KEPT_RESUME_NONE ((KeptResume){.state_fd = -1})

/* Replaces what is kept of the volume. Copies spec and note; takes the descriptors (-1: none). */
void keeper_put(Keeper *keeper, const char *volume, const json_t *spec, const KeptResume *resume,
                int fuse_fd);
/* As keeper_put(), unless the volume is kept already. What hearthd says of it outranks this: until
 * then the volume is not complete. */
void keeper_put_loaded(Keeper *keeper, const char *volume, const json_t *spec,
                       const KeptResume *resume, int fuse_fd);
/* Replaces the spec of a volume that is kept; copies it. */
void keeper_renew(Keeper *keeper, const char *volume, const json_t *spec);
/* A copy of the spec, for node_spec_free(); NULL when the volume is not kept. */
json_t *keeper_spec(Keeper *keeper, const char *volume);
/* Whether both spec and descriptor are kept, and were not loaded. */
gboolean keeper_is_complete(Keeper *keeper, const char *volume);
/* Whether the descriptor is kept. */
gboolean keeper_has_descriptor(Keeper *keeper, const char *volume);
void keeper_drop(Keeper *keeper, const char *volume);
/* If it is one that keeper_loaded() names. */
void keeper_drop_loaded(Keeper *keeper, const char *volume);
/* Closes the volume's descriptor and keeps its spec. */
void keeper_release_volume(Keeper *keeper, const char *volume);
/* Whether it waits for the next hearthd, or may do so when this one has ended. */
gboolean keeper_may_yet_wait(Keeper *keeper, const char *volume);
/* Those that were loaded, of which hearthd has not told anything yet: array of char *, the
 * caller's. */
GPtrArray *keeper_loaded(Keeper *keeper);
/* Whether the descriptor is kept, and it cannot wait. */
gboolean keeper_ends(Keeper *keeper, const char *volume);
gboolean keeper_any_ends(Keeper *keeper);
/* Whether a hearthd that is ending may still leave the state of any. */
gboolean keeper_awaits_state(Keeper *keeper);
/* hearthd has ended. Closes every descriptor of a mount that cannot wait and keeps the specs. The
 * number closed. */
unsigned keeper_release(Keeper *keeper);

/* ---- volumes that the next hearthd can serve */

/* Whether the descriptor is kept, and a note or a state that was left, or it is lent. */
gboolean keeper_may_wait(Keeper *keeper, const char *volume);
/* Those that wait since keeper_release(): array of char *, the caller's. */
GPtrArray *keeper_waiting(Keeper *keeper);
/* Closes the descriptors of those that have waited for longer. The number closed. */
unsigned keeper_release_overdue(Keeper *keeper, gint64 wait_ms);

/* What the next hearthd needs. */
typedef struct KeptMount {
    json_t *spec;  /* a copy, with a secret */
    char *note;    /* NULL: there is a state */
    int fuse_fd;   /* a duplicate, as is state_fd */
    int state_fd;  /* -1: there is a note */
    guint64 place; /* which keeper_put() it is of */
} KeptMount;

#define KEPT_MOUNT_NONE                                                                            \
    {                                                                                              \
        .fuse_fd = -1, .state_fd = -1                                                              \
    }

void kept_mount_clear(KeptMount *mount);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KeptMount, kept_mount_clear)

/* What is kept of a mount that a later hearthd might serve. FALSE: it is not kept, or could not be
 * served. Without `spec`: there is no descriptor for it now. */
gboolean keeper_look(Keeper *keeper, const char *volume, KeptMount *mount);
/* All volumes: array of char *, the caller's. */
GPtrArray *keeper_volumes(Keeper *keeper);

/* FALSE: it cannot wait (any more). From now on it waits, if it did not before. */
gboolean keeper_lend(Keeper *keeper, const char *volume, KeptMount *mount);
/* Another try may be made. */
void keeper_give_back(Keeper *keeper, const char *volume, guint64 place);
/* Closes what was lent: hearthd refuses it. Nothing if it was replaced meanwhile. */
void keeper_release_lent(Keeper *keeper, const char *volume, guint64 place);
/* It is served again, and this is for the hearthd after the next; takes the descriptor. FALSE: it
 * was released or replaced meanwhile. */
gboolean keeper_served_again(Keeper *keeper, const char *volume, guint64 place,
                             const KeptResume *resume);

#endif
