/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large a volume becomes. CSI gives a range, [required, limit], where 0 is no bound; both zero
 * means the driver's choice.
 */
#ifndef HEARTH_DRIVER_VOLUME_CAPACITY_H
#define HEARTH_DRIVER_VOLUME_CAPACITY_H

#include <glib.h>
#include "common/error.h"
#include "driver/volume/id.h"

#define CAPACITY_DEFAULT (G_GINT64_CONSTANT(1) << 30)

typedef struct CapacityRange {
    gint64 required, limit; /* bytes */
} CapacityRange;

/* What sizes of a type are multiples of, and the smallest one. Of CephFS it is what clients count a
 * quota in: df rounds a smaller one down to nothing. */
gint64 capacity_step(VolumeType type);

/*
 * The size to make: `required` rounded up to the type's step as far as `limit` allows.
 * INVALID_ARGUMENT: a negative bound. OUT_OF_RANGE: limit below required or below 1 MiB, or beyond
 * what can be counted.
 */
gboolean capacity_choose(CapacityRange range, VolumeType type, gint64 *bytes, GError **error);

/*
 * Whether a volume of `bytes` answers a repeated request: any size in the range when a limit is
 * given, else exactly the size capacity_choose() gives, or gave in releases that rounded all types
 * to the step of CephFS; any when nothing is asked for.
 */
gboolean capacity_fits(CapacityRange range, VolumeType type, gint64 bytes);

#endif
