/* SPDX-License-Identifier: Apache-2.0 */
/* --metrics-address of a program: GET /metrics and /healthz, over TLS with --metrics-cert-dir. */
#ifndef HEARTH_COMMON_METRICS_SERVE_H
#define HEARTH_COMMON_METRICS_SERVE_H

#include <glib.h>
#include "common/http/server.h"

typedef struct MetricsConfig {
    char *address;   /* common/http/address.h; NULL: off */
    char *cert_dir;  /* common/http/certificate.h; NULL: plain HTTP */
    char *client_ca; /* common/http/authorities.h; NULL: every client is answered */
} MetricsConfig;

#define METRICS_OPTIONS(config)                                                                    \
    {"metrics-address",                                                                            \
     0,                                                                                            \
     0,                                                                                            \
     G_OPTION_ARG_STRING,                                                                          \
     &(config)->address,                                                                           \
     "Serve /metrics for Prometheus, and /healthz (default: off)",                                 \
     "ADDRESS:PORT"},                                                                              \
        {"metrics-cert-dir",                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         G_OPTION_ARG_FILENAME,                                                                    \
         &(config)->cert_dir,                                                                      \
         "Over TLS: a mounted Secret with tls.crt and tls.key (default: plain HTTP)",              \
         "DIR"},                                                                                   \
    {                                                                                              \
        "metrics-client-ca", 0, 0, G_OPTION_ARG_FILENAME, &(config)->client_ca,                    \
            "With it: answer only clients with a certificate of these authorities (default: "      \
            "anyone)",                                                                             \
            "FILE"                                                                                 \
    }

typedef struct MetricsServer MetricsServer;

/* Flags that do not go together: G_OPTION_ERROR. */
gboolean metrics_check(const MetricsConfig *config, GError **error);
void metrics_config_clear(MetricsConfig *config);

/* text: makes the text (common/metrics/openmetrics.h), on the server's thread. Errors: those of
 * common/http/server.h. */
MetricsServer *metrics_server_new(const MetricsConfig *config, GBytes *(*text)(void *data),
                                  void *data, GError **error);
/* Joins its thread. NULL is fine. */
void metrics_server_free(MetricsServer *server);

#endif
