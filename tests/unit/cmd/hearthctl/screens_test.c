/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmd/hearthctl/golden.h"
#include "cmd/hearthctl/report/progress.h"
#include <string.h>

static char **bar_lines(const json_t *answers, unsigned columns)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new();
    const json_t *jobs = json_object_get(answers, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++)
        g_ptr_array_add(lines, progress_bar(json_array_get(jobs, i), columns));
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_steal(lines, NULL);
}

START_TEST(bar_of_a_job)
{
    json_auto_t *answers = golden_answers("jobs.json");
    golden_check("warm.txt", answers, bar_lines);
}
END_TEST

START_TEST(bar_never_reaches_the_last_column)
{
    json_auto_t *answers = golden_answers("jobs.json");
    for (unsigned columns = 2; columns <= 300; columns++) {
        g_auto(GStrv) lines = bar_lines(answers, columns);
        for (char **line = lines; *line; line++)
            ck_assert_msg(g_utf8_strlen(*line, -1) < (glong)columns, "%u: %s", columns, *line);
        ck_assert(columns < 6 || strchr(lines[1], '%'));
    }
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/screens", bar_of_a_job, bar_never_reaches_the_last_column)
