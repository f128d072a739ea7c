/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CSI Node service (CSI 1.12): checks the arguments of a call, turns them into paths, flags and
 * a spec, and leaves the work to node/staging.h.
 */
#ifndef HEARTH_DRIVER_SERVICE_NODE_NODE_H
#define HEARTH_DRIVER_SERVICE_NODE_NODE_H

#include <glib.h>
#include "driver/backend/backend.h"
#include "driver/node/image/block.h"
#include "driver/node/hearthd/crush_location.h"
#include "driver/node/dataset/layers.h"
#include "driver/node/mount/mount.h"
#include "driver/rpc/server.h"

typedef struct NodeService NodeService;

/* Strings are copied. */
typedef struct NodeServiceConfig {
    const char *node_id;        /* the Kubernetes node's name; 1 to 256 bytes */
    const char *hearthd_socket; /* NULL: WIRE_DEFAULT_SOCKET */
    unsigned wait_sec;          /* how long reads of datasets wait for the next hearthd */
    const char *config_path;    /* the clusters (volume/config.h); NULL: CONFIG_DEFAULT_PATH */
    const char *device_dir;  /* where images are mounted for their devices; NULL: none are staged */
    const char *tier, *zone; /* checked here, reported by driver/warmth/reporter.h; "nvme" or
                                "none"; NULL or "": none */
    /* Domains of the node, NAME -> value (domains.h), and their prefix; both NULL: none. */
    GHashTable *domains;
    const char *domain_prefix;
    NodeMounter *mounter; /* NULL: the kernel's. Taken over, also on error */
    NodeBlock *block;     /* likewise */
    NodeLayers *layers;   /* likewise; NULL: the kernel's as dataset_mount says */
    LayersMode dataset_mount;
    /* Makes the backend to read volumes' records with (settings.h); NULL: they are not read. */
    Backend *(*records)(const char *config_path);
    CrushLocation *crush_location; /* of the node, borrowed; NULL: not known */
} NodeServiceConfig;

NodeService *node_service_new(const NodeServiceConfig *config, GError **error);
/* After the RPC server has stopped. Mounts stay. */
void node_service_free(NodeService *service);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeService, node_service_free)

/* For rpc_server_add(), with the NodeService as its service. */
const RpcMethod *node_service_methods(void);

/* Whether a volume that hearthd does not serve waits for the next hearthd, and fails no access. */
gboolean node_service_waits(NodeService *service, const char *volume);
/* Whether volumes can be staged: hearthd answers. */
gboolean node_service_probe(NodeService *service, GError **error);

#endif
