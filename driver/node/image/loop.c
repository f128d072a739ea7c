/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop devices (loop(4)). A foreign one is never touched: ours are known by their tag, and looked
 * for only among those whose backing file has our name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/image/block_internal.h"

#define LOOP_MAJOR_NUMBER 7
#define BACKING_NAME "/image"
/* Devices that others take while we do. */
#define ATTACH_ATTEMPTS 32
/* What was made for a disk with sectors of 512 bytes can be mounted only on such a one. */
#define SECTOR_BYTES 512
/* udev opens every new device for some milliseconds; the kernel sends no event when that ends. */
#define DETACH_ATTEMPTS 40
#define DETACH_PAUSE_MS 50

void loop_path(int number, char path[LOOP_PATH_MAX])
{
    g_snprintf(path, LOOP_PATH_MAX, "/dev/loop%d", number);
}

static void set_errno(GError **error, int rc, const char *what, const char *path)
{
    hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s %s: %s", what, path, g_strerror(rc));
}

/* A container's /dev does not get the nodes the kernel makes later. */
static int open_loop(int number, int flags)
{
    char path[LOOP_PATH_MAX];
    loop_path(number, path);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT &&
        mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR_NUMBER, (unsigned)number)) == 0)
        fd = open(path, flags | O_CLOEXEC);
    return fd;
}

static char *sysfs(int number, const char *name)
{
    g_autofree char *path = g_strdup_printf("/sys/block/loop%d/%s", number, name);
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? g_strchomp(text) : NULL;
}

static gboolean is_bound(int number)
{
    g_autofree char *backing = sysfs(number, "loop/backing_file");
    return backing != NULL;
}

gboolean loop_is_free(NodeBlock *b, int number)
{
    (void)b;
    return !is_bound(number);
}

static uint64_t bytes_of(int number)
{
    g_autofree char *sectors = sysfs(number, "size");
    return sectors ? g_ascii_strtoull(sectors, NULL, 10) * 512 : 0;
}

static gboolean has_tag(int number, const char *tag, LoopDevice *device)
{
    g_autofree char *backing = sysfs(number, "loop/backing_file");
    if (!backing || !g_str_has_suffix(backing, BACKING_NAME))
        return FALSE;
    hearth_autofd int fd = open_loop(number, O_RDONLY);
    struct loop_info64 info;
    if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) != 0 ||
        strncmp((const char *)info.lo_file_name, tag, LO_NAME_SIZE) != 0)
        return FALSE;
    g_autofree char *read_only = sysfs(number, "ro");
    *device = (LoopDevice){.number = number,
                           .read_only = g_strcmp0(read_only, "1") == 0,
                           .autoclear = (info.lo_flags & LO_FLAGS_AUTOCLEAR) != 0,
                           .bytes = bytes_of(number)};
    return TRUE;
}

gboolean loop_find(NodeBlock *b, const char *tag, LoopDevice *device, GError **error)
{
    (void)b;
    *device = (LoopDevice){.number = -1};
    DIR *dir = opendir("/sys/block");
    if (!dir) {
        set_errno(error, errno, "looking for loop devices:", "/sys/block");
        return FALSE;
    }
    const struct dirent *entry;
    while (device->number < 0 && (entry = readdir(dir))) {
        int number, length = 0;
        if (sscanf(entry->d_name, "loop%d%n", &number, &length) == 1 && !entry->d_name[length])
            has_tag(number, tag, device);
    }
    closedir(dir);
    return TRUE;
}

/* TRUE: *fd is bound, or < 0 with the error. FALSE: another process has taken the device. */
static gboolean try_attach(int control, int file, const char *tag, LoopDevice *device, int *fd,
                           GError **error)
{
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    char path[LOOP_PATH_MAX];
    *fd = -1;
    if (number < 0) {
        set_errno(error, errno, "a free loop device:", "/dev/loop-control");
        return TRUE;
    }
    loop_path(number, path);
    hearth_autofd int loop = open_loop(number, device->read_only ? O_RDONLY : O_RDWR);
    if (loop < 0) {
        set_errno(error, errno, "opening", path);
        return TRUE;
    }
    struct loop_config config = {.fd = (__u32)file, .block_size = SECTOR_BYTES};
    config.info.lo_flags = LO_FLAGS_DIRECT_IO;
    if (device->autoclear)
        config.info.lo_flags |= LO_FLAGS_AUTOCLEAR;
    if (device->read_only)
        config.info.lo_flags |= LO_FLAGS_READ_ONLY;
    g_strlcpy((char *)config.info.lo_file_name, tag, LO_NAME_SIZE);
    if (ioctl(loop, LOOP_CONFIGURE, &config) != 0) {
        if (errno == EBUSY)
            return FALSE;
        set_errno(error, errno, "LOOP_CONFIGURE (Linux 5.8 is needed) of", path);
        return TRUE;
    }
    /* Whoever had the number before may have left it read-only. */
    int writable = 0;
    if (!device->read_only && ioctl(loop, BLKROSET, &writable) != 0) {
        set_errno(error, errno, "making writable", path);
        ioctl(loop, LOOP_CLR_FD);
        return TRUE;
    }
    device->number = number;
    device->bytes = bytes_of(number);
    *fd = hearth_steal_fd(&loop);
    return TRUE;
}

