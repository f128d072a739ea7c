/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volume IDs come from whoever can write a PersistentVolume. Whatever decodes must encode to the
 * same text, or one volume would have two IDs and two locks.
 */
#include "tests/fuzz/fuzz.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "driver/volume/adopted_id.h"
#include "driver/volume/id.h"
#include "driver/volume/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(AdoptedId) adopted = adopted_id_decode(text);
    if (adopted) {
        g_autofree char *same = adopted_id_encode(adopted);
        if (strcmp(same, text) != 0 || strchr(text, '/'))
            abort();
    }
    g_autoptr(VolumeId) id = volume_id_decode(text, &error);
    if (!id) {
        if (!error || !g_utf8_validate(error->message, -1, NULL))
            abort();
        return 0;
    }
    g_autofree char *again = volume_id_encode(id, NULL);
    if (!again || strcmp(again, text) != 0 || !name_is_plain(id->name) || strchr(text, '/'))
        abort();
    return 0;
}
