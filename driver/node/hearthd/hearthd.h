/* SPDX-License-Identifier: Apache-2.0 */
/* What the node plugin asks of hearthd: to serve volumes, and to fetch. manifest.h has the rest.
 * Errors are as in link.h. */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_HEARTHD_H
#define HEARTH_DRIVER_NODE_HEARTHD_HEARTHD_H

#include "driver/node/hearthd/link.h"

/*
 * spec: {"volume", "origin", "cache", "readOnly", "cacheQuota"?}, as "open" takes them. *attached:
 * it is being served already. A hearthd of a release that does not know origin.crushLocation or
 * names is asked without them.
 */
gboolean hearthd_open(HearthdLink *link, const json_t *spec, gint64 timeout_ms, gboolean *attached,
                      GError **error);
/* Connects, and opens the volume on this connection; NULL with the error of either. */
HearthdLink *hearthd_connect_and_open(const char *socket_path, const json_t *spec,
                                      gint64 timeout_ms, gboolean *attached, GError **error);
/* A mount that hearthd is to serve. Borrowed. */
typedef struct HearthdMount {
    const char *volume;
    const char *layer; /* "fill", for a volume that is a dataset, whose manifest is ready on this
                          connection (manifest.h); NULL: the whole tree */
    const char *note;  /* of a mount that another hearthd served; NULL: of a new one */
    gboolean restored; /* hearthd_restore() came before, on this connection */
    int fuse_fd;
} HearthdMount;

/* *note is for the next hearthd, the caller's; NULL: it cannot serve the mount. */
gboolean hearthd_attach(HearthdLink *link, const HearthdMount *mount, char **note,
                        gint64 timeout_ms, GError **error);

/* What hearthd leaves of a mount without a note when it is asked to end, for the next one
 * (wire_state_is_left()): a descriptor, the caller's; -1: nothing, for any reason. */
int hearthd_state(HearthdLink *link, const char *volume, gint64 timeout_ms);
/* Before hearthd_attach(), of a mount that another hearthd has left; borrows the descriptor. */
gboolean hearthd_restore(HearthdLink *link, const char *volume, int state_fd, gint64 timeout_ms,
                         GError **error);

/* Counters of a served volume: bytes that were read, from the cache or Ceph, and objects in the
 * cache. */
typedef struct HearthdCounters {
    guint64 bytes, objects;
} HearthdCounters;

gboolean hearthd_counters(HearthdLink *link, const char *volume, gint64 timeout_ms,
                          HearthdCounters *counters, GError **error);

gboolean hearthd_detach(HearthdLink *link, const char *volume, gint64 timeout_ms, GError **error);
/* Detaches over a connection of its own. Fine without a hearthd: it serves nothing. */
gboolean hearthd_forget(const char *socket_path, const char *volume, gint64 timeout_ms,
                        GError **error);
typedef struct HearthdServing {
    gboolean attached; /* a mount of it is served; FALSE for one that hearthd does not know */
    gboolean rests;    /* it has no connection to Ceph, because nobody has used it for a while */
} HearthdServing;

gboolean hearthd_serving(HearthdLink *link, const char *volume, gint64 timeout_ms,
                         HearthdServing *serving, GError **error);
/* Whether a mount of it is served, asked once for each volume: `known` is a hearthd_served_new().
 */
GHashTable *hearthd_served_new(void);
gboolean hearthd_served(HearthdLink *link, GHashTable *known, const char *volume, gint64 timeout_ms,
                        gboolean *served, GError **error);
/* The spec, a duplicate of the descriptor and the note as above, all the caller's; the spec holds a
 * secret: node_spec_free(). */
json_t *hearthd_fetch(HearthdLink *link, const char *volume, gint64 timeout_ms, int *fuse_fd,
                      char **note, GError **error);

/* What is to be fetched of an open volume: everything below the path. Borrowed. */
typedef struct HearthdWarm {
    const char *volume, *path;
    guint64 bytes_per_second; /* 0: no limit */
} HearthdWarm;

/* Begins to fetch, or joins a job that does. NOT_FOUND: the path. */
gboolean hearthd_warm(HearthdLink *link, const HearthdWarm *warm, gint64 timeout_ms, guint64 *job,
                      GError **error);
/* The answer to "job"; a new reference. */
json_t *hearthd_job(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error);
gboolean hearthd_cancel(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error);
/* Has hearthd read an image's size again. */
gboolean hearthd_resize(HearthdLink *link, const char *volume, gint64 timeout_ms, guint64 *bytes,
                        GError **error);
/* The answer to "status"; a new reference. */
json_t *hearthd_status(HearthdLink *link, gint64 timeout_ms, GError **error);
/* Whether hearthd is there and speaks our protocol. */
gboolean hearthd_probe(const char *socket_path, gint64 timeout_ms, GError **error);

#endif
