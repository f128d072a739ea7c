/* SPDX-License-Identifier: Apache-2.0 */
/* hearthd's control socket: accepts connections and serves the protocol of docs/design/protocol.md.
 */
#ifndef HEARTH_CACHE_CONTROL_SERVER_H
#define HEARTH_CACHE_CONTROL_SERVER_H

#include <glib.h>
#include "cache/store/store.h"

typedef struct ControlServer ControlServer;

typedef struct ControlServerConfig {
    const char *socket_path;
    Store *store;               /* borrowed; NULL: off */
    const char *cache_dir;      /* shown in status; NULL: none */
    const char *dir_root;       /* of origins of type dir; NULL: none are served */
    uint32_t image_chunk_bytes; /* what a miss in an image reads of Ceph; 0: its default */
    uint64_t warm_rate;         /* of jobs that an attach begins, bytes a second; 0: no bound */
} ControlServerConfig;

/* Listens when this returns. Keeps "<socket>.run" beside it (cache/volume/incarnation.h). */
ControlServer *control_server_start(const ControlServerConfig *config, GError **error);
/*
 * No new requests; jobs are cancelled, sessions stopped, all volumes at once, origins closed;
 * removes the socket file; frees. FALSE: something still waits for Ceph after timeout_ms. Nothing
 * is freed then, and threads are at work: the process ends, or this is called again. NULL is fine.
 */
gboolean control_server_stop(ControlServer *server, gint64 timeout_ms);

/* Its metrics (cache/report/metrics.h); the caller's. From any thread. */
GBytes *control_server_metrics(ControlServer *server);

#endif
