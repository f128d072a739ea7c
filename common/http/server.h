/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP/1.1 server, with or without TLS, over libmicrohttpd: a table of what is answered,
 * each answer made from the whole request at once. For what clusters ask of us beside CSI:
 * admission reviews, metrics, health.
 *
 * Everything happens on one thread of the server's, handlers too: they take nothing that is long
 * held, and wait for nothing. So there is no lock here, and a request costs no switch of threads.
 *
 * What anyone who reaches the port can take is bounded: connections; bytes of a body, and of all
 * bodies together; a request that is not complete in time ends with its connection, however slowly
 * it dribbles. Answers to what is not served: 404, 405, 413 for a body that is too large, 503 when
 * all bodies together are.
 *
 * Alternative rejected: libmicrohttpd's own threads. Its timeout begins anew with each byte.
 *
 * Source: RFC 9110, RFC 9112.
 */
#ifndef HEARTH_COMMON_HTTP_SERVER_H
#define HEARTH_COMMON_HTTP_SERVER_H

#include <glib.h>

typedef struct HttpRequest {
    const char *method, *path;
    const char *content_type; /* NULL: none was named */
    const char *body;         /* with a NUL behind it */
    gsize size;
} HttpRequest;

typedef struct HttpReply {
    guint status;             /* 200 when a handler begins */
    const char *content_type; /* a literal; "text/plain; charset=utf-8" when a handler begins */
    GBytes *body;             /* the handler's reference is taken over; NULL: none */
} HttpReply;

typedef struct HttpRoute {
    const char *method, *path; /* literals; without a query, which is passed over */
    void (*handle)(const HttpRequest *request, HttpReply *reply, void *data);
    void *data;
} HttpRoute;

typedef struct HttpServerConfig {
    const char *address;     /* address.h */
    const char *what;        /* "--webhook-address": begins messages of the address */
    const char *certificate; /* directory (certificate.h); NULL: without TLS */
    const char *client_ca;   /* a file (authorities.h): who shows no client certificate of theirs is
                              * answered 401 before a body is taken; NULL: anyone may ask */
    const char *client_ca_flag; /* "--webhook-client-ca": begins messages of it */
    const HttpRoute *routes;    /* copied */
    gsize n_routes;
    guint connections; /* 0: 64 */
    gsize body_max;    /* bytes; 0: 64 KiB */
    gsize bodies_max;  /* of all that are being received; 0: 8 MiB, or body_max if that is more */
    gint64 request_ms; /* to receive a request, and to take the answer; 0: 10 s */
    gint64 idle_ms;    /* between two of a connection. 0: 120 s, for a client that reuses one
                        * which we are closing fails, and Go's close theirs after 90 s */
    /* As http_rotation_new()'s, on the server's thread. */
    void (*on_certificate)(const GError *error, gint64 expires_s, void *data);
    /* As http_authorities_new()'s, on the server's thread. */
    void (*on_authorities)(const GError *error, void *data);
    void *data;
} HttpServerConfig;

typedef struct HttpServer HttpServer;

/* Listens and serves when it returns. Errors: those of address.h, certificate.h and authorities.h.
 */
HttpServer *http_server_new(const HttpServerConfig *config, GError **error);
/* Closes all connections and joins the thread; what is being answered is cut off. */
void http_server_free(HttpServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpServer, http_server_free)

guint16 http_server_port(const HttpServer *server);
/* Seconds since 1970; 0 without TLS. Of the certificate it began with. */
gint64 http_server_expires_s(const HttpServer *server);

#endif