int loop_attach(NodeBlock *b, const char *file, const char *tag, LoopDevice *device, GError **error)
{
    (void)b;
    hearth_autofd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0) {
        set_errno(error, errno, "opening", "/dev/loop-control (is the module loop loaded?)");
        return -1;
    }
    const int access_mode = device->read_only ? O_RDONLY : O_RDWR;
    hearth_autofd int backing = open(file, access_mode | O_DIRECT | O_CLOEXEC);
    if (backing < 0) {
        set_errno(error, errno, "opening", file);
        return -1;
    }
    int fd;
    for (int i = 0; i < ATTACH_ATTEMPTS; i++)
        if (try_attach(control, backing, tag, device, &fd, error))
            return fd;
    hearth_fail(error, HEARTH_ERROR_ABORTED,
                "other programs took every free loop device first; try again");
    return -1;
}

int loop_hold(NodeBlock *b, int number, GError **error)
{
    (void)b;
    char path[LOOP_PATH_MAX];
    loop_path(number, path);
    int fd = open_loop(number, O_RDONLY);
    if (fd < 0)
        set_errno(error, errno, "opening", path);
    return fd;
}

/*
 * The kernel lets BLKROSET outlive the device that it was for, so the next user of the number could
 * not write. A process that opens a device exclusively keeps others from attaching it, so the flag
 * is cleared only on a free device; if another process was faster, the device is its own.
 */
static void clear_read_only(int number)
{
    int writable = 0;
    hearth_autofd int fd = open_loop(number, O_RDONLY | O_EXCL);
    if (fd >= 0 && !is_bound(number))
        (void)ioctl(fd, BLKROSET, &writable);
}

/* Whether the device is not the one it was, in the first round: detached, and attached by another
 * else since. Who has it open keeps that from changing. */
static gboolean is_anothers(int fd, struct loop_info64 *first, gboolean *known)
{
    struct loop_info64 info;
    if (ioctl(fd, LOOP_GET_STATUS64, &info) != 0)
        return FALSE;
    if (!*known)
        *first = info;
    *known = TRUE;
    return info.lo_device != first->lo_device || info.lo_inode != first->lo_inode ||
           memcmp(info.lo_file_name, first->lo_file_name, LO_NAME_SIZE) != 0;
}

gboolean loop_detach(NodeBlock *b, int number, GError **error)
{
    (void)b;
    char path[LOOP_PATH_MAX];
    struct loop_info64 first;
    gboolean known = FALSE;
    loop_path(number, path);
    for (int i = 0; i < DETACH_ATTEMPTS; i++) {
        hearth_autofd int fd = open_loop(number, O_RDONLY);
        if (fd < 0) {
            set_errno(error, errno, "opening", path);
            return FALSE;
        }
        if (is_anothers(fd, &first, &known))
            return TRUE;
        if (ioctl(fd, LOOP_CLR_FD) != 0 && errno != ENXIO && errno != EBUSY) {
            set_errno(error, errno, "detaching", path);
            return FALSE;
        }
        close(hearth_steal_fd(&fd)); /* it is detached when its last user closes it */
        if (!is_bound(number)) {
            clear_read_only(number);
            return TRUE;
        }
        poll(NULL, 0, DETACH_PAUSE_MS);
    }
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "%s is in use: a process has it open, or it is mounted somewhere (fuser -v %s and "
        "grep it in /proc/*/mountinfo)",
        path, path);
}

typedef struct SizeJob {
    char *file;
    int loop;
    int rc;
} SizeJob;

static void size_run(void *data)
{
    SizeJob *job = data;
    struct statx stx;
    /* So that the kernel's idea of the file's size is hearthd's. */
    job->rc = statx(AT_FDCWD, job->file, AT_STATX_FORCE_SYNC, STATX_SIZE, &stx) == 0 &&
                      ioctl(job->loop, LOOP_SET_CAPACITY) == 0
                  ? 0
                  : errno;
}

static void size_free(void *data)
{
    SizeJob *job = data;
    close(job->loop);
    g_free(job->file);
    g_free(job);
}

gboolean loop_grow(NodeBlock *b, int number, const char *file, gint64 timeout_ms, uint64_t *bytes,
                   GError **error)
{
    KernelBlock *k = (KernelBlock *)b;
    char path[LOOP_PATH_MAX];
    loop_path(number, path);
    int fd = loop_hold(b, number, error);
    if (fd < 0)
        return FALSE;
    SizeJob *job = g_new0(SizeJob, 1);
    job->file = g_strdup(file);
    job->loop = fd;
    g_autofree char *what = g_strdup_printf("the size of %s", path);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){size_run, job, size_free}, timeout_ms,
                     error))
        return FALSE;
    int rc = job->rc;
    size_free(job);
    if (rc != 0) {
        set_errno(error, rc, "growing", path);
        return FALSE;
    }
    *bytes = bytes_of(number);
    return TRUE;
}

gboolean loop_set_read_only(NodeBlock *b, int number, gboolean read_only, GError **error)
{
    char path[LOOP_PATH_MAX];
    loop_path(number, path);
    hearth_autofd int fd = loop_hold(b, number, error);
    if (fd < 0)
        return FALSE;
    int value = read_only;
    if (ioctl(fd, BLKROSET, &value) == 0)
        return TRUE;
    set_errno(error, errno, read_only ? "making read-only" : "making writable", path);
    return FALSE;
}
