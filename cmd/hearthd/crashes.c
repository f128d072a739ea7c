/* SPDX-License-Identifier: Apache-2.0 */
/* The count is the size of a file beside the socket. */
#include "cmd/hearthd/crashes.h"
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/tasks.h"

#define STABLE_MS 60000

static char path[PATH_MAX];

/* Of a signal: only what signal-safety(7) allows. */
static void on_crash(int signal_number)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && write(fd, "x", 1) == 1)
        close(fd);
    raise(signal_number); /* with the handler of the kernel: SA_RESETHAND */
}

static void is_stable(Task *task)
{
    (void)task;
    unlink(path);
}

void crashes_end(void)
{
    unlink(path);
}

unsigned crashes_begin(const char *socket_path)
{
    static Task stable = {.run = is_stable};
    /* SIGTRAP: GLib, when there is no memory. */
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    const struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND};
    struct stat st;
    g_snprintf(path, sizeof(path), "%s.crashes", socket_path);
    const unsigned before = lstat(path, &st) == 0 ? (unsigned)MIN(st.st_size, 1000) : 0;
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        sigaction(signals[i], &action, NULL);
    tasks_give_later(tasks_common(), &stable, STABLE_MS);
    return before;
}
