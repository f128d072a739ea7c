/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client of hearthd's control socket (proto/wire.h). A connection is made for each
 * operation and closed after it: connecting over a unix socket costs microseconds, and there is
 * never a stale connection to a hearthd that was restarted. What must be one conversation
 * ("open", then "attach") uses one HearthdLink.
 *
 * Errors are HEARTH_ERROR: hearthd's own codes are passed on; UNAVAILABLE when there is no hearthd
 * or it went away, DEADLINE_EXCEEDED when it does not answer in time.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_HEARTHD_H
#define HEARTH_DRIVER_NODE_HEARTHD_HEARTHD_H

#include <glib.h>
#include <jansson.h>
#include "common/error.h"

/* One connection, for one thread. After an error that is not hearthd's own it is of no more use. */
typedef struct HearthdLink HearthdLink;

/* *absent (may be NULL): there is no listener, so no volume is served. */
HearthdLink *hearthd_connect(const char *socket_path, gboolean *absent, GError **error);
void hearthd_close(HearthdLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HearthdLink, hearthd_close)
/* For poll(2): readable or hung up when hearthd has gone. */
int hearthd_link_fd(const HearthdLink *link);

/*
 * spec: {"volume", "origin", "cache", "readOnly", "cacheQuota"?}, as "open" takes them. *attached:
 * it is being served already. A hearthd of a release that does not know origin.crushLocation is
 * asked without it.
 */
gboolean hearthd_open(HearthdLink *link, const json_t *spec, gint64 timeout_ms, gboolean *attached,
                      GError **error);
/* fuse_fd is borrowed. layer: "fill", for a volume that is a dataset; NULL: the whole tree. */
gboolean hearthd_attach(HearthdLink *link, const char *volume, const char *layer, int fuse_fd,
                        gint64 timeout_ms, GError **error);

/* The state of a volume's manifest. */
typedef struct HearthdManifest {
    gboolean ready;       /* FALSE: it is being built, and the numbers are its progress */
    char *dataset;        /* HEARTHD_DATASET_DIGITS of 0-9a-f */
    char *path, *objects; /* when ready: the EROFS image, the layer it redirects to */
    gboolean readable;    /* every file is readable by everyone */
    guint64 files, directories, bytes;
} HearthdManifest;

#define HEARTHD_DATASET_DIGITS 32

static inline void hearthd_manifest_clear(HearthdManifest *m)
{
    g_clear_pointer(&m->dataset, g_free);
    g_clear_pointer(&m->path, g_free);
    g_clear_pointer(&m->objects, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HearthdManifest, hearthd_manifest_clear)

/* Counters of a served volume: bytes that were read, from the cache or Ceph, and objects in the
 * cache. */
typedef struct HearthdUse {
    guint64 bytes, objects;
} HearthdUse;

gboolean hearthd_use(HearthdLink *link, const char *volume, gint64 timeout_ms, HearthdUse *use,
                     GError **error);

/*
 * The manifest of an open volume that is a snapshot; waits so long for one that is being built.
 * FAILED_PRECONDITION, UNIMPLEMENTED: it cannot have one.
 */
gboolean hearthd_manifest(HearthdLink *link, const char *volume, gint64 wait_ms,
                          HearthdManifest *manifest, GError **error);
gboolean hearthd_detach(HearthdLink *link, const char *volume, gint64 timeout_ms, GError **error);
/* Whether hearthd serves the volume; *attached is FALSE for one it does not know. */
gboolean hearthd_is_attached(HearthdLink *link, const char *volume, gint64 timeout_ms,
                             gboolean *attached, GError **error);
/* The spec and a duplicate of the descriptor, both the caller's; the spec holds a secret:
 * node_spec_free(). */
json_t *hearthd_fetch(HearthdLink *link, const char *volume, gint64 timeout_ms, int *fuse_fd,
                      GError **error);

/* Begins to fetch everything below a path of an open volume, or joins a job that does;
 * bytes_per_second 0: no limit. NOT_FOUND: the path. */
gboolean hearthd_warm(HearthdLink *link, const char *volume, const char *path,
                      guint64 bytes_per_second, gint64 timeout_ms, guint64 *job, GError **error);
/* The answer to "job"; a new reference. */
json_t *hearthd_job(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error);
gboolean hearthd_cancel(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error);
/* Has hearthd read an image's size again. */
gboolean hearthd_resize(HearthdLink *link, const char *volume, gint64 timeout_ms, guint64 *bytes,
                        GError **error);
/* The answer to "status"; a new reference. */
json_t *hearthd_status(HearthdLink *link, gint64 timeout_ms, GError **error);
/* The volumes that Ceph has refused since they were opened while it was away: an array of IDs, a
 * new reference; NULL: hearthd does not report them. */
json_t *hearthd_refused(HearthdLink *link, gint64 timeout_ms);
/* All pages of "datasets" as one array; a new reference. */
json_t *hearthd_datasets(HearthdLink *link, gint64 timeout_ms, GError **error);
/* Whether hearthd is there and speaks our protocol. */
gboolean hearthd_probe(const char *socket_path, gint64 timeout_ms, GError **error);

#endif
