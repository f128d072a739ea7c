/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A field becomes a set of bits; a time is looked for day by day, which is quick enough for what is
 * asked once a minute (eight years are 2,923 looks at three sets) and has no special cases.
 */
#include "driver/warmup/cron.h"
#include <string.h>
#include "common/error.h"

#define DAY_S 86400
#define MINUTES_A_DAY 1440
/* From one 29 February to the next, over a century's year that is no leap year. */
#define SEARCH_DAYS (8 * 365 + 3)
/* GDate's number of 1970-01-01, and the first second of the year 10000. */
#define JULIAN_1970 719163
#define END_S G_GINT64_CONSTANT(253402300800)

typedef struct Field {
    const char *name, *example;
    int min, max;
    const char *const *names; /* three letters each, from min on; NULL: none */
    gboolean is_day;
} Field;

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };
static const Field fields[FIELDS] = {
    {"minute", "0 to 59, */15 or 0,30", 0, 59, NULL, FALSE},
    {"hour", "0 to 23, */6 or 8-18", 0, 23, NULL, FALSE},
    {"day of month", "1 to 31, */2 or 1,15", 1, 31, NULL, TRUE},
    {"month", "1 to 12, JAN to DEC or */3", 1, 12, month_names, FALSE},
    {"day of week", "0 to 7, SUN to SAT or MON-FRI", 0, 7, weekday_names, TRUE},
};

static const struct {
    const char *name, *text;
} macros[] = {{"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
              {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
              {"@annually", "0 0 1 1 *"}};

/* ---- parsing ---- */

/* Short enough for a message, in valid UTF-8; the caller's. */
static char *quoted(const char *text)
{
    g_autofree char *head = g_strndup(text, 64);
    return g_utf8_make_valid(head, -1);
}

static gboolean number(const char *text, gsize length, int *value)
{
    *value = 0;
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isdigit(text[i]) || i == 4)
            return FALSE;
        *value = *value * 10 + (text[i] - '0');
    }
    return length > 0;
}

/* One value of the field; FALSE also when it is out of its range. */
static gboolean value_of(const Field *field, const char *text, gsize length, int *value)
{
    for (int i = 0; field->names && field->names[i]; i++) {
        if (length == 3 && g_ascii_strncasecmp(text, field->names[i], 3) == 0) {
            *value = field->min + i;
            return TRUE;
        }
    }
    return number(text, length, value) && *value >= field->min && *value <= field->max;
}

/* One of a list: "*", "a", "a-b", with or without "/n". star: it says any day. */
static gboolean parse_item(const Field *field, const char *item, guint64 *bits, gboolean *star)
{
    const char *slash = strchr(item, '/');
    const gsize length = slash ? (gsize)(slash - item) : strlen(item);
    const char *dash = memchr(item, '-', length);
    int from = field->min, to = field->max, step = 1;
    gboolean any = length == 1 && (*item == '*' || (*item == '?' && field->is_day));
    if (slash && (!number(slash + 1, strlen(slash + 1), &step) || step == 0))
        return FALSE;
    if (!any) {
        const gsize first = dash ? (gsize)(dash - item) : length;
        if (!value_of(field, item, first, &from))
            return FALSE;
        if (dash && !value_of(field, dash + 1, length - first - 1, &to))
            return FALSE;
        /* SAT-SUN: a week that ends with it. */
        if (dash && field->names == weekday_names && to == 0 && from > 0)
            to = 7;
        if (!dash && !slash)
            to = from;
    } else if (field->max == 7) {
        to = 6;
    }
    if (from > to)
        return FALSE;
    for (int value = from; value <= to; value += step)
        *bits |= G_GUINT64_CONSTANT(1) << value;
    *star |= any && step == 1;
    return TRUE;
}

static gboolean parse_field(const Field *field, const char *text, guint64 *bits, gboolean *star,
                            GError **error)
{
    g_auto(GStrv) items = g_strsplit(text, ",", -1);
    *bits = 0;
    *star = FALSE;
    for (char **item = items; *item; item++) {
        if (parse_item(field, *item, bits, star))
            continue;
        g_autofree char *shown = quoted(text);
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "%s \"%s\" of the schedule is none; use *, or %s", field->name, shown,
                           field->example);
    }
    return TRUE;
}

