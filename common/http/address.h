/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server listens: "ADDRESS:PORT" as Kubernetes' own programs take it. ":9443" is all
 * addresses, of both families where there are both; an IPv6 address is in brackets. No names are
 * looked up.
 */
#ifndef HEARTH_COMMON_HTTP_ADDRESS_H
#define HEARTH_COMMON_HTTP_ADDRESS_H

#include <glib.h>

/* A listening socket, not blocking, CLOEXEC, or -1. `what` begins the messages: INVALID_ARGUMENT
 * for what is no address, FAILED_PRECONDITION (HEARTH_ERROR) for one that cannot be had. Port 0 is
 * any.
 */
int http_listen(const char *address, const char *what, GError **error);
/* Of a socket that listens. */
guint16 http_port_of(int fd);

#endif
