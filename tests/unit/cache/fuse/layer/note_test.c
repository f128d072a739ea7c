/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/layer/note.h"
#include <linux/fuse.h>
#include <string.h>
#include "tests/unit/harness.h"

static GBytes *init_of(uint32_t opcode, uint32_t len, gsize size)
{
    g_autofree char *bytes = g_malloc0(size);
    const struct fuse_in_header in = {.len = len, .opcode = opcode};
    memcpy(bytes, &in, sizeof(in));
    return g_bytes_new_take(g_steal_pointer(&bytes), size);
}

START_TEST(a_note_is_read_back)
{
    g_auto(LayerNote) note = {.init = init_of(FUSE_INIT, 104, 104), .places = 0x00ab}, back = {0};
    g_autofree char *text = layer_note_text(&note);
    ck_assert(layer_note_parse(text, &back, NULL));
    ck_assert_uint_eq(back.places, 0x00ab);
    ck_assert(g_bytes_equal(back.init, note.init));
}
END_TEST

static void expect_refused(const char *text)
{
    g_auto(LayerNote) note = {0};
    g_autoptr(GError) error = NULL;
    ck_assert_msg(!layer_note_parse(text, &note, &error), "%s", text);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA));
    ck_assert_ptr_null(note.init);
}

static void expect_init_refused(GBytes *init)
{
    g_auto(LayerNote) note = {.init = init};
    g_autofree char *text = layer_note_text(&note);
    expect_refused(text);
}

START_TEST(other_texts_are_refused)
{
    g_auto(LayerNote) note = {.init = init_of(FUSE_INIT, 104, 104)};
    g_autofree char *text = layer_note_text(&note);
    for (gsize n = 0; n + 4 <= strlen(text); n++) { /* cut anywhere */
        g_autofree char *cut = g_strndup(text, n);
        expect_refused(cut);
    }
    text[0] = '2';
    expect_refused(text);
    g_autofree char *digit = g_strdup("1:000000000000000G:AAAA");
    expect_refused(digit);
}
END_TEST

START_TEST(other_requests_are_refused)
{
    expect_init_refused(init_of(FUSE_READ, 104, 104));
    expect_init_refused(init_of(FUSE_INIT, 104, 80));
    expect_init_refused(init_of(FUSE_INIT, 40, 40));
    expect_init_refused(init_of(FUSE_INIT, 2000, 2000));
}
END_TEST

HARNESS_MAIN("cache/fuse/layer/note", a_note_is_read_back, other_texts_are_refused,
             other_requests_are_refused)
