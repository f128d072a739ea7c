/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/objects/verity.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fsverity.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "common/autofd.h"

#define BLOCK 4096
#define PROBE "verity"

static int enable_verity(Store *store, int fd)
{
    const struct fsverity_enable_arg arg = {
        .version = 1, .hash_algorithm = FS_VERITY_HASH_ALG_SHA256, .block_size = BLOCK};
    if (store->hooks.enable_verity)
        return store->hooks.enable_verity(store->hooks.data, fd);
    return ioctl(fd, FS_IOC_ENABLE_VERITY, &arg) < 0 ? -errno : 0;
}

void verity_stop_writing(int fd, int flags)
{
    char self[32];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    hearth_autofd int reading = open(self, O_RDONLY | O_CLOEXEC | flags);
    /* In place of the other: readers use its number meanwhile. */
    if (reading >= 0)
        dup3(reading, fd, O_CLOEXEC);
}

int verity_seal(Store *store, const ObjectId *id)
{
    hearth_autofd int fd = layout_open_object(&store->layout, id);
    if (fd < 0)
        return fd;
    int rc = enable_verity(store, fd);
    return rc == -EEXIST ? 0 : rc; /* it is sealed */
}

gboolean verity_probe(Store *store)
{
    static const char text[BLOCK] = "hearth";
    char back[sizeof(text)];
    const int at = store->layout.partial_fd;
    Partial probe = {.fd = openat(at, PROBE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    gboolean works = probe.fd >= 0 && pwrite(probe.fd, text, sizeof(text), 0) == sizeof(text);
    if (works) {
        verity_stop_writing(probe.fd, 0);
        works = enable_verity(store, probe.fd) == 0 &&
                pread(probe.fd, back, sizeof(back), 0) == sizeof(back);
    }
    if (probe.fd >= 0)
        close(probe.fd);
    unlinkat(at, PROBE, 0);
    return works;
}
