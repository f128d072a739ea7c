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
 * Where a user of the driver's own is (volume/secret_dir.h). Without one, what CSI asks without a
 * secret is not advertised: lists, capacity, single volumes.
 */
void controller_set_secret_dir(Controller *controller, const char *dir);
/*
 * Whether volumes and snapshots are to have the names of the objects of Kubernetes they are for as
 * metadata in Ceph, and the cluster's name, NULL for none; not without a call of this.
 */
void controller_set_metadata(Controller *controller, gboolean set, const char *cluster_name);
/* Labels of nodes by which classes may constrain pools (service/domains.h); copied. */
void controller_set_domains(Controller *controller, const char *driver_name, char *const *labels);
/* INVALID_ARGUMENT. */
gboolean controller_check_cluster_name(const char *name, GError **error);
/* What GetCapacity tells of nodes; borrowed. Without it, none is better than another. */
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
