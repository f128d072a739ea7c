/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the posix-* programs share. Each holds checks of what programs expect of a file system, one
 * a function, and runs them in DIR as root, every check in an empty directory of its own:
 *
 *   posix-names DIR [NAME...]
 *
 * They print "pass NAME", "fail NAME reason" or "skip NAME reason" for each. Run on ext4 they show
 * that the checks are right; run on a published volume, what the volume gets wrong.
 */
#ifndef HEARTH_TESTS_POSIX_CHECK_H
#define HEARTH_TESTS_POSIX_CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A check returns NULL, or what was wrong. Its working directory is an empty one of its own. */
typedef const char *(*Check)(void);

static char reason[512];

#define WRONG(...) (g_snprintf(reason, sizeof(reason), __VA_ARGS__), reason)
#define NEED(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return WRONG(__VA_ARGS__);                                                             \
    } while (0)
/* A call that must succeed, or fail with one errno. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            return WRONG("%s: %s", #call, strerror(errno));                                        \
    } while (0)
#define FAILS(call, error)                                                                         \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((call) >= 0)                                                                           \
            return WRONG("%s succeeded, expected %s", #call, #error);                              \
        if (errno != (error))                                                                      \
            return WRONG("%s: %s, expected %s", #call, strerror(errno), #error);                   \
    } while (0)
#define SKIP "\1"

static inline int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    size_t length = strlen(text);
    int rc = write(fd, text, length) == (ssize_t)length ? 0 : -1;
    return close(fd) == 0 ? rc : -1;
}

static inline gboolean holds(const char *path, const char *text)
{
    char buffer[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return FALSE;
    ssize_t n = read(fd, buffer, sizeof(buffer));
    close(fd);
    return n == (ssize_t)strlen(text) && memcmp(buffer, text, (size_t)n) == 0;
}

static inline gboolean exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline int64_t size_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_size : -1;
}

/* Runs `body` as another user; its return value is the errno it met. */
static inline int as_user(uid_t uid, gid_t gid, int (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 ||
            setresuid(uid, uid, uid) != 0)
            _exit(255);
        _exit(body());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

typedef struct PosixCheck {
    const char *name;
    Check check;
} PosixCheck;

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }

static inline gboolean wanted(const char *name, char **names)
{
    if (!*names)
        return TRUE;
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return TRUE;
    return FALSE;
}

static inline int posix_main(int argc, char **argv, const PosixCheck *checks, size_t count)
{
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: %s DIR [NAME...]\n", argv[0]);
        return 2;
    }
    umask(022);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (!wanted(checks[i].name, argv + 2))
            continue;
        g_autofree char *dir = g_build_filename(argv[1], checks[i].name, NULL);
        if (mkdir(dir, 0755) != 0 || chmod(dir, 0755) != 0 || chdir(dir) != 0) {
            printf("fail %s cannot use %s: %s\n", checks[i].name, dir, strerror(errno));
            failed = 1;
            continue;
        }
        const char *wrong = checks[i].check();
        if (!wrong) {
            printf("pass %s\n", checks[i].name);
        } else if (wrong[0] == SKIP[0]) {
            printf("skip %s %s\n", checks[i].name, wrong + 1);
        } else {
            printf("fail %s %s\n", checks[i].name, wrong);
            failed = 1;
        }
    }
    return failed;
}

#endif
