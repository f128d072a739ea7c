/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearth-csi/options.h"
#include <string.h>
#include "proto/wire.h"
#include "driver/backend/backend.h"
#include "driver/service/controller/controller.h"
#include "driver/service/node/domains.h"
#include "driver/node/hearthd/watch.h"
#include "driver/service/identity.h"
#include "driver/service/node/registration.h"
#include "driver/cluster/config.h"

#define WAIT_SEC_MAX 86400
#define DEFAULT_ENDPOINT "unix:///csi/csi.sock"
/* The default of controller-runtime. */
#define DEFAULT_WEBHOOK_CERT_DIR "/tmp/k8s-webhook-server/serving-certs"

/* The flag, else the variable, else the default; the caller's. */
static char *value_or(char *flag, const char *variable, const char *fallback)
{
    if (flag)
        return flag;
    const char *value = variable ? g_getenv(variable) : NULL;
    return g_strdup(value && *value ? value : fallback);
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

/* As ceph-csi's flag is given: alone, or with its value. */
static gboolean set_metadata(const char *name, const char *value, gpointer data, GError **error)
{
    Options *o = data;
    (void)name;
    o->set_metadata = !value || strcmp(value, "true") == 0;
    if (o->set_metadata || strcmp(value, "false") == 0)
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--setmetadata=%s: use true or false", value);
    return FALSE;
}

/* Flags of both roles. */
static void add_common(GOptionGroup *group, Options *o)
{
    const GOptionEntry entries[] = {
        {"role", 0, 0, G_OPTION_ARG_STRING, &o->role, "What to serve: controller or node", "ROLE"},
        {"endpoint", 0, 0, G_OPTION_ARG_STRING, &o->endpoint,
         "Socket to listen on (CSI_ENDPOINT, else " DEFAULT_ENDPOINT ")", "unix://PATH"},
        {"driver-name", 0, 0, G_OPTION_ARG_STRING, &o->driver_name,
         "Name of the driver (" IDENTITY_DEFAULT_NAME ")", "NAME"},
        {"cluster-config", 0, 0, G_OPTION_ARG_FILENAME, &o->cluster_config,
         "ceph-csi's config.json (" CONFIG_DEFAULT_PATH ")", "FILE"},
        {"secret-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->secret_dir,
         "A mounted Secret with userID and userKey: controller: for calls that carry no secret; "
         "node: for CacheWarmups, which no pod mounts",
         "DIR"},
        {"domainlabels", 0, 0, G_OPTION_ARG_STRING, &o->domain_labels,
         "Node labels that topologyConstrainedPools of classes uses; node: reported as topology "
         "(needs Kubernetes)",
         "LABEL,LABEL,..."},
        {"warmth", 0, 0, G_OPTION_ARG_NONE, &o->warmth,
         "Take part in warm-aware scheduling: a node reports its cached datasets to Kubernetes, "
         "the "
         "controller labels nodes accordingly",
         NULL},
        {"kubeconfig", 0, 0, G_OPTION_ARG_FILENAME, &o->kubeconfig,
         "How to reach Kubernetes, for --warmth, --domainlabels and readAffinity, for development "
         "(KUBECONFIG, else the pod's service account)",
         "FILE"},
        METRICS_OPTIONS(&o->metrics),
        {"log-level", 0, 0, G_OPTION_ARG_STRING, &o->log_level,
         "error, warning, info (default) or debug", "LEVEL"},
        {"log-format", 0, 0, G_OPTION_ARG_STRING, &o->log_format,
         "json (default), or text as klog writes it", "FORMAT"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &o->version, "Print the version and exit", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    g_option_group_add_entries(group, entries);
}

/* Flags of --role=node. */
static void add_node(GOptionGroup *group, Options *o)
{
    const GOptionEntry entries[] = {
        {"node-id", 0, 0, G_OPTION_ARG_STRING, &o->node_id,
         "node: the Kubernetes node's name (NODE_ID)", "NAME"},
        {"hearthd-socket", 0, 0, G_OPTION_ARG_FILENAME, &o->hearthd_socket,
         "node: hearthd's control socket (" WIRE_DEFAULT_SOCKET ")", "PATH"},
        {"hearthd-wait", 0, 0, G_OPTION_ARG_INT, &o->hearthd_wait_sec,
         "node: seconds that reads of datasets wait for the next hearthd (600; 0: they fail at "
         "once)",
         "SECONDS"},
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
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    g_option_group_add_entries(group, entries);
}

/* Flags of --role=controller. */
static void add_controller(GOptionGroup *group, Options *o)
{
    const GOptionEntry entries[] = {
        {"dir-root", 0, 0, G_OPTION_ARG_FILENAME, &o->dir_root,
         "controller: also provision type=dir under this directory, for development", "DIR"},
        {"rbd-max-clone-depth", 0, 0, G_OPTION_ARG_INT, &o->max_clone_depth,
         "controller: copies of images that depend on more images than this are flattened "
         "(" G_STRINGIFY(RBD_DEFAULT_CLONE_DEPTH) ")",
         "N"},
        {"setmetadata", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, set_metadata,
         "controller: keep the names of claim, PersistentVolume and snapshot as metadata in Ceph "
         "(true)",
         "true|false"},
        {"clustername", 0, 0, G_OPTION_ARG_STRING, &o->cluster_name,
         "controller: with it, the name of this Kubernetes cluster", "NAME"},
        {"webhook-address", 0, 0, G_OPTION_ARG_STRING, &o->webhook_address,
         "controller, with --warmth: serve the mutating webhook that makes pods prefer nodes where "
         "their datasets are warm, for clusters before Kubernetes 1.36 (off)",
         "ADDRESS:PORT"},
        {"webhook-cert-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->webhook_cert_dir,
         "With --webhook-address: a mounted Secret with tls.crt and tls.key "
         "(" DEFAULT_WEBHOOK_CERT_DIR ")",
         "DIR"},
        {"webhook-client-ca", 0, 0, G_OPTION_ARG_FILENAME, &o->webhook_client_ca,
         "With --webhook-address: answer only clients with a certificate of these authorities, "
         "which "
         "is the API server (any client)",
         "FILE"},
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    g_option_group_add_entries(group, entries);
}

static gboolean parse_flags(int *argc, char ***argv, Options *o, GError **error)
{
    g_autoptr(GOptionContext) context = g_option_context_new("- Hearth's CSI plugin");
    g_option_context_set_description(
        context,
        "`hearth-csi audit` finds differences between the driver's records and Ceph, `hearth-csi "
        "cleanup` removes what an uninstalled Hearth left in Kubernetes, `hearth-csi probe` is for "
        "probes of Kubernetes; see their --help.");
    /* Callbacks get the data of their group. */
    GOptionGroup *group = g_option_group_new("main", "", "", o, NULL);
    add_common(group, o);
    add_node(group, o);
    add_controller(group, o);
    g_option_context_set_main_group(context, group);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (*argc == 1)
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION,
                "\"%s\": options only, no arguments", (*argv)[1]);
    return FALSE;
}

static void set_defaults(Options *o)
{
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
}

G_GNUC_PRINTF(2, 3)
static gboolean bad_value(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error)
        *error = g_error_new_valist(G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, format, args);
    va_end(args);
    return FALSE;
}

/* Flags that exclude or need each other. */
static gboolean check_flags(const Options *o, GError **error)
{
    const gboolean controller = g_strcmp0(o->role, "controller") == 0;
    const gboolean node = g_strcmp0(o->role, "node") == 0;
    if (!controller && !node)
        return bad_value(error, "--role=%s: use controller or node", o->role ? o->role : "");
    if (o->max_clone_depth < 1 || o->max_clone_depth > 15)
        return bad_value(error, "--rbd-max-clone-depth=%d: use 1 to 15; Linux follows no more",
                         o->max_clone_depth);
    if (o->webhook_address && (!o->warmth || !controller))
        return bad_value(error, "--webhook-address: it goes with --role=controller and --warmth");
    if (o->registration_path && !node)
        return bad_value(error, "--kubelet-registration-path: kubelet knows of --role=node only");
    if (o->registration_dir && !o->registration_path)
        return bad_value(error,
                         "--plugin-registration-path: needs --kubelet-registration-path too");
    return TRUE;
}

/* Values that have a format of their own. */
static gboolean check_values(Options *o, GError **error)
{
    if (o->hearthd_wait_sec < 0 || o->hearthd_wait_sec > WAIT_SEC_MAX)
        return bad_value(error, "--hearthd-wait=%d: use 0 to %d seconds", o->hearthd_wait_sec,
                         WAIT_SEC_MAX);
    if (!metrics_check(&o->metrics, error))
        return FALSE;
    if (!layers_parse_mode(o->dataset_mount, &o->layers, error))
        return FALSE;
    if (!identity_check_name(o->driver_name, error))
        return FALSE;
    if (o->domain_labels && *o->domain_labels) {
        o->domains = domains_parse(o->domain_labels, error);
        if (!o->domains)
            return FALSE;
    }
    if (o->cluster_name && !controller_check_cluster_name(o->cluster_name, error))
        return FALSE;
    o->socket_path = socket_path(o->endpoint, error);
    if (!o->socket_path)
        return FALSE;
    return !o->registration_path || registration_check_endpoint(o->registration_path, error);
}

gboolean options_parse(int *argc, char ***argv, Options *o, GError **error)
{
    o->max_clone_depth = RBD_DEFAULT_CLONE_DEPTH;
    o->hearthd_wait_sec = WATCH_WAIT_SEC;
    o->set_metadata = TRUE;
    if (!parse_flags(argc, argv, o, error))
        return FALSE;
    set_defaults(o);
    if (o->version)
        return TRUE;
    if (!check_flags(o, error))
        return FALSE;
    o->registration_dir = value_or(o->registration_dir, NULL, REGISTRATION_DEFAULT_DIR);
    return check_values(o, error);
}
