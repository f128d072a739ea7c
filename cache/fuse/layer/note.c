/* SPDX-License-Identifier: Apache-2.0 */
/* "1:" the hash of the manifest's places, 16 hex digits, ":" FUSE_INIT in base64. */
#include "cache/fuse/layer/note.h"
#include <string.h>
#include "cache/fuse/take_over.h"

#define VERSION "1:"
#define DIGITS 16
#define TEXT_MAX (sizeof(VERSION) + DIGITS + 1 + (TAKE_OVER_INIT_MAX / 3 + 1) * 4)

char *layer_note_text(const LayerNote *note)
{
    gsize size;
    const guchar *init = g_bytes_get_data(note->init, &size);
    g_autofree char *base64 = g_base64_encode(init, size);
    return g_strdup_printf(VERSION "%016" G_GINT64_MODIFIER "x:%s", note->places, base64);
}

static gboolean parse_digits(const char *text, uint64_t *number)
{
    char digits[DIGITS + 1];
    if (strnlen(text, DIGITS) < DIGITS || strspn(text, "0123456789abcdef") != DIGITS)
        return FALSE;
    g_strlcpy(digits, text, sizeof(digits));
    *number = g_ascii_strtoull(digits, NULL, 16);
    return TRUE;
}

gboolean layer_note_parse(const char *text, LayerNote *note, GError **error)
{
    const char *at = text + strlen(VERSION);
    *note = (LayerNote){0};
    if (g_str_has_prefix(text, VERSION) && strlen(text) < TEXT_MAX &&
        parse_digits(at, &note->places) && at[DIGITS] == ':') {
        gsize size = 0;
        g_autofree guchar *init = g_base64_decode(at + DIGITS + 1, &size);
        g_autoptr(GBytes) bytes = g_bytes_new_take(g_steal_pointer(&init), size);
        if (take_over_is_init(bytes)) {
            note->init = g_steal_pointer(&bytes);
            return TRUE;
        }
    }
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "the note of the mount is not one that this hearthd knows");
    return FALSE;
}
