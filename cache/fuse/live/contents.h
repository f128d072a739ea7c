/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What open files read from the store: an object of the version that the file had when its lease
 * was taken, except for what was written here since. Only cache/fuse/live/ includes this.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_CONTENTS_H
#define HEARTH_CACHE_FUSE_LIVE_CONTENTS_H

#include "cache/fuse/live/handle.h"

/* Under a lease: what the version is now and what the store has of it. 0 or -errno. */
int contents_look(Handle *handle, gboolean opener, OriginAttr *attr);
/* Attributes; writes of this session are in the origin first, unless there are writers. */
int contents_current_attr(Session *session, Node *node, OriginAttr *attr);
/* The first handle that can write, which is listed, and the last, which is not any more. The caller
 * has Node.mutex. Contents that are forgotten go to a contents_array(), to be freed without it. */
GPtrArray *contents_array(void);
void contents_begin_locked(Node *node, GPtrArray *forgotten);
void contents_end_locked(Node *node);
/* Before a lease is lost that a handle of the node has: what is read from the store is remembered,
 * for the next lease. */
void contents_keep(Session *session, Node *node);

/*
 * A change of the file's bytes by this node, from before the origin has it until it is to be
 * answered. The cached version is not read for what is changed.
 */
typedef struct BytesChange {
    Written *written; /* of the node when it began; NULL: none */
    uint64_t off, len;
    gboolean at_end;
} BytesChange;

void contents_write_begin(Session *session, Node *node, BytesChange *change, uint64_t off,
                          uint64_t len);
/* Of an append. */
void contents_append_begin(Session *session, Node *node, BytesChange *change);
void contents_write_end(Node *node, BytesChange *change);
/* Of a change of the size. */
void contents_resize_begin(Session *session, Node *node);
void contents_resize_end(Node *node);

/* What the handle reads from the store, and what was written since; the caller's. FALSE: nothing.
 */
gboolean contents_of(Handle *handle, Content **content, Written **written);

#endif
