/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl why: watches a job for some seconds, and says what it waits for. hearthd's counters are
 * sampled before and after; the job's threads in between, as often as a tenth of a CPU allows.
 */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/client/mounts.h"
#include "cmd/hearthctl/client/text.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/why/answer.h"
#include "cmd/hearthctl/why/facts.h"
#include "cmd/hearthctl/why/target.h"
#include "cmd/hearthctl/why/waits.h"
#include <gio/gio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SEC 10.0
#define MIN_SEC 0.5
#define MAX_SEC 3600.0
#define LOOK_US 20000
/* A look is followed by so many times its own length, at least. */
#define REST 9
#define CALL_TIMEOUT_MS 5000

static const CtlHelp help = {
    .usage = "VOLUME | --pod=UID | --pid=PID",
    .about = "Says why a job waits for storage, and what to do about it.",
    .notes =
        "It watches the job and hearthd for some seconds. The job is all pods of this node that\n"
        "have VOLUME mounted, or a pod, or a process with its children. \"waits for storage 38%\n"
        "of the time\": of the time in which its threads run or wait for a volume of Hearth, they\n"
        "wait so much. The cause is one of:\n"
        "  mount-lost      nobody serves the mount any more\n"
        "  other-storage   it waits for other storage than Hearth's\n"
        "  cpu, idle       it does not wait for storage\n"
        "  nothing-read    its processes cannot be seen, and it read nothing\n"
        "  ceph-silent, slow-ceph   Ceph answers nothing, or slowly\n"
        "  cache-bypassed, not-cached   the cache's disk fails; the volume is not cached\n"
        "  full-cache      what it reads was evicted before, or finds no room\n"
        "  shared-writes   what it reads is being written, here or on another node\n"
        "  cold            what it reads is not in the cache yet\n"
        "  writes, names   it waits for its writes, or for lookups and listings\n"
        "  cache-disk      all is warm: the disk is the limit\n"
        "\n"
        "Examples:\n"
        "  hearthctl why train/imagenet\n"
        "  hearthctl why --pod 6d1e0a1b-4a5b-4c3f-9f1e-0d9c8b7a2f1e --seconds 30\n"
        "  hearthctl why --pid 4711 --json | jq .cause\n",
};

typedef struct Why {
    Ctl *ctl;
    char *pod, *volume, *name, *heal;
    char **claims; /* "PV=NAMESPACE/CLAIM" */
    int pid;
    double seconds;
    RatesLook before, now;
    GPtrArray *mounts; /* TargetMount * */
    Waits *waits;      /* NULL: no process can be seen */
    gboolean seen;
} Why;

static gboolean take_look(Why *why, RatesLook *look, GError **error)
{
    look->status = ctl_call(why->ctl, json_pack("{s:s}", "op", "status"), error);
    look->at_us = g_get_monotonic_time();
    if (look->status)
        look->volumes = ctl_pages(why->ctl, "volumes", "volume", error);
    return look->volumes != NULL;
}

static char *read_mountinfo(int pid, GError **error)
{
    g_autofree char *path =
        pid > 0 ? g_strdup_printf("/proc/%d/mountinfo", pid) : g_strdup("/proc/self/mountinfo");
    char *text = NULL;
    if (g_file_get_contents(path, &text, NULL, NULL))
        return text;
    g_set_error(
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "there is no process %d here, or it is not to be seen: run this as root on its node", pid);
    return NULL;
}

/* Of pods, those that have the volume. */
static void keep_volume(Why *why)
{
    for (guint i = why->mounts->len; i-- > 0;) {
        const TargetMount *mount = why->mounts->pdata[i];
        if (!mounts_same_volume(mount->volume, why->volume))
            g_ptr_array_remove_index(why->mounts, i);
    }
}

static gboolean find_job(Why *why, GError **error)
{
    g_autofree char *mountinfo = read_mountinfo(why->pid, error);
    if (!mountinfo)
        return FALSE;
    if (why->pid > 0) {
        g_autofree char *own = read_mountinfo(0, error);
        if (!own)
            return FALSE;
        g_autoptr(GPtrArray) pods = target_of_pod(own, NULL, NULL);
        why->mounts = target_of_process(mountinfo, why->pid, pods);
        why->waits = waits_of_process(why->pid);
        return TRUE;
    }
    why->mounts = target_of_pod(mountinfo, why->pod, NULL);
    if (why->volume)
        keep_volume(why);
    g_auto(GStrv) pods = target_pods(why->mounts);
    const char *only[] = {why->pod, NULL};
    why->waits = waits_of_pods(why->pod ? only : (const char *const *)pods);
    return TRUE;
}

