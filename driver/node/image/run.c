/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/image/run.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/autofd.h"

/* What is kept of the output: its end, where the reason is. */
#define KEEP_BYTES 1024
/* For a killed process to end. One that waits for a device that hangs does not. */
#define DIE_MS 2000

static char *find(const char *name)
{
    g_autofree char *path = g_strconcat(g_getenv("PATH") ? g_getenv("PATH") : "/usr/bin:/bin",
                                        ":/usr/sbin:/sbin", NULL);
    g_auto(GStrv) dirs = g_strsplit(path, ":", -1);
    for (char **dir = dirs; *dir; dir++) {
        g_autofree char *file = g_build_filename(**dir ? *dir : ".", name, NULL);
        if (access(file, X_OK) == 0)
            return g_steal_pointer(&file);
    }
    return NULL;
}

static int spawn(const char *file, const char *const *argv, int output, pid_t *pid)
{
    static const char *const env[] = {"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn(pid, file, &actions, &attr, (char *const *)argv, (char *const *)env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Reads the available output; FALSE at the end. */
static gboolean take_output(int fd, GString *text)
{
    char buf[4096];
    ssize_t n = read(fd, buf, sizeof(buf));
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    g_string_append_len(text, buf, n);
    if (text->len > KEEP_BYTES)
        g_string_erase(text, 0, (gssize)(text->len - KEEP_BYTES));
    return n > 0;
}

/* TRUE: the process has ended. */
static gboolean watch(int process, int output, gint64 deadline, GString *text)
{
    gboolean open = TRUE;
    for (;;) {
        struct pollfd fds[] = {{.fd = process, .events = POLLIN},
                               {.fd = open ? output : -1, .events = POLLIN}};
        gint64 left_us = deadline - g_get_monotonic_time();
        int n = poll(fds, 2, left_us > 0 ? (int)MIN((left_us + 999) / 1000, G_MAXINT) : 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FALSE;
        if (fds[1].revents)
            open = take_output(output, text);
        if (fds[0].revents) {
            /* Output that was not read yet; a child of the program may keep the pipe open. */
            while (open && poll(&fds[1], 1, 0) > 0)
                open = take_output(output, text);
            return TRUE;
        }
    }
}

static void *reap(void *data)
{
    waitpid(GPOINTER_TO_INT(data), NULL, 0);
    return NULL;
}

/* Kills the group. A process that even so does not end is reaped whenever it does. */
static void end(pid_t pid, int process)
{
    kill(-pid, SIGKILL);
    struct pollfd fd = {.fd = process, .events = POLLIN};
    if (poll(&fd, 1, DIE_MS) > 0) {
        waitpid(pid, NULL, 0);
        return;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, reap, GINT_TO_POINTER(pid)) == 0)
        pthread_detach(thread);
}

/* One line of printable text, for an error. */
static char *tidy(const GString *text)
{
    char *line = g_utf8_make_valid(text->str, (gssize)text->len);
    for (char *c = line; *c; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return g_strstrip(line);
}

gboolean run_program(const char *const *argv, gint64 timeout_ms, int *status, char **output,
                     GError **error)
{
    gint64 deadline = g_get_monotonic_time() + timeout_ms * 1000;
    g_autofree char *file = find(argv[0]);
    int pipe_fds[2] = {-1, -1};
    if (!file)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "there is no program %s: install it on the node or in the image",
                           argv[0]);
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s: pipe: %s", argv[0],
                           g_strerror(errno));
    hearth_autofd int said = pipe_fds[0], end_of_child = pipe_fds[1];
    pid_t pid;
    int rc = spawn(file, argv, end_of_child, &pid);
    close(hearth_steal_fd(&end_of_child));
    if (rc != 0)
        return hearth_fail(error, HEARTH_ERROR_INTERNAL, "starting %s: %s", file, g_strerror(rc));
    fcntl(said, F_SETFL, O_NONBLOCK);
    hearth_autofd int process = (int)syscall(SYS_pidfd_open, pid, 0);
    g_autoptr(GString) text = g_string_new(NULL);
    if (process < 0 || !watch(process, said, deadline, text)) {
        end(pid, process);
        return hearth_fail(error, HEARTH_ERROR_DEADLINE_EXCEEDED,
                           "%s did not end within %" G_GINT64_FORMAT " ms and was killed", argv[0],
                           timeout_ms);
    }
    int result;
    waitpid(pid, &result, 0);
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
    *output = tidy(text);
    return TRUE;
}
