/*
 * What the origin tells us (changed, unwanted, lease recalled) and what reads leave behind is told
 * to the kernel from threads of its own: the origin's callbacks hold its locks, and the kernel may
 * wait for pages that another request is filling.
 */
#ifndef HEARTH_FUSE_NOTIFY_H
#define HEARTH_FUSE_NOTIFY_H

#include <stdint.h>
#include "cache/origin/origin.h"

typedef struct Notifier Notifier;
typedef struct Session Session;
typedef struct Handle Handle;
typedef struct Node Node;

Notifier *notifier_start(Session *session);
/* Handles what is queued, then ends. No origin callback may come any more. */
void notifier_stop(Notifier *notifier);

/* Has the origin tell this notifier. */
void notifier_listen(Notifier *notifier, Origin *origin);
/* The handle is kept by the queue until handle_recalled() has run on it. */
void notifier_recall(Notifier *notifier, Handle *handle);
/*
 * Has all pages of a node dropped. Returns when they are, or after a moment when one of them is
 * being filled by a read that may itself wait for the lease of the caller; it is then dropped as
 * soon as that read has ended.
 */
void notifier_drop_all_pages(Notifier *notifier, Node *node);
/* Drops all pages of a node soon: what nobody guarantees any more. Any number of calls is one drop.
 */
void notifier_drop_soon(Notifier *notifier, Node *node);
/* Drops the pages of [off, off+len), then counts node->unsettled down. */
void notifier_drop_pages(Notifier *notifier, Node *node, int64_t off, int64_t len);

#endif
