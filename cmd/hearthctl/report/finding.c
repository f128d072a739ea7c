/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/finding.h"
#include "cmd/hearthctl/client/text.h"
#include "cmd/hearthctl/report/lines.h"
#include <stdio.h>
#include <string.h>

typedef struct Finding {
    FindingLevel level;
    char *name, *found, *fix;
} Finding;

struct Findings {
    GPtrArray *list;
};

static const char *const levels[] = {"ok", "unknown", "warn", "bad"};
static const Style level_styles[] = {STYLE_GOOD, STYLE_DIM, STYLE_WARN, STYLE_BAD};

#define LEVEL_WIDTH 7 /* of "unknown" */
#define GAP 2
#define FOUND_MIN 36u
#define FIX_INDENT 3u /* of "-> " */

static void finding_free(void *data)
{
    Finding *finding = data;
    g_free(finding->name);
    g_free(finding->found);
    g_free(finding->fix);
    g_free(finding);
}

Findings *findings_new(void)
{
    Findings *findings = g_new0(Findings, 1);
    findings->list = g_ptr_array_new_with_free_func(finding_free);
    return findings;
}

void findings_free(Findings *findings)
{
    if (!findings)
        return;
    g_ptr_array_unref(findings->list);
    g_free(findings);
}

void findings_add(Findings *findings, FindingLevel level, const char *name, const char *fix,
                  const char *format, ...)
{
    Finding *finding = g_new0(Finding, 1);
    va_list args;
    va_start(args, format);
    g_autofree char *found = g_strdup_vprintf(format, args);
    va_end(args);
    finding->level = level;
    finding->name = text_printable(name);
    finding->found = text_printable(found);
    finding->fix = fix ? text_printable(fix) : NULL;
    g_ptr_array_add(findings->list, finding);
}

FindingLevel findings_worst(const Findings *findings)
{
    FindingLevel worst = FINDING_OK;
    for (guint i = 0; i < findings->list->len; i++)
        worst = MAX(worst, ((const Finding *)findings->list->pdata[i])->level);
    return worst;
}

guint findings_count(const Findings *findings, FindingLevel level)
{
    guint n = 0;
    for (guint i = 0; i < findings->list->len; i++)
        n += ((const Finding *)findings->list->pdata[i])->level == level;
    return n;
}

/* The widths of the columns before what was found. */
static unsigned check_width(const Findings *findings)
{
    glong width = strlen("CHECK");
    for (guint i = 0; i < findings->list->len; i++)
        width = MAX(width, (glong)text_width(((const Finding *)findings->list->pdata[i])->name));
    return (unsigned)width;
}

/* Beside the names of checks, or below them where that leaves too little room. */
static void add_found(Lines *lines, const View *view, const Finding *finding, unsigned width)
{
    const unsigned beside = LEVEL_WIDTH + width + 2 * GAP;
    const gboolean narrow = view->columns && view->columns < beside + FOUND_MIN;
    const unsigned indent = narrow ? LEVEL_WIDTH + GAP : beside;
    g_autofree char *level =
        style_text(levels[finding->level], level_styles[finding->level], view->colour);
    const int pad = (int)(LEVEL_WIDTH - strlen(levels[finding->level]) + GAP);
    g_autofree char *head = g_strdup_printf("%s%*s%s", level, pad, "", finding->name);
    if (narrow) {
        lines_add_cut(lines, view, "%s", head);
        lines_add_text(lines, view, indent, indent, finding->found);
    } else {
        const int gap = (int)(width + GAP) - (int)text_width(finding->name);
        g_autofree char *line = g_strdup_printf("%s%*s%s", head, gap, "", finding->found);
        lines_add_text(lines, view, 0, indent, line);
    }
    if (!finding->fix)
        return;
    g_autofree char *fix = g_strconcat("-> ", finding->fix, NULL);
    lines_add_text(lines, view, indent, indent + FIX_INDENT, fix);
}

static void add_sum(Lines *lines, const View *view, const Findings *findings)
{
    g_autoptr(GString) bad = g_string_new(NULL);
    for (guint i = 0; i < findings->list->len; i++) {
        const Finding *finding = findings->list->pdata[i];
        if (finding->level == FINDING_BAD)
            g_string_append_printf(bad, "%s%s", bad->len ? ", " : "", finding->name);
    }
    lines_add(lines, view, "%s", "");
    lines_add(lines, view, "%u bad, %u warnings, %u not checked, %u ok",
              findings_count(findings, FINDING_BAD), findings_count(findings, FINDING_WARN),
              findings_count(findings, FINDING_UNKNOWN), findings_count(findings, FINDING_OK));
    g_autofree char *word = style_text("bad:", STYLE_BAD, view->colour);
    if (bad->len)
        lines_add(lines, view, "%s %s", word, bad->str);
}

char **findings_lines(const Findings *findings, const View *view)
{
    Lines *lines = lines_new();
    const unsigned width = check_width(findings);
    lines_add_cut(lines, view, "%-*s%-*s%s", LEVEL_WIDTH + GAP, "LEVEL", (int)width + GAP, "CHECK",
                  "FOUND");
    for (guint i = 0; i < findings->list->len; i++)
        add_found(lines, view, findings->list->pdata[i], width);
    add_sum(lines, view, findings);
    return lines_end(lines);
}

json_t *findings_json(const Findings *findings)
{
    json_t *list = json_array();
    for (guint i = 0; i < findings->list->len; i++) {
        const Finding *finding = findings->list->pdata[i];
        const char *fix = finding->fix ? finding->fix : "";
        /* "mend" is the name of "fix" in 0.1; it stays for one release. */
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", finding->name,
                                              "level", levels[finding->level], "found",
                                              finding->found, "fix", fix, "mend", fix));
    }
    return json_pack("{s:s, s:o}", "worst", levels[findings_worst(findings)], "findings", list);
}

gboolean finding_kernel_is(const char *release, unsigned major, unsigned minor)
{
    unsigned x, y;
    return sscanf(release, "%u.%u", &x, &y) == 2 && (x > major || (x == major && y >= minor));
}

gboolean finding_has_option(const char *options, const char *option)
{
    const size_t n = strlen(option);
    for (const char *p = options; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, option, n) == 0 && (p[n] == '\0' || p[n] == ','))
            return TRUE;
    }
    return FALSE;
}
