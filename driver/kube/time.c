/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/time.h"
#include <string.h>

static char *format(gint64 unix_us, const char *form)
{
    g_autoptr(GDateTime) seconds = g_date_time_new_from_unix_utc(unix_us / G_USEC_PER_SEC);
    g_autoptr(GDateTime) at = g_date_time_add(seconds, unix_us % G_USEC_PER_SEC);
    return g_date_time_format(at, form);
}

char *kube_time_format(gint64 unix_us)
{
    return format(unix_us, "%Y-%m-%dT%H:%M:%SZ");
}

char *kube_time_format_micro(gint64 unix_us)
{
    return format(unix_us, "%Y-%m-%dT%H:%M:%S.%fZ");
}

gboolean kube_time_parse(const char *text, gint64 *unix_us)
{
    /* GLib also takes ISO 8601's weeks, ordinals and times without a zone. */
    if (strlen(text) < strlen("2006-01-02T15:04:05Z") || text[4] != '-' || text[7] != '-' ||
        text[10] != 'T' || text[13] != ':')
        return FALSE;
    g_autoptr(GDateTime) at = g_date_time_new_from_iso8601(text, NULL);
    if (!at)
        return FALSE;
    *unix_us = g_date_time_to_unix(at) * G_USEC_PER_SEC + g_date_time_get_microsecond(at);
    return TRUE;
}
