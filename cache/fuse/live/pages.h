/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that the kernel keeps locked because a request of theirs waits here for the origin. Having
 * them dropped would wait for the request, which may wait in Ceph for the lease that is to go back
 * after the drop, or for an OSD that is gone. They cannot be read meanwhile, except where a write
 * of this session covers them. So a drop goes around them, and they are dropped as soon as the
 * request is answered.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_PAGES_H
#define HEARTH_CACHE_FUSE_LIVE_PAGES_H

#include <glib.h>
#include <stdint.h>
#include <sys/queue.h>

typedef struct Node Node;

/* A request that waits; on its thread's stack. */
typedef struct PageUse {
    LIST_ENTRY(PageUse) link; /* Node.mutex, as all below */
    int64_t off, end;
    gboolean writeback;
    gboolean gone_around;
} PageUse;

typedef struct PageRange {
    int64_t off, end; /* INT64_MAX: all there is */
} PageRange;

void pages_wait_begin(Node *node, PageUse *use, uint64_t off, size_t size, gboolean writeback);
/*
 * Before the reply, so that later drops wait for it. TRUE: a drop went around the pages; they are
 * counted in node->unsettled once, until the caller has had them dropped.
 */
gboolean pages_wait_end(Node *node, PageUse *use);

/* The parts of a range that no request here keeps locked: PageRange, in order. */
GArray *pages_around(Node *node, PageRange range);
/* The kernel is writing back what a mapping has changed, and waits for the origin in that. */
gboolean pages_written_back(Node *node);

#endif
