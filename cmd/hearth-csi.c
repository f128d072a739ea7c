/*
 * hearth-csi: the CSI plugin, in one of two roles. Flags and wiring; see hearth-csi(8). All work is
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
#include "cache/control/wire.h"
#include "cmd/hearth-csi_audit.h"
#include "cmd/hearth-csi_cleanup.h"
#include "cmd/hearth-csi_probe.h"
#include "cmd/log.h"
#include "cmd/metrics.h"
#include "driver/backend/backend.h"
#include "driver/rpc/server.h"
#include "driver/service/call_log.h"
#include "driver/service/controller.h"
#include "driver/service/identity.h"
#include "driver/service/metrics.h"
#include "driver/service/node.h"
#include "driver/service/registration.h"
#include "driver/volume/config.h"
#include "driver/warm/scheduling.h"
#include "driver/warm/webhook.h"

#define DEFAULT_ENDPOINT "unix:///csi/csi.sock"
/* Where controller-runtime looks for it. */
#define DEFAULT_WEBHOOK_CERT_DIR "/tmp/k8s-webhook-server/serving-certs"
/* Kubernetes kills a pod 30 s after SIGTERM. */
#define GRACE_MS 20000
/* As many as a connection has calls, so that those that hang keep none from beginning. */
#define WORKERS 128

typedef struct Options {
    char *role, *endpoint, *driver_name, *cluster_config, *node_id, *hearthd_socket, *tier, *zone,
        *log_level, *dir_root, *secret_dir, *device_dir, *dataset_mount, *kubeconfig,
        *webhook_address, *webhook_cert_dir, *metrics_address, *registration_path,
        *registration_dir;
    LayersMode layers;
    gint max_clone_depth;
    gboolean warmth, version;
} Options;

/* The flag, else the variable, else the default; the caller's. */
static char *value_or(char *flag, const char *variable, const char *fallback)
{
    const char *value = variable ? g_getenv(variable) : NULL;
    return flag ? flag : g_strdup(value && *value ? value : fallback);
}

/* "unix:///path", "unix:/path" or "/path". NULL for another scheme. */
static const char *socket_path(const char *endpoint, GError **error)
{
    const char *path = endpoint;
    if (g_str_has_prefix(path, "unix://"))
        path += strlen("unix://");
    else if (g_str_has_prefix(path, "unix:"))
        path += strlen("unix:");
    if (*path == '/' && !strstr(path, "://"))
        return path;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "endpoint \"%s\": give a unix socket as unix:///PATH", endpoint);
    return NULL;
}

