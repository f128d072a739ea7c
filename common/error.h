/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the CSI side. A code says what kind of failure the caller met, in gRPC's vocabulary,
 * whose numbers it has (https://grpc.github.io/grpc/core/md_doc_statuscodes.html), so that
 * rpc/ sends it as it is. Messages name the value and the fix and never hold a secret.
 */
#ifndef HEARTH_COMMON_ERROR_H
#define HEARTH_COMMON_ERROR_H

#include <glib.h>

typedef enum HearthError {
    HEARTH_ERROR_CANCELLED = 1,
    HEARTH_ERROR_UNKNOWN = 2,
    HEARTH_ERROR_INVALID_ARGUMENT = 3,
    HEARTH_ERROR_DEADLINE_EXCEEDED = 4,
    HEARTH_ERROR_NOT_FOUND = 5,
    HEARTH_ERROR_ALREADY_EXISTS = 6,
    HEARTH_ERROR_PERMISSION_DENIED = 7,
    HEARTH_ERROR_RESOURCE_EXHAUSTED = 8,
    HEARTH_ERROR_FAILED_PRECONDITION = 9,
    HEARTH_ERROR_ABORTED = 10,
    HEARTH_ERROR_OUT_OF_RANGE = 11,
    HEARTH_ERROR_UNIMPLEMENTED = 12,
    HEARTH_ERROR_INTERNAL = 13,
    HEARTH_ERROR_UNAVAILABLE = 14,
    HEARTH_ERROR_DATA_LOSS = 15,
    HEARTH_ERROR_UNAUTHENTICATED = 16,
} HearthError;

#define HEARTH_ERROR (hearth_error_quark())
static inline GQuark hearth_error_quark(void)
{
    return g_quark_from_static_string("hearth-error");
}

/* Sets the error and returns FALSE, so that a caller can return with it. */
G_GNUC_PRINTF(3, 4)
static inline gboolean hearth_fail(GError **error, HearthError code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, HEARTH_ERROR, (gint)code, text);
    return FALSE;
}

#endif
