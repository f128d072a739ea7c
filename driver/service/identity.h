/* SPDX-License-Identifier: Apache-2.0 */
/* The CSI Identity service, the same in both roles but for what Probe looks at. */
#ifndef HEARTH_DRIVER_SERVICE_IDENTITY_H
#define HEARTH_DRIVER_SERVICE_IDENTITY_H

#include <glib.h>
#include "driver/rpc/server.h"

#define IDENTITY_DEFAULT_NAME "csi.hearth.dev"

typedef struct IdentityConfig {
    const char *driver_name, *version;
    gboolean group_controller; /* the plugin has a GroupController service, here or elsewhere */
    /* Whether the plugin can do its work now; a few seconds at most. */
    gboolean (*probe)(void *probe_data, GError **error);
    void *probe_data;
} IdentityConfig;

/*
 * CSI's rule for driver names: a domain name of at most 63 bytes, which begins and ends with a
 * letter or digit. INVALID_ARGUMENT.
 */
gboolean identity_check_name(const char *name, GError **error);

/* For rpc_server_add(), with the IdentityConfig as its service, which must outlive the server. */
const RpcMethod *identity_methods(void);

#endif
