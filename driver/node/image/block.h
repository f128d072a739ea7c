/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop devices and the file systems on them: the operations that staging an image takes. NodeBlock
 * is a table, as NodeMounter is, so that its users are tested without root.
 *
 * A loop device is over a file that hearthd serves, with direct I/O, so that what an fsync(2) above
 * has acknowledged is in Ceph. It carries the tag of its volume in the kernel (lo_file_name, which
 * no restart and no mount namespace changes; the path of the backing file that sysfs shows depends
 * on both). One under a file system has AUTOCLEAR: it goes with the last mount, whoever holds that.
 * One that is published as it is has not.
 */
#ifndef HEARTH_DRIVER_NODE_IMAGE_BLOCK_H
#define HEARTH_DRIVER_NODE_IMAGE_BLOCK_H

#include <glib.h>
#include <stdint.h>
#include "common/error.h"

typedef struct NodeBlock NodeBlock;

typedef struct LoopDevice {
    int number; /* of /dev/loopN; -1: none */
    gboolean read_only, autoclear;
    uint64_t bytes;
} LoopDevice;

/* What is on a device. */
typedef struct BlockContent {
    char *type;     /* as libblkid calls it: "ext4", "xfs", "crypto_LUKS"; NULL: nothing it knows */
    gboolean blank; /* nothing known, and its head and its end are zeros */
    gboolean unused; /* a file system that was never mounted, or whose making did not end */
    uint64_t bytes;  /* of an ext4 or xfs file system, else 0 */
} BlockContent;

static inline void block_content_clear(BlockContent *content)
{
    g_clear_pointer(&content->type, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BlockContent, block_content_clear)

/* How the file system on a device is mounted. Borrowed. */
typedef struct BlockMount {
    int number; /* of /dev/loopN */
    const char *type;
    char *const *options; /* the file system's own, "name" or "name=value" */
    uint64_t attrs;       /* MOUNT_ATTR_* */
} BlockMount;

/* Errors are HEARTH_ERROR and name the device. timeout_ms bounds what a hung device could hold. */
typedef struct NodeBlockOps {
    void (*free)(NodeBlock *b);

    /* The loop device with that tag; of several the first. */
    gboolean (*loop_find)(NodeBlock *b, const char *tag, LoopDevice *device, GError **error);
    /* Attaches one to `file`, as device->read_only and device->autoclear say, and fills in the
     * rest. The descriptor that keeps an AUTOCLEAR one in place, or -1. */
    int (*loop_attach)(NodeBlock *b, const char *file, const char *tag, LoopDevice *device,
                       GError **error);
    /* Opens it, which keeps it in place. */
    int (*loop_hold)(NodeBlock *b, int number, GError **error);
    /* Fine when it is free. FAILED_PRECONDITION: in use; it goes when that ends. */
    gboolean (*loop_detach)(NodeBlock *b, int number, GError **error);
    /* Takes over the size of `file`, asked for afresh. */
    gboolean (*loop_grow)(NodeBlock *b, int number, const char *file, gint64 timeout_ms,
                          uint64_t *bytes, GError **error);
    gboolean (*loop_set_read_only)(NodeBlock *b, int number, gboolean read_only, GError **error);
    /* Whether nobody, of all programs, has that device. */
    gboolean (*loop_is_free)(NodeBlock *b, int number);

    gboolean (*look)(NodeBlock *b, int number, gint64 timeout_ms, BlockContent *content,
                     GError **error);
    /* options NULL: a default for images that are empty and thin. Synced when it returns. */
    gboolean (*make)(NodeBlock *b, int number, const char *type, const char *options,
                     gint64 timeout_ms, GError **error);
    /* Before mounting for writing: repairs what can be without losing anything. FAILED_PRECONDITION
     * when that is not enough. `thorough`: looks at everything and repairs nothing. */
    gboolean (*check)(NodeBlock *b, int number, const char *type, gboolean thorough,
                      gint64 timeout_ms, GError **error);
    /* A detached mount (driver/node/mount/mount.h), or -1. */
    int (*mount)(NodeBlock *b, const BlockMount *mount, gint64 timeout_ms, GError **error);
    /*
     * Grows the file system to the device's size: mounted for writing at `path`; or, with NULL, not
     * mounted, which only ext4 can. FAILED_PRECONDITION when this process may not do it mounted.
     */
    gboolean (*grow)(NodeBlock *b, int number, const char *type, const char *path,
                     gint64 timeout_ms, GError **error);

    gboolean (*can_grow_mounted)(NodeBlock *b, const char *type);

    /*
     * An empty file to bind a device on, or finds that it is one; *made tells which. It is noted on
     * the file (trusted.hearth.tag, xattr(7)) that the device with the tag is bound there; where
     * that cannot be, it is done without.
     */
    gboolean (*make_file)(NodeBlock *b, const char *path, const char *tag, gboolean *made,
                          GError **error);
    /* What is noted on the file that is below the mount at `path`, the caller's; NULL: nothing. */
    char *(*file_tag)(NodeBlock *b, const char *path);
    /* Removes such a file. Fine when there is none, or a directory. */
    gboolean (*remove_file)(NodeBlock *b, const char *path, GError **error);
    /* Binds the device's node on the file. */
    gboolean (*bind)(NodeBlock *b, int number, const char *path, GError **error);

    /* Makes the directory, with parents, only for root. */
    gboolean (*make_root)(NodeBlock *b, const char *path, GError **error);
    /* A note kept with the image that is served as `file`: see cache/fuse/device.h. */
    gboolean (*has_note)(NodeBlock *b, const char *file, const char *name, gint64 timeout_ms,
                         gboolean *has, GError **error);
    gboolean (*set_note)(NodeBlock *b, const char *file, const char *name, gboolean present,
                         gint64 timeout_ms, GError **error);
} NodeBlockOps;

struct NodeBlock {
    const NodeBlockOps *ops;
};

/* The kernel's, and programs: mkfs.ext4, mkfs.xfs, e2fsck, xfs_repair, resize2fs, xfs_growfs. */
NodeBlock *node_block_new(void);
static inline void node_block_free(NodeBlock *b)
{
    if (b)
        b->ops->free(b);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeBlock, node_block_free)

#endif
