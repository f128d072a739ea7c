/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the next hearthd needs to go on serving a mount whose server remembers more than the
 * kernel's FUSE_INIT: a JSON object in a memfd. The node plugin has a descriptor of it from the
 * beginning. It stays empty until the server has left the mount (wire_state_is_left()).
 */
#ifndef HEARTH_CACHE_FUSE_MOUNT_STATE_H
#define HEARTH_CACHE_FUSE_MOUNT_STATE_H

#include <glib.h>
#include <jansson.h>
#include "cache/fuse/readers.h"

/* The longest that is believed. */
#define MOUNT_STATE_MAX (256 << 20)

/* Kinds. */
#define MOUNT_STATE_TREE "tree"
#define MOUNT_STATE_IMAGE "image"

/* An empty one: a descriptor, or -1 with G_IO_ERROR. */
int mount_state_new(GError **error);
/* Once, and last of all. Takes over `state`. `kind` says what it is of. */
gboolean mount_state_leave(int fd, const char *kind, GBytes *init, json_t *state, GError **error);
/*
 * As readers_start(), of a mount that was left with that state, which is of no use to anyone from
 * then on. It is again when this fails.
 */
Readers *mount_state_go_on(int fd, struct fuse_session *fuse, void (*ended)(void *data), void *data,
                           GError **error);
/* The object, with a reference to *init, the kernel's FUSE_INIT (take_over.h). NULL with
 * INVALID_DATA: nothing was left, or something of another kind or release. */
json_t *mount_state_read(int fd, const char *kind, GBytes **init, GError **error);

#endif
