/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by dataset.c (one of them), datasets.c (joining and leaving), make.c (the thread that
 * makes a manifest), sizes.c and count.c. */
#ifndef HEARTH_CACHE_DATASET_INTERNAL_H
#define HEARTH_CACHE_DATASET_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "cache/dataset/datasets.h"
#include "cache/manifest/build.h"
#include "common/monotonic.h"

typedef enum DatasetState {
    DATASET_IDLE,
    DATASET_MAKING,
    DATASET_READY,
    DATASET_FAILED,
} DatasetState;

struct Dataset {
    Datasets *all;
    char id[DATASET_ID];
    OriginAttr root;
    /* Datasets.lock, all below but `progress`. */
    unsigned references;
    GPtrArray *members; /* Origin: of each volume that has joined */
    DatasetState state;
    Origin *using;
    gboolean has_thread;
    pthread_t thread;
    GError *error;     /* of FAILED */
    gboolean reported; /* the error was reported: the next call tries again */
    Manifest *manifest;
    BuildProgress progress;
    /* Of the table: when it was counted last, and what the tag's usage was then. */
    gboolean counted;
    gboolean shared; /* when counted, some of what is held was another tag's */
    gint64 count_at_us;
    uint64_t files_held, bytes_held, tag_objects, tag_bytes;
};

struct Datasets {
    Store *store;
    char *cache_dir, *objects;
    gboolean any_filesystem;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GHashTable *by_id; /* lock; those with members */
    gboolean stopping; /* lock */
    gint64 started_us;
    gint64 trim_at_us; /* lock; 0: never */
    pthread_t counter;
};

/* Whether a volume has joined it, and hearthd goes on. Takes the lock. */
static inline gboolean datasets_is_wanted(Dataset *d)
{
    pthread_mutex_lock(&d->all->lock);
    gboolean wanted = !d->all->stopping && d->members->len > 0;
    pthread_mutex_unlock(&d->all->lock);
    return wanted;
}

/* dataset.c */
/* Lock held, as for the next one. */
void dataset_unref_locked(Dataset *dataset);
/* Only when its thread has nothing left to do but to return. */
void dataset_join_thread_locked(Dataset *dataset);
/* The ID of an origin whose root has these attributes. */
void dataset_make_id(const Origin *origin, const OriginAttr *root, char id[DATASET_ID]);

/* make.c */
void datasets_prune(Datasets *all);
/* The thread of a dataset that is MAKING. */
void *dataset_run_make(void *dataset);

/* sizes.c */
/* Has objects of a wrong size dropped; of a dataset that is READY. */
void datasets_drop_misfits(Dataset *dataset);

/* count.c */
/* A walk fills the origin's caches, which it empties within a few seconds; what that leaves in the
 * allocator is given back then. */
#define DATASETS_TRIM_SEC 5
/* The thread of Datasets: counts, and gives memory back when a walk is over. */
void *datasets_run_counter(void *datasets);

#endif
