/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting in another network than the process's own: "netNamespaceFilePath" of config.json, for
 * nodes that reach Ceph by an interface of its own (Multus). The node plugin has the rights for it.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_NET_NAMESPACE_H
#define HEARTH_DRIVER_BACKEND_CEPH_NET_NAMESPACE_H

#include <glib.h>

/*
 * From here on this thread, and threads that it starts, make their sockets there; so do Ceph's
 * libraries for what is connected by it. There is no way back. FAILED_PRECONDITION names the file;
 * NULL: nothing is done.
 */
gboolean net_namespace_enter(const char *path, GError **error);

/* reach_explicit() as seen from there; NULL: from here. */
char **net_namespace_reach(const char *path, char *const *monitors, gint64 deadline_us,
                           GError **error);

#endif
