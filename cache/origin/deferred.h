/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin that may come later: a snapshot of which it is known what it is, but not whether Ceph
 * can be reached now. It connects on a thread of its own and goes on trying. What needs the origin
 * answers -ENOTCONN meanwhile, at once; its root's identity can be asked for at any time.
 *
 * What is reached in the end must be what was known: when it is another tree (a snapshot was
 * deleted, and one of its name made), everything answers -ESTALE for ever; when whoever connects is
 * refused (PERMISSION_DENIED), -EACCES for ever. Nothing is ever written.
 */
#ifndef HEARTH_CACHE_ORIGIN_DEFERRED_H
#define HEARTH_CACHE_ORIGIN_DEFERRED_H

#include "cache/origin/origin.h"

/* Connects, and blocks; the origin is the caller's. Called again after it failed. */
typedef Origin *(*OriginConnect)(void *data, GError **error);

typedef enum OriginLaterState {
    ORIGIN_LATER_AWAY,    /* no answer so far */
    ORIGIN_LATER_HERE,    /* connected, and it is what was known */
    ORIGIN_LATER_OTHER,   /* connected, and it is something else */
    ORIGIN_LATER_REFUSED, /* who connects has no right to it */
    ORIGIN_LATER_FAILED,  /* the last try was answered, with another error */
} OriginLaterState;

/*
 * `space` (24 bytes) and the inode, snapshot and version of `root` are what is known. `name` is for
 * the log. `data` is freed by free_data when nothing connects any more, which may be after the
 * origin was closed.
 */
Origin *origin_later_new(const char *name, const uint8_t *space, const OriginAttr *root,
                         OriginConnect connect, void *data, GDestroyNotify free_data);
/* Waits until it is no longer AWAY, at most so long. The error, of REFUSED and FAILED, is the
 * caller's. */
OriginLaterState origin_later_wait(Origin *later, gint64 timeout_ms, GError **error);
/* Whether an origin is of this kind. */
gboolean origin_is_later(const Origin *origin);

#endif
