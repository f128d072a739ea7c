/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fill layer of a dataset: a read-only FUSE file system in which every object of the manifest
 * is a file, /xx/<id>, whether the node holds it or not. overlayfs asks it for what is not among
 * the objects; reading fetches the object, once, while readers are served, so that later opens find
 * it in the native layer.
 *
 * A file's node ID is its place in the manifest's table, so nothing has to be remembered of a
 * lookup, and a later process can go on serving the same mount (take_over.h) with a manifest
 * of the same tree.
 *
 * Reads of what has to be fetched wait while Ceph is heard from, as Ceph's own clients wait. They
 * fail with EIO when Ceph has been silent for a while, and soon while it stays silent; the fetch
 * goes on.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_FILL_LAYER_H
#define HEARTH_CACHE_FUSE_LAYER_FILL_LAYER_H

#include <gio/gio.h>
#include "cache/fuse/layer/note.h"
#include "cache/manifest/manifest.h"
#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct FillLayer FillLayer;

/* Everything is borrowed until fill_layer_stop() has returned. */
typedef struct FillLayerConfig {
    const char *dataset; /* what its objects are accounted to */
    Origin *origin;
    Store *store;
    const Manifest *manifest;
    unsigned silent_ms;  /* Ceph is away when it has been silent for so long; 0: 20 s */
    unsigned timeout_ms; /* of a read; 0: none */
} FillLayerConfig;

typedef struct FillLayerStats {
    uint64_t reads, read_us, bytes_store, bytes_fill, bytes_origin, failed;
} FillLayerStats;

/* Serves fuse_fd, which it takes, a mounted /dev/fuse descriptor. `ended` as in readers.h. */
FillLayer *fill_layer_start(const FillLayerConfig *config, int fuse_fd, void (*ended)(void *data),
                            void *data, GError **error);
/* As above, for a mount that another process served; INVALID_DATA: it had a manifest of another
 * tree. What that process read and did not answer is read again. */
FillLayer *fill_layer_take_over(const FillLayerConfig *config, int fuse_fd, const LayerNote *note,
                                void (*ended)(void *data), void *data, GError **error);
/* FALSE: no other process can serve the mount. */
gboolean fill_layer_note(FillLayer *layer, LayerNote *note);
/* From now on reads and lookups answer EACCES. */
void fill_layer_refuse(FillLayer *layer);
void fill_layer_stats(FillLayer *layer, FillLayerStats *stats);
/* A duplicate is the keeper's; this one is borrowed. */
int fill_layer_fd(FillLayer *layer);
/* Stops, gives back what it uses of the store and the origin, frees. NULL is fine. */
void fill_layer_stop(FillLayer *layer);
/* As above, for a mount that another process is to serve: what cannot be answered now is not
 * answered. */
void fill_layer_leave(FillLayer *layer);

#endif
