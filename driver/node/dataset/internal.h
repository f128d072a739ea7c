/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What dataset.c (the kind), claim.c (one claim), shared.c (the layers that claims share) and
 * refresh.c share.
 */
#ifndef HEARTH_DRIVER_NODE_DATASET_INTERNAL_H
#define HEARTH_DRIVER_NODE_DATASET_INTERNAL_H

#include <pthread.h>
#include "driver/node/dataset/layers.h"
#include "driver/node/hearthd/manifest.h"
#include "driver/node/served/served.h"
#include "proto/wire.h"

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

/* ---- shared.c ---- */

/* Begins the name of the volume that hearthd serves for all claims of a dataset. */
#define DATASET_VOLUME_PREFIX WIRE_DATASET_PREFIX

/* The lower layers of a dataset, mounted for one Ceph user and key; owns its strings. */
typedef struct SharedLayers {
    char *id;
    unsigned slot, generation; /* slot: 1 is the first user and key */
    char *busy;                /* the name under which all layers of the dataset are held */
    char *volume;              /* that hearthd serves */
    char *fill, *manifest;     /* the mount points */
} SharedLayers;

void shared_layers_clear(SharedLayers *shared);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SharedLayers, shared_layers_clear)

/* A claim of a dataset while it is being mounted. The strings, the spec and the context are
 * borrowed. */
typedef struct DatasetClaim {
    const char *volume, *path;
    const json_t *spec;
    gboolean over_stack; /* a stack that is no longer served is mounted at the path */
    MountOptions options;
    HearthdLink *link; /* on which it is open */
    HearthdManifest manifest;
} DatasetClaim;

/* The layers of a stack; FALSE when the mount is no stack of ours. */
gboolean shared_layers_of(const MountEntry *stack, SharedLayers *shared);
/* Whether the fill layer is mounted, answers, and is served. */
gboolean shared_layers_is_served(Staging *s, const GPtrArray *table, const SharedLayers *shared,
                                 gboolean *served, Deadline deadline, GError **error);
/*
 * Has the layers of a claim, whose manifest is ready, mounted and served with its user and key.
 * *shared are these; after an error those that were begun, if any. Removes what is left of dead
 * ones. The dataset is held.
 */
gboolean shared_layers_mount(Staging *s, const DatasetClaim *claim, SharedLayers *shared,
                             Deadline deadline, GError **error);
/* Takes over what may differ between claims of one dataset: the newer one's counts. */
gboolean shared_layers_renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                             Deadline deadline, GError **error);
/* Removes the layers unless a stack is on them. The dataset is held. */
gboolean shared_layers_remove_unused(Staging *s, const SharedLayers *shared, Deadline deadline,
                                     GError **error);
/* All layers that have a mount point in the device directory: array of SharedLayers. */
GPtrArray *shared_layers_list(Staging *s);
/* A copy of a claim's spec for another volume of the dataset, for node_spec_free(). */
json_t *shared_layers_spec(const json_t *spec, const char *volume);

/* Whether a JSON array has the string. */
gboolean shared_list_has(const json_t *list, const char *text);

/* ---- claim.c; the volume is held ---- */

/* Closes the claim at hearthd. */
void dataset_claim_clear(DatasetClaim *claim);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DatasetClaim, dataset_claim_clear)

/* Opens the claim and asks for its manifest. *native: there is one, and it may be mounted. */
gboolean dataset_claim_ask(Staging *s, DatasetClaim *claim, gboolean *native, Deadline deadline,
                           GError **error);
/* Mounts the claim, natively if possible, and clears it. */
gboolean dataset_claim_mount(Staging *s, DatasetClaim *claim, Deadline deadline, GError **error);
/* The connection that keeps the build of the volume's manifest going; the caller's, or NULL. */
HearthdLink *dataset_steal_build(NodeDatasets *d, const char *volume);

/* ---- refresh.c ---- */

/* Starts a thread that ends with dataset_refresh_stop(). */
void dataset_refresh_start(Staging *s);
void dataset_refresh_stop(Staging *s);

#endif
