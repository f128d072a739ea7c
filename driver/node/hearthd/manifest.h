/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hearthd tells of datasets: the manifest of a volume that is open (hearthd.h), the datasets
 * that it has, and the volumes of datasets that Ceph has refused. Errors are as in link.h.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_MANIFEST_H
#define HEARTH_DRIVER_NODE_HEARTHD_MANIFEST_H

#include "driver/node/hearthd/link.h"

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

/*
 * The manifest of an open volume that is a snapshot; waits so long for one that is being built.
 * FAILED_PRECONDITION, UNIMPLEMENTED: it cannot have one.
 */
gboolean hearthd_manifest(HearthdLink *link, const char *volume, gint64 wait_ms,
                          HearthdManifest *manifest, GError **error);
/* Waits until it is ready. hearthd serves a layer only then, and only to a volume that has asked
 * for it. ABORTED: it is being built again. */
gboolean hearthd_await_manifest(HearthdLink *link, const char *volume, gint64 timeout_ms,
                                GError **error);
/* The volumes that Ceph has refused since they were opened while it was away: an array of IDs, a
 * new reference; NULL: hearthd does not report them. */
json_t *hearthd_refused(HearthdLink *link, gint64 timeout_ms);
/* All pages of "datasets" as one array; a new reference. */
json_t *hearthd_datasets(HearthdLink *link, gint64 timeout_ms, GError **error);

#endif
