/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another process needs, beside the descriptor, to go on serving the mount of a fill layer.
 * The node plugin keeps both; to it the note is a text, which only hearthd reads.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_NOTE_H
#define HEARTH_CACHE_FUSE_LAYER_NOTE_H

#include <gio/gio.h>
#include <stdint.h>

typedef struct LayerNote {
    GBytes *init;    /* the kernel's FUSE_INIT (take_over.h); a reference */
    uint64_t places; /* manifest_places() */
} LayerNote;

static inline void layer_note_clear(LayerNote *note)
{
    g_clear_pointer(&note->init, g_bytes_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LayerNote, layer_note_clear)

/* The caller's. */
char *layer_note_text(const LayerNote *note);
/* FALSE with INVALID_DATA: it is no such text, or of a release with another kind of notes. */
gboolean layer_note_parse(const char *text, LayerNote *note, GError **error);

#endif
