/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/capacity.h"

#define MIB (G_GINT64_CONSTANT(1) << 20)

gint64 capacity_step(VolumeType type)
{
    return type == VOLUME_RBD ? MIB : 4 * MIB;
}

static gint64 round_up(gint64 size, gint64 step)
{
    return (size + step - 1) / step * step;
}

gboolean capacity_choose(CapacityRange range, VolumeType type, gint64 *bytes, GError **error)
{
    if (range.required < 0 || range.limit < 0)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "capacity_range is negative: required_bytes %" G_GINT64_FORMAT
                           ", limit_bytes %" G_GINT64_FORMAT,
                           range.required, range.limit);
    if (range.limit && range.limit < range.required)
        return hearth_fail(error, HEARTH_ERROR_OUT_OF_RANGE,
                           "capacity_range: limit_bytes %" G_GINT64_FORMAT
                           " is below required_bytes %" G_GINT64_FORMAT,
                           range.limit, range.required);
    if (range.limit && range.limit < MIB)
        return hearth_fail(error, HEARTH_ERROR_OUT_OF_RANGE,
                           "limit_bytes %" G_GINT64_FORMAT
                           " is below the smallest volume, which has 1 MiB",
                           range.limit);
    gint64 size = range.required ? range.required : CAPACITY_DEFAULT;
    const gint64 step = capacity_step(type);
    if (size > G_MAXINT64 - step)
        return hearth_fail(error, HEARTH_ERROR_OUT_OF_RANGE,
                           "required_bytes %" G_GINT64_FORMAT " is more than a volume can have",
                           size);
    size = round_up(size, step);
    *bytes = range.limit ? MIN(size, range.limit) : size;
    return TRUE;
}

gboolean capacity_fits(CapacityRange range, VolumeType type, gint64 bytes)
{
    if (range.limit)
        return bytes >= range.required && bytes <= range.limit;
    gint64 wanted;
    if (range.required == 0)
        return TRUE;
    if (!capacity_choose(range, type, &wanted, NULL))
        return FALSE;
    return bytes == wanted || bytes == round_up(wanted, capacity_step(VOLUME_CEPHFS));
}