static const char *macro(const char *text, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(macros); i++) {
        if (strcmp(text, macros[i].name) == 0)
            return macros[i].text;
    }
    g_autofree char *shown = quoted(text);
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                "schedule \"%s\": use @hourly, @daily, @midnight, @weekly, @monthly, @yearly or "
                "five fields such as 30 2 * * MON-FRI",
                shown);
    return NULL;
}

/* The fields of the text; several blanks separate like one. */
static char **split(const char *text)
{
    char **parts = g_strsplit_set(text, " \t", -1);
    guint n = 0;
    for (guint i = 0; parts[i]; i++) {
        if (*parts[i])
            parts[n++] = parts[i];
        else
            g_free(parts[i]);
    }
    parts[n] = NULL;
    return parts;
}

gboolean cron_parse(const char *text, Cron *cron, GError **error)
{
    g_auto(GStrv) parts = split(text);
    guint64 bits[FIELDS];
    gboolean star[FIELDS];
    if (parts[0] && *parts[0] == '@' && !parts[1]) {
        const char *meant = macro(parts[0], error);
        if (!meant)
            return FALSE;
        g_strfreev(parts);
        parts = split(meant);
    }
    if (g_strv_length(parts) != FIELDS) {
        g_autofree char *shown = quoted(text);
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "schedule \"%s\" has %u fields and needs five, in UTC: minute, hour, day of "
            "month, month, day of week; such as 30 2 * * MON-FRI",
            shown, g_strv_length(parts));
    }
    for (int i = 0; i < FIELDS; i++) {
        if (!parse_field(&fields[i], parts[i], &bits[i], &star[i], error))
            return FALSE;
    }
    *cron = (Cron){.minutes = bits[MINUTE],
                   .hours = (guint32)bits[HOUR],
                   .days = (guint32)bits[DAY],
                   .months = (guint32)bits[MONTH],
                   .weekdays = (guint32)(bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f,
                   .either_day = !star[DAY] && !star[WEEKDAY]};
    return TRUE;
}

/* ---- times ---- */

static gboolean has(guint64 set, guint value)
{
    return (set >> value & 1) != 0;
}

/* day: since 1970. */
static gboolean day_is_of(const Cron *cron, gint64 day)
{
    GDate date;
    g_date_clear(&date, 1);
    g_date_set_julian(&date, (guint32)(day + JULIAN_1970));
    const gboolean of_month = has(cron->days, g_date_get_day(&date));
    const gboolean of_week = has(cron->weekdays, (guint)g_date_get_weekday(&date) % 7);
    return has(cron->months, (guint)g_date_get_month(&date)) &&
           (cron->either_day ? of_month || of_week : of_month && of_week);
}

/* The first minute of the day from `minute` on, in steps of 1 or -1; -1: none. */
static int minute_of_day(const Cron *cron, int minute, int step)
{
    for (; minute >= 0 && minute < MINUTES_A_DAY; minute += step) {
        if (has(cron->hours, (guint)minute / 60) && has(cron->minutes, (guint)minute % 60))
            return minute;
    }
    return -1;
}

static gint64 search(const Cron *cron, gint64 from_minute, int step)
{
    gint64 day = from_minute / MINUTES_A_DAY;
    int minute = (int)(from_minute % MINUTES_A_DAY);
    for (int i = 0; i <= SEARCH_DAYS && day >= 0 && day < END_S / DAY_S; i++, day += step) {
        const int found = day_is_of(cron, day) ? minute_of_day(cron, minute, step) : -1;
        if (found >= 0)
            return day * DAY_S + found * 60;
        minute = step > 0 ? 0 : MINUTES_A_DAY - 1;
    }
    return -1;
}

gint64 cron_next(const Cron *cron, gint64 after_s)
{
    if (after_s >= END_S)
        return -1;
    return search(cron, after_s < 0 ? 0 : after_s / 60 + 1, 1);
}

gint64 cron_last(const Cron *cron, gint64 not_after_s, gint64 since_s)
{
    if (not_after_s < 0)
        return -1;
    const gint64 last = search(cron, MIN(not_after_s, END_S - 1) / 60, -1);
    return last > since_s ? last : -1;
}
