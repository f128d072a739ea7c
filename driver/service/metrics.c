/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/metrics.h"
#include "driver/backend/ceph/conn.h"

static void tell_request(const char *method, int status, guint64 count, void *data)
{
    g_autofree char *code = status ? g_strdup_printf("%d", status) : g_strdup("none");
    openmetrics_add(data, count, "method", method, "code", code, NULL);
}

GBytes *service_metrics_text(const ServiceMetrics *s)
{
    OpenMetrics *m = openmetrics_new();
    openmetrics_family(m, OPENMETRICS_INFO, "hearth_csi_build", "What runs");
    openmetrics_add(m, 1, "version", HEARTH_VERSION, "role", s->role, NULL);
    openmetrics_family(m, OPENMETRICS_GAUGE, "hearth_csi_uptime_seconds", "Since it was started");
    openmetrics_add_seconds(
        m, (double)(g_get_monotonic_time() - s->started_us) / G_TIME_SPAN_SECOND, NULL);
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "hearth_csi_call_seconds",
                       "CSI calls, by method and gRPC code");
    timings_tell(call_log_timings(s->calls), m, "method", "code");
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "hearth_ceph_call_seconds",
                       "Calls to Ceph that manage volumes; late: it did not answer in time");
    timings_tell(ceph_timings(), m, "operation", "result");
    if (s->kube) {
        openmetrics_family(m, OPENMETRICS_COUNTER, "hearth_kube_requests",
                           "Requests to the API server, each try; code none: no answer came");
        kube_client_each_count(s->kube, tell_request, m);
    }
    if (s->kube && s->controller) {
        openmetrics_family(m, OPENMETRICS_GAUGE, "hearth_csi_leader",
                           "1 while this controller has the lease");
        openmetrics_add(m, s->leads, NULL);
    }
    if (s->lost >= 0) {
        openmetrics_family(m, OPENMETRICS_GAUGE, "hearth_csi_lost_mounts",
                           "Mounts of pods that hearthd does not serve since it was restarted");
        openmetrics_add(m, (guint64)s->lost, NULL);
    }
    return openmetrics_end(m);
}
