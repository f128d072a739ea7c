/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as the API writes them: RFC 3339 in UTC, seconds in metav1.Time, exactly six digits of
 * a second in metav1.MicroTime (a Lease's renewTime; other forms of that are refused).
 */
#ifndef HEARTH_DRIVER_KUBE_TIME_H
#define HEARTH_DRIVER_KUBE_TIME_H

#include <glib.h>

/* unix_us: microseconds since 1970, as g_get_real_time() tells. */
char *kube_time_format(gint64 unix_us);
char *kube_time_format_micro(gint64 unix_us);
/* Either form, any offset; FALSE for anything else. */
gboolean kube_time_parse(const char *text, gint64 *unix_us);

#endif
