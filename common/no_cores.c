/* SPDX-License-Identifier: Apache-2.0 */
#include "common/no_cores.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/autofd.h"

/* core(5): no mapping of any kind. Programs that are executed inherit it. */
static int filter_all(void)
{
    hearth_autofd int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "0", 1) == 1 ? 0 : -1;
}

static void tell(const char *program, const char *what)
{
    fprintf(stderr,
            "{\"level\":\"warning\",\"program\":\"%s\",\"msg\":\"%s: %s; keys of Ceph users "
            "may get into core dumps\"}\n",
            program, what, strerror(errno));
}

void no_cores(const char *program)
{
    const struct rlimit none = {0, 0};
    /* First: a process that is not dumpable owns its /proc files no more. */
    if (filter_all() < 0)
        tell(program, "/proc/self/coredump_filter cannot be written");
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        tell(program, "setrlimit(RLIMIT_CORE)");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        tell(program, "prctl(PR_SET_DUMPABLE)");
}
