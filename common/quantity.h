/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as Kubernetes and people write them. */
#ifndef HEARTH_COMMON_QUANTITY_H
#define HEARTH_COMMON_QUANTITY_H

#include <glib.h>

/* "0", "512", "1.5Ki", "120Gi": three digits or so; the caller's. */
static inline char *quantity_text(guint64 bytes)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    double value = (double)bytes;
    guint unit = 0;
    for (; value >= 1024 && unit + 1 < G_N_ELEMENTS(units); unit++)
        value /= 1024;
    return g_strdup_printf(unit && value < 100 ? "%.1f%s" : "%.0f%s", value, units[unit]);
}

#endif
