/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl doctor: the cache's disk. Its speed is measured for one second by reading cached
 * objects past the page cache. Nothing is written, so the speed of an empty cache is not known.
 */
/* GLib 2.84 has other names for its mount entries, and these still. */
#define GLIB_VERSION_MIN_REQUIRED GLIB_VERSION_2_74
#include "cmd/hearthctl/doctor/doctor.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gunixmounts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/autofd.h"
#include "common/size.h"

#define LITTLE_PERCENT 5
#define NOTHING_PERCENT 2
#define PROBE_US 500000 /* each of two kinds of reads */
#define PROBE_OBJECTS 64
#define SMALL_BYTES 4096
#define LARGE_BYTES (1u << 20)
#define SLOW_LARGE (200.0 * 1000 * 1000)

/* ---- space ---- */

static double percent(guint64 part, guint64 whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static void check_space(Doctor *d, const char *dir)
{
    struct statvfs st;
    if (statvfs(dir, &st) < 0) {
        findings_add(d->findings, FINDING_UNKNOWN, "cache space", NULL, "%s: %s", dir,
                     g_strerror(errno));
        return;
    }
    const json_t *cache = json_object_get(d->status, "cache");
    const double bytes = percent(st.f_bavail, st.f_blocks),
                 inodes = percent(st.f_favail, st.f_files);
    const double least = MIN(bytes, inodes);
    g_autofree char *left = size_format((guint64)st.f_bavail * st.f_frsize);
    g_autofree char *all = size_format((guint64)st.f_blocks * st.f_frsize);
    g_autofree char *inode_text =
        st.f_files ? g_strdup_printf("%.0f%%", inodes) : g_strdup("no limit");
    const guint64 high = ctl_number(cache, "highPercent"), low = ctl_number(cache, "lowPercent");
    g_autofree char *marks = high ? g_strdup_printf("; evicts above %" G_GUINT64_FORMAT
                                                    "%%, down to %" G_GUINT64_FORMAT "%%",
                                                    high, low)
                                  : g_strdup("");
    FindingLevel level = FINDING_OK;
    if (least < LITTLE_PERCENT)
        level = least < NOTHING_PERCENT ? FINDING_BAD : FINDING_WARN;
    findings_add(d->findings, level, "cache space",
                 least < LITTLE_PERCENT
                     ? "the cache evicts by itself, so something else fills the disk: give "
                       "the cache a file system of its own, or a lower --cache-size"
                     : NULL,
                 "%s: %s of %s free (%.0f%%), inodes free: %s%s", dir, left, all, bytes, inode_text,
                 marks);
}

/* ---- the file system and what it is on ---- */

static void check_filesystem(Doctor *d, const char *dir)
{
    GUnixMountEntry *mount = g_unix_mount_for(dir, NULL);
    if (!mount) {
        findings_add(d->findings, FINDING_UNKNOWN, "cache file system", NULL,
                     "%s: not in the mount table", dir);
        return;
    }
    const char *type = g_unix_mount_get_fs_type(mount);
    const char *options = g_unix_mount_get_options(mount);
    const gboolean fine = strcmp(type, "ext4") == 0 || strcmp(type, "xfs") == 0;
    if (finding_has_option(options, "ro"))
        findings_add(
            d->findings, FINDING_BAD, "cache file system",
            "see dmesg for the error that made it so; fsck it, mount it rw, restart hearthd",
            "%s at %s is read-only", type, g_unix_mount_get_mount_path(mount));
    else if (!fine)
        findings_add(d->findings, FINDING_WARN, "cache file system",
                     "put the cache on an ext4 or XFS file system of its own, on NVMe",
                     "%s is on %s, which is not tested as a cache", dir, type);
    else if (finding_has_option(options, "sync") || finding_has_option(options, "data=journal"))
        findings_add(d->findings, FINDING_WARN, "cache file system",
                     "mount it without sync and data=journal", "%s, mounted %s", type, options);
    else
        findings_add(d->findings, FINDING_OK, "cache file system", NULL, "%s at %s (%s)", type,
                     g_unix_mount_get_mount_path(mount), options ? options : "");
    g_unix_mount_free(mount);
}

static void check_device(Doctor *d, const char *dir)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return;
    g_autofree char *whole = g_strdup_printf("/sys/dev/block/%u:%u/queue/rotational",
                                             major(st.st_dev), minor(st.st_dev));
    g_autofree char *part = g_strdup_printf("/sys/dev/block/%u:%u/../queue/rotational",
                                            major(st.st_dev), minor(st.st_dev));
    g_autofree char *link =
        g_strdup_printf("/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
    g_autofree char *target = g_file_read_link(link, NULL);
    g_autofree char *name = target ? g_path_get_basename(target) : NULL;
    g_autofree char *text = doctor_read(whole);
    if (!text)
        text = doctor_read(part);
    if (!text)
        findings_add(d->findings, FINDING_UNKNOWN, "cache disk", NULL,
                     "the block device of %s is not visible from here", dir);
    else if (strcmp(text, "1") == 0)
        findings_add(d->findings, FINDING_WARN, "cache disk",
                     "use an NVMe disk; a cache slower than Ceph slows down its volumes",
                     "%s is a rotating disk, or reports to be one", name ? name : "it");
    else
        findings_add(d->findings, FINDING_OK, "cache disk", NULL, "%s, not rotating",
                     name ? name : "it");
}

/* ---- how fast it is ---- */

typedef struct Probe {
    GPtrArray *paths;
    void *buffer;
    guint64 bytes, reads;
    gint64 took_us;
} Probe;

/* Takes from each directory of objects the first one that is large enough. */
static void find_objects(const char *dir, GPtrArray *paths)
{
    g_autofree char *objects = g_build_filename(dir, "objects", NULL);
    g_autoptr(GDir) outer = g_dir_open(objects, 0, NULL);
    const char *name;
    while (outer && paths->len < PROBE_OBJECTS && (name = g_dir_read_name(outer))) {
        g_autofree char *sub = g_build_filename(objects, name, NULL);
        g_autoptr(GDir) inner = g_dir_open(sub, 0, NULL);
        const char *file;
        while (inner && (file = g_dir_read_name(inner))) {
            struct stat st;
            g_autofree char *path = g_build_filename(sub, file, NULL);
            if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < SMALL_BYTES)
                continue;
            g_ptr_array_add(paths, g_steal_pointer(&path));
            break;
        }
    }
}

