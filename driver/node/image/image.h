/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that are images:
 *
 *     hearthd --FUSE--> DEVICE-DIR/HASH/image --loop--> /dev/loopN --ext4, xfs--> staging path
 *                                                          |                         | bind
 *                                                          +--bind--> target file    target
 *
 * The FUSE mount is made as for live volumes (served/served.h), in a directory of its own; HASH is
 * of the volume ID. Nothing is recorded but in the mount table and in the loop device's tag
 * (block.h), so a call can be repeated after a crash as staging.h says. An image has one loop
 * device and one file system on a node, whatever the number of staging paths.
 *
 * A blank image is formatted. A crash while it is formatted is recognized by a note that is kept
 * with the image from before to after (fs.c).
 */
#ifndef HEARTH_DRIVER_NODE_IMAGE_IMAGE_H
#define HEARTH_DRIVER_NODE_IMAGE_IMAGE_H

#include "driver/node/image/block.h"
#include "driver/node/served/kind.h"

/*
 * Lets it stage images: takes `block` over; the mounts of what hearthd serves of images are in
 * device_dir. Before the first call.
 */
void image_init(Staging *staging, NodeBlock *block, const char *device_dir);

extern const NodeKind image_kind;

#endif
