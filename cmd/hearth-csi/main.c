/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth-csi: the CSI plugin, in one of two roles. Wiring; see hearth-csi(8). All work is
 * in driver/: Identity and, by role, Controller or Node, on one unix socket.
 */
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/wire.h"
#include "cmd/hearth-csi/audit.h"
#include "cmd/hearth-csi/cleanup.h"
#include "cmd/hearth-csi/linger.h"
#include "cmd/hearth-csi/options.h"
#include "cmd/hearth-csi/probe.h"
#include "common/descriptor_limit.h"
#include "common/log.h"
#include "common/metrics/serve.h"
#include "common/no_cores.h"
#include "driver/node/lost.h"
#include "driver/backend/backend.h"
#include "driver/rpc/server.h"
#include "driver/service/call_log.h"
#include "driver/service/controller/controller.h"
#include "driver/service/node/domains.h"
#include "driver/service/identity.h"
#include "driver/service/metrics.h"
#include "driver/service/node/node.h"
#include "driver/service/node/registration.h"
#include "cmd/hearth-csi/scheduling.h"
#include "driver/affinity/webhook.h"

/* Kubernetes kills a pod 30 s after SIGTERM. */
#define GRACE_MS 20000
/* As many as a connection has calls: calls that hang do not keep others from starting. */
#define WORKERS 128

static gboolean probe_node(void *service, GError **error)
{
    return node_service_probe(service, error);
}

static gboolean volume_waits(void *service, const char *volume)
{
    return node_service_waits(service, volume);
}

/* The services of the role. */
typedef struct Role {
    LostQuery lost; /* of a node */
    Controller *controller;
    NodeService *node;
    Scheduling *scheduling; /* NULL: without --warmth */
    Webhook *webhook;       /* NULL: without --webhook-address */
    CrushLocation *crush_location;
    CallLog *calls;
    gint64 started_us;
    IdentityConfig identity;
} Role;

static GHashTable *read_domains(const Options *o, GError **error)
{
    GHashTable *domains = domains_of_node(o->kubeconfig, o->node_id, o->domains, error);
    const char *zone = domains ? g_hash_table_lookup(domains, "zone") : NULL;
    if (!zone || !o->zone || !*o->zone || strcmp(zone, o->zone) == 0)
        return domains;
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                "--zone=%s: the node's label of --domainlabels is %s; leave --zone out", o->zone,
                zone);
    g_hash_table_unref(domains);
    return NULL;
}

/* A domain "zone" has the same label as --zone, so both must have the same value. */
static const char *zone_of(const Options *o, GHashTable *domains)
{
    const char *zone = domains ? g_hash_table_lookup(domains, "zone") : NULL;
    return zone ? zone : o->zone;
}

static gsize make_backends(const Options *o, Backend **backends, GError **error)
{
    gsize n = 0;
    if (o->dir_root) {
        backends[n] = backend_dir_new(o->dir_root, error);
        if (!backends[n++])
            return 0;
    }
    /* With --dir-root alone there is no cluster to provision on or to probe. */
    if (!o->dir_root || g_file_test(o->cluster_config, G_FILE_TEST_EXISTS)) {
        backends[n++] = backend_cephfs_new(o->cluster_config);
        backends[n++] = backend_rbd_new(o->cluster_config, (guint)o->max_clone_depth);
    }
    return n;
}

static gboolean make_scheduling(Role *role, const Options *o, GError **error)
{
    role->scheduling =
        scheduling_of_controller(o->kubeconfig, o->driver_name, o->cluster_config, error);
    if (!role->scheduling)
        return FALSE;
    controller_set_warmth(role->controller, scheduling_warmth(role->scheduling));
    if (!o->webhook_address)
        return TRUE;
    const WebhookConfig webhook = {.address = o->webhook_address,
                                   .certificate = o->webhook_cert_dir,
                                   .client_ca = o->webhook_client_ca};
    role->webhook = webhook_new(scheduling_client(role->scheduling), &webhook, error);
    return role->webhook != NULL;
}

