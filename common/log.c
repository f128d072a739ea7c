/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <ctype.h>

static const char *program_name = "hearth";
static GLogLevelFlags threshold = G_LOG_LEVEL_INFO;

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

static GLogWriterOutput write_json(GLogLevelFlags level, const GLogField *fields, gsize n,
                                   gpointer data)
{
    (void)data;
    /* A smaller flag is a graver level. */
    if ((level & G_LOG_LEVEL_MASK) > threshold)
        return G_LOG_WRITER_HANDLED;
    json_auto_t *line = json_object();
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S");
    g_autofree char *stamp =
        g_strdup_printf("%s.%03dZ", time, g_date_time_get_microsecond(now) / 1000);
    json_object_set_new(line, "time", json_string(stamp));
    json_object_set_new(line, "level", json_string(level_name(level)));
    json_object_set_new(line, "program", json_string(program_name));
    for (gsize i = 0; i < n; i++) {
        const GLogField *f = &fields[i];
        if (strcmp(f->key, "MESSAGE") == 0) {
            g_autofree char *text = f->length < 0 ? g_utf8_make_valid(f->value, -1)
                                                  : g_utf8_make_valid(f->value, (gssize)f->length);
            json_object_set_new(line, "msg", json_string(text));
        } else if (islower((unsigned char)f->key[0]) && f->length < 0) {
            g_autofree char *text = g_utf8_make_valid(f->value, -1);
            json_object_set_new(line, f->key, json_string(text));
        }
    }
    char *text = json_dumps(line, JSON_COMPACT);
    if (text) {
        flockfile(stderr);
        fputs(text, stderr);
        fputc('\n', stderr);
        funlockfile(stderr);
        free(text);
    }
    return G_LOG_WRITER_HANDLED;
}

gboolean log_init(const char *program, const char *level, GError **error)
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
    g_log_set_writer_func(write_json, NULL, NULL);
    return TRUE;
}
