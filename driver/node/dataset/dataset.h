/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that are a snapshot, mounted natively:
 *
 *     staging path      overlayfs "hearth:<volume>", one each claim; bound on targets as ever
 *       D.manifest      EROFS: all names and attributes
 *       D.fill          FUSE mount "hearth:dataset-<id>": hearthd reads what the node lacks
 *     hearthd's objects/
 *
 * D is DEVICE-DIR/<id>.<generation>: the layers that all claims of one dataset on the node share
 * (shared.c). <id> is the dataset's, and comes from hearthd. hearthd knows a claim's volume only
 * while it is asked for the manifest; the volume that stays attached is "dataset-<id>". The layers
 * are removed with the last claim.
 *
 * The mount table is the only record here too (staging.h): an overlay's options name its layers.
 * Layers that a crash left without a claim are removed by the next unstaging of any volume.
 *
 * When hearthd was killed, files that the node holds stay readable through an overlay. Reads of
 * others wait for the next hearthd (hearthd/hand_over.h). If it cannot serve D.fill, they answer
 * ENOTCONN, and nothing that is mounted at D.fill afterwards changes that for this overlay. So the
 * next stage or publish mounts layers of the next generation and an overlay on them.
 *
 * A dataset that cannot be mounted so is a live volume (served/live.c): on kernels that cannot do
 * it (layers.h), without a manifest, and when a pod has an fsGroup but some files are not readable
 * by everyone, because a stack shows files as they are.
 */
#ifndef HEARTH_DRIVER_NODE_DATASET_DATASET_H
#define HEARTH_DRIVER_NODE_DATASET_DATASET_H

#include "driver/node/dataset/layers.h"
#include "driver/node/served/kind.h"

/* How often files that were fetched are made readable natively (refresh.c). */
#define DATASET_REFRESH_MS 10000

/* Lets it mount datasets natively; takes `layers` over. After image_init(), before the first call.
 */
void dataset_init(Staging *staging, NodeLayers *layers, unsigned refresh_ms);

extern const NodeKind dataset_kind;

#endif