static gboolean parse_options(int *argc, char ***argv, Options *o, GError **error)
{
    const GOptionEntry entries[] = {
        {"role", 0, 0, G_OPTION_ARG_STRING, &o->role, "What to serve: controller or node", "ROLE"},
        {"endpoint", 0, 0, G_OPTION_ARG_STRING, &o->endpoint,
         "Socket to listen on (CSI_ENDPOINT, else " DEFAULT_ENDPOINT ")", "unix://PATH"},
        {"driver-name", 0, 0, G_OPTION_ARG_STRING, &o->driver_name,
         "Name of the driver (" IDENTITY_DEFAULT_NAME ")", "NAME"},
        {"cluster-config", 0, 0, G_OPTION_ARG_FILENAME, &o->cluster_config,
         "ceph-csi's config.json (" CONFIG_DEFAULT_PATH ")", "FILE"},
        {"node-id", 0, 0, G_OPTION_ARG_STRING, &o->node_id,
         "node: the Kubernetes node's name (NODE_ID)", "NAME"},
        {"hearthd-socket", 0, 0, G_OPTION_ARG_FILENAME, &o->hearthd_socket,
         "node: hearthd's control socket (" WIRE_DEFAULT_SOCKET ")", "PATH"},
        {"device-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->device_dir,
         "node: where images are mounted for their devices, and the layers of datasets "
         "(/var/lib/kubelet/plugins/DRIVER-NAME/devices)",
         "DIR"},
        {"dataset-mount", 0, 0, G_OPTION_ARG_STRING, &o->dataset_mount,
         "node: how snapshots are mounted: auto (default: natively if the kernel can), loop (EROFS "
         "through loop devices), fuse (as other volumes)",
         "HOW"},
        {"kubelet-registration-path", 0, 0, G_OPTION_ARG_FILENAME, &o->registration_path,
         "node: register with kubelet, which finds the socket of --endpoint at this path on the "
         "host",
         "PATH"},
        {"plugin-registration-path", 0, 0, G_OPTION_ARG_FILENAME, &o->registration_dir,
         "node: with it: where kubelet's plugins_registry is (" REGISTRATION_DEFAULT_DIR ")",
         "DIR"},
        {"tier", 0, 0, G_OPTION_ARG_STRING, &o->tier,
         "node: nvme (default), or none for a node without a cache disk", "TIER"},
        {"zone", 0, 0, G_OPTION_ARG_STRING, &o->zone, "node: the zone it is in, if any", "ZONE"},
        {"secret-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->secret_dir,
         "A mounted Secret with userID and userKey: controller: for calls that carry no secret; "
         "node: for CacheWarmups, which no pod mounts",
         "DIR"},
        {"dir-root", 0, 0, G_OPTION_ARG_FILENAME, &o->dir_root,
         "controller: also provision type=dir under this directory, for development", "DIR"},
        {"rbd-max-clone-depth", 0, 0, G_OPTION_ARG_INT, &o->max_clone_depth,
         "controller: copies of images that depend on more images than this are flattened "
         "(" G_STRINGIFY(RBD_DEFAULT_CLONE_DEPTH) ")",
         "N"},
        {"warmth", 0, 0, G_OPTION_ARG_NONE, &o->warmth,
         "Take part in warm-aware scheduling: a node reports what it has cached to Kubernetes, the "
         "controller labels nodes by it",
         NULL},
        {"kubeconfig", 0, 0, G_OPTION_ARG_FILENAME, &o->kubeconfig,
         "With --warmth: how to reach Kubernetes, for development (KUBECONFIG, else the pod's "
         "service account)",
         "FILE"},
        {"webhook-address", 0, 0, G_OPTION_ARG_STRING, &o->webhook_address,
         "controller, with --warmth: serve the mutating webhook that has pods prefer nodes where "
         "their "
         "datasets are warm, for clusters before Kubernetes 1.36 (off)",
         "ADDRESS:PORT"},
        {"webhook-cert-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->webhook_cert_dir,
         "With --webhook-address: a mounted Secret with tls.crt and tls.key "
         "(" DEFAULT_WEBHOOK_CERT_DIR ")",
         "DIR"},
        {"metrics-address", 0, 0, G_OPTION_ARG_STRING, &o->metrics_address,
         "Serve /metrics for Prometheus, and /healthz (off)", "ADDRESS:PORT"},
        {"log-level", 0, 0, G_OPTION_ARG_STRING, &o->log_level,
         "error, warning, info (default) or debug", "LEVEL"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &o->version, "Print the version and exit", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    o->max_clone_depth = RBD_DEFAULT_CLONE_DEPTH;
    g_autoptr(GOptionContext) context = g_option_context_new("- Hearth's CSI plugin");
    g_option_context_set_description(
        context,
        "`hearth-csi audit` finds what is out of step in Ceph, `hearth-csi cleanup` removes what "
        "an uninstalled Hearth left in Kubernetes, `hearth-csi probe` is for its probes; see their "
        "--help.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (*argc > 1) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION,
                    "\"%s\": options only, no arguments", (*argv)[1]);
        return FALSE;
    }
    o->endpoint = value_or(o->endpoint, "CSI_ENDPOINT", DEFAULT_ENDPOINT);
    o->driver_name = value_or(o->driver_name, NULL, IDENTITY_DEFAULT_NAME);
    o->cluster_config = value_or(o->cluster_config, NULL, CONFIG_DEFAULT_PATH);
    o->node_id = value_or(o->node_id, "NODE_ID", "");
    o->hearthd_socket = value_or(o->hearthd_socket, NULL, WIRE_DEFAULT_SOCKET);
    o->tier = value_or(o->tier, NULL, "nvme");
    o->dataset_mount = value_or(o->dataset_mount, NULL, "auto");
    o->webhook_cert_dir = value_or(o->webhook_cert_dir, NULL, DEFAULT_WEBHOOK_CERT_DIR);
    if (!o->device_dir)
        o->device_dir = g_strdup_printf("/var/lib/kubelet/plugins/%s/devices", o->driver_name);
    if (o->version)
        return TRUE;
    if (g_strcmp0(o->role, "controller") != 0 && g_strcmp0(o->role, "node") != 0) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--role=%s: use controller or node", o->role ? o->role : "");
        return FALSE;
    }
    if (o->max_clone_depth < 1 || o->max_clone_depth > 15) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--rbd-max-clone-depth=%d: use 1 to 15; Linux follows no more",
                    o->max_clone_depth);
        return FALSE;
    }
    if (o->webhook_address && (!o->warmth || strcmp(o->role, "controller") != 0)) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--webhook-address: it goes with --role=controller and --warmth");
        return FALSE;
    }
    if (o->registration_path && g_strcmp0(o->role, "node") != 0) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--kubelet-registration-path: kubelet knows of --role=node only");
        return FALSE;
    }
    if (o->registration_dir && !o->registration_path) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--plugin-registration-path: needs --kubelet-registration-path too");
        return FALSE;
    }
    o->registration_dir = value_or(o->registration_dir, NULL, REGISTRATION_DEFAULT_DIR);
    return layers_parse_mode(o->dataset_mount, &o->layers, error) &&
           identity_check_name(o->driver_name, error) && socket_path(o->endpoint, error) &&
           (!o->registration_path || registration_check_endpoint(o->registration_path, error));
}