/* FALSE with errno when the objects cannot be read past the page cache. */
static gboolean probe(Probe *p, size_t block)
{
    const gint64 began = g_get_monotonic_time();
    p->bytes = p->reads = 0;
    for (guint i = 0; (p->took_us = g_get_monotonic_time() - began) < PROBE_US; i++) {
        hearth_autofd int fd =
            open(p->paths->pdata[i % p->paths->len], O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOATIME);
        if (fd < 0 && errno == ENOENT)
            continue; /* evicted meanwhile */
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
            return FALSE;
        const guint64 blocks = MAX((guint64)st.st_size / block, 1);
        const off_t at = (off_t)((guint64)g_random_int() % blocks * block);
        const ssize_t n = pread(fd, p->buffer, block, at);
        if (n < 0)
            return FALSE;
        p->bytes += (guint64)n;
        p->reads++;
    }
    return p->reads > 0;
}

static void check_speed(Doctor *d, const char *dir)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    Probe p = {.paths = paths};
    if (d->root)
        find_objects(dir, paths);
    if (paths->len == 0 || posix_memalign(&p.buffer, SMALL_BYTES, LARGE_BYTES) != 0) {
        if (d->root)
            findings_add(d->findings, FINDING_UNKNOWN, "cache speed",
                         "warm a volume, and run it again",
                         "nothing is cached yet, so it cannot be measured");
        else
            findings_add(d->findings, FINDING_UNKNOWN, "cache speed", "run it as root",
                         "not measured");
        return;
    }
    gboolean good = probe(&p, SMALL_BYTES);
    const double latency_us = good ? (double)p.took_us / (double)p.reads : 0;
    good = good && probe(&p, LARGE_BYTES);
    const double rate = good ? (double)p.bytes * G_USEC_PER_SEC / (double)p.took_us : 0;
    const double size = good ? (double)p.bytes / (double)p.reads : 0;
    g_autofree char *rate_text = size_format((guint64)rate);
    g_autofree char *size_text = size_format((guint64)size);
    free(p.buffer);
    /* The rate of small objects is that of opening them. */
    const gboolean slow = rate < SLOW_LARGE && size > SMALL_BYTES * 64;
    const FindingLevel level = slow ? FINDING_WARN : FINDING_OK;
    const char *fix = slow ? "is the disk shared, worn or throttled? Compare with `fio`" : NULL;
    if (!good)
        findings_add(d->findings, FINDING_WARN, "cache speed", "see dmesg",
                     "objects cannot be read past the page cache: %s", g_strerror(errno));
    else
        findings_add(d->findings, level, "cache speed", fix,
                     "one reader, past the page cache: open and 4 KiB in %.0f us; %s/s by %s",
                     latency_us, rate_text, size_text);
}

void doctor_disk(Doctor *d)
{
    const char *reported = ctl_string(json_object_get(d->status, "cache"), "dir");
    const char *dir = d->cache_dir ? d->cache_dir : reported;
    if (!dir[0]) {
        findings_add(d->findings, FINDING_UNKNOWN, "cache disk", "name it by --cache-dir",
                     "the directory is not known without hearthd");
        return;
    }
    if (access(dir, F_OK) < 0) {
        const gboolean hidden = errno == EACCES && !d->root;
        const FindingLevel level = d->cache_dir && !hidden ? FINDING_BAD : FINDING_UNKNOWN;
        const char *fix = hidden ? "run it as root" : "run it where hearthd runs, as in its pod";
        findings_add(d->findings, level, "cache disk", fix, "%s: %s", dir, g_strerror(errno));
        return;
    }
    check_space(d, dir);
    check_filesystem(d, dir);
    check_device(d, dir);
    check_speed(d, dir);
}
