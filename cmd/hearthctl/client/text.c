/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/client/text.h"
#include <string.h>

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

static gboolean is_command(const char *word)
{
    static const char *const words[] = {"status", "datasets", "top",   "warm",   "jobs",   "job",
                                        "evict",  "pin",      "unpin", "verify", "why",    "doctor",
                                        "bench",  "version",  "help",  "--help", "COMMAND"};
    const gsize length = strcspn(word, " `'.,;:)\n");
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strlen(words[i]) == length && strncmp(word, words[i], length) == 0)
            return TRUE;
    return FALSE;
}

char *text_typed(const char *text, const char *as)
{
    static const char program[] = "hearthctl ";
    GString *out = g_string_new(NULL);
    const char *at = text;
    for (const char *found; as && (found = strstr(at, program)); at = found + strlen(program)) {
        g_string_append_len(out, at, found - at);
        if (is_command(found + strlen(program)))
            g_string_append_printf(out, "%s ", as);
        else
            g_string_append(out, program);
    }
    g_string_append(out, at);
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
