/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin that may connect later: a snapshot whose identity is known, while Ceph may not be
 * reachable now. It connects on a thread of its own and keeps trying. Meanwhile operations answer
 * -ENOTCONN, at once unless it was told to be patient; the root's identity can be asked for at any
 * time.
 *
 * The tree that is reached must be the known one. If it is another (the snapshot was deleted, and
 * another made under its name), every operation answers -ESTALE for ever; if Ceph refuses the user
 * (PERMISSION_DENIED), -EACCES for ever. Nothing is ever written.
 */
#ifndef HEARTH_CACHE_ORIGIN_DEFERRED_H
#define HEARTH_CACHE_ORIGIN_DEFERRED_H

#include "cache/origin/origin.h"

/* Connects, and blocks; the origin is the caller's. Called again after it failed. */
typedef Origin *(*OriginConnect)(void *data, GError **error);

typedef enum OriginDeferredState {
    ORIGIN_DEFERRED_AWAY,    /* no answer so far */
    ORIGIN_DEFERRED_HERE,    /* connected, and it is the known tree */
    ORIGIN_DEFERRED_OTHER,   /* connected, and it is another tree */
    ORIGIN_DEFERRED_REFUSED, /* Ceph refuses the user */
    ORIGIN_DEFERRED_FAILED,  /* the last try was answered, with another error */
} OriginDeferredState;

/*
 * `space` (24 bytes) and the inode, snapshot and version of `root` are what is known. `name` is for
 * the log. `data` is freed by free_data when nothing connects any more, which may be after the
 * origin was closed.
 */
Origin *origin_deferred_new(const char *name, const uint8_t *space, const OriginAttr *root,
                            OriginConnect connect, void *data, GDestroyNotify free_data);
/* For so long from now on, who looks for a file waits while it is AWAY. */
void origin_deferred_be_patient(Origin *deferred, gint64 ms);
/* Waits until it is no longer AWAY, for timeout_ms at most. The error, with REFUSED and FAILED, is
 * the caller's. */
OriginDeferredState origin_deferred_wait(Origin *deferred, gint64 timeout_ms, GError **error);
/* Whether an origin is of this kind. */
gboolean origin_is_deferred(const Origin *origin);

#endif
