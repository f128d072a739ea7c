/*
 * How large a volume becomes. CSI gives a range, [required, limit], where 0 is no bound; both zero
 * means the driver's choice.
 */
#ifndef HEARTH_DRIVER_VOLUME_CAPACITY_H
#define HEARTH_DRIVER_VOLUME_CAPACITY_H

#include <glib.h>
#include "driver/error.h"

#define CAPACITY_DEFAULT (G_GINT64_CONSTANT(1) << 30)
/* What CephFS clients count a quota in: df rounds a smaller one down to nothing. */
#define CAPACITY_STEP (G_GINT64_CONSTANT(4) << 20)

typedef struct CapacityRange {
    gint64 required, limit; /* bytes */
} CapacityRange;

/*
 * The size to make: `required` rounded up to CAPACITY_STEP as far as `limit` allows.
 * INVALID_ARGUMENT: a negative bound. OUT_OF_RANGE: limit below required, or beyond what can be
 * counted.
 */
gboolean capacity_choose(CapacityRange range, gint64 *bytes, GError **error);

/*
 * Whether a volume of `bytes` answers a repeated request: any size in the range when a limit is
 * given, else exactly the size capacity_choose() gives; any when nothing is asked for.
 */
gboolean capacity_fits(CapacityRange range, gint64 bytes);

#endif
