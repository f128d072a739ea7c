/* SPDX-License-Identifier: Apache-2.0 */
/* What block.c, loop.c and mkfs.c, which are the kernel's NodeBlock together, share. */
#ifndef HEARTH_DRIVER_NODE_IMAGE_BLOCK_INTERNAL_H
#define HEARTH_DRIVER_NODE_IMAGE_BLOCK_INTERNAL_H

#include "driver/node/image/block.h"
#include "common/bounded.h"

typedef struct KernelBlock {
    NodeBlock base;
    Bounded *bounded;
} KernelBlock;

#define LOOP_PATH_MAX 32
/* "/dev/loopN" */
void loop_path(int number, char path[LOOP_PATH_MAX]);

/* loop.c */
gboolean loop_find(NodeBlock *b, const char *tag, LoopDevice *device, GError **error);
int loop_attach(NodeBlock *b, const char *file, const char *tag, LoopDevice *device,
                GError **error);
int loop_hold(NodeBlock *b, int number, GError **error);
gboolean loop_detach(NodeBlock *b, int number, GError **error);
gboolean loop_grow(NodeBlock *b, int number, const char *file, gint64 timeout_ms, uint64_t *bytes,
                   GError **error);
gboolean loop_set_read_only(NodeBlock *b, int number, gboolean read_only, GError **error);
gboolean loop_is_free(NodeBlock *b, int number);

/* blkid.c */
gboolean look_at_device(NodeBlock *b, int number, gint64 timeout_ms, BlockContent *content,
                        GError **error);

/* mkfs.c */
gboolean mkfs_make(NodeBlock *b, int number, const char *type, const char *options,
                   gint64 timeout_ms, GError **error);
gboolean mkfs_check(NodeBlock *b, int number, const char *type, gboolean thorough,
                    gint64 timeout_ms, GError **error);
gboolean mkfs_grow(NodeBlock *b, int number, const char *type, const char *path, gint64 timeout_ms,
                   GError **error);
gboolean mkfs_can_grow_mounted(NodeBlock *b, const char *type);

#endif