static void watch(Why *why)
{
    const gint64 end = g_get_monotonic_time() + (gint64)(why->seconds * G_USEC_PER_SEC);
    for (gint64 now = g_get_monotonic_time(); now < end;) {
        why->seen |= waits_look(why->waits);
        const gint64 took = g_get_monotonic_time() - now;
        const gint64 rest = MIN(MAX(LOOK_US - took, REST * took), end - now);
        g_usleep((gulong)MAX(rest, 0));
        now = g_get_monotonic_time();
    }
}

/* ---- the answer ---- */

static gboolean is_lost(const Why *why, const TargetMount *mount)
{
    /* A pod gets a dataset or an image only while hearthd serves it. */
    return !mounts_is_served(why->now.volumes, mount->volume) &&
           (!mount->live || ctl_mount_is_dead(mount->point));
}

/* One for each device: a pod may mount a volume more than once. */
static GArray *waits_of_volumes(const Why *why)
{
    GArray *all = g_array_new(FALSE, TRUE, sizeof(FactsWait));
    for (guint i = 0; i < why->mounts->len; i++) {
        const TargetMount *mount = why->mounts->pdata[i];
        FactsWait wait = {.volume = mount->volume};
        gboolean known = FALSE;
        for (guint k = 0; k < i && !known; k++)
            known = strcmp(((TargetMount *)why->mounts->pdata[k])->device, mount->device) == 0;
        if (known)
            continue;
        wait.lost = is_lost(why, mount);
        waits_on(why->waits, mount->device, wait.kinds);
        g_array_append_val(all, wait);
    }
    return all;
}

static FactsJob job_of(const Why *why)
{
    g_autoptr(GPtrArray) devices = g_ptr_array_new();
    for (guint i = 0; i < why->mounts->len; i++)
        g_ptr_array_add(devices, ((TargetMount *)why->mounts->pdata[i])->device);
    g_ptr_array_add(devices, NULL);
    const WaitsSum sum = waits_sum(why->waits);
    return (FactsJob){.looks = why->seen ? sum.looks : 0,
                      .running = sum.running,
                      .elsewhere = waits_elsewhere(why->waits, (const char *const *)devices->pdata),
                      .pages = waits_for_pages(why->waits),
                      .async = waits_for_completions(why->waits),
                      .ended = sum.ended,
                      .cpu_sec = sum.cpu_sec};
}

static guint64 warm_rate(Ctl *ctl, const char *volume)
{
    json_auto_t *jobs = ctl_jobs(ctl, NULL);
    guint64 rate = 0;
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        if (strcmp(ctl_string(job, "volume"), volume) == 0 &&
            !json_is_true(json_object_get(job, "check")) && progress_rate(job) > 0)
            rate = progress_rate(job);
    }
    return rate;
}

/* Of a volume that hearthd does not have, kubelet's path names the PersistentVolume. */
static const char *name_of(const Why *why, const char *volume)
{
    const json_t *v = facts_find(&why->now, volume);
    const char *pv = NULL;
    for (guint i = 0; i < why->mounts->len && !pv; i++) {
        const TargetMount *mount = why->mounts->pdata[i];
        pv = strcmp(mount->volume, volume) == 0 ? mount->pv : NULL;
    }
    for (char **claim = why->claims; pv && claim && *claim; claim++)
        if (g_str_has_prefix(*claim, pv) && (*claim)[strlen(pv)] == '=')
            return *claim + strlen(pv) + 1;
    return v ? ctl_name(v, "volume") : pv ? pv : volume;
}

static char *none_text(const Why *why, const char *argument)
{
    if (argument)
        return g_strdup_printf("no pod of this node has %s mounted", argument);
    return g_strdup_printf("%s has no volume of Hearth on this node", why->name);
}

static void print(Why *why, const char *argument, gboolean as_json)
{
    g_autoptr(GArray) waits = waits_of_volumes(why);
    const FactsWait *all = (const FactsWait *)(void *)waits->data;
    const int at = facts_volume(all, waits->len, &why->before, &why->now);
    const FactsJob job = job_of(why);
    g_autofree char *none = none_text(why, argument), *name = NULL;
    Answer answer = {.who = why->name,
                     .none = none,
                     .command = why->ctl->as ? why->ctl->as : "hearthctl",
                     .heal = why->heal ? why->heal
                                       : "delete the pod: kubectl -n NAMESPACE delete pod POD"};
    if (at >= 0) {
        answer.volume = all[at].volume;
        name = text_printable(name_of(why, all[at].volume));
        answer.name = name;
        answer.facts = facts_of(&job, all, waits->len, (guint)at, &why->before, &why->now);
        answer.warm_rate = warm_rate(why->ctl, answer.volume);
    }
    if (as_json) {
        json_auto_t *json = answer_json(&answer);
        lines_print_json(json);
        return;
    }
    const View view = view_stdout(why->ctl, FALSE);
    lines_print(answer_lines(&answer, &view));
}