static gboolean make_controller(Role *role, const Options *o, GError **error)
{
    Backend *backends[3];
    const gsize n = make_backends(o, backends, error);
    if (n == 0)
        return FALSE;
    role->controller = controller_new(backends, n);
    controller_set_secret_dir(role->controller, o->secret_dir);
    if (o->domains)
        controller_set_domains(role->controller, o->driver_name, o->domains);
    controller_set_metadata(role->controller, o->set_metadata, o->cluster_name);
    if (o->warmth && !make_scheduling(role, o, error))
        return FALSE;
    role->identity.group_controller = controller_has_groups(role->controller);
    role->identity.probe = controller_probe;
    role->identity.probe_data = role->controller;
    return TRUE;
}

static gboolean make_node(Role *role, const Options *o, GError **error)
{
    raise_descriptor_limit(); /* two for each mount (driver/node/hearthd/keeper.h) */
    g_autoptr(GHashTable) domains = NULL;
    g_autofree char *prefix = domains_prefix(o->driver_name);
    role->crush_location = crush_location_new(o->kubeconfig, o->node_id);
    if (o->domains) {
        domains = read_domains(o, error);
        if (!domains)
            return FALSE;
    }
    const char *zone = zone_of(o, domains);
    const NodeServiceConfig config = {.node_id = o->node_id,
                                      .domains = domains,
                                      .domain_prefix = prefix,
                                      .hearthd_socket = o->hearthd_socket,
                                      .wait_sec = (unsigned)o->hearthd_wait_sec,
                                      .config_path = o->cluster_config,
                                      .device_dir = o->device_dir,
                                      .dataset_mount = o->layers,
                                      .tier = o->tier,
                                      .zone = zone,
                                      .records = backend_cephfs_new_on_node,
                                      .crush_location = role->crush_location};
    role->node = node_service_new(&config, error);
    if (!role->node)
        return FALSE;
    const WarmupConfig warmup = {.hearthd_socket = o->hearthd_socket,
                                 .cluster_config = o->cluster_config,
                                 .secret_dir = o->secret_dir,
                                 .crush_location = role->crush_location};
    role->lost =
        (LostQuery){.hearthd_socket = o->hearthd_socket, .waits = volume_waits, .data = role->node};
    const ReporterNode here = {
        .name = o->node_id, .tier = o->tier, .zone = zone, .lost = role->lost};
    if (o->warmth) {
        role->scheduling = scheduling_of_node(o->kubeconfig, &here, &warmup, error);
        if (!role->scheduling)
            return FALSE;
    }
    /* A capability of the plugin as a whole: every instance reports it (CSI,
     * GetPluginCapabilities). */
    role->identity.group_controller = TRUE;
    role->identity.probe = probe_node;
    role->identity.probe_data = role->node;
    return TRUE;
}

static gboolean make_role(Role *role, const Options *o, GError **error)
{
    role->identity.driver_name = o->driver_name;
    role->identity.version = HEARTH_VERSION;
    return strcmp(o->role, "controller") == 0 ? make_controller(role, o, error)
                                              : make_node(role, o, error);
}

static int count_lost(const LostQuery *query)
{
    g_autoptr(GPtrArray) lost = lost_publications(query, NULL);
    return lost ? (int)lost->len : -1;
}

static GBytes *metrics_of(void *data)
{
    const Role *role = data;
    const char *name = role->controller ? "controller" : "node";
    const ServiceMetrics metrics = {
        .role = name,
        .started_us = role->started_us,
        .calls = role->calls,
        .kube = role->scheduling ? scheduling_client(role->scheduling) : NULL,
        .controller = role->controller != NULL,
        .leads = role->scheduling && scheduling_leads(role->scheduling),
        .lost = role->controller ? -1 : count_lost(&role->lost),
    };
    return service_metrics_text(&metrics);
}

/* Ends the process as a signal does, but with a failure: its restart makes kubelet try again. */
static void end_refused(void *data)
{
    atomic_store((atomic_bool *)data, TRUE);
    kill(getpid(), SIGTERM);
}

/* The servers beside the CSI socket. */
typedef struct Beside {
    MetricsServer *metrics;     /* NULL: without --metrics-address */
    Registration *registration; /* NULL: without --kubelet-registration-path */
    atomic_bool refused;        /* by kubelet */
} Beside;

