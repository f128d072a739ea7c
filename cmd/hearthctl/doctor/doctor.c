/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl doctor: checks everything that Hearth needs of a node, in the order in which an
 * administrator would fix it. Each check is a function of its own file; it changes nothing.
 */
#include "cmd/hearthctl/doctor/doctor.h"
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/report/lines.h"
#include <unistd.h>

#define CALL_TIMEOUT_MS 5000

static const char about[] =
    "Checks what Hearth needs of this node, and suggests a fix for each problem.";
static const char notes[] =
    "It changes nothing. Test mounts are private and removed again; cached files are only read.\n"
    "It works without hearthd. Without root it can check less, and says so. Level \"bad\" means\n"
    "that something does not work, and makes the exit code 1; \"warn\" means that it works worse\n"
    "than it could.\n"
    "\n"
    "Examples:\n"
    "  hearthctl doctor\n"
    "  hearthctl doctor --cluster-config /etc/ceph-csi-config/config.json\n"
    "  hearthctl doctor --json | jq '.findings[] | select(.level == \"bad\")'\n";
static const CtlHelp help = {.about = about, .notes = notes};

/* hearthd first: the other checks use its answers. */
static void (*const checks[])(Doctor *d) = {doctor_hearthd, doctor_kernel, doctor_disk,
                                            doctor_node,    doctor_ceph,   doctor_kubernetes};

static void ask_hearthd(Doctor *d)
{
    d->ctl->timeout_ms = CALL_TIMEOUT_MS;
    d->hello = ctl_call(d->ctl, json_pack("{s:s}", "op", "hello"), &d->silence);
    if (d->hello)
        d->status = ctl_call(d->ctl, json_pack("{s:s}", "op", "status"), &d->silence);
    ctl_disconnect(d->ctl);
}

static int examine(Doctor *d, gboolean as_json)
{
    g_autoptr(Findings) findings = findings_new();
    d->findings = findings;
    d->root = geteuid() == 0;
    uname(&d->kernel);
    ask_hearthd(d);
    for (guint i = 0; i < G_N_ELEMENTS(checks); i++)
        checks[i](d);
    if (as_json) {
        json_auto_t *json = findings_json(findings);
        lines_print_json(json);
    } else {
        const View view = view_stdout(d->ctl, d->wide);
        lines_print(findings_lines(findings, &view));
    }
    g_clear_pointer(&d->hello, json_decref);
    g_clear_pointer(&d->status, json_decref);
    g_clear_error(&d->silence);
    return findings_worst(findings) == FINDING_BAD ? CTL_FAILED : CTL_OK;
}

int ctl_doctor(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE, wide = FALSE;
    g_auto(GStrv) heals = NULL;
    g_autofree char *config = NULL, *dir = NULL, *kubeconfig = NULL, *node = NULL;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"cluster-config", 0, 0, G_OPTION_ARG_FILENAME, &config,
         "File of the clusters, as ceph-csi's config.json", "FILE"},
        {"cache-dir", 0, 0, G_OPTION_ARG_FILENAME, &dir,
         "Directory of the cache (default: the one hearthd reports)", "DIR"},
        {"kubeconfig", 0, 0, G_OPTION_ARG_FILENAME, &kubeconfig,
         "How to reach Kubernetes (KUBECONFIG, else the pod's service account)", "FILE"},
        {"node", 0, 0, G_OPTION_ARG_STRING, &node, "This node's name in Kubernetes (NODE_ID)",
         "NAME"},
        {"heal", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, &heals, NULL, NULL},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        {"wide", 'w', 0, G_OPTION_ARG_NONE, &wide, "Do not wrap lines", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(ctl, error);
    if (argc > 1) {
        ctl_usage_error(&error, "doctor: unexpected argument '%s'; see hearthctl doctor --help",
                        argv[1]);
        return ctl_fail(ctl, error);
    }
    Doctor d = {.ctl = ctl,
                .wide = wide,
                .cluster_config = config,
                .cache_dir = dir,
                .kubeconfig = kubeconfig,
                .heals = heals,
                .node = node ? node : g_getenv("NODE_ID")};
    return examine(&d, as_json);
}
