/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a watch: one JSON object a line, {"type": ..., "object": ...}, cut anywhere by the
 * network. Does no I/O. The length of a line is bounded; a line that is not such an object ends
 * the stream, because the lines after it cannot be trusted.
 *
 * Source: Kubernetes API concepts, "Efficient detection of changes".
 */
#ifndef HEARTH_DRIVER_KUBE_WATCH_DECODE_H
#define HEARTH_DRIVER_KUBE_WATCH_DECODE_H

#include <glib.h>
#include <jansson.h>

typedef enum KubeEventType {
    KUBE_EVENT_ADDED,
    KUBE_EVENT_MODIFIED,
    KUBE_EVENT_DELETED,
    KUBE_EVENT_BOOKMARK, /* an object with a resourceVersion and nothing else of use */
    KUBE_EVENT_ERROR,    /* a Status */
} KubeEventType;

typedef struct KubeDecoder KubeDecoder;

/* on_event: FALSE, with an error, ends the stream; `object` is borrowed. line_max in bytes. */
KubeDecoder *kube_decoder_new(gsize line_max,
                              gboolean (*on_event)(KubeEventType type, const json_t *object,
                                                   void *data, GError **error),
                              void *data);
void kube_decoder_free(KubeDecoder *decoder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeDecoder, kube_decoder_free)

/* MALFORMED, or on_event's error; after either the decoder is of no more use. Events of unknown
 * types are skipped. */
gboolean kube_decoder_push(KubeDecoder *decoder, const char *bytes, gsize size, GError **error);

#endif
