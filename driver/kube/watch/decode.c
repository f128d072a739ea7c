/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/watch/decode.h"
#include <string.h>
#include "driver/kube/error.h"

struct KubeDecoder {
    gsize line_max;
    gboolean (*on_event)(KubeEventType, const json_t *, void *, GError **);
    void *data;
    GByteArray *line; /* the piece that came of it */
};

KubeDecoder *
kube_decoder_new(gsize line_max,
                 gboolean (*on_event)(KubeEventType, const json_t *, void *, GError **), void *data)
{
    KubeDecoder *d = g_new0(KubeDecoder, 1);
    d->line_max = line_max;
    d->on_event = on_event;
    d->data = data;
    d->line = g_byte_array_new();
    return d;
}

void kube_decoder_free(KubeDecoder *d)
{
    if (!d)
        return;
    g_byte_array_unref(d->line);
    g_free(d);
}

static gboolean type_of(const json_t *event, KubeEventType *type)
{
    static const char *const names[] = {
        [KUBE_EVENT_ADDED] = "ADDED",     [KUBE_EVENT_MODIFIED] = "MODIFIED",
        [KUBE_EVENT_DELETED] = "DELETED", [KUBE_EVENT_BOOKMARK] = "BOOKMARK",
        [KUBE_EVENT_ERROR] = "ERROR",
    };
    const char *name = json_string_value(json_object_get(event, "type"));
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_strcmp0(name, names[i]) == 0) {
            *type = (KubeEventType)i;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean is_blank(const char *text, gsize size)
{
    for (gsize i = 0; i < size; i++) {
        if (!g_ascii_isspace(text[i]))
            return FALSE;
    }
    return TRUE;
}

static gboolean take_line(KubeDecoder *d, const char *text, gsize size, GError **error)
{
    KubeEventType type;
    json_error_t why;
    gboolean ok = TRUE;
    if (is_blank(text, size))
        return TRUE;
    json_auto_t *event = json_loadb(text, size, JSON_ALLOW_NUL, &why);
    const json_t *object = json_object_get(event, "object");
    if (!event) {
        /* Not the text of jansson, which quotes the bytes. */
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED, "an event is no JSON at its byte %d",
                    why.position);
        ok = FALSE;
    } else if (!json_is_object(object) || !json_is_string(json_object_get(event, "type"))) {
        g_set_error_literal(error, KUBE_ERROR, KUBE_ERROR_MALFORMED,
                            "an event has no type or object");
        ok = FALSE;
    } else if (type_of(event, &type)) {
        ok = d->on_event(type, object, d->data, error);
    }
    return ok;
}

gboolean kube_decoder_push(KubeDecoder *d, const char *bytes, gsize size, GError **error)
{
    while (size > 0) {
        const char *newline = memchr(bytes, '\n', size);
        const gsize part = newline ? (gsize)(newline - bytes) : size;
        if (part > d->line_max - d->line->len) {
            g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED,
                        "an event is larger than %" G_GSIZE_FORMAT " bytes", d->line_max);
            return FALSE;
        }
        if (!newline) {
            g_byte_array_append(d->line, (const guint8 *)bytes, (guint)part);
            return TRUE;
        }
        gboolean ok;
        if (d->line->len) {
            g_byte_array_append(d->line, (const guint8 *)bytes, (guint)part);
            ok = take_line(d, (const char *)d->line->data, d->line->len, error);
            /* A large event's room is given back. */
            g_byte_array_unref(d->line);
            d->line = g_byte_array_new();
        } else {
            ok = take_line(d, bytes, part, error);
        }
        if (!ok)
            return FALSE;
        bytes += part + 1;
        size -= part + 1;
    }
    return TRUE;
}
