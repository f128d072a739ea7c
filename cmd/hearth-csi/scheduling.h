/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wires up warm-aware scheduling for the role of a process (docs/design/warmth.md). All controllers
 * watch; the one that holds the lease writes.
 */
#ifndef HEARTH_CMD_HEARTH_CSI_SCHEDULING_H
#define HEARTH_CMD_HEARTH_CSI_SCHEDULING_H

#include <glib.h>
#include "driver/warmth/reporter.h"
#include "driver/warmth/warmth.h"
#include "driver/warmup/task.h"

#define SCHEDULING_LEASE "hearth-controller"

typedef struct Scheduling Scheduling;

/* kubeconfig: NULL: as kube_config_load() finds one. cluster_config: see driver/cluster/config.h.
 * KUBE_ERROR_CONFIG. */
Scheduling *scheduling_of_controller(const char *kubeconfig, const char *driver_name,
                                     const char *cluster_config, GError **error);
Scheduling *scheduling_of_node(const char *kubeconfig, const ReporterNode *node,
                               const WarmupConfig *config, GError **error);
void scheduling_free(Scheduling *scheduling);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Scheduling, scheduling_free)

/* Of a controller; borrowed. */
Warmth *scheduling_warmth(Scheduling *scheduling);
/* Borrowed: how to reach Kubernetes. */
KubeClient *scheduling_client(Scheduling *scheduling);

/* Of a controller: whether it has the lease. */
gboolean scheduling_leads(Scheduling *scheduling);

#endif
