/* SPDX-License-Identifier: Apache-2.0 */
/* What dataset.c (claims), place.c (what they share) and staging*.c share. */
#ifndef HEARTH_DRIVER_NODE_DATASET_INTERNAL_H
#define HEARTH_DRIVER_NODE_DATASET_INTERNAL_H

#include <pthread.h>
#include "proto/wire.h"
#include "driver/node/dataset/dataset.h"
#include "driver/node/staging_internal.h"

typedef struct NodeDatasets {
    NodeLayers *layers;
    pthread_mutex_t lock;
    /* Volumes whose manifest is being built -> the connection that has them open; guarded by lock.
     */
    GHashTable *building;
    /* refresh.c */
    int refresh_ms, stop; /* stop: eventfd */
    pthread_t thread;
} NodeDatasets;

/* ---- place.c ---- */

/* Of the volume that hearthd serves for all claims of a dataset. */
#define DATASET_VOLUME_PREFIX WIRE_DATASET_PREFIX

/* Where the lower layers of a dataset are mounted, for one Ceph user and key; owns its strings. */
typedef struct DatasetPlace {
    char *id;
    unsigned slot, generation; /* slot: 1 is the first user and key */
    char *busy;                /* what it is held by: of all places of the dataset */
    char *volume;              /* that hearthd serves */
    char *fill, *manifest;
} DatasetPlace;

void dataset_place_clear(DatasetPlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DatasetPlace, dataset_place_clear)

void dataset_place_init(DatasetPlace *place, const char *dir, const char *id, unsigned slot,
                        unsigned generation);
/* What a volume is held by while it is worked on; the caller's. */
char *dataset_busy_name(const char *volume);
/* The place of a stack; FALSE when its lower layer is at none. */
gboolean dataset_place_of(const MountEntry *stack, DatasetPlace *place);
/* Whether its fill layer is mounted, answers, and is served. `link`: to hearthd. */
gboolean dataset_place_is_served(Staging *s, HearthdLink *link, const GPtrArray *table,
                                 const DatasetPlace *place, gboolean *served, Deadline deadline,
                                 GError **error);
/*
 * The place of a dataset that is served with the user and key of `spec`, or a new one where its
 * layers are to be mounted; what is left of dead ones is taken away. The dataset is held.
 */
gboolean dataset_place_find(Staging *s, HearthdLink *link, const char *id, const json_t *spec,
                            DatasetPlace *place, Deadline deadline, GError **error);
/* Mounts what of the layers is not there. `spec` is a claim's. */
gboolean dataset_place_mount(Staging *s, const DatasetPlace *place, const json_t *spec,
                             const char *manifest, Deadline deadline, GError **error);
/* Removes a place unless a stack is on it. The dataset is held. */
gboolean dataset_place_remove_unused(Staging *s, const DatasetPlace *place, Deadline deadline,
                                     GError **error);
/* Every place that has a mount point in the device directory: array of DatasetPlace. */
GPtrArray *dataset_places(Staging *s);
/* A copy of the claim's spec for the dataset's volume, for node_spec_free(). */
json_t *dataset_spec(const json_t *spec, const char *volume);

/* ---- dataset.c; the volume is held ---- */

/* The place of what is mounted at `path` if that is a stack of ours. */
gboolean dataset_is_at(const GPtrArray *table, const char *path, DatasetPlace *place);
/*
 * As ensure_served() of staging.c, of a stack. For a group that may not read all of it a session
 * takes its place; FAILED_PRECONDITION while it is published, and for another context than it has.
 */
gboolean dataset_ensure_served(Staging *s, const char *volume, const char *staged,
                               const DatasetPlace *place, const char *context, gint64 group,
                               dev_t *dev, Deadline deadline, GError **error);
/* The dataset's size and number of files. */
gboolean dataset_statvfs(Staging *s, const DatasetPlace *place, struct statvfs *st, GError **error);
/*
 * After a mount of the volume was taken away: forgets a build that it waited for, and removes every
 * place that nobody is on. An error is one of the place `mine`; others are tried again by the next
 * call.
 */
gboolean dataset_remove_unused(Staging *s, const char *volume, const DatasetPlace *mine,
                               gboolean unstaging, Deadline deadline, GError **error);

/* ---- refresh.c ---- */

/* A thread that ends with dataset_refresh_stop(). */
void dataset_refresh_start(Staging *s);
void dataset_refresh_stop(Staging *s);

#endif
