/* SPDX-License-Identifier: Apache-2.0 */
/* What hearthd answers: one table of operations over the volumes, the jobs and the store. */
#ifndef HEARTH_CACHE_CONTROL_OPS_H
#define HEARTH_CACHE_CONTROL_OPS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include "cache/control/connections.h"
#include "cache/warm/jobs.h"
#include "cache/volume/volumes.h"
#include "cache/store/store.h"
#include "cache/report/uses.h"

typedef struct Control {
    Volumes *volumes;
    Jobs *jobs;
    Store *store;          /* NULL: off */
    Datasets *datasets;    /* NULL: no cache */
    ImageCache *images;    /* NULL: none */
    const char *cache_dir; /* NULL: none */
    const char *dir_root;  /* for origins of type dir; NULL: none are served */
    uint64_t warm_rate;    /* of jobs that an attach begins, bytes a second; 0: no bound */
    gint64 started_us;
} Control;

/*
 * Handles one request and makes its reply (caller's). `peer` is logged. Takes `fd`, the
 * descriptor that came with the request (-1: none); *reply_fd gets the caller's to send, or -1.
 */
json_t *ops_dispatch(Control *control, const ConnectionPeer *peer, const json_t *request, int fd,
                     int *reply_fd);

/* metrics.h's text, the caller's. Reads small files of the cache directory. */
GBytes *ops_metrics(Control *control);

ReportUses ops_uses(const Control *control, const StoreStats *stats);

#endif
