/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How clients of one cluster are configured, in addition to user, key and monitors: options that
 * the administrator has set, where in the CRUSH map the node is, in which network they connect. One
 * for CephFS and images alike.
 */
#ifndef HEARTH_CACHE_ORIGIN_CEPH_CLIENT_H
#define HEARTH_CACHE_ORIGIN_CEPH_CLIENT_H

#include <glib.h>

/* Borrowed, but for copies. */
typedef struct CephClient {
    const char *cluster; /* its ID, for messages */
    char *const *conf;   /* name, value, name, value, ..., NULL; NULL: none */
    const char
        *crush_location; /* "zone=a host=b": reads go to the nearest copy; NULL: they do not */
    const char *net_namespace; /* path of the file of the network namespace; NULL: the process's */
} CephClient;

/* *to is a copy of its own, which is cleared by the other. */
void ceph_client_copy(CephClient *to, const CephClient *from);
void ceph_client_clear(CephClient *copy);
gboolean ceph_client_same(const CephClient *a, const CephClient *b);

/*
 * Sets the options by `set`, which is rados_conf_set() or ceph_conf_set() on `handle`: after
 * Hearth's own. INVALID_ARGUMENT of G_IO_ERROR names cluster and option.
 */
gboolean ceph_client_configure(const CephClient *client,
                               int (*set)(void *handle, const char *name, const char *value),
                               void *handle, GError **error);

/*
 * From here on this thread, and threads that it starts, make their sockets in the cluster's network
 * namespace: Ceph's libraries start the threads that connect from the one that makes the client.
 * There is no way back, so call it on a thread of its own. FAILED of G_IO_ERROR names the file and
 * what to do.
 */
gboolean ceph_client_enter_network(const CephClient *client, GError **error);

#endif
