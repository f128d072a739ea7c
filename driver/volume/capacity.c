#include "driver/volume/capacity.h"

gboolean capacity_choose(CapacityRange range, gint64 *bytes, GError **error)
{
    if (range.required < 0 || range.limit < 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "capacity_range is negative: required_bytes %" G_GINT64_FORMAT
                    ", limit_bytes %" G_GINT64_FORMAT,
                    range.required, range.limit);
        return FALSE;
    }
    if (range.limit && range.limit < range.required) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_OUT_OF_RANGE,
                    "capacity_range: limit_bytes %" G_GINT64_FORMAT
                    " is below required_bytes %" G_GINT64_FORMAT,
                    range.limit, range.required);
        return FALSE;
    }
    gint64 size = range.required ? range.required : CAPACITY_DEFAULT;
    if (size > G_MAXINT64 - CAPACITY_STEP) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_OUT_OF_RANGE,
                    "required_bytes %" G_GINT64_FORMAT " is more than a volume can have", size);
        return FALSE;
    }
    size = (size + CAPACITY_STEP - 1) / CAPACITY_STEP * CAPACITY_STEP;
    *bytes = range.limit ? MIN(size, range.limit) : size;
    return TRUE;
}

gboolean capacity_fits(CapacityRange range, gint64 bytes)
{
    if (range.limit)
        return bytes >= range.required && bytes <= range.limit;
    gint64 wanted;
    return range.required == 0 || (capacity_choose(range, &wanted, NULL) && wanted == bytes);
}
