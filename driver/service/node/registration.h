/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the node plugin known to kubelet by itself, in place of a node-driver-registrar beside it
 * (proto/pluginregistration.proto; the flags have the registrar's names).
 *
 * kubelet watches a directory for sockets, whenever it starts too, asks the one that appears who it
 * is, calls the driver at the endpoint it is told, and says how that went. It forgets the driver
 * when the socket goes. One that it could not register it takes for done and does not try again
 * until there is a new socket (Kubernetes 1.36 too), so whoever is refused has to end and start
 * anew.
 */
#ifndef HEARTH_DRIVER_SERVICE_NODE_REGISTRATION_H
#define HEARTH_DRIVER_SERVICE_NODE_REGISTRATION_H

#include <glib.h>

#define REGISTRATION_DEFAULT_DIR "/registration"

typedef struct Registration Registration;

typedef struct RegistrationConfig {
    const char *driver_name;
    const char *endpoint;  /* path of the driver's socket, as kubelet sees it */
    const char *directory; /* kubelet's plugins_registry, as we see it */
    /* kubelet has said why it cannot register the driver, which is logged. On a thread of the
     * registration's: must not stop it. */
    void (*refused)(void *data);
    void *refused_data;
} RegistrationConfig;

/* INVALID_ARGUMENT of HEARTH_ERROR for an endpoint that kubelet could not connect to, whatever is
 * there. */
gboolean registration_check_endpoint(const char *endpoint, GError **error);

/*
 * Serves DIRECTORY/<driver>-reg.sock; a socket that a dead process left there is replaced. To be
 * called when the driver serves its endpoint. Copies the configuration. Errors in G_IO_ERROR.
 */
Registration *registration_start(const RegistrationConfig *config, GError **error);
/* Removes the socket and joins the threads. Takes NULL. */
void registration_stop(Registration *registration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Registration, registration_stop)

#endif