static gboolean probe_node(void *service, GError **error)
{
    return node_service_probe(service, error);
}

/* The services of the role. */
typedef struct Role {
    Controller *controller;
    NodeService *node;
    Scheduling *scheduling; /* NULL: without --warmth */
    Webhook *webhook;       /* NULL: without --webhook-address */
    CallLog *calls;
    gint64 started_us;
    IdentityConfig identity;
} Role;

static gboolean make_role(Role *role, const Options *o, GError **error)
{
    role->identity.driver_name = o->driver_name;
    role->identity.version = HEARTH_VERSION;
    if (g_strcmp0(o->role, "controller") == 0) {
        Backend *backends[3];
        gsize n = 0;
        if (o->dir_root && !(backends[n++] = backend_dir_new(o->dir_root, error)))
            return FALSE;
        /* With --dir-root alone there is no cluster to provision on, nor to probe. */
        if (!o->dir_root || g_file_test(o->cluster_config, G_FILE_TEST_EXISTS)) {
            backends[n++] = backend_cephfs_new(o->cluster_config);
            backends[n++] = backend_rbd_new(o->cluster_config, (guint)o->max_clone_depth);
        }
        role->controller = controller_new(backends, n);
        controller_set_secret_dir(role->controller, o->secret_dir);
        if (o->warmth && !(role->scheduling = scheduling_of_controller(
                               o->kubeconfig, o->driver_name, o->cluster_config, error)))
            return FALSE;
        if (role->scheduling)
            controller_set_warmth(role->controller, scheduling_warmth(role->scheduling));
        if (o->webhook_address &&
            !(role->webhook = webhook_new(scheduling_client(role->scheduling), o->webhook_address,
                                          o->webhook_cert_dir, error)))
            return FALSE;
        role->identity.group_controller = controller_has_groups(role->controller);
        role->identity.probe = controller_probe;
        role->identity.probe_data = role->controller;
        return TRUE;
    }
    NodeServiceConfig config = {.node_id = o->node_id,
                                .hearthd_socket = o->hearthd_socket,
                                .config_path = o->cluster_config,
                                .device_dir = o->device_dir,
                                .dataset_mount = o->layers,
                                .tier = o->tier,
                                .zone = o->zone,
                                .records = backend_cephfs_new};
    role->node = node_service_new(&config, error);
    const WarmupPlace place = {.hearthd_socket = o->hearthd_socket,
                               .cluster_config = o->cluster_config,
                               .secret_dir = o->secret_dir};
    if (role->node && o->warmth)
        role->scheduling = scheduling_of_node(o->kubeconfig, o->node_id, &place, error);
    /* Of the plugin as a whole: every instance tells the same (CSI, GetPluginCapabilities). */
    role->identity.group_controller = TRUE;
    role->identity.probe = probe_node;
    role->identity.probe_data = role->node;
    return role->node && (role->scheduling || !o->warmth);
}

static GBytes *metrics_of(void *data)
{
    const Role *role = data;
    const ServiceMetrics metrics = {
        .role = role->controller ? "controller" : "node",
        .started_us = role->started_us,
        .calls = role->calls,
        .kube = role->scheduling ? scheduling_client(role->scheduling) : NULL,
        .controller = role->controller != NULL,
        .leads = role->scheduling && scheduling_leads(role->scheduling),
    };
    return service_metrics_text(&metrics);
}

/* Ends as on a signal, but with a failure: who restarts us makes kubelet try again. */
static void end_refused(void *data)
{
    atomic_store((atomic_bool *)data, TRUE);
    kill(getpid(), SIGTERM);
}

/* What serves beside the socket that Kubernetes' sidecars and kubelet call. */
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
    return (!o->metrics_address ||
            (beside->metrics = metrics_server_new(o->metrics_address, metrics_of, role, error))) &&
           (!o->registration_path ||
            (beside->registration = registration_start(&registration, error)));
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
    const char *path = socket_path(o->endpoint, NULL);
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
    /* First, so that kubelet does not call a driver that is going. */
    end_beside(&beside);
    const gboolean idle = rpc_server_stop(server, GRACE_MS), refused = atomic_load(&beside.refused);
    if (refused)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "kubelet has refused the driver; ending, to register anew when restarted");
    if (!idle) {
        /* Handlers that Ceph or the kernel holds still use the services. */
        g_warning("calls still hang; exiting without them");
        fflush(NULL);
        _exit(refused ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    return !refused;
}

int main(int argc, char **argv)
{
    setlocale(LC_MESSAGES, "C");
    /* One arena a core and more, as glibc has it, keeps 10 MB that no thread uses. */
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
    if (!parse_options(&argc, &argv, &options, &error) ||
        (!options.version && !log_init("hearth-csi", options.log_level, &error))) {
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
    /*
     * Threads that a dead Ceph holds are left behind (node/bounded.h); destructors of its
     * libraries must not run under them.
     */
    fflush(NULL);
    _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}
