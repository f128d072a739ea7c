/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl doctor: looks at all that Hearth needs of a node, in the order in which one would mend
 * it. */
#include "cmd/hearthctl/doctor/doctor.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CALL_TIMEOUT_MS 5000

static const char about[] =
    "Looks at what Hearth needs of this node, and tells for what is wrong how to mend it.";
static const char notes[] =
    "Nothing is changed: what has to be tried (mounts that nobody sees, reads of what is cached) "
    "is\n"
    "gone afterwards. It works without hearthd, and without root sees less, and says so. The exit\n"
    "code is 1 if something is bad, that is, does not work; a warning is what works worse than it\n"
    "could.\n"
    "\n"
    "Examples:\n"
    "  hearthctl doctor\n"
    "  hearthctl doctor --cluster-config /etc/ceph-csi-config/config.json\n"
    "  hearthctl doctor --json | jq '.findings[] | select(.level == \"bad\")'\n";

/* hearthd's answers first, as others' findings depend on them. */
static void (*const checks[])(Doctor *d) = {doctor_hearthd, doctor_kernel, doctor_disk,
                                            doctor_node,    doctor_ceph,   doctor_kubernetes};

char *doctor_read(const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strchomp(text);
}

static void ask_hearthd(Doctor *d)
{
    d->ctl->timeout_ms = CALL_TIMEOUT_MS;
    d->hello = ctl_call(d->ctl, json_pack("{s:s}", "op", "hello"), &d->silence);
    if (d->hello)
        d->status = ctl_call(d->ctl, json_pack("{s:s}", "op", "status"), &d->silence);
    ctl_disconnect(d->ctl);
}

static void print_plain(const Findings *findings)
{
    g_auto(GStrv) lines = findings_lines(findings);
    for (char **line = lines; *line; line++)
        printf("%s\n", *line);
    printf("\n%u bad, %u warnings, %u not looked at, %u ok\n",
           findings_count(findings, FINDING_BAD), findings_count(findings, FINDING_WARN),
           findings_count(findings, FINDING_UNKNOWN), findings_count(findings, FINDING_OK));
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
        json_t *json = findings_json(findings);
        json_dumpf(json, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(json);
    } else {
        print_plain(findings);
    }
    json_decref(d->hello);
    json_decref(d->status);
    g_clear_error(&d->silence);
    return findings_worst(findings) == FINDING_BAD ? CTL_FAILED : CTL_OK;
}

int ctl_doctor(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE;
    g_autofree char *config = NULL, *dir = NULL, *kubeconfig = NULL, *node = NULL;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"cluster-config", 0, 0, G_OPTION_ARG_FILENAME, &config,
         "File of the clusters, as ceph-csi's config.json", "FILE"},
        {"cache-dir", 0, 0, G_OPTION_ARG_FILENAME, &dir,
         "Directory of the cache (default: as hearthd tells)", "DIR"},
        {"kubeconfig", 0, 0, G_OPTION_ARG_FILENAME, &kubeconfig,
         "How to reach Kubernetes (KUBECONFIG, else the pod's service account)", "FILE"},
        {"node", 0, 0, G_OPTION_ARG_STRING, &node, "This node's name in Kubernetes (NODE_ID)",
         "NAME"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, NULL, about, notes, &error))
        return ctl_fail(error);
    if (argc > 1) {
        ctl_usage_error(&error, "doctor: unexpected argument '%s'", argv[1]);
        return ctl_fail(error);
    }
    Doctor d = {.ctl = ctl,
                .cluster_config = config,
                .cache_dir = dir,
                .kubeconfig = kubeconfig,
                .node = node ? node : g_getenv("NODE_ID")};
    return examine(&d, as_json);
}
