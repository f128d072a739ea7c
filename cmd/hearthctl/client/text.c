/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/client/text.h"

char *text_printable(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);
        g_string_append_unichar(out, g_unichar_isprint(c) ? c : '?');
    }
    return g_string_free(out, FALSE);
}

unsigned text_char_width(const char *at)
{
    const gunichar c = g_utf8_get_char(at);
    if (g_unichar_iszerowidth(c))
        return 0;
    return g_unichar_iswide(c) ? 2 : 1;
}

unsigned text_width(const char *text)
{
    unsigned width = 0;
    for (const char *p = text; *p; p = g_utf8_next_char(p))
        width += text_char_width(p);
    return width;
}
