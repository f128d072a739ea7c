/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hearth-csi. */
#ifndef HEARTH_CMD_HEARTH_CSI_OPTIONS_H
#define HEARTH_CMD_HEARTH_CSI_OPTIONS_H

#include <glib.h>
#include "common/metrics/serve.h"
#include "driver/node/dataset/layers.h"

typedef struct Options {
    char *role, *endpoint, *driver_name, *cluster_config, *node_id, *hearthd_socket, *tier, *zone,
        *log_level, *log_format, *dir_root, *secret_dir, *device_dir, *dataset_mount, *kubeconfig,
        *webhook_address, *webhook_cert_dir, *webhook_client_ca, *registration_path,
        *registration_dir, *cluster_name, *domain_labels;
    const char *socket_path; /* of endpoint */
    MetricsConfig metrics;
    char **domains; /* of domain_labels; NULL: none */
    LayersMode layers;
    gint max_clone_depth, hearthd_wait_sec;
    gboolean set_metadata, warmth, version;
} Options;

/* G_OPTION_ERROR, which names the flag. Strings live until the process ends. */
gboolean options_parse(int *argc, char ***argv, Options *options, GError **error);

#endif
