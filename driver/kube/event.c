/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/event.h"
#include "driver/kube/error.h"
#include "driver/kube/resource.h"
#include "driver/kube/time.h"

#define WRITE_MS 15000
/* A name has 253 bytes at most. */
#define PREFIX_MAX 220
#define DIGITS 16
/* The API server refuses longer messages. */
#define MESSAGE_MAX 1024

static const KubeResource events = {"", "v1", "events"};

char *kube_event_name(const char *prefix, const char *about)
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, about, -1);
    return g_strdup_printf("%.*s.%.*s", PREFIX_MAX, prefix, DIGITS, sum);
}

static char *shortened(const char *message)
{
    g_autofree char *start = g_strndup(message, MESSAGE_MAX);
    return g_utf8_make_valid(start, -1);
}

static json_t *object_of(const KubeEvent *e)
{
    g_autofree char *now = kube_time_format(g_get_real_time());
    g_autofree char *message = shortened(e->message);
    const char *namespace = e->namespace ? e->namespace : "default";
    json_t *about = json_pack("{s:s, s:s, s:s*, s:s, s:s}", "apiVersion", e->api_version, "kind",
                              e->kind, "namespace", e->namespace, "name", e->object, "uid", e->uid);
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s, s:s, s:{s:s}, s:s, s:s, s:i, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "namespace", namespace, "name", e->name,
        "involvedObject", about, "type", e->warning ? "Warning" : "Normal", "reason", e->reason,
        "message", message, "source", "component", "hearth-controller", "firstTimestamp", now,
        "lastTimestamp", now, "count", 1, "reportingComponent", "csi.hearth.dev",
        "reportingInstance", g_get_host_name());
}

gboolean kube_event_post(KubeClient *client, const KubeEvent *event, GCancellable *cancel,
                         GError **error)
{
    g_autofree char *path =
        kube_path(&events, event->namespace ? event->namespace : "default", NULL, NULL);
    json_auto_t *body = object_of(event);
    const KubeRequest request = {
        .method = "POST", .path = path, .body = body, .timeout_ms = WRITE_MS, .cancel = cancel};
    g_autoptr(GError) cause = NULL;
    if (kube_request(client, &request, NULL, &cause) ||
        g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_ALREADY_EXISTS))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}
