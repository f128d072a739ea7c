/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that are a snapshot, mounted natively:
 *
 *     staging path      overlayfs "hearth:<volume>", one each claim; bound on targets as ever
 *       D.manifest      EROFS: all names and attributes
 *       D.fill          FUSE mount "hearth:dataset-<id>": hearthd, asked for what is not there yet
 *     hearthd's objects/
 *
 * D is DEVICE-DIR/<id>.<generation>, a place that all claims of one dataset on the node share; <id>
 * is of the dataset, and hearthd tells it. hearthd knows a volume of a claim only while its
 * manifest is asked for; what stays attached is the volume "dataset-<id>". A place goes with its
 * last claim.
 *
 * The mount table tells everything: an overlay's options name its place. So what staging.h says of
 * repetitions after a crash holds here too. Places that a crash left without a claim are removed by
 * the next unstaging of any volume.
 *
 * When hearthd was killed, files that the node holds stay readable through an overlay, others
 * answer ENOTCONN, and nothing that is mounted at D.fill afterwards changes that for this overlay.
 * So the next stage or publish makes a place of the next generation and an overlay of it.
 *
 * Whatever cannot be mounted so is served by a FUSE session as other volumes are: kernels that
 * cannot (layers.h), datasets without a manifest, and those of which somebody may not read all
 * while a pod asks for its fsGroup, for a stack shows files as they are.
 */
#ifndef HEARTH_DRIVER_NODE_DATASET_DATASET_H
#define HEARTH_DRIVER_NODE_DATASET_DATASET_H

#include "driver/node/dataset/layers.h"
#include "driver/node/staging.h"

/* How often it is looked at whether files that were fetched can be read natively. */
#define DATASET_REFRESH_MS 10000

/* Lets it mount datasets natively; takes `layers` over. After staging_take_images(). */
void staging_take_layers(Staging *staging, NodeLayers *layers, unsigned refresh_ms);

/*
 * As staging_stage(), of a volume that is a snapshot. ABORTED while its manifest is being built,
 * with the progress: the next call goes on from there.
 */
gboolean dataset_stage(Staging *s, const char *volume, const char *path, const json_t *spec,
                       const MountOptions *options, gint64 timeout_ms, GError **error);

#endif
