/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cached bytes of one version of one file, as an open handle reads them: a complete object, or
 * the fill that is making it. Counted, because a handle may move on to another version while a read
 * of the old one still runs.
 */
#ifndef HEARTH_CACHE_FUSE_CONTENT_H
#define HEARTH_CACHE_FUSE_CONTENT_H

#include "cache/store/store.h"

typedef struct Content Content;

/*
 * A fill is kept only if no write of the file began here after its version was read: a write that
 * is running shows in the bytes, but not in the version yet.
 */
typedef struct ContentGuard {
    const _Atomic unsigned *writes_begun; /* lives as long as the content */
    unsigned seen;                        /* before the version was read */
} ContentGuard;

/* Opens the object when it is held. Never NULL; without an object the first read begins a fill.
 * `tag` is the volume's in the store; it lives as long as the content. */
Content *content_open(Store *store, Origin *origin, const char *tag, const OriginAttr *attr,
                      const ContentGuard *guard);
/* The same, by what names the content. */
Content *content_open_key(Store *store, Origin *origin, const char *tag, const ObjectKey *key,
                          const ContentGuard *guard);
Content *content_ref(Content *content);
void content_unref(Content *content);

/* Borrowed. */
const ObjectKey *content_key(const Content *content);
/* A complete object was held when it was opened. */
gboolean content_was_held(const Content *content);

typedef enum ContentSource {
    CONTENT_OBJECT,
    CONTENT_FILL,
} ContentSource;

/*
 * Reads; short only at the end of the file. -errno: the cache cannot serve it, and will not for
 * this content: read from the origin.
 */
ssize_t content_read(Content *content, OriginNode *node, void *buf, size_t len, uint64_t off,
                     ContentSource *source);

/* The descriptor of the complete object, borrowed, and how much of it a read of *len bytes at `off`
 * gets. -1: there is none to be read there. */
int content_object(Content *content, size_t *len, uint64_t off);

#endif
