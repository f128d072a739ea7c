/* SPDX-License-Identifier: Apache-2.0 */
/* What layers.c (NodeLayers), layers_mount.c (the mounts) and layers_probe.c (what the kernel can
 * do) share. */
#ifndef HEARTH_DRIVER_NODE_DATASET_LAYERS_INTERNAL_H
#define HEARTH_DRIVER_NODE_DATASET_LAYERS_INTERNAL_H

#include "common/bounded.h"
#include "driver/node/dataset/layers.h"
#include "driver/node/dataset/layers_deny.h"
#include "driver/node/mount/mount.h"

typedef enum StackSyntax {
    STACK_NONE,
    STACK_JOINED,   /* lowerdir=a::b::c */
    STACK_APPENDED, /* lowerdir+=a, datadir+=b, ... (Linux 6.7) */
} StackSyntax;

typedef struct KernelLayers {
    NodeLayers base;
    NodeBlock *block;
    Bounded *bounded;
    gboolean from_file; /* EROFS needs no loop device */
    StackSyntax syntax;
    LayersDeny *deny;
} KernelLayers;

/* A detached overlay mount, or -errno; *said is what the kernel says of it, the caller's. */
int layers_mount_overlay(StackSyntax syntax, const LayerStack *stack, char **said);
/* A detached EROFS mount, or -errno. */
int layers_mount_file(const char *file, char **said);

/* Fills in what the kernel can do; *why says what it cannot, the caller's, or NULL. */
void layers_probe(KernelLayers *k, const char *dir, char **why);

#endif
