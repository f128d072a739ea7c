/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bar takes its parts by worth while they fit, and shows them in another order: a reader of a
 * narrow terminal first wants to know how far it is and how long it takes.
 */
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/client/text.h"
#include "cmd/hearthctl/report/table.h"
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"
#include <string.h>

#define BAR_MIN 10u
#define BAR_MAX 40u
#define BAR_EDGES 3 /* "[", "]" and a blank */
#define GAP 2

enum { PART_PERCENT, PART_BYTES, PART_RATE, PART_LEFT, PART_FAILED, PART_FILES, PARTS };

static uint64_t number(const json_t *object, const char *name)
{
    const json_int_t n = json_integer_value(json_object_get(object, name));
    return n > 0 ? (uint64_t)n : 0;
}

static gboolean is_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

static const char *string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* An earlier hearthd has only the ID. The caller's. */
static char *name_of(const json_t *job)
{
    const char *name = string(job, "name");
    return text_printable(*name ? name : string(job, "volume"));
}

uint64_t progress_rate(const json_t *job)
{
    const uint64_t ms = number(job, "elapsedMs");
    const uint64_t done = number(job, "bytesDone"), held = number(job, "bytesHeld");
    return ms && done > held ? (done - held) * 1000 / ms : 0;
}

uint64_t progress_left_sec(const json_t *job)
{
    const uint64_t done = number(job, "bytesDone"), total = number(job, "bytesTotal");
    const uint64_t rate = progress_rate(job);
    return rate && total > done ? (total - done) / rate + 1 : 0;
}

/* Before anything is fetched; NULL: it is past that. */
static char *preparing(const json_t *job)
{
    g_autofree char *bytes = size_format(number(job, "bytesTotal"));
    const uint64_t files = number(job, "filesTotal");
    if (is_true(job, "scanning"))
        return g_strdup_printf("scanning: %" G_GUINT64_FORMAT " file%s, %s so far", files,
                               words_plural(files), bytes);
    if (is_true(job, "check"))
        return g_strdup_printf("checking: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                               " files held so far",
                               number(job, "filesDone"), files);
    return NULL;
}

/* Parts without a value stay NULL. */
static void make_parts(const json_t *job, char **parts)
{
    const uint64_t done = number(job, "bytesDone"), total = number(job, "bytesTotal");
    const uint64_t failed = number(job, "filesFailed"), left = progress_left_sec(job);
    g_autofree char *rate = size_format(progress_rate(job));
    g_autofree char *percent = total ? words_percent(done, total) : g_strdup("0%");
    parts[PART_PERCENT] = g_strdup_printf("%4s", percent);
    parts[PART_BYTES] = words_part(done, total);
    parts[PART_RATE] = g_strconcat(rate, "/s", NULL);
    if (left) {
        g_autofree char *time = words_duration(left);
        parts[PART_LEFT] = g_strconcat(time, " left", NULL);
    }
    if (failed)
        parts[PART_FAILED] = g_strdup_printf("%" G_GUINT64_FORMAT " failed", failed);
    parts[PART_FILES] = g_strdup_printf("%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT " files",
                                        number(job, "filesDone"), number(job, "filesTotal"));
}

static void free_parts(char **parts)
{
    for (int i = 0; i < PARTS; i++)
        g_free(parts[i]);
}

static void append_bar(GString *line, const json_t *job, unsigned width)
{
    const uint64_t done = number(job, "bytesDone"), total = number(job, "bytesTotal");
    const double share = total ? MIN(1.0, (double)done / (double)total) : 0;
    const unsigned full = (unsigned)(share * width);
    g_string_append_c(line, '[');
    for (unsigned i = 0; i < width; i++)
        g_string_append_c(line, i < full ? '#' : '-');
    g_string_append(line, "] ");
}

char *progress_bar(const json_t *job, unsigned columns)
{
    static const int by_worth[PARTS] = {PART_PERCENT, PART_LEFT,   PART_RATE,
                                        PART_BYTES,   PART_FAILED, PART_FILES};
    const unsigned room = columns > 1 ? columns - 1 : 1;
    g_autofree char *text = preparing(job);
    if (text)
        return table_shorten(text, room);
    char *parts[PARTS] = {NULL};
    gboolean shown[PARTS] = {FALSE};
    unsigned used = 0, bar = 0;
    make_parts(job, parts);
    for (int i = 0; i < PARTS; i++) {
        const int part = by_worth[i];
        if (part == PART_FILES && room >= used + BAR_MIN + BAR_EDGES)
            bar = MIN(room - used - BAR_EDGES, BAR_MAX);
        const unsigned width = parts[part] ? (unsigned)strlen(parts[part]) + (used ? GAP : 0) : 0;
        const unsigned kept = bar ? bar + BAR_EDGES : 0;
        shown[part] = width && used + width + kept <= room;
        used += shown[part] ? width : 0;
    }
    g_autoptr(GString) line = g_string_new(NULL);
    if (bar)
        append_bar(line, job, bar);
    const char *gap = "";
    for (int i = 0; i < PARTS; i++) {
        if (!shown[i])
            continue;
        g_string_append_printf(line, "%s%s", gap, parts[i]);
        gap = "  ";
    }
    free_parts(parts);
    return table_shorten(line->str, room);
}

char *progress_text(const json_t *job)
{
    static const int order[] = {PART_FILES, PART_BYTES, PART_RATE, PART_FAILED, PART_LEFT};
    char *text = preparing(job);
    if (text)
        return text;
    char *parts[PARTS] = {NULL};
    make_parts(job, parts);
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(order); i++)
        if (parts[order[i]])
            g_string_append_printf(line, "%s%s", line->len ? ", " : "", parts[order[i]]);
    free_parts(parts);
    return g_strdup(line->str);
}

static char *check_result(const json_t *job)
{
    const uint64_t held = number(job, "bytesDone"), total = number(job, "bytesTotal");
    g_autofree char *bytes = words_part(held, total);
    g_autofree char *share = total ? words_percent(held, total) : g_strdup("100%");
    g_autofree char *name = name_of(job);
    return g_strdup_printf("%s: %" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT
                           " files, %s in the cache: %s",
                           name, number(job, "filesDone"), number(job, "filesTotal"), bytes, share);
}

static char *unfinished_result(const json_t *job, uint64_t came, const char *time)
{
    g_autofree char *fetched = size_format(came);
    g_autofree char *kept = size_format(number(job, "bytesDone"));
    g_autofree char *name = name_of(job);
    const uint64_t files = number(job, "filesDone");
    return g_strdup_printf("%s: stopped after %s: %s came; %" G_GUINT64_FORMAT
                           " of %" G_GUINT64_FORMAT
                           " files (%s) are complete and stay in the cache",
                           name, time, fetched, files, number(job, "filesTotal"), kept);
}

char *progress_result(const json_t *job, uint64_t came)
{
    const uint64_t files = number(job, "filesDone"), held = number(job, "bytesHeld");
    g_autofree char *time = words_duration_ms(number(job, "elapsedMs"));
    if (strcmp(string(job, "state"), "done") != 0)
        return unfinished_result(job, came, time);
    if (is_true(job, "check"))
        return check_result(job);
    g_autofree char *bytes = size_format(number(job, "bytesDone"));
    g_autofree char *before = size_format(held), *name = name_of(job);
    return g_strdup_printf("%s: %" G_GUINT64_FORMAT " file%s, %s warm in %s%s%s", name, files,
                           words_plural(files), bytes, time, held ? "; held before: " : "",
                           held ? before : "");
}