static gboolean begin_beside(Beside *beside, const Options *o, Role *role, GError **error)
{
    const RegistrationConfig registration = {.driver_name = o->driver_name,
                                             .endpoint = o->registration_path,
                                             .directory = o->registration_dir,
                                             .refused = end_refused,
                                             .refused_data = &beside->refused};
    if (o->metrics.address) {
        beside->metrics = metrics_server_new(&o->metrics, metrics_of, role, error);
        if (!beside->metrics)
            return FALSE;
    }
    if (o->registration_path) {
        beside->registration = registration_start(&registration, error);
        if (!beside->registration)
            return FALSE;
    }
    return TRUE;
}

static void end_beside(Beside *beside)
{
    registration_stop(beside->registration);
    metrics_server_free(beside->metrics);
}

static RpcServer *make_server(const char *path, CallLog *log, Role *role, GError **error)
{
    const RpcServerConfig config = {.socket_path = path, .workers = WORKERS};
    RpcServer *server = rpc_server_new(&config, error);
    if (!server)
        return NULL;
    call_log_add(log, server, identity_methods(), &role->identity);
    if (role->controller)
        call_log_add(log, server, controller_methods(), role->controller);
    if (role->controller && role->identity.group_controller)
        call_log_add(log, server, controller_group_methods(), role->controller);
    if (role->node)
        call_log_add(log, server, node_service_methods(), role->node);
    return server;
}

static gboolean serve(const Options *o, Role *role, GError **error)
{
    const char *path = o->socket_path;
    /* Threads inherit the mask, so that only sigwait() below sees these. */
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);

    g_autoptr(CallLog) log = call_log_new();
    role->calls = log;
    role->started_us = g_get_monotonic_time();
    RpcServer *server = make_role(role, o, error) ? make_server(path, log, role, error) : NULL;
    if (!server)
        return FALSE;
    Beside beside = {.metrics = NULL};
    if (!rpc_server_start(server, error) || !begin_beside(&beside, o, role, error)) {
        end_beside(&beside);
        rpc_server_stop(server, 0);
        return FALSE;
    }
    g_message("%s %s serves as %s on %s", o->driver_name, HEARTH_VERSION, o->role, path);
    int signal_number = 0;
    while (sigwait(&stop, &signal_number) != 0)
        continue;
    g_message("stopping on %s", strsignal(signal_number));
    /* First, so that kubelet does not call a driver that is ending. */
    end_beside(&beside);
    const gboolean idle = rpc_server_stop(server, GRACE_MS), refused = atomic_load(&beside.refused);
    if (role->node)
        linger_for_mounts();
    if (refused)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "kubelet rejected the driver; ending, to register again after the restart");
    if (!idle) {
        /* Handlers that hang in Ceph or in the kernel still use the services. */
        g_warning("calls still hang; exiting without them");
        fflush(NULL);
        _exit(refused ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    return !refused;
}

int main(int argc, char **argv)
{
    setlocale(LC_MESSAGES, "C");
    no_cores("hearth-csi");
    wire_wipe_freed_json();
    /* glibc's default of several arenas per core keeps 10 MB that no thread uses. */
    mallopt(M_ARENA_MAX, 2);
    if (argc > 1 && strcmp(argv[1], "audit") == 0)
        _exit(audit_main(argc - 1, argv + 1)); /* as below: no destructors */
    if (argc > 1 && strcmp(argv[1], "cleanup") == 0)
        return cleanup_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "probe") == 0)
        return probe_main(argc - 1, argv + 1);
    Options options = {0};
    Role role = {0};
    GError *error = NULL;
    if (!options_parse(&argc, &argv, &options, &error) ||
        (!options.version &&
         !log_init("hearth-csi", options.log_level, options.log_format, &error))) {
        fprintf(stderr, "hearth-csi: %s\n", error->message);
        return 2;
    }
    if (options.version) {
        puts("hearth-csi " HEARTH_VERSION);
        return EXIT_SUCCESS;
    }
    gboolean good = serve(&options, &role, &error);
    if (!good)
        g_critical("%s", error->message);
    webhook_free(role.webhook);
    scheduling_free(role.scheduling);
    controller_free(role.controller);
    node_service_free(role.node);
    crush_location_free(role.crush_location);
    /*
     * Threads that hang in Ceph are left behind (common/bounded.h); the destructors of Ceph's
     * libraries must not run under them.
     */
    fflush(NULL);
    _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}
