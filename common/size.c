/* SPDX-License-Identifier: Apache-2.0 */
#include "common/size.h"
#include <gio/gio.h>
#include <string.h>

static const char prefixes[] = "KMGTP";

/* What a suffix multiplies by; 0: it is none. */
static uint64_t suffix_factor(const char *suffix)
{
    if (suffix[0] == '\0' || strcmp(suffix, "B") == 0)
        return 1;
    const char *prefix = strchr(prefixes, g_ascii_toupper(suffix[0]));
    if (!prefix)
        return 0;
    gboolean binary = suffix[1] == 'i';
    const char *rest = suffix + 1 + binary;
    if (rest[0] != '\0' && strcmp(rest, "B") != 0)
        return 0;
    uint64_t factor = 1;
    for (const char *p = prefixes; p <= prefix; p++)
        factor *= binary ? 1024 : 1000;
    return factor;
}

gboolean size_parse(const char *what, const char *text, uint64_t *bytes, GError **error)
{
    const char *p = text;
    unsigned __int128 digits = 0, scale = 1;
    gboolean valid = g_ascii_isdigit(*p);
    for (; g_ascii_isdigit(*p) && digits <= G_MAXINT64; p++)
        digits = digits * 10 + (unsigned)(*p - '0');
    if (valid && *p == '.') {
        valid = g_ascii_isdigit(p[1]);
        for (p++; g_ascii_isdigit(*p) && scale < 1000000000; p++) {
            digits = digits * 10 + (unsigned)(*p - '0');
            scale *= 10;
        }
    }
    uint64_t factor = valid ? suffix_factor(p) : 0;
    if (factor == 0 || digits / scale * factor > G_MAXINT64) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "%s=%s: no size; write a number of bytes, or one with K, M, G, T (powers of "
                    "1000) or Ki, Mi, Gi, Ti (powers of 1024), such as 500G or 1.5Ti",
                    what, text);
        return FALSE;
    }
    *bytes = (uint64_t)(digits * factor / scale);
    return TRUE;
}

char *size_format(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit < G_N_ELEMENTS(units) - 1) {
        value /= 1024;
        unit++;
    }
    return unit ? g_strdup_printf("%.1f %s", value, units[unit])
                : g_strdup_printf("%" G_GUINT64_FORMAT " B", bytes);
}
