/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may change of a volume while it is there (CSI's mutable parameters, Kubernetes'
 * VolumeAttributesClass), as a JSON object of the names given, values in one spelling:
 *
 *     cacheQuota   bytes of a node's cache it may take; 0: as much as there is room
 *     warm         "onStage": fetched into a node's cache when it is staged there; "none"
 *     iopsPerSecond, bytesPerSecond, and the same of reads and of writes
 *                  limits of an image, 0: none; for CephFS nothing enforces any, so they are
 *                  refused
 *     baseIops, maxIops and so on
 *                  rules for them by the image's size, ceph-csi's (qos.h)
 *
 * A change sets what it names and leaves the rest, but for a limit that it names: of that nothing
 * earlier counts. It is kept in the volume's record, and nodes
 * read it there when they stage the volume: the volume context cannot change once a
 * PersistentVolume has it.
 */
#ifndef HEARTH_DRIVER_VOLUME_MUTABLE_H
#define HEARTH_DRIVER_VOLUME_MUTABLE_H

#include <glib.h>
#include <jansson.h>
#include "driver/volume/id.h"

/* `map` is name -> value, borrowed. A new reference. INVALID_ARGUMENT names what is wrong. */
json_t *mutable_parse(GHashTable *map, VolumeType type, GError **error);
/* Whether they are about limits, too. */
gboolean mutable_has_limits(const json_t *given);
/* What is so after the changes: a new reference. */
json_t *mutable_merge(const json_t *now, const json_t *changes);
/* The first name of `given` that `now` has another value for, or none; NULL: all are the same. */
const char *mutable_difference(const json_t *given, const json_t *now);

#endif
