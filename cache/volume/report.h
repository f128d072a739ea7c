/* SPDX-License-Identifier: Apache-2.0 */
/* One volume at one moment, for "status", "volumes" and the metrics. */
#ifndef HEARTH_CACHE_VOLUME_REPORT_H
#define HEARTH_CACHE_VOLUME_REPORT_H

#include <glib.h>
#include <stdint.h>
#include "cache/fuse/stats.h"

/* Owns its strings, unless they are const. */
typedef struct VolumeReport {
    char *volume, *cluster_id, *fs_name, *root_path;
    char *name;       /* common/volume_name.h */
    char *claim, *pv; /* "": not known */
    const char *type; /* of its origin */
    gboolean mounted; /* a mount was attached; it may be gone since */
    gboolean attached, cache, read_only, pinned;
    gboolean rests;       /* it has no connection to Ceph, because nobody has used it for a while */
    const char *uncached; /* why nothing is cached though it should be; NULL: it is */
    int64_t bytes_total;  /* -1: not known */
    char *dataset;        /* NULL: it is none, or its manifest was not asked for */
    int64_t files_total;  /* of a dataset; -1: not known */
    uint64_t bytes_cached, objects;
    FuseStats served;
} VolumeReport;

/* NULL is fine. */
void volume_report_free(VolumeReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeReport, volume_report_free)

#endif
