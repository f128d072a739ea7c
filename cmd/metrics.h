/* --metrics-address of a program: GET /metrics and /healthz over plain HTTP. */
#ifndef HEARTH_CMD_METRICS_H
#define HEARTH_CMD_METRICS_H

#include <glib.h>
#include "driver/http/server.h"

typedef struct MetricsServer MetricsServer;

/* text: makes the text (cache/report/openmetrics.h), on the server's thread. Errors: those of
 * driver/http/address.h. */
MetricsServer *metrics_server_new(const char *address, GBytes *(*text)(void *data), void *data,
                                  GError **error);
/* Joins its thread. NULL is fine. */
void metrics_server_free(MetricsServer *server);

#endif
