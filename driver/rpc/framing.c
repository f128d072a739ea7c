/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers here see bytes of the network: lengths are explicit and no terminator is assumed. */
#include "driver/rpc/framing.h"

#include <string.h>

void rpc_prefix_write(guint8 prefix[RPC_PREFIX_BYTES], guint32 length)
{
    prefix[0] = 0;
    prefix[1] = length >> 24;
    prefix[2] = length >> 16;
    prefix[3] = length >> 8;
    prefix[4] = length;
}

guint32 rpc_prefix_length(const guint8 prefix[RPC_PREFIX_BYTES])
{
    return (guint32)prefix[1] << 24 | (guint32)prefix[2] << 16 | (guint32)prefix[3] << 8 |
           prefix[4];
}

gboolean rpc_content_type_ok(const char *value, size_t length)
{
    static const char base[] = "application/grpc", proto[] = "+proto";
    if (length < sizeof(base) - 1 || g_ascii_strncasecmp(value, base, sizeof(base) - 1) != 0)
        return FALSE;
    value += sizeof(base) - 1;
    length -= sizeof(base) - 1;
    if (length >= sizeof(proto) - 1 && g_ascii_strncasecmp(value, proto, sizeof(proto) - 1) == 0) {
        value += sizeof(proto) - 1;
        length -= sizeof(proto) - 1;
    }
    return length == 0 || *value == ';' || *value == ' ';
}

gboolean rpc_timeout_parse(const char *value, size_t length, gint64 *timeout_us)
{
    if (length < 2 || length > 9)
        return FALSE;
    gint64 number = 0;
    for (size_t i = 0; i < length - 1; i++) {
        if (!g_ascii_isdigit(value[i]))
            return FALSE;
        number = number * 10 + (value[i] - '0');
    }
    /* 99,999,999 hours are 3.6e17 µs: no overflow. */
    switch (value[length - 1]) {
    case 'H':
        *timeout_us = number * 3600 * G_USEC_PER_SEC;
        return TRUE;
    case 'M':
        *timeout_us = number * 60 * G_USEC_PER_SEC;
        return TRUE;
    case 'S':
        *timeout_us = number * G_USEC_PER_SEC;
        return TRUE;
    case 'm':
        *timeout_us = number * 1000;
        return TRUE;
    case 'u':
        *timeout_us = number;
        return TRUE;
    case 'n':
        *timeout_us = (number + 999) / 1000;
        return TRUE;
    default:
        return FALSE;
    }
}

void rpc_timeout_format(gint64 timeout_ms, char out[16])
{
    static const struct {
        gint64 ms;
        char unit;
    } units[] = {{1, 'm'}, {1000, 'S'}, {60 * 1000, 'M'}, {3600 * 1000, 'H'}};
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        gint64 number = timeout_ms / units[i].ms + (timeout_ms % units[i].ms != 0);
        if (number <= 99999999) {
            g_snprintf(out, 16, "%d%c", (int)number, units[i].unit);
            return;
        }
    }
    g_strlcpy(out, "99999999H", 16);
}

char *rpc_percent_encode(const char *message)
{
    g_autofree char *valid = g_utf8_make_valid(message, -1);
    GString *out = g_string_new(NULL);
    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        size_t length = g_utf8_next_char(p) - p;
        if (out->len + 3 * length > RPC_MESSAGE_MAX_BYTES)
            break;
        for (size_t i = 0; i < length; i++) {
            guint8 byte = p[i];
            if (byte < 0x20 || byte > 0x7e || byte == '%' || (byte == ' ' && out->len == 0))
                g_string_append_printf(out, "%%%02X", byte);
            else
                g_string_append_c(out, byte);
        }
    }
    /* A header's value may not begin or end with a blank: nghttp2 never sends such a value. */
    if (g_str_has_suffix(out->str, " ")) {
        g_string_truncate(out, out->len - 1);
        g_string_append(out, "%20");
    }
    return g_string_free(out, FALSE);
}

char *rpc_percent_decode(const char *value, size_t length)
{
    g_autofree char *decoded = g_malloc(length + 1);
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (value[i] == '%' && length - i > 2 && g_ascii_isxdigit(value[i + 1]) &&
            g_ascii_isxdigit(value[i + 2])) {
            decoded[n++] =
                g_ascii_xdigit_value(value[i + 1]) << 4 | g_ascii_xdigit_value(value[i + 2]);
            i += 2;
        } else {
            decoded[n++] = value[i];
        }
    }
    return g_utf8_make_valid(decoded, n);
}

const char *rpc_code_name(guint code)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return code < G_N_ELEMENTS(names) ? names[code] : "UNKNOWN";
}
