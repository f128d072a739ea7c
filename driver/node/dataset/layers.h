/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers a dataset is mounted of, and what the kernel can do of it. NodeLayers is a table, as
 * NodeMounter is, so that its users are tested without root.
 *
 *     overlayfs, read-only
 *       manifest   EROFS: from a file (Linux 6.12), else through a loop device
 *       objects    data-only layer (Linux 6.5): what the node holds
 *       fill       data-only layer: hearthd's FUSE mount, which fetches
 *
 * What a kernel can do is tried when the node plugin starts, with a file system of our own making:
 * versions lie, distributions port back and forth.
 */
#ifndef HEARTH_DRIVER_NODE_DATASET_LAYERS_H
#define HEARTH_DRIVER_NODE_DATASET_LAYERS_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/error.h"
#include "driver/node/image/block.h"

typedef struct NodeLayers NodeLayers;

/* Paths are as hearthd and the node plugin both see them; borrowed. */
typedef struct LayerStack {
    const char *source; /* that the mount table names */
    const char *manifest, *objects, *fill;
    uint64_t attrs;      /* MOUNT_ATTR_* */
    const char *context; /* SELinux's; NULL: none */
} LayerStack;

/*
 * Errors are HEARTH_ERROR. FAILED_PRECONDITION: it cannot be on this node, however often it is
 * tried; the volume can still be served by FUSE alone.
 */
typedef struct NodeLayersOps {
    void (*free)(NodeLayers *l);
    /* A detached mount of the EROFS image in `file`, or -1. `tag` names a loop device. */
    int (*mount_manifest)(NodeLayers *l, const char *file, const char *tag, gint64 timeout_ms,
                          GError **error);
    /*
     * A detached mount, or -1. Checks that files lead to their data: in a stack that does not
     * follow the manifest's redirects each reads as zeros, without an error. Asks for no file's
     * content.
     */
    int (*mount_stack)(NodeLayers *l, const LayerStack *stack, gint64 timeout_ms, GError **error);
    /*
     * Has the kernel forget the names of the stack `dev` that is mounted at `path`, and with them
     * in which layer their files are. What is open stays.
     */
    gboolean (*refresh)(NodeLayers *l, const char *path, dev_t dev, GError **error);
    /* Whether the files of the stack `dev` that is mounted at `path` can be opened and read,
     * wherever else it is mounted. It may be repeated. */
    gboolean (*close_stack)(NodeLayers *l, const char *path, dev_t dev, gboolean closed,
                            GError **error);
} NodeLayersOps;

struct NodeLayers {
    const NodeLayersOps *ops;
    gboolean usable; /* FALSE: datasets are served by FUSE alone */
};

typedef enum LayersMode {
    LAYERS_AUTO, /* the best that the kernel can do */
    LAYERS_LOOP, /* EROFS through a loop device, as if it had no other way */
    LAYERS_FUSE, /* none of it */
} LayersMode;

/* "auto", "loop", "fuse". */
gboolean layers_parse_mode(const char *text, LayersMode *mode, GError **error);
/*
 * The kernel's. Tries what it can do in `dir`, which is made if need be, and logs the result.
 * `block` is borrowed.
 */
NodeLayers *node_layers_new(NodeBlock *block, const char *dir, LayersMode mode);
/* What the kernel can do, for who mounts nothing. */
typedef struct LayersFeatures {
    gboolean data_only; /* overlayfs leads to data-only layers */
    gboolean from_file; /* EROFS needs no loop device */
    char *why;          /* what is missing for a native mount; NULL: nothing. The caller's */
} LayersFeatures;
/* Tries it in `dir`, and leaves nothing behind there but the directory; needs root. */
void layers_features(const char *dir, LayersFeatures *features);

static inline void node_layers_free(NodeLayers *l)
{
    if (l)
        l->ops->free(l);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeLayers, node_layers_free)

#endif