/* hearthd forgets the names of the volumes that it served before a restart: the mounts that it left
 * still have IDs and PersistentVolumes. */
static gboolean find_lost(Why *why, const char *argument, const GPtrArray *lost)
{
    g_autofree char *mountinfo = read_mountinfo(0, NULL);
    g_autoptr(GPtrArray) pods = mountinfo ? target_of_pod(mountinfo, NULL, NULL) : NULL;
    for (guint i = 0; pods && lost && i < pods->len && !why->volume; i++) {
        const TargetMount *mount = pods->pdata[i];
        if (strcmp(mount->volume, argument) == 0 || g_strcmp0(mount->pv, argument) == 0)
            why->volume = g_strdup(mount->volume);
    }
    return why->volume != NULL;
}

static gboolean find_volume(Why *why, const char *argument, GError **error)
{
    g_autofree char *inside = NULL;
    g_autoptr(GError) cause = NULL;
    if (ctl_find_volume(why->ctl, argument, &why->volume, &inside, &cause))
        return TRUE;
    g_autoptr(GPtrArray) lost = ctl_lost_mounts(why->before.volumes);
    if (lost && lost->len && find_lost(why, argument, lost))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    if (lost && lost->len && error)
        g_prefix_error(error,
                       "%u mount%s of this node %s not served since hearthd was restarted, and "
                       "its volume may be among them ('hearthctl status' lists them): ",
                       lost->len, lost->len == 1 ? "" : "s", lost->len == 1 ? "is" : "are");
    return FALSE;
}

static gboolean ask(Why *why, const char *argument, gboolean as_json, GError **error)
{
    why->ctl->timeout_ms = CALL_TIMEOUT_MS;
    if (!take_look(why, &why->before, error) || (argument && !find_volume(why, argument, error)) ||
        !find_job(why, error))
        return FALSE;
    watch(why);
    if (!take_look(why, &why->now, error))
        return FALSE;
    print(why, argument, as_json);
    return TRUE;
}

static gboolean check_usage(const Why *why, int argc, GError **error)
{
    const int ways = (argc == 2) + (why->pod != NULL) + (why->pid != 0);
    if (argc > 2 || ways != 1)
        ctl_usage_error(error, "why: name one job: a VOLUME, --pod=UID or --pid=PID; see hearthctl "
                               "why --help");
    else if (why->pid < 0)
        ctl_usage_error(error, "--pid: must be 1 or more");
    else if (!(why->seconds >= MIN_SEC && why->seconds <= MAX_SEC))
        ctl_usage_error(error, "--seconds: must be %.4g to %.4g", MIN_SEC, MAX_SEC);
    else
        return TRUE;
    return FALSE;
}

static char *default_name(const Why *why, const char *argument)
{
    if (why->pid)
        return g_strdup_printf("process %d", why->pid);
    return why->pod ? g_strdup_printf("pod %s", why->pod)
                    : g_strdup_printf("the pods with %s", argument);
}

int ctl_why(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE;
    g_autoptr(GError) error = NULL;
    Why why = {.ctl = ctl, .seconds = DEFAULT_SEC};
    const GOptionEntry entries[] = {
        {"pod", 0, 0, G_OPTION_ARG_STRING, &why.pod, "The pod with this UID", "UID"},
        {"pid", 0, 0, G_OPTION_ARG_INT, &why.pid, "This process and its children", "PID"},
        {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &why.seconds, "How long to watch it (10)", "N"},
        {"name", 0, 0, G_OPTION_ARG_STRING, &why.name, "What to call the job", "NAME"},
        {"claim", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, &why.claims, NULL, NULL},
        {"heal", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &why.heal, NULL, NULL},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (ctl_parse(ctl, &argc, &argv, entries, &help, &error) && check_usage(&why, argc, &error)) {
        const char *argument = argc == 2 ? argv[1] : NULL;
        g_autofree char *name = why.name ? g_strdup(why.name) : default_name(&why, argument);
        g_free(why.name);
        why.name = text_printable(name);
        ask(&why, argument, as_json, &error);
    }
    rates_look_clear(&why.before);
    rates_look_clear(&why.now);
    g_clear_pointer(&why.mounts, g_ptr_array_unref);
    waits_free(why.waits);
    g_free(why.pod);
    g_free(why.volume);
    g_free(why.name);
    g_free(why.heal);
    g_strfreev(why.claims);
    return error ? ctl_fail(ctl, error) : CTL_OK;
}
