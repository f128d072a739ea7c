/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that leaves its mount to another process, and one that goes on with it. Node IDs are
 * inode numbers, and what was open is opened again by its node, so the state is what the kernel has
 * open (opened.h), the tags of snapshots, and what is still to be told: lost writes and locks.
 *
 * Leaving:
 *  1. Requests are parked: read and not answered, so the kernel sends them again. Only pages that a
 *     mapping has changed are still written, since dropping them waits for that.
 *  2. When no request is being served: the leases go back, behind the drop of all pages of what is
 *     open. Nothing new can be read, so afterwards no page is left but those of parked requests.
 *  3. All that was written is synced; what cannot be is lost, and said so later.
 *  4. What is locked is lost: another node may have the lock before the next process could.
 *  5. Everything is closed, and the state is left.
 *
 * Going on: names that the kernel may use without asking (known_names.h) are too old by then.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_RESUME_H
#define HEARTH_CACHE_FUSE_LIVE_RESUME_H

#include "cache/fuse/live/session_internal.h"

/* Steps 1 and 2. FALSE: they did not end in time. */
gboolean resume_park(Session *session, unsigned timeout_ms);
/* Steps 3 to 5, but for the last: the caller leaves the state, its own, when the session is freed.
 */
json_t *resume_collect(Session *session);
void resume_unpark(Session *session);

/* Before anything is served. FALSE: the state is not whole. */
gboolean resume_begin(Session *session, const json_t *state, GError **error);

/* What the kernel has open; NULL with *error: nothing is, or it cannot be opened again. */
Handle *resume_file(Session *session, uint64_t fh, int *error);
/* TRUE: it was open in an earlier process and is not to be opened any more. */
gboolean resume_release_file(Session *session, uint64_t fh);

#endif
