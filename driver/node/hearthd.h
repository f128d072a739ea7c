/*
 * Client of hearthd's control socket (cache/control/wire.h). A connection is made for each
 * operation and closed after it: connecting over a unix socket costs microseconds, and there is
 * never a stale connection to a hearthd that was restarted. What must be one conversation
 * ("open", then "attach") uses one HearthdLink.
 *
 * Errors are HEARTH_ERROR: hearthd's own codes are passed on; UNAVAILABLE when there is no hearthd
 * or it went away, DEADLINE_EXCEEDED when it does not answer in time.
 */
#ifndef HEARTH_NODE_HEARTHD_H
#define HEARTH_NODE_HEARTHD_H

#include <glib.h>
#include <jansson.h>
#include "driver/error.h"

/* One connection, for one thread. After an error that is not hearthd's own it is of no more use. */
typedef struct HearthdLink HearthdLink;

/* *absent (may be NULL): nobody listens, so no volume is served. */
HearthdLink *hearthd_connect(const char *socket_path, gboolean *absent, GError **error);
void hearthd_close(HearthdLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HearthdLink, hearthd_close)
/* For poll(2): readable or hung up when hearthd has gone. */
int hearthd_link_fd(const HearthdLink *link);

/*
 * spec: {"volume", "origin", "cache", "readOnly", "cacheQuota"?}, as "open" takes them. *attached:
 * it is being served already.
 */
gboolean hearthd_open(HearthdLink *link, const json_t *spec, gint64 timeout_ms, gboolean *attached,
                      GError **error);
/* fuse_fd is borrowed. */
gboolean hearthd_attach(HearthdLink *link, const char *volume, int fuse_fd, gint64 timeout_ms,
                        GError **error);
gboolean hearthd_detach(HearthdLink *link, const char *volume, gint64 timeout_ms, GError **error);
/* Whether hearthd serves the volume; *attached is FALSE for one it does not know. */
gboolean hearthd_is_attached(HearthdLink *link, const char *volume, gint64 timeout_ms,
                             gboolean *attached, GError **error);
/* The spec and a duplicate of the descriptor, both the caller's; the spec holds a secret:
 * node_spec_free(). */
json_t *hearthd_fetch(HearthdLink *link, const char *volume, gint64 timeout_ms, int *fuse_fd,
                      GError **error);
/* Has hearthd look at an image's size again. */
gboolean hearthd_resize(HearthdLink *link, const char *volume, gint64 timeout_ms, guint64 *bytes,
                        GError **error);
/* Whether hearthd is there and speaks our protocol. */
gboolean hearthd_probe(const char *socket_path, gint64 timeout_ms, GError **error);

#endif
