/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl doctor: the daemon, and the errors it has counted since it started. */
#include "cmd/hearthctl/doctor/doctor.h"
#include <gio/gio.h>
#include "cmd/hearthctl/client/mounts.h"
#include <string.h>
#include "common/size.h"

static void check_version(Doctor *d)
{
    const char *version = ctl_string(d->hello, "version");
    const json_t *daemon = json_object_get(d->status, "daemon");
    if (strcmp(version, HEARTH_VERSION) == 0)
        findings_add(d->findings, FINDING_OK, "hearthd", NULL,
                     "version %s, pid %" G_GUINT64_FORMAT ", up %" G_GUINT64_FORMAT " s", version,
                     ctl_number(d->hello, "pid"), ctl_number(daemon, "uptimeSec"));
    else
        findings_add(d->findings, FINDING_WARN, "hearthd",
                     "restart hearthd from the newer image, or use the hearthctl of its own pod",
                     "version %s is not hearthctl's, " HEARTH_VERSION, version);
}

static void check_disk_state(Doctor *d)
{
    const json_t *cache = json_object_get(d->status, "cache");
    const char *disk = ctl_string(cache, "disk"), *dir = ctl_string(cache, "dir");
    if (strcmp(disk, "ok") == 0)
        findings_add(d->findings, FINDING_OK, "cache state", NULL, "in use");
    else if (strcmp(disk, "bypass") == 0)
        findings_add(
            d->findings, FINDING_BAD, "cache state",
            "see hearthd's log and dmesg for the disk's errors; hearthd retries the disk by itself",
            "bypass: the disk failed, all reads go to Ceph");
    else if (strcmp(disk, "suspect") == 0)
        findings_add(d->findings, FINDING_WARN, "cache state",
                     "see hearthd's log and dmesg; one more error and it is not used for a while",
                     "suspect: an I/O error was seen");
    else if (dir[0])
        findings_add(d->findings, FINDING_BAD, "cache state",
                     "see hearthd's log for the cause; fix it and restart hearthd",
                     "off: %s could not be used, all reads go to Ceph", dir);
    else
        findings_add(d->findings, FINDING_WARN, "cache state",
                     "start hearthd with --cache-dir in place of --no-cache",
                     "off: all reads go to Ceph");
}

static void check_counted(Doctor *d)
{
    static const struct {
        const char *member, *what, *fix;
    } counts[] = {
        {"diskErrors", "errors of the cache's disk", "see dmesg and the disk's SMART values"},
        {"badObjects", "corrupt objects that were dropped",
         "see the disk's SMART values; hearthctl verify reads all of it"},
        {"fillsFailed", "fetches from Ceph that failed",
         "see hearthd's log for the cause, and `ceph -s` for the health of Ceph"},
    };
    const json_t *cache = json_object_get(d->status, "cache");
    gboolean any = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++) {
        const uint64_t n = ctl_number(cache, counts[i].member);
        if (n > 0)
            findings_add(d->findings, FINDING_WARN, "errors", counts[i].fix,
                         "%" G_GUINT64_FORMAT " %s since hearthd started", n, counts[i].what);
        any |= n > 0;
    }
    if (!any)
        findings_add(d->findings, FINDING_OK, "errors", NULL, "none since hearthd started");
}

static void check_verity(Doctor *d)
{
    const json_t *cache = json_object_get(d->status, "cache");
    if (strcmp(ctl_string(cache, "verity"), "unavailable") == 0)
        findings_add(d->findings, FINDING_WARN, "fs-verity",
                     "a kernel with CONFIG_FS_VERITY, and `tune2fs -O verity` on an ext4 cache; or "
                     "--verity=off",
                     "asked for, but the kernel or the cache's file system has none");
    else
        findings_add(d->findings, FINDING_OK, "fs-verity", NULL, "%s", ctl_string(cache, "verity"));
}

static void check_io_flusher(Doctor *d)
{
    const json_t *daemon = json_object_get(d->status, "daemon");
    if (json_is_false(json_object_get(daemon, "ioFlusher")))
        findings_add(d->findings, FINDING_WARN, "memory for images",
                     "give hearthd CAP_SYS_RESOURCE (the chart does), and restart it",
                     "hearthd may not set PR_SET_IO_FLUSHER: when memory is short, a node with "
                     "images that are written to can stand still");
    else if (json_is_true(json_object_get(daemon, "ioFlusher")))
        findings_add(d->findings, FINDING_OK, "memory for images", NULL, "PR_SET_IO_FLUSHER");
}

/* A mount outlives the hearthd that served it, and every access to it fails. */
static void check_mounts(Doctor *d)
{
    json_auto_t *volumes = ctl_pages(d->ctl, "volumes", "volume", NULL);
    g_autoptr(GPtrArray) lost = volumes ? ctl_lost_mounts(volumes) : NULL;
    if (!lost) {
        findings_add(d->findings, FINDING_UNKNOWN, "mounts", NULL, "hearthd lists no volumes");
        return;
    }
    if (lost->len == 0) {
        findings_add(d->findings, FINDING_OK, "mounts", NULL, "all are served");
        return;
    }
    g_autoptr(GString) points = g_string_new(NULL);
    g_autoptr(GString) fix = g_string_new(NULL);
    for (guint i = 0; i < lost->len; i++) {
        const LostMount *one = lost->pdata[i];
        const char *heal = mounts_heal_of(d->heals, one);
        g_string_append_printf(points, "%s%s", i > 0 ? ", " : "", one->point);
        if (heal && !strstr(fix->str, heal))
            g_string_append_printf(fix, "%s%s", fix->len > 0 ? "; " : "", heal);
    }
    if (fix->len == 0)
        g_string_append(fix, "delete the pods that use them; their uid is in the path, and "
                             "`kubectl hearth status NODE` prints the commands");
    findings_add(d->findings, FINDING_BAD, "mounts", fix->str,
                 "%u not served any more, because hearthd was restarted: %s", lost->len,
                 points->str);
}

void doctor_hearthd(Doctor *d)
{
    if (!d->hello || !d->status) {
        const gboolean denied =
            g_error_matches(d->silence, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
        const gboolean hangs = g_error_matches(d->silence, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
        if (hangs)
            findings_add(d->findings, FINDING_BAD, "hearthd",
                         "see its log; when it does not go on, delete its pod, then the pods whose "
                         "mounts end with it",
                         "%s", d->silence->message);
        else if (denied)
            findings_add(d->findings, FINDING_UNKNOWN, "hearthd", "run hearthctl as root",
                         "does not answer: %s", d->silence->message);
        else
            findings_add(d->findings, FINDING_BAD, "hearthd",
                         "start it (its pod is one of the DaemonSet of this node), or name its "
                         "--socket",
                         "does not answer: %s", d->silence->message);
        return;
    }
    check_version(d);
    check_mounts(d);
    check_disk_state(d);
    check_counted(d);
    check_verity(d);
    check_io_flusher(d);
}
