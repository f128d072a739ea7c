/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, checking and growing file systems, by the programs of e2fsprogs and xfsprogs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/image/block_internal.h"
#include "driver/node/image/run.h"

/* e2fsck(8), "EXIT CODE". */
#define E2FSCK_UNCORRECTED 4
#define E2FSCK_NOT_DONE 8

/* New images are empty: there is nothing to discard, and unwritten parts take no space. */
#define EXT4_OPTIONS "-m0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1"
#define XFS_OPTIONS "-K"

static gboolean is_xfs(const char *type)
{
    return strcmp(type, "xfs") == 0;
}

/* FALSE with the error unless it ended with 0. */
static gboolean must_run(const char *const *argv, gint64 timeout_ms, GError **error)
{
    int status;
    g_autofree char *output = NULL;
    if (!run_program(argv, timeout_ms, &status, &output, error))
        return FALSE;
    if (status != 0)
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s ended with %d%s%s", argv[0], status,
                    *output ? ": " : "", output);
    return status == 0;
}

/* The class's words. One that is a path could be another device to format. */
static char **split_options(const char *options, GError **error)
{
    char **words;
    g_autoptr(GError) cause = NULL;
    if (!g_shell_parse_argv(options, NULL, &words, &cause)) {
        if (g_error_matches(cause, G_SHELL_ERROR, G_SHELL_ERROR_EMPTY_STRING))
            return g_new0(char *, 1);
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "mkfsOptions \"%s\": %s", options,
                    cause->message);
        return NULL;
    }
    for (char **word = words; *word; word++) {
        if (!strchr(*word, '/'))
            continue;
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "mkfsOptions \"%s\": no paths are allowed in them", options);
        g_strfreev(words);
        return NULL;
    }
    return words;
}

static gboolean sync_device(const char *path, GError **error)
{
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fsync(fd) == 0)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_UNAVAILABLE, "writing back %s: %s", path,
                       g_strerror(errno));
}

gboolean mkfs_make(NodeBlock *b, int number, const char *type, const char *options,
                   gint64 timeout_ms, GError **error)
{
    (void)b;
    char path[LOOP_PATH_MAX];
    loop_path(number, path);
    gboolean xfs = is_xfs(type);
    const char *fallback = xfs ? XFS_OPTIONS : EXT4_OPTIONS;
    g_auto(GStrv) words = split_options(options ? options : fallback, error);
    if (!words)
        return FALSE;
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, (gpointer)(xfs ? "mkfs.xfs" : "mkfs.ext4"));
    /* Whether to is decided by now: the program must not ask. */
    g_ptr_array_add(argv, (gpointer)(xfs ? "-f" : "-F"));
    g_ptr_array_add(argv, (gpointer) "-q");
    for (char **word = words; *word; word++)
        g_ptr_array_add(argv, *word);
    g_ptr_array_add(argv, path);
    g_ptr_array_add(argv, NULL);
    return must_run((const char *const *)argv->pdata, timeout_ms, error) &&
           sync_device(path, error);
}

/* Programs that cannot open a device end as they do for a damaged one. */
static gboolean can_open(const char *path, gboolean for_writing, GError **error)
{
    int read_only = 0;
    hearth_autofd int fd = open(path, (for_writing ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    int rc = fd < 0 || ioctl(fd, BLKROGET, &read_only) != 0 ? errno : 0;
    if (rc == 0 && for_writing && read_only)
        rc = EROFS;
    if (rc != 0)
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "%s cannot be opened for %s: %s; its file system was not looked at", path,
                    for_writing ? "writing" : "reading", g_strerror(rc));
    return rc == 0;
}

gboolean mkfs_check(NodeBlock *b, int number, const char *type, gboolean thorough,
                    gint64 timeout_ms, GError **error)
{
    (void)b;
    char path[LOOP_PATH_MAX];
    loop_path(number, path);
    const char *preen[] = {"e2fsck", "-p", path, NULL};
    const char *look[] = {"e2fsck", "-f", "-n", path, NULL};
    const char *xfs_look[] = {"xfs_repair", "-n", path, NULL};
    const char **program = preen;
    if (thorough)
        program = is_xfs(type) ? xfs_look : look;
    int status;
    g_autofree char *output = NULL;
    /* The kernel replays the log of an XFS at the mount, and there is nothing else to do before. */
    if (is_xfs(type) && !thorough)
        return TRUE;
    if (!can_open(path, !thorough, error) ||
        !run_program(program, timeout_ms, &status, &output, error))
        return FALSE;
    if (status == 0 || (!thorough && status < E2FSCK_UNCORRECTED)) {
        if (status != 0)
            g_message("%s: file system repaired: %s", path, output);
        return TRUE;
    }
    if (!is_xfs(type) && status >= E2FSCK_NOT_DONE)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "%s: e2fsck could not read the file system: %s", path, output);
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "%s: the file system is damaged and is not repaired without being asked: map the "
        "image and run %s. It says: %s",
        path, is_xfs(type) ? "xfs_repair" : "e2fsck", output);
}

/* Growing a mounted ext4 takes CAP_SYS_RESOURCE, which even root in a container may be without. */
gboolean mkfs_can_grow_mounted(NodeBlock *b, const char *type)
{
    (void)b;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return is_xfs(type) ||
           (syscall(SYS_capget, &header, data) == 0 &&
            (data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE)));
}

gboolean mkfs_grow(NodeBlock *b, int number, const char *type, const char *path, gint64 timeout_ms,
                   GError **error)
{
    char device[LOOP_PATH_MAX];
    loop_path(number, device);
    const char *xfs[] = {"xfs_growfs", "-d", path, NULL};
    const char *ext4[] = {"resize2fs", device, NULL};
    const char *before[] = {"e2fsck", "-f", "-p", device, NULL};
    if (is_xfs(type))
        return must_run(xfs, timeout_ms, error);
    if (path && !mkfs_can_grow_mounted(b, type))
        return hearth_fail(
            error, HEARTH_ERROR_FAILED_PRECONDITION,
            "%s has grown, but not the ext4 on it: for that the node plugin needs "
            "CAP_SYS_RESOURCE (privileged: true). It grows when the volume is next staged",
            device);
    const gint64 deadline = g_get_monotonic_time() + timeout_ms * 1000;
    if (!path) {
        int status;
        g_autofree char *output = NULL;
        if (!run_program(before, timeout_ms, &status, &output, error))
            return FALSE;
        if (status >= E2FSCK_UNCORRECTED)
            return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                               "%s: damaged, not grown: %s", device, output);
    }
    return must_run(ext4, MAX((deadline - g_get_monotonic_time()) / 1000, 1), error);
}
