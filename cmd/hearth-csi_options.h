/* hearth-csi's flags. */
#ifndef HEARTH_CMD_HEARTH_CSI_OPTIONS_H
#define HEARTH_CMD_HEARTH_CSI_OPTIONS_H

#include <glib.h>
#include "driver/node/layers.h"

typedef struct Options {
    char *role, *endpoint, *driver_name, *cluster_config, *node_id, *hearthd_socket, *tier, *zone,
        *log_level, *dir_root, *secret_dir, *device_dir, *dataset_mount, *kubeconfig,
        *webhook_address, *webhook_cert_dir, *metrics_address, *registration_path,
        *registration_dir;
    const char *socket_path; /* of endpoint */
    LayersMode layers;
    gint max_clone_depth;
    gboolean warmth, version;
} Options;

/* G_OPTION_ERROR, which names the flag. Strings are left to the end of the process. */
gboolean options_parse(int *argc, char ***argv, Options *options, GError **error);

#endif
