/* SPDX-License-Identifier: Apache-2.0 */
/* The note of a mount comes back from the node plugin. What is read of it is written as it was. */
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include "cache/fuse/layer/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(LayerNote) note = {0}, again = {0};
    g_autoptr(GError) error = NULL;
    if (!layer_note_parse(text, &note, &error)) {
        if (!error || note.init)
            abort();
        return 0;
    }
    g_autofree char *same = layer_note_text(&note);
    if (!layer_note_parse(same, &again, NULL) || again.places != note.places ||
        !g_bytes_equal(again.init, note.init))
        abort();
    return 0;
}
