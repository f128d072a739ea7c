/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hearth's Kubernetes client from the command line: what it sees of an API server, and how it takes
 * its restart.
 *
 *   kube-probe [--kubeconfig=FILE] get PATH
 *   kube-probe ... create|patch|apply|put PATH JSON    apply: server-side, as manager kube-probe
 *   kube-probe ... delete PATH
 *   kube-probe ... list GROUP/VERSION/PLURAL [PAGE]    "/v1/nodes" is of the core group
 *   kube-probe ... watch GROUP/VERSION/PLURAL SECONDS [LABELS]
 *   kube-probe ... lease NAMESPACE NAME SECONDS
 *
 * Prints an event a line, with the seconds since it began; at the end requests by method and
 * status. Exits with 1 for an error, which it prints.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/kube/error.h"
#include "driver/kube/lease/lease.h"
#include "driver/kube/watch/watch.h"

static gint64 began_us;

static void say(const char *format, ...) G_GNUC_PRINTF(1, 2);
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    printf("%8.3f %s\n", (double)(g_get_monotonic_time() - began_us) / 1e6, text);
    fflush(stdout);
}

static const char *meta(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return text ? text : "-";
}

static void on_change(KubeChange change, const json_t *object, void *data)
{
    (void)data;
    say("%s %s/%s %s", (const char *[]){"added", "modified", "deleted"}[change],
        meta(object, "namespace"), meta(object, "name"), meta(object, "resourceVersion"));
}

static void on_synced(void *data)
{
    (void)data;
    say("synced");
}

static void on_trouble(const GError *error, void *data)
{
    (void)data;
    say(error ? "trouble: %s" : "well again%s", error ? error->message : "");
}

static void on_gained(void *data)
{
    (void)data;
    say("gained");
}

static void on_lost(const GError *error, void *data)
{
    (void)data;
    say("lost: %s", error ? error->message : "given back");
}

static void on_object(const json_t *object, void *data)
{
    ++*(guint *)data;
    say("%s/%s %s", meta(object, "namespace"), meta(object, "name"),
        meta(object, "resourceVersion"));
}

static void on_count(const char *method, int status, guint64 count, void *data)
{
    (void)data;
    say("requests: %s %d: %" G_GUINT64_FORMAT, method, status, count);
}

static gboolean request(KubeClient *client, const char *verb, const char *path, const char *text,
                        GError **error)
{
    const char *method = g_str_equal(verb, "get")      ? "GET"
                         : g_str_equal(verb, "create") ? "POST"
                         : g_str_equal(verb, "put")    ? "PUT"
                         : g_str_equal(verb, "delete") ? "DELETE"
                                                       : "PATCH";
    json_t *body = text ? json_loads(text, 0, NULL) : NULL, *answer = NULL;
    const KubeRequest r = {.method = method,
                           .path = path,
                           .body = body,
                           .body_type =
                               g_str_equal(verb, "patch") ? KUBE_BODY_MERGE_PATCH : KUBE_BODY_JSON};
    const gboolean ok = g_str_equal(verb, "apply")
                            ? kube_apply(client, &r, "kube-probe", FALSE, &answer, error)
                            : kube_request(client, &r, &answer, error);
    if (ok && answer) {
        char *dumped = json_dumps(answer, JSON_COMPACT);
        say("%s", dumped);
        free(dumped);
    }
    json_decref(answer);
    json_decref(body);
    return ok;
}

static gboolean objects(KubeClient *client, const char *verb, char **argv, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(argv[0], "/", 3);
    if (g_strv_length(parts) != 3) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG, "%s is not GROUP/VERSION/PLURAL",
                    argv[0]);
        return FALSE;
    }
    KubeSelection s = {.resource = {parts[0], parts[1], parts[2]}};
    if (g_str_equal(verb, "list")) {
        guint count = 0;
        const KubeListing listing = {.page = argv[1] ? (guint)atoi(argv[1]) : 0,
                                     .timeout_ms = 30000,
                                     .on_object = on_object,
                                     .data = &count};
        const gboolean ok = kube_list(client, &s, &listing, NULL, error);
        say("%u objects", count);
        return ok;
    }
    static const KubeWatchOps ops = {on_change, on_synced, on_trouble};
    s.labels = argv[1] ? argv[2] : NULL;
    g_autoptr(KubeWatch) watch = kube_watch_new(client, &s, &ops, NULL, NULL);
    sleep(argv[1] ? (unsigned)atoi(argv[1]) : 10);
    const gint64 stop_us = g_get_monotonic_time();
    kube_watch_free(g_steal_pointer(&watch));
    say("stopped in %d ms", (int)((g_get_monotonic_time() - stop_us) / 1000));
    return TRUE;
}

static void compete(KubeClient *client, char **argv)
{
    static const KubeLeaseOps ops = {on_gained, on_lost, on_trouble};
    const KubeLeaseOptions options = {.namespace = argv[0], .name = argv[1]};
    g_autoptr(KubeLease) lease = kube_lease_new(client, &options, &ops, NULL);
    say("%s competes", kube_lease_identity(lease));
    sleep((unsigned)atoi(argv[2]));
}

int main(int argc, char **argv)
{
    const char *kubeconfig = NULL;
    int at = 1;
    g_autoptr(GError) error = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    began_us = g_get_monotonic_time();
    if (at < argc && g_str_has_prefix(argv[at], "--kubeconfig="))
        kubeconfig = strchr(argv[at++], '=') + 1;
    if (argc - at < 2) {
        fprintf(stderr, "usage: see the head of tests/tools/kube-probe.c\n");
        return 2;
    }
    KubeConfig *config = kube_config_load(kubeconfig, &error);
    if (!config) {
        fprintf(stderr, "kube-probe: %s\n", error->message);
        return 1;
    }
    g_autoptr(KubeClient) client = kube_client_new(config, NULL);
    gboolean ok = TRUE;
    if (g_str_equal(argv[at], "list") || g_str_equal(argv[at], "watch"))
        ok = objects(client, argv[at], argv + at + 1, &error);
    else if (g_str_equal(argv[at], "lease") && argc - at == 4)
        compete(client, argv + at + 1);
    else
        ok = request(client, argv[at], argv[at + 1], argv[at + 2], &error);
    if (!ok)
        say("error: %s (status %d, reason \"%s\")", error->message, kube_error_status(error),
            kube_error_reason(error));
    kube_client_each_count(client, on_count, NULL);
    return ok ? 0 : 1;
}
