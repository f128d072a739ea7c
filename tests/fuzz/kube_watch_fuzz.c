/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a watch, its first byte being how it is cut: cut or whole, the same events come of
 * it. They go into what a watch knows, which must tell as many deletions as additions once all is
 * gone.
 */
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include "driver/kube/watch/decode.h"
#include "driver/kube/error.h"
#include "driver/kube/watch/seen.h"

typedef struct Seen {
    KubeKnown *known;
    GString *types;
    gint64 there;
} Seen;

static void on_change(KubeChange change, const json_t *object, void *data)
{
    Seen *seen = data;
    if (!json_is_object(json_object_get(object, "metadata")))
        abort();
    seen->there += change == KUBE_ADDED ? 1 : change == KUBE_DELETED ? -1 : 0;
    if (seen->there < 0)
        abort();
}

static gboolean on_event(KubeEventType type, const json_t *object, void *data, GError **error)
{
    Seen *seen = data;
    if (!json_is_object(object))
        abort();
    g_string_append_c(seen->types, (char)('0' + type));
    if (type == KUBE_EVENT_ERROR) {
        kube_error_set_event(error, "watch", object);
        return FALSE;
    }
    if (type == KUBE_EVENT_DELETED)
        kube_known_remove(seen->known, object);
    else
        kube_known_put(seen->known, object);
    return TRUE;
}

static void decode(const uint8_t *data, size_t size, size_t part, GString *types)
{
    Seen seen = {.types = types};
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeKnown) known = kube_known_new(on_change, &seen);
    g_autoptr(KubeDecoder) decoder = kube_decoder_new(4096, on_event, &seen);
    seen.known = known;
    for (size_t at = 0; at < size && !error; at += part) {
        const gboolean ok =
            kube_decoder_push(decoder, (const char *)data + at, MIN(part, size - at), &error);
        if (ok != !error)
            abort();
    }
    if (error && (error->domain != KUBE_ERROR || !g_utf8_validate(error->message, -1, NULL)))
        abort();
    if (seen.there != kube_known_count(known))
        abort();
    kube_known_list_begin(known);
    kube_known_list_end(known);
    if (seen.there != 0 || kube_known_count(known) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    g_autoptr(GString) cut = g_string_new(NULL), whole = g_string_new(NULL);
    decode(data + 1, size - 1, data[0] % 64 + 1, cut);
    decode(data + 1, size - 1, size, whole);
    if (!g_string_equal(cut, whole))
        abort();
    return 0;
}
