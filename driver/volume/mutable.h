/*
 * What may change of a volume while it is there (CSI's mutable parameters, Kubernetes'
 * VolumeAttributesClass), as a JSON object of the names given, values in one spelling:
 *
 *     cacheQuota   bytes of a node's cache it may take; 0: as much as there is room
 *     warm         "onStage": fetched into a node's cache when it is staged there; "none"
 *     readIopsPerSecond, writeIopsPerSecond, readBytesPerSecond, writeBytesPerSecond
 *                  limits of an image, 0: none; for CephFS nothing enforces any, so they are
 * refused
 *
 * A change sets what it names and leaves the rest. It is kept in the volume's record, and nodes
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
/* The limits among them, 0 to lift one: a new reference, NULL when none is named. */
json_t *mutable_limits(const json_t *given);
/* The first name of `given` that `now` has another value for, or none; NULL: all are the same. */
const char *mutable_difference(const json_t *given, const json_t *now);

#endif
