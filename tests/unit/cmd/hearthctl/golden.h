/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Screens of hearthctl beside recorded ones: screens/NAME.txt has a screen at each width. Widths
 * are checked too: no line is wider. HEARTH_GOLDEN=write records them again; look at the difference
 * before it is committed.
 */
#ifndef HEARTH_TESTS_UNIT_CMD_HEARTHCTL_GOLDEN_H
#define HEARTH_TESTS_UNIT_CMD_HEARTHCTL_GOLDEN_H

#include "tests/unit/harness.h"
#include "cmd/hearthctl/report/style.h"
#include <jansson.h>

static const unsigned golden_widths[] = {60, 80, 120, 200};

/* The lines of a screen in this view; the caller's. */
typedef char **(*GoldenRender)(const json_t *answers, const View *view);

static inline char *golden_path(const char *name)
{
    g_autofree char *here = g_path_get_dirname(__FILE__);
    return g_build_filename(here, "screens", name, NULL);
}

/* Recorded answers of hearthd. */
static inline json_t *golden_answers(const char *name)
{
    json_error_t error;
    g_autofree char *path = golden_path(name);
    json_t *answers = json_load_file(path, 0, &error);
    ck_assert_msg(answers != NULL, "%s: %s; run it at the top of the tree", path, error.text);
    return answers;
}

static inline void golden_check(const char *name, const json_t *answers, GoldenRender render)
{
    g_autoptr(GString) screens = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(golden_widths); i++) {
        const View view = {.columns = golden_widths[i]};
        g_auto(GStrv) lines = render(answers, &view);
        g_string_append_printf(screens, "==== %u columns\n", golden_widths[i]);
        for (char **line = lines; *line; line++) {
            ck_assert_msg(style_width(*line) <= golden_widths[i], "%s at %u columns: %s", name,
                          golden_widths[i], *line);
            g_string_append_printf(screens, "%s\n", *line);
        }
    }
    g_autofree char *path = golden_path(name), *recorded = NULL;
    if (g_strcmp0(g_getenv("HEARTH_GOLDEN"), "write") == 0)
        ck_assert(g_file_set_contents(path, screens->str, (gssize)screens->len, NULL));
    ck_assert_msg(g_file_get_contents(path, &recorded, NULL, NULL), "%s is not there", path);
    ck_assert_msg(strcmp(recorded, screens->str) == 0,
                  "%s is not as recorded (HEARTH_GOLDEN=write records it):\n%s", path,
                  screens->str);
}

#endif
