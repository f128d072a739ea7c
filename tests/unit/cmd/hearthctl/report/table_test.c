/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/table.h"
#include <string.h>

static const TableColumn columns[] = {
    {"NAME", FALSE, 9, 0, 0}, {"SIZE", TRUE, 0, 0, 0}, {"PLACE", FALSE, 0, 0, 0}};
static const View unbound = {.columns = 0}, narrow = {.columns = 20};

START_TEST(columns_are_as_wide_as_their_widest_cell_and_numbers_to_the_right)
{
    g_autoptr(Table) table = table_new(columns, 3);
    table_row(table);
    table_set(table, 0, "a");
    table_set(table, 1, "1");
    table_set(table, 2, "here");
    table_row(table);
    table_set(table, 0, "bcdefg");
    table_take(table, 1, g_strdup("123456"));
    g_auto(GStrv) lines = table_lines(table, &unbound);
    ck_assert_str_eq(lines[0], "NAME      SIZE  PLACE");
    ck_assert_str_eq(lines[1], "a            1  here");
    ck_assert_str_eq(lines[2], "bcdefg  123456");
    ck_assert_ptr_null(lines[3]);
}
END_TEST

START_TEST(lines_are_cut_and_long_cells_lose_their_middle)
{
    g_autoptr(Table) table = table_new(columns, 3);
    table_row(table);
    table_set(table, 0, "0123456789abcdef");
    table_take(table, 1, NULL);
    table_set(table, 2, "far away");
    g_auto(GStrv) lines = table_lines(table, &unbound);
    ck_assert_str_eq(lines[1], "0123…cdef     -  far away");
    g_auto(GStrv) cut = table_lines(table, &narrow);
    ck_assert_str_eq(cut[1], "0123…cdef     -  far");
    g_autofree char *none = table_shorten("abc", 0), *one = table_shorten("abc", 1),
                    *whole = table_shorten("abc", 3), *wide = table_shorten("ä€öü", 3);
    ck_assert_str_eq(none, "");
    ck_assert_str_eq(one, "…");
    ck_assert_str_eq(whole, "abc");
    ck_assert_str_eq(wide, "ä…ü");
}
END_TEST

START_TEST(no_name_steers_the_terminal)
{
    g_autoptr(Table) table = table_new(columns, 3);
    table_row(table);
    table_set(table, 0, "a\033[2Jb\n");
    table_set(table, 2, "\xff\xc3");
    g_auto(GStrv) lines = table_lines(table, &unbound);
    for (const char *p = lines[1]; *p; p++)
        ck_assert_msg((unsigned char)*p >= 0x20 && *p != 0x7f, "0x%02x", *p);
    ck_assert(g_str_has_prefix(lines[1], "a?[2Jb?"));
    ck_assert(g_utf8_validate(lines[1], -1, NULL));
}
END_TEST

START_TEST(wide_characters_take_two_columns)
{
    static const View sixteen = {.columns = 16};
    g_autofree char *wide = table_shorten("日本語データ", 7),
                    *marks = table_shorten("e\u0301e\u0301e\u0301e", 4);
    g_autofree char *cut = style_cut("日本語", 5);
    ck_assert_str_eq(wide, "日…ータ");
    ck_assert_str_eq(marks, "e\u0301e\u0301e\u0301e");
    ck_assert_str_eq(cut, "日本");
    Lines *lines = lines_new();
    lines_add_text(lines, &sixteen, 0, 2, "日本語データセット日本語データセット");
    lines_add_text(lines, &(const View){.columns = 1}, 0, 2, "日本");
    for (guint i = 0; i < lines->len - 2; i++)
        ck_assert_msg(style_width(lines->pdata[i]) <= 16, "%s", (char *)lines->pdata[i]);
    ck_assert_uint_eq(style_width(lines->pdata[0]), 16);
    g_strfreev(lines_end(lines));
}
END_TEST

static const TableColumn worthy[] = {{"NAME", FALSE, 0, 0, 5},
                                     {"SMALL", TRUE, 0, 1, 0},
                                     {"LARGE", TRUE, 0, 2, 0},
                                     {"ID", FALSE, 0, 3, 0}};

static char *heading(Table *table, unsigned width)
{
    const View view = {.columns = width};
    g_auto(GStrv) lines = table_lines(table, &view);
    for (char **line = lines; *line; line++)
        ck_assert_msg(g_utf8_strlen(*line, -1) <= (glong)width, "%u: %s", width, *line);
    return g_strdup(lines[0]);
}

START_TEST(whole_columns_are_left_out_by_worth)
{
    static const struct {
        unsigned columns;
        const char *free, *kept;
    } cases[] = {{40, "NAME        SMALL  LARGE  ID", "NAME        SMALL  LARGE  ID"},
                 {25, "NAME     SMALL  LARGE  ID", "NAME     SMALL  LARGE  ID"},
                 {20, "NAME       LARGE  ID", "NAME       SMALL  ID"},
                 {12, "NAME      ID", "NAME   SMALL"},
                 {8, "NAME", NULL}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Table) table = table_new(worthy, G_N_ELEMENTS(worthy));
        table_row(table);
        table_set(table, 0, "0123456789");
        table_set(table, 3, "7");
        g_autofree char *free_one = heading(table, cases[i].columns);
        ck_assert_str_eq(free_one, cases[i].free);
        if (!cases[i].kept)
            continue;
        table_keep(table, 1);
        g_autofree char *kept = heading(table, cases[i].columns);
        ck_assert_str_eq(kept, cases[i].kept);
    }
}
END_TEST

START_TEST(colour_takes_no_room)
{
    g_autoptr(Table) table = table_new(columns, 3);
    table_row(table);
    table_set(table, 0, "bad");
    table_style(table, 0, STYLE_BAD);
    table_set(table, 1, "1");
    const View view = {.columns = 20, .colour = TRUE};
    g_auto(GStrv) lines = table_lines(table, &view);
    ck_assert_str_eq(lines[1], "\033[1;31mbad\033[0m      1");
    g_auto(GStrv) plain = table_lines(table, &narrow);
    ck_assert_str_eq(plain[1], "bad      1");
    g_autofree char *cut = style_cut("a\033[32mbcd\033[0me", 3);
    ck_assert_str_eq(cut, "a\033[32mbc\033[0m");
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/report/table",
             columns_are_as_wide_as_their_widest_cell_and_numbers_to_the_right,
             lines_are_cut_and_long_cells_lose_their_middle, no_name_steers_the_terminal,
             wide_characters_take_two_columns, whole_columns_are_left_out_by_worth,
             colour_takes_no_room)
