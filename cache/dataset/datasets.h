/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datasets of this node: immutable trees, each with one manifest however many volumes show it.
 *
 *   (none) --join--> IDLE --wait--> MAKING --> READY
 *                      ^               |
 *                      +---- FAILED <--+    the failure is reported to the waiters; then it can be
 *                                           tried again
 *
 * A manifest is made by a thread of its own: found in <cache>/manifests, or built by a walk with
 * the origin of one of the volumes. When that volume leaves, the walk ends and begins again with
 * the origin of another; when the last one leaves, it ends.
 */
#ifndef HEARTH_CACHE_DATASET_DATASETS_H
#define HEARTH_CACHE_DATASET_DATASETS_H

#include <glib.h>
#include <stdint.h>
#include "cache/manifest/manifest.h"
#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct Datasets Datasets;
typedef struct Dataset Dataset;

#define DATASET_ID 33 /* 32 hex digits and a NUL */

/* `store` is borrowed, cache_dir its directory. any_filesystem: for tests, do not ask whether
 * overlayfs can use it. */
Datasets *datasets_new(Store *store, const char *cache_dir, gboolean any_filesystem);
/* Every dataset must have been left. */
void datasets_free(Datasets *datasets);

/*
 * Joins the dataset that is the origin's tree. `immutable`: the tree counts as a dataset although
 * its root is in no snapshot. Begins nothing yet. Errors: FAILED_PRECONDITION: it is none, or this
 * node cannot serve it as one; others: the origin's. The origin stays in use until dataset_leave().
 */
Dataset *datasets_join(Datasets *datasets, Origin *origin, gboolean immutable, GError **error);
/* Ends what join began. FALSE: the origin is still in use after timeout_ms, call it again. NULL is
 * fine. */
gboolean dataset_leave(Dataset *dataset, Origin *origin, gint64 timeout_ms);
/* A reference to wait with, while it may be left. */
Dataset *dataset_ref(Dataset *dataset);
void dataset_unref(Dataset *dataset);

typedef struct DatasetReport {
    char id[DATASET_ID];
    gboolean ready, readable;            /* by every user: MANIFEST_READABLE */
    uint64_t files, directories, bytes;  /* of the tree; while not ready: found so far */
    uint64_t cached_files, cached_bytes; /* of those, what the store holds */
} DatasetReport;

/* Begins to make the manifest unless it is made or being made, and waits for it as long as asked.
 * FALSE: it cannot be made (the error is WIRE_ERROR's). */
gboolean dataset_wait(Dataset *dataset, gint64 wait_ms, DatasetReport *report, GError **error);
void dataset_report(Dataset *dataset, DatasetReport *report);
/* FALSE unless it is joined and was counted. */
gboolean datasets_report(Datasets *datasets, const char *id, DatasetReport *report);

/* The ID of the tree that an origin shows; -errno. */
int dataset_id_of(Origin *origin, char id[DATASET_ID]);
/* Removes this node's manifest of a dataset whose snapshot is gone, unless it is joined. */
void datasets_drop(Datasets *datasets, const char *id);
Store *datasets_store(const Datasets *datasets);
/* Where this node's manifests are; the caller's. */
char *datasets_manifests_dir(const Datasets *datasets);

/* What follows is constant while joined. */
const char *dataset_id(const Dataset *dataset);
char *dataset_path(const Dataset *dataset);    /* of the image */
char *dataset_objects(const Dataset *dataset); /* of the layer it redirects to */
/* NULL until it is ready; then until it is left. */
const Manifest *dataset_manifest(Dataset *dataset);

#endif
