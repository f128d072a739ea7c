/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl doctor: features of the kernel. As root each is tried, because distributions backport
 * features; otherwise the version of the kernel decides.
 */
#include "cmd/hearthctl/doctor/doctor.h"
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/dataset/layers.h"

#define INIT_TIMEOUT_MS 2000
/* Bits of flags and flags2 of FUSE_INIT (linux/fuse.h of 6.9); older headers have no names for
 * them. */
#define INIT_EXT (1ull << 30)
#define INIT_PASSTHROUGH (1ull << 37)
#define INIT_HAS_RESEND (1ull << 39)

static void check_version(Doctor *d)
{
    const char *release = d->kernel.release;
    if (finding_kernel_is(release, 6, 5))
        findings_add(d->findings, FINDING_OK, "kernel", NULL, "Linux %s", release);
    else if (finding_kernel_is(release, 5, 12))
        findings_add(d->findings, FINDING_WARN, "kernel",
                     "Linux 6.5 reads warm datasets natively, 6.12 without loop devices",
                     "Linux %s", release);
    else
        findings_add(d->findings, FINDING_BAD, "kernel",
                     "Hearth needs Linux 5.12, and 6.12 for all of it", "Linux %s", release);
}

/* Mounts a FUSE file system outside of every namespace and reads the kernel's FUSE_INIT. Returns
 * 0 or -errno. */
static int offered(int fuse, uint64_t *flags)
{
    char buffer[8192];
    g_autofree char *fd_text = g_strdup_printf("%d", fuse);
    const char *const options[][2] = {{"source", "hearthctl-doctor"},
                                      {"fd", fd_text},
                                      {"rootmode", "40000"},
                                      {"user_id", "0"},
                                      {"group_id", "0"}};
    hearth_autofd int context = fsopen("fuse", FSOPEN_CLOEXEC);
    if (context < 0)
        return -errno;
    for (guint i = 0; i < G_N_ELEMENTS(options); i++)
        if (fsconfig(context, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) != 0)
            return -errno;
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
        return -errno;
    struct pollfd wait = {.fd = fuse, .events = POLLIN};
    if (poll(&wait, 1, INIT_TIMEOUT_MS) <= 0)
        return -ETIMEDOUT;
    const ssize_t n = read(fuse, buffer, sizeof(buffer));
    /* flags2 follows flags, in requests of kernels that have more than 32. */
    const size_t head = sizeof(struct fuse_in_header), flags_at = head + 12, flags2_at = head + 16;
    uint32_t low, high = 0;
    if (n < (ssize_t)(flags_at + sizeof(low)))
        return n < 0 ? -errno : -EPROTO;
    memcpy(&low, buffer + flags_at, sizeof(low));
    if ((low & INIT_EXT) && n >= (ssize_t)(flags2_at + sizeof(high)))
        memcpy(&high, buffer + flags2_at, sizeof(high));
    *flags = (uint64_t)high << 32 | low;
    return 0;
}

static const char *yes(gboolean is)
{
    return is ? "yes" : "no (Linux 6.9)";
}

static void check_fuse(Doctor *d)
{
    hearth_autofd int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0) {
        const int why = errno;
        const gboolean hidden = why == EACCES && !d->root;
        const char *fix = "modprobe fuse";
        if (hidden)
            fix = "run it as root";
        else if (why == ENOENT)
            fix = "modprobe fuse; in a pod, mount /dev of the host";
        else if (why == EPERM)
            fix = "the container must be privileged to use devices";
        findings_add(d->findings, hidden ? FINDING_UNKNOWN : FINDING_BAD, "FUSE", fix,
                     "/dev/fuse: %s", g_strerror(why));
        return;
    }
    uint64_t flags = 0;
    const int rc = d->root ? offered(fuse, &flags) : -EPERM;
    if (rc == 0)
        findings_add(d->findings, FINDING_OK, "FUSE", NULL,
                     "/dev/fuse opens; passthrough: %s; resend: %s",
                     yes((flags & INIT_PASSTHROUGH) != 0), yes((flags & INIT_HAS_RESEND) != 0));
    else if (!d->root)
        findings_add(d->findings, FINDING_OK, "FUSE", NULL,
                     "/dev/fuse opens; passthrough and resend, by the version: %s",
                     yes(finding_kernel_is(d->kernel.release, 6, 9)));
    else
        findings_add(
            d->findings, FINDING_BAD, "FUSE",
            "volumes cannot be mounted here; it takes CAP_SYS_ADMIN: is the pod privileged?",
            "/dev/fuse opens, but a file system on it cannot be made: %s", g_strerror(-rc));
}

/*
 * Tries a disk and a tmpfs, and reports what either can do: EROFS cannot be mounted from a file of
 * a tmpfs, and the root of a container, itself an overlay, cannot be a layer of another overlay.
 */
static gboolean try_layers(LayersFeatures *best)
{
    static const char *const above[] = {"/var/tmp", "/dev/shm"};
    guint tried = 0;
    *best = (LayersFeatures){0};
    for (guint i = 0; i < G_N_ELEMENTS(above); i++) {
        g_autofree char *dir = g_build_filename(above[i], "hearthctl-doctor-XXXXXX", NULL);
        LayersFeatures features;
        if (!g_mkdtemp_full(dir, 0700))
            continue;
        layers_features(dir, &features);
        g_rmdir(dir);
        best->data_only |= features.data_only;
        best->from_file |= features.from_file;
        if (tried++ == 0 || !features.why) {
            g_free(best->why);
            best->why = g_steal_pointer(&features.why);
        }
        g_free(features.why);
    }
    return tried > 0;
}

static void check_layers(Doctor *d)
{
    const char *release = d->kernel.release;
    LayersFeatures features = {0};
    if (!d->root || !try_layers(&features)) {
        const char *data_only = finding_kernel_is(release, 6, 5) ? "yes" : "no";
        const char *from_files = finding_kernel_is(release, 6, 12) ? "yes" : "no";
        findings_add(
            d->findings, FINDING_UNKNOWN, "native datasets", "run it as root",
            "not tried; by the version, data-only layers of overlayfs (6.5): %s, EROFS from "
            "files (6.12): %s",
            data_only, from_files);
        return;
    }
    g_autofree char *why = features.why;
    if (why)
        findings_add(d->findings, FINDING_WARN, "native datasets",
                     "modprobe overlay and erofs, or a newer kernel; datasets are served by FUSE "
                     "meanwhile, slower when warm",
                     "cannot be mounted: %s", why);
    else
        findings_add(d->findings, FINDING_OK, "native datasets", NULL,
                     "overlayfs has data-only layers; EROFS %s",
                     features.from_file ? "from files"
                                        : "through loop devices (Linux 6.12: files)");
}

static void check_loop(Doctor *d)
{
    if (access("/dev/loop-control", F_OK) == 0)
        findings_add(d->findings, FINDING_OK, "loop devices", NULL, "/dev/loop-control is there");
    else
        findings_add(d->findings, FINDING_WARN, "loop devices",
                     "modprobe loop; in a pod, mount /dev of the host. RBD volumes need it",
                     "/dev/loop-control: %s", g_strerror(errno));
}

void doctor_kernel(Doctor *d)
{
    check_version(d);
    check_fuse(d);
    check_layers(d);
    check_loop(d);
}
