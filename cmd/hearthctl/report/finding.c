/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/finding.h"
#include "cmd/hearthctl/report/table.h"
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
    finding->name = g_strdup(name);
    finding->found = g_utf8_make_valid(found, -1);
    finding->fix = fix ? g_utf8_make_valid(fix, -1) : NULL;
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

char **findings_lines(const Findings *findings)
{
    static const TableColumn columns[] = {
        {"LEVEL", FALSE, 0}, {"CHECK", FALSE, 0}, {"FOUND", FALSE, 0}};
    g_autoptr(Table) table = table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < findings->list->len; i++) {
        const Finding *finding = findings->list->pdata[i];
        table_row(table);
        table_set(table, 0, levels[finding->level]);
        table_set(table, 1, finding->name);
        table_set(table, 2, finding->found);
        if (!finding->fix)
            continue;
        table_row(table);
        table_take(table, 2, g_strconcat("-> ", finding->fix, NULL));
    }
    return table_lines(table, 0);
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
