/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/mount_words.h"
#include <string.h>

#define SHOWN_MAX 300

/* Behind the quoted text that begins at `quote`; NULL: it does not end. */
static const char *skip_quoted(const char *quote)
{
    for (const char *c = quote + 1; *c; c++) {
        if (*c == '\\' && c[1])
            c++;
        else if (*c == '"')
            return c + 1;
    }
    return NULL;
}

char *mount_word_shown(const char *word)
{
    return g_utf8_make_valid(word, (gssize)strnlen(word, SHOWN_MAX));
}

static const char *refuse(const char *word, const char *why, GError **error)
{
    g_autofree char *shown = mount_word_shown(word);
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "mount option %s: %s", shown, why);
    return NULL;
}

/* The comma, or the end, behind the option that begins at `word`. */
static const char *end_of(const char *word, GError **error)
{
    const char *value = word + strcspn(word, "=,");
    if (value[0] != '=' || value[1] != '"')
        return word + strcspn(word, ",");
    const char *end = skip_quoted(value + 1);
    if (!end)
        return refuse(word, "the quote is not closed", error);
    if (*end && *end != ',')
        return refuse(word, "there is text behind the closing quote", error);
    return end;
}

char **mount_words(const char *line, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    for (const char *word = line;;) {
        const char *end = end_of(word, error);
        if (!end)
            return NULL;
        if (end > word)
            g_ptr_array_add(words, g_strndup(word, (gsize)(end - word)));
        if (!*end)
            break;
        word = end + 1;
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&words), FALSE);
}

char *mount_word_value(const char *word, const char *name)
{
    const gsize n = strlen(name);
    if (strncmp(word, name, n) != 0 || word[n] != '=')
        return NULL;
    const char *value = word + n + 1;
    const gsize length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"')
        return g_strndup(value + 1, length - 2);
    return g_strdup(value);
}
