/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bytes of a dataset's files are being read from, so that one read after another does not
 * open again. A Source may be found for a second after its last use, and lives while it is
 * referenced; the last reference closes what it holds. All of it from any thread.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_SOURCES_H
#define HEARTH_CACHE_FUSE_LAYER_SOURCES_H

#include <stdatomic.h>
#include "cache/manifest/manifest.h"
#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct Sources Sources;

/* Constant while it is referenced, but for what sources.c keeps of it. */
typedef struct Source {
    uint64_t index; /* in the manifest's table */
    ObjectKey key;  /* zeros when the record leads nowhere */
    ObjectId id;
    /* The object, or its fill; neither when the store takes none: then the origin is read. */
    int fd;
    StoreFill *fill;
    atomic_uint references;
    GList *link;      /* Sources.lock; in Sources.recent */
    uint64_t used_ms; /* Sources.lock */
} Source;

/* All is borrowed until sources_free(). */
Sources *sources_new(Store *store, Origin *origin, const Manifest *manifest, const char *dataset);
void sources_free(Sources *sources);
/* The caller's reference. Waits for the disk, never for Ceph. */
Source *sources_get(Sources *sources, uint64_t index);
void source_unref(Source *source);
/* It cannot be used any more: the next sources_get() begins again. The caller keeps its reference.
 */
void sources_drop(Sources *sources, Source *source);

#endif
