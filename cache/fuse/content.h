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
 * What a fill reads is kept only if nothing here began to write the file since its version was
 * looked at: a write that is under way shows in the bytes, but not in the version yet.
 */
typedef struct ContentGuard {
    const _Atomic unsigned *writes_begun; /* lives as long as the content */
    unsigned seen;                        /* before the version was looked at */
} ContentGuard;

/* Opens the object when it is held. Never NULL; without an object the first read begins a fill. */
Content *content_open(Store *store, Origin *origin, const OriginAttr *attr,
                      const ContentGuard *guard);
Content *content_ref(Content *content);
void content_unref(Content *content);

uint64_t content_version(const Content *content);
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
ssize_t content_read(Content *content, OriginNode *node, const char *tag, void *buf, size_t len,
                     uint64_t off, ContentSource *source);

#endif
