/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl doctor: limits of the processes, settings of the kernel, the clock. */
#include "cmd/hearthctl/doctor/doctor.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>

/* Each open object takes a descriptor, and Ceph takes a few for each of its daemons. */
#define MIN_DESCRIPTORS 65536
/* Use of a limit from which on it is reported. */
#define NEARLY_PERCENT 90

/* hearthd's directory in /proc if its pid is visible from here, else our own. */
static char *proc_dir(const Doctor *d, gboolean *of_hearthd)
{
    char *dir = g_strdup_printf("/proc/%" G_GUINT64_FORMAT, ctl_number(d->hello, "pid"));
    g_autofree char *path = g_build_filename(dir, "comm", NULL);
    g_autofree char *comm = d->hello ? doctor_read(path) : NULL;
    *of_hearthd = comm && strcmp(comm, "hearthd") == 0;
    if (*of_hearthd)
        return dir;
    g_free(dir);
    return g_strdup("/proc/self");
}

/* The hard limit in a line of /proc/PID/limits; G_MAXUINT64: unlimited, 0: not found. */
static guint64 hard_limit(const char *limits, const char *name)
{
    const char *line = limits ? strstr(limits, name) : NULL;
    char soft[32], hard[32];
    if (!line || sscanf(line + strlen(name), " %31s %31s", soft, hard) != 2)
        return 0;
    return strcmp(hard, "unlimited") == 0 ? G_MAXUINT64 : g_ascii_strtoull(hard, NULL, 10);
}

static char *limit_text(guint64 limit)
{
    return limit == G_MAXUINT64 ? g_strdup("unlimited")
                                : g_strdup_printf("%" G_GUINT64_FORMAT, limit);
}

static void check_limits(Doctor *d)
{
    gboolean of_hearthd;
    g_autofree char *dir = proc_dir(d, &of_hearthd);
    g_autofree char *path = g_build_filename(dir, "limits", NULL);
    g_autofree char *limits = doctor_read(path);
    const char *whose =
        of_hearthd ? "hearthd's" : "this shell's, because hearthd's are not visible from here";
    const guint64 files = hard_limit(limits, "Max open files");
    g_autofree char *files_text = limit_text(files);
    g_autofree char *locked = limit_text(hard_limit(limits, "Max locked memory"));
    const gboolean few = files < MIN_DESCRIPTORS;
    FindingLevel level = FINDING_OK;
    if (few)
        level = of_hearthd ? FINDING_WARN : FINDING_UNKNOWN;
    findings_add(d->findings, level, "limits",
                 few ? "LimitNOFILE=1048576 of the container runtime's service, or ulimit -n"
                     : NULL,
                 "%s: open files %s, locked memory %s", whose, files_text, locked);
}

static guint64 sysctl_number(const char *path, guint field)
{
    g_autofree char *text = doctor_read(path);
    g_auto(GStrv) fields = g_strsplit_set(text ? text : "", " \t", -1);
    for (guint i = 0, seen = 0; fields[i]; i++)
        if (fields[i][0] && seen++ == field)
            return g_ascii_strtoull(fields[i], NULL, 10);
    return 0;
}

static guint count_lines(const char *path)
{
    g_autofree char *text = doctor_read(path);
    guint n = 0;
    for (const char *p = text; p && *p; p++)
        n += *p == '\n';
    return n + 1;
}

static gboolean nearly(guint64 used, guint64 limit)
{
    return limit > 0 && used > limit / 100 * NEARLY_PERCENT;
}

static void check_sysctls(Doctor *d)
{
    const guint64 open_files = sysctl_number("/proc/sys/fs/file-nr", 0);
    const guint64 file_max = sysctl_number("/proc/sys/fs/file-max", 0);
    const guint64 mounts = count_lines("/proc/self/mountinfo");
    const guint64 mount_max = sysctl_number("/proc/sys/fs/mount-max", 0);
    const guint64 pressure = sysctl_number("/proc/sys/vm/vfs_cache_pressure", 0);
    guint found = 0;
    if (nearly(open_files, file_max) && ++found)
        findings_add(d->findings, FINDING_BAD, "sysctl", "sysctl -w fs.file-max=<more>",
                     "%" G_GUINT64_FORMAT " files are open, of fs.file-max %" G_GUINT64_FORMAT,
                     open_files, file_max);
    if (nearly(mounts, mount_max) && ++found)
        findings_add(d->findings, FINDING_BAD, "sysctl", "sysctl -w fs.mount-max=<more>",
                     "%" G_GUINT64_FORMAT " mounts, of fs.mount-max %" G_GUINT64_FORMAT, mounts,
                     mount_max);
    if (pressure > 200 && ++found)
        findings_add(d->findings, FINDING_WARN, "sysctl", "sysctl -w vm.vfs_cache_pressure=100",
                     "vm.vfs_cache_pressure is %" G_GUINT64_FORMAT
                     ": names and inodes of large datasets are soon forgotten",
                     pressure);
    if (found == 0)
        findings_add(d->findings, FINDING_OK, "sysctl", NULL,
                     "open files %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                     ", mounts %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT,
                     open_files, file_max, mounts, mount_max);
}

/* Tickets of Ceph contain times: with a clock that is minutes off, Ceph rejects even a good key. */
static void check_clock(Doctor *d)
{
    struct timex t = {0};
    const int state = adjtimex(&t);
    if (state < 0)
        findings_add(d->findings, FINDING_UNKNOWN, "clock", NULL, "adjtimex: %s",
                     g_strerror(errno));
    else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
        findings_add(
            d->findings, FINDING_WARN, "clock",
            "run chrony or systemd-timesyncd; Ceph rejects clients whose clock is minutes off "
            "(ignore this where the hypervisor keeps the clock)",
            "not synchronised");
    else
        findings_add(d->findings, FINDING_OK, "clock", NULL, "synchronised, within %.1f ms",
                     (double)t.maxerror / 1000);
}

void doctor_node(Doctor *d)
{
    check_limits(d);
    check_sysctls(d);
    check_clock(d);
}
