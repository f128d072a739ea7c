/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics/openmetrics.h"
#include <string.h>

struct OpenMetrics {
    GString *text;
    OpenMetricsKind kind;
    const char *name;
};

OpenMetrics *openmetrics_new(void)
{
    OpenMetrics *m = g_new0(OpenMetrics, 1);
    m->text = g_string_sized_new(16384);
    return m;
}

GBytes *openmetrics_end(OpenMetrics *m)
{
    g_string_append(m->text, "# EOF\n");
    GBytes *bytes = g_string_free_to_bytes(m->text);
    g_free(m);
    return bytes;
}

void openmetrics_family(OpenMetrics *m, OpenMetricsKind kind, const char *name, const char *help)
{
    static const char *const kinds[] = {"counter", "gauge", "info", "histogram"};
    m->kind = kind;
    m->name = name;
    g_string_append_printf(m->text, "# TYPE %s %s\n", name, kinds[kind]);
    if (g_str_has_suffix(name, "_seconds"))
        g_string_append_printf(m->text, "# UNIT %s seconds\n", name);
    else if (g_str_has_suffix(name, "_bytes"))
        g_string_append_printf(m->text, "# UNIT %s bytes\n", name);
    g_string_append_printf(m->text, "# HELP %s %s\n", name, help);
}

static void append_value(GString *text, const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value ? value : "", -1);
    for (const char *c = valid; *c; c++) {
        if (*c == '\n')
            g_string_append(text, "\\n");
        else if (*c == '"' || *c == '\\')
            g_string_append_printf(text, "\\%c", *c);
        else
            g_string_append_c(text, *c);
    }
}

/* The caller's; without the brackets. */
static char *labels_of(va_list args)
{
    GString *text = g_string_new(NULL);
    for (const char *name; (name = va_arg(args, const char *));) {
        g_string_append_printf(text, "%s%s=\"", text->len ? "," : "", name);
        append_value(text, va_arg(args, const char *));
        g_string_append_c(text, '"');
    }
    return g_string_free(text, FALSE);
}

static void begin_sample(OpenMetrics *m, const char *suffix, const char *labels)
{
    g_string_append_printf(m->text, "%s%s", m->name, suffix);
    if (*labels)
        g_string_append_printf(m->text, "{%s}", labels);
}

static const char *suffix_of(OpenMetricsKind kind)
{
    switch (kind) {
    case OPENMETRICS_COUNTER:
        return "_total";
    case OPENMETRICS_INFO:
        return "_info";
    default:
        return "";
    }
}

void openmetrics_add(OpenMetrics *m, guint64 value, ...)
{
    va_list args;
    va_start(args, value);
    g_autofree char *labels = labels_of(args);
    va_end(args);
    begin_sample(m, suffix_of(m->kind), labels);
    g_string_append_printf(m->text, " %" G_GUINT64_FORMAT "\n", value);
}

static void append_number(GString *text, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(text, " %s\n", g_ascii_formatd(number, sizeof(number), "%.6f", value));
}

void openmetrics_add_seconds(OpenMetrics *m, double value, ...)
{
    va_list args;
    va_start(args, value);
    g_autofree char *labels = labels_of(args);
    va_end(args);
    begin_sample(m, suffix_of(m->kind), labels);
    append_number(m->text, value);
}

void openmetrics_add_histogram(OpenMetrics *m, const Histogram *h, ...)
{
    va_list args;
    guint64 count = 0;
    va_start(args, h);
    g_autofree char *labels = labels_of(args);
    va_end(args);
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        char bound[G_ASCII_DTOSTR_BUF_SIZE] = "+Inf";
        if (i < HISTOGRAM_BOUNDS)
            g_ascii_formatd(bound, sizeof(bound), "%g", histogram_bounds_us[i] / 1e6);
        count += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        g_string_append_printf(m->text, "%s_bucket{%s%sle=\"%s\"} %" G_GUINT64_FORMAT "\n", m->name,
                               labels, *labels ? "," : "", bound, count);
    }
    begin_sample(m, "_count", labels);
    g_string_append_printf(m->text, " %" G_GUINT64_FORMAT "\n", count);
    begin_sample(m, "_sum", labels);
    append_number(m->text, (double)atomic_load_explicit(&h->sum_us, memory_order_relaxed) / 1e6);
}
