/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel makes SIGKILL pending in each thread of a process that any signal ends (signal.c,
 * complete_signal()), which is what its own killable waits look for. */
#include "cache/fuse/layer/killed.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "common/autofd.h"
#include <fcntl.h>
#include <unistd.h>

static gboolean has_kill(const char *status, const char *field)
{
    const char *at = strstr(status, field);
    return at && (g_ascii_strtoull(at + strlen(field), NULL, 16) >> (SIGKILL - 1) & 1);
}

gboolean thread_is_killed(pid_t thread)
{
    char path[64], status[32768];
    if (thread <= 0)
        return FALSE;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
    if (n <= 0)
        return FALSE;
    status[n] = '\0';
    return has_kill(status, "\nSigPnd:\t") || has_kill(status, "\nShdPnd:\t");
}
