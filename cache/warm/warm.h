/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warming: walks a subtree of an origin, or of the manifest of a dataset, and has the store fill
 * every regular file that it does not hold yet, or only the files of a list, a few at a time. Fills
 * that readers need come first. One Warm is one walk; other threads may read its counters.
 */
#ifndef HEARTH_CACHE_WARM_WARM_H
#define HEARTH_CACHE_WARM_WARM_H

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "cache/warm/warm_list.h"
#include "cache/manifest/manifest.h"
#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct Warm {
    Store *store;
    Origin *origin;
    const Manifest *manifest; /* NULL: the origin is walked */
    const char *tag;
    uint64_t quota_bytes;         /* of the tag; 0: none */
    WarmList *list;               /* NULL: all files beneath the path */
    StorePace *pace;              /* NULL: as fast as it goes */
    gboolean check;               /* fetch nothing: count what is held, which is then "done" */
    gboolean (*stop)(void *data); /* asked between files and chunks */
    void *data;

    /* Written by the walk. Totals grow while scanning, unless the origin knows them. */
    atomic_ullong files_done, files_total, bytes_done, bytes_total, files_failed;
    atomic_ullong bytes_held;                   /* the part of bytes_done that was cached before */
    atomic_ullong files_missing, bytes_missing; /* found by a check */
    atomic_bool scanning;
    pthread_mutex_t lock;
    char *first_error; /* lock */
} Warm;

typedef enum WarmResult {
    WARM_DONE, /* every file was tried */
    WARM_FAILED,
    WARM_STOPPED,
} WarmResult;

/*
 * A path inside a volume without leading, double and trailing slashes and "." (the root is "").
 * NULL with WIRE_ERROR_INVALID_ARGUMENT for one with "..".
 */
char *warm_path(const char *path, GError **error);
/* Finds it beneath the root; symbolic links are not followed. NOT_FOUND names the part that is
 * missing. */
gboolean warm_find(Origin *origin, const char *path, OriginNode **node, OriginAttr *attr,
                   GError **error);

void warm_init(Warm *warm);
void warm_clear(Warm *warm);
/* `path` names `node` in errors. FAILED sets *error: why the walk could not go on. */
WarmResult warm_run(Warm *warm, OriginNode *node, const OriginAttr *attr, const char *path,
                    GError **error);
/* The first file's error, copied; NULL when there was none. */
char *warm_first_error(Warm *warm);

#endif
