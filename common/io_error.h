/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of files and of Ceph's libraries, which have no code of CSI: domain G_IO_ERROR. */
#ifndef HEARTH_COMMON_IO_ERROR_H
#define HEARTH_COMMON_IO_ERROR_H

#include <gio/gio.h>

/* Sets the error and returns FALSE, as hearth_fail() does. */
G_GNUC_PRINTF(3, 4)
static inline gboolean io_fail(GError **error, GIOErrorEnum code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, G_IO_ERROR, (gint)code, text);
    return FALSE;
}

#endif
