/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <ctype.h>

static const char *program_name = "hearth";
static GLogLevelFlags threshold = G_LOG_LEVEL_INFO;
static gboolean as_text;

static const char *level_name(GLogLevelFlags level)
{
    if (level & G_LOG_LEVEL_ERROR || level & G_LOG_LEVEL_CRITICAL)
        return "error";
    if (level & G_LOG_LEVEL_WARNING)
        return "warning";
    if (level & G_LOG_LEVEL_DEBUG)
        return "debug";
    return "info";
}

/* Numbers of a call, which stay numbers in JSON. */
static gboolean is_number(const char *key, const char *value)
{
    static const char *const keys[] = {"ms",    "request", "bytes", "seconds", "bytesPerSec",
                                       "files", "job",     "pid",   "uid",     NULL};
    char *end;
    if (!g_strv_contains(keys, key) || !g_ascii_isdigit(value[0]))
        return FALSE;
    g_ascii_strtod(value, &end);
    return *end == '\0';
}

static json_t *json_value(const char *key, const char *value)
{
    if (!is_number(key, value))
        return json_string(value);
    if (!strchr(value, '.'))
        return json_integer((json_int_t)g_ascii_strtoll(value, NULL, 10));
    return json_real(g_ascii_strtod(value, NULL));
}

/* The value as UTF-8, the caller's; NULL: it is no member of a line. */
static char *text_of(const GLogField *field)
{
    if (strcmp(field->key, "MESSAGE") != 0 &&
        (!islower((unsigned char)field->key[0]) || field->length >= 0))
        return NULL;
    return g_utf8_make_valid(field->value, field->length < 0 ? -1 : (gssize)field->length);
}

static void write_line(const char *line)
{
    flockfile(stderr);
    fputs(line, stderr);
    fputc('\n', stderr);
    funlockfile(stderr);
}

static void write_json(GLogLevelFlags level, const GLogField *fields, gsize n)
{
    json_auto_t *line = json_object();
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S");
    g_autofree char *stamp =
        g_strdup_printf("%s.%03dZ", time, g_date_time_get_microsecond(now) / 1000);
    json_object_set_new(line, "time", json_string(stamp));
    json_object_set_new(line, "level", json_string(level_name(level)));
    json_object_set_new(line, "program", json_string(program_name));
    for (gsize i = 0; i < n; i++) {
        g_autofree char *text = text_of(&fields[i]);
        if (!text)
            continue;
        if (islower((unsigned char)fields[i].key[0]))
            json_object_set_new(line, fields[i].key, json_value(fields[i].key, text));
        else
            json_object_set_new(line, "msg", json_string(text));
    }
    /* 39.1 is that, and not the 17 digits of its nearest double. */
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text)
        write_line(text);
    free(text);
}

/* Without control characters, which could forge a line or command a terminal. */
static void append_plain(GString *line, const char *text)
{
    for (const char *p = text; *p; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);
        if (g_unichar_iscntrl(c))
            g_string_append_printf(line, "\\x%02x", (unsigned)c);
        else
            g_string_append_unichar(line, c);
    }
}

static void append_field(GString *line, const char *key, const char *text)
{
    g_autofree char *escaped = g_strescape(text, NULL);
    const gboolean quoted = !*text || strcmp(escaped, text) != 0 || strpbrk(text, " =");
    g_string_append_printf(line, " %s=", key);
    if (quoted) {
        g_auto(GStrv) parts = g_strsplit(text, "\"", -1);
        g_autofree char *safe = g_strjoinv("\\\"", parts);
        g_string_append_c(line, '"');
        append_plain(line, safe);
        g_string_append_c(line, '"');
    } else {
        append_plain(line, text);
    }
}

/* As klog: "I1127 14:33:07.123456 hearthd] MESSAGE key=value". */
static void write_text(GLogLevelFlags level, const GLogField *fields, gsize n)
{
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%m%d %H:%M:%S");
    g_string_append_printf(line, "%c%s.%06d %s]", g_ascii_toupper(level_name(level)[0]), time,
                           g_date_time_get_microsecond(now), program_name);
    for (gsize i = 0; i < n; i++) {
        g_autofree char *text = text_of(&fields[i]);
        if (!text || islower((unsigned char)fields[i].key[0]))
            continue;
        g_string_append_c(line, ' ');
        append_plain(line, text);
    }
    for (gsize i = 0; i < n; i++) {
        g_autofree char *text = text_of(&fields[i]);
        if (text && islower((unsigned char)fields[i].key[0]))
            append_field(line, fields[i].key, text);
    }
    write_line(line->str);
}

static GLogWriterOutput write_log(GLogLevelFlags level, const GLogField *fields, gsize n,
                                  gpointer data)
{
    (void)data;
    /* A smaller flag is a graver level. */
    if ((level & G_LOG_LEVEL_MASK) > threshold)
        return G_LOG_WRITER_HANDLED;
    if (as_text)
        write_text(level, fields, n);
    else
        write_json(level, fields, n);
    return G_LOG_WRITER_HANDLED;
}

gboolean log_init(const char *program, const char *level, const char *format, GError **error)
{
    program_name = program;
    if (!level || strcmp(level, "info") == 0)
        threshold = G_LOG_LEVEL_INFO;
    else if (strcmp(level, "error") == 0)
        threshold = G_LOG_LEVEL_CRITICAL;
    else if (strcmp(level, "warning") == 0)
        threshold = G_LOG_LEVEL_WARNING;
    else if (strcmp(level, "debug") == 0)
        threshold = G_LOG_LEVEL_DEBUG;
    else {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--log-level=%s: use error, warning, info or debug", level);
        return FALSE;
    }
    as_text = g_strcmp0(format, "text") == 0;
    if (format && !as_text && strcmp(format, "json") != 0) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--log-format=%s: use json or text", format);
        return FALSE;
    }
    g_log_set_writer_func(write_log, NULL, NULL);
    return TRUE;
}
