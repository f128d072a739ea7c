/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP exchange with the API server, over connections that are kept (libcurl). Retries
 * and JSON are in client.h.
 *
 * HTTP/1.1, one exchange at a time on a connection. HTTP/2 would put all watches and writes into
 * one TCP connection, where one that hangs stops the others, and would only save a few connections.
 * Each exchange has a multi handle because that can be woken up: a cancelled exchange ends at once.
 * Redirects and proxies are not followed: a token goes only to the API server.
 */
#ifndef HEARTH_DRIVER_KUBE_TRANSPORT_H
#define HEARTH_DRIVER_KUBE_TRANSPORT_H

#include <gio/gio.h>
#include "driver/kube/config.h"

/* Thread-safe. */
typedef struct KubeTransport KubeTransport;

/* config is borrowed until kube_transport_free(). Every exchange must have ended by then. */
KubeTransport *kube_transport_new(const KubeConfig *config);
void kube_transport_free(KubeTransport *transport);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeTransport, kube_transport_free)

typedef struct KubeExchange {
    const char *method;
    const char *target;       /* path and query, escaped */
    const char *content_type; /* of the body */
    const char *accept;       /* NULL: application/json */
    const char *body;         /* NULL: none */
    gsize body_bytes;
    const char *token;    /* NULL: none */
    gint64 timeout_ms;    /* of all of it */
    gsize answer_max;     /* bytes; more is MALFORMED */
    GCancellable *cancel; /* may be NULL */
    /*
     * Called with the body of a success as it arrives, without a limit, and before that with size 0
     * at the end of the headers. FALSE ends the exchange with the error. NULL: the body is in
     * `answer`.
     */
    gboolean (*on_bytes)(const char *bytes, gsize size, void *data, GError **error);
    void *data;

    int status;            /* 0: none came */
    gint64 retry_after_ms; /* -1: none; an hour at most */
    GString *answer;
    gboolean unsent; /* it failed, and the server has certainly not seen the request */
} KubeExchange;

/* TRUE for any HTTP status. UNREACHABLE, DEADLINE, CANCELLED, MALFORMED. */
gboolean kube_exchange(KubeTransport *transport, KubeExchange *exchange, GError **error);
void kube_exchange_clear(KubeExchange *exchange);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KubeExchange, kube_exchange_clear)

#endif
