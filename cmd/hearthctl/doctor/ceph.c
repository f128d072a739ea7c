/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl doctor: what can be checked of Ceph without a key: the versions of its libraries, and
 * whether its monitors answer. The libraries are loaded if they are installed, not linked, because
 * hearthctl needs them for nothing else.
 */
#include "cmd/hearthctl/doctor/doctor.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "driver/backend/ceph/monitor_probe.h"
#include "driver/cluster/ceph_key.h"
#include "driver/cluster/config.h"

#define REACH_TIMEOUT_US (3 * G_USEC_PER_SEC)
#define SLOW_US 20000

/* As <rbd/librbd.h> declares it. */
typedef void (*RbdVersion)(int *major, int *minor, int *extra);

static void check_libraries(Doctor *d)
{
    int x = 0, y = 0, z = 0;
    void *rbd = dlopen("librbd.so.1", RTLD_NOW | RTLD_LOCAL);
    CephVersion v;
    RbdVersion rbd_version = rbd ? (RbdVersion)dlsym(rbd, "rbd_version") : NULL;
    g_autofree char *first = NULL, *second = NULL;
    if (ceph_library_version(&v))
        first = g_strdup_printf("libcephfs %d.%d.%d", v.major, v.minor, v.patch);
    if (rbd_version) {
        rbd_version(&x, &y, &z);
        second = g_strdup_printf("librbd %d.%d.%d", x, y, z);
    }
    const char *libcephfs = first ? first : "no libcephfs here";
    const char *librbd = second ? second : "no librbd here";
    if (first && second)
        findings_add(d->findings, FINDING_OK, "Ceph libraries", NULL, "%s, %s", libcephfs, librbd);
    else
        findings_add(d->findings, FINDING_WARN, "Ceph libraries",
                     "apt-get install libcephfs2 librbd1; Hearth's image has them", "%s, %s",
                     libcephfs, librbd);
    /* They stay loaded: librados has threads that do not like to be unloaded. */
}

static void add_failure(GString *text, const ReachAnswer *answer)
{
    const char *why = answer->error ? g_strerror(answer->error) : "answers, but is no monitor";
    g_string_append_printf(text, "%s%s port %u: %s", text->len ? "; " : "", answer->host,
                           answer->port, why);
}

/* A monitor has several addresses, of which one has to answer. */
static void check_cluster(Doctor *d, const ClusterConfig *cluster)
{
    g_autoptr(GArray) answers =
        reach_each(cluster->monitors, g_get_monotonic_time() + REACH_TIMEOUT_US);
    g_autofree char *name = g_strdup_printf("Ceph %s", cluster->cluster_id);
    const guint n = g_strv_length(cluster->monitors);
    g_autoptr(GString) good = g_string_new(NULL), bad = g_string_new(NULL);
    guint reached = 0;
    gint64 slowest = 0;
    for (guint m = 0; m < n; m++) {
        const ReachAnswer *best = NULL;
        g_autoptr(GString) failures = g_string_new(NULL);
        for (guint i = 0; i < answers->len; i++) {
            const ReachAnswer *answer = &g_array_index(answers, ReachAnswer, i);
            if (answer->monitor != m)
                continue;
            if (!answer->version)
                add_failure(failures, answer);
            else if (!best || answer->version > best->version)
                best = answer;
        }
        if (best) {
            reached++;
            slowest = MAX(slowest, best->latency_us);
            g_string_append_printf(good, "%s%s:%u msgr%c %.1f ms", good->len ? ", " : "",
                                   best->host, best->port, best->version,
                                   (double)best->latency_us / 1000);
        } else {
            const char *why = failures->len ? failures->str : "an address of no known form";
            g_string_append_printf(bad, "%s%s", bad->len ? "; " : "", why);
        }
    }
    if (reached == 0)
        findings_add(d->findings, FINDING_BAD, name,
                     "are the addresses those of `ceph mon dump`, and is there a route (firewall, "
                     "NetworkPolicy) from this node?",
                     "no monitor answers: %s", bad->str);
    else if (reached < n)
        findings_add(d->findings, FINDING_WARN, name,
                     "start the missing monitors, or remove them from the list",
                     "%u of %u monitors answer: %s; not: %s", reached, n, good->str, bad->str);
    else if (slowest > SLOW_US)
        findings_add(d->findings, FINDING_WARN, name,
                     "check the network between this node and Ceph", "monitors answer: %s",
                     good->str);
    else
        findings_add(d->findings, FINDING_OK, name, NULL, "monitors answer: %s", good->str);
}

void doctor_ceph(Doctor *d)
{
    check_libraries(d);
    const char *path = d->cluster_config ? d->cluster_config : CONFIG_DEFAULT_PATH;
    if (!d->cluster_config && access(path, F_OK) < 0) {
        findings_add(
            d->findings, FINDING_UNKNOWN, "Ceph monitors",
            "name the file of the clusters by --cluster-config (the node plugin's pod has it)",
            "not checked: %s does not exist here", path);
        return;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) clusters = config_load(path, &error);
    if (!clusters) {
        findings_add(d->findings, FINDING_BAD, "Ceph monitors",
                     "fix the ConfigMap, or name another file by --cluster-config", "%s",
                     error->message);
        return;
    }
    for (guint i = 0; i < clusters->len; i++)
        check_cluster(d, clusters->pdata[i]);
    if (clusters->len == 0)
        findings_add(d->findings, FINDING_BAD, "Ceph monitors",
                     "add the cluster's ID and monitors to it", "%s names no cluster", path);
}
