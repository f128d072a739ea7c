/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CSI Controller service (CSI 1.12). It keeps nothing: a volume's ID says where it is, its
 * record in Ceph says what was asked for, and a repeated call rolls forward whatever the last one
 * left.
 */
#ifndef HEARTH_DRIVER_SERVICE_CONTROLLER_CONTROLLER_H
#define HEARTH_DRIVER_SERVICE_CONTROLLER_CONTROLLER_H

#include <glib.h>
#include "driver/backend/backend.h"
#include "driver/rpc/server.h"
#include "driver/warmth/warmth.h"

typedef struct Controller Controller;

/* Takes over `n` backends, one for a type at most; none may be NULL. */
Controller *controller_new(Backend *const *backends, gsize n);
/* After the RPC server has stopped. */
void controller_free(Controller *controller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Controller, controller_free)

/*
 * The directory of the driver's own Ceph user (driver/cluster/secret_dir.h). Without one, the calls
 * that carry no secret in CSI are not advertised: lists, capacity, single volumes.
 */
void controller_set_secret_dir(Controller *controller, const char *dir);
/*
 * Whether to store the names of Kubernetes' objects (claim, volume, snapshot) as metadata in Ceph,
 * and with them the cluster's name (NULL: none). Off by default.
 */
void controller_set_metadata(Controller *controller, gboolean set, const char *cluster_name);
/* Labels of nodes by which classes may constrain pools (driver/service/node/domains.h); copied. */
void controller_set_domains(Controller *controller, const char *driver_name, char *const *labels);
/* INVALID_ARGUMENT. */
gboolean controller_check_cluster_name(const char *name, GError **error);
/* How warm datasets are on nodes, for GetCapacity; borrowed. Without it, all nodes are equal. */
void controller_set_warmth(Controller *controller, Warmth *warmth);

/* For rpc_server_add(), with the Controller as its service. */
const RpcMethod *controller_methods(void);
/* The GroupController service, of the same Controller. */
const RpcMethod *controller_group_methods(void);
/* Whether some backend can snapshot several volumes at one moment, so that there is such a service.
 */
gboolean controller_has_groups(const Controller *controller);

/* Every backend's probe, within 2 s; for IdentityConfig.probe with the Controller as its data. */
gboolean controller_probe(void *controller, GError **error);

#endif
