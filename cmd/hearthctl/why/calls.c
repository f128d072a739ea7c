/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that wait for a file system. A regular file or a directory never makes them wait for
 * anything else, so a thread that sleeps in one of them on a mount waits for that mount. File locks
 * are not among them: they wait for other processes.
 */
#include "cmd/hearthctl/why/calls.h"
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

typedef struct Row {
    long number;
    CallFile file;
    WaitKind kind;
} Row;

static const Row rows[] = {
    {SYS_read, CALL_FD, WAIT_READ},         {SYS_pread64, CALL_FD, WAIT_READ},
    {SYS_readv, CALL_FD, WAIT_READ},        {SYS_preadv, CALL_FD, WAIT_READ},
    {SYS_preadv2, CALL_FD, WAIT_READ},      {SYS_readahead, CALL_FD, WAIT_READ},
    {SYS_splice, CALL_FD, WAIT_READ},       {SYS_copy_file_range, CALL_FD, WAIT_READ},
    {SYS_sendfile, CALL_FD, WAIT_READ}, /* from its second argument */
    {SYS_write, CALL_FD, WAIT_WRITE},       {SYS_pwrite64, CALL_FD, WAIT_WRITE},
    {SYS_writev, CALL_FD, WAIT_WRITE},      {SYS_pwritev, CALL_FD, WAIT_WRITE},
    {SYS_pwritev2, CALL_FD, WAIT_WRITE},    {SYS_fsync, CALL_FD, WAIT_WRITE},
    {SYS_fdatasync, CALL_FD, WAIT_WRITE},   {SYS_sync_file_range, CALL_FD, WAIT_WRITE},
    {SYS_syncfs, CALL_FD, WAIT_WRITE},      {SYS_ftruncate, CALL_FD, WAIT_WRITE},
    {SYS_fallocate, CALL_FD, WAIT_WRITE},   {SYS_fstat, CALL_FD, WAIT_NAME},
    {SYS_getdents64, CALL_FD, WAIT_NAME},   {SYS_lseek, CALL_FD, WAIT_NAME},
    {SYS_fchdir, CALL_FD, WAIT_NAME},       {SYS_openat, CALL_PATH, WAIT_NAME},
    {SYS_openat2, CALL_PATH, WAIT_NAME},    {SYS_newfstatat, CALL_PATH, WAIT_NAME},
    {SYS_statx, CALL_PATH, WAIT_NAME},      {SYS_faccessat, CALL_PATH, WAIT_NAME},
    {SYS_faccessat2, CALL_PATH, WAIT_NAME}, {SYS_readlinkat, CALL_PATH, WAIT_NAME},
    {SYS_mkdirat, CALL_PATH, WAIT_NAME},    {SYS_unlinkat, CALL_PATH, WAIT_NAME},
    {SYS_renameat2, CALL_PATH, WAIT_NAME},
};

/* The path is the first argument; newer architectures do not have these calls. */
static const long by_name[] = {
#ifdef SYS_open
    SYS_open,  SYS_stat,   SYS_lstat,    SYS_access,   SYS_mkdir,
    SYS_rmdir, SYS_unlink, SYS_rename,   SYS_readlink, SYS_creat,
#endif
    SYS_chdir, SYS_execve, SYS_truncate,
};

/* ' 0x12' after `at`; 0 where there is none. */
static guint64 argument(const char **at)
{
    char *end;
    const guint64 n = g_ascii_strtoull(*at, &end, 0);
    *at = end;
    return n;
}

/* io_uring_enter(2) waits with IORING_ENTER_GETEVENTS and min_complete, its arguments 4 and 3. */
static gboolean awaits_completions(long number, const char *at)
{
    guint64 arguments[4];
    for (guint i = 0; i < G_N_ELEMENTS(arguments); i++)
        arguments[i] = argument(&at);
    if (number == SYS_io_uring_enter)
        return (arguments[3] & 1) && (guint32)arguments[2] > 0;
    return number == SYS_io_getevents || number == SYS_io_pgetevents;
}

Call call_parse(const char *line)
{
    char *end;
    const gint64 number = g_ascii_strtoll(line, &end, 10);
    const char *at = end;
    if (end == line)
        return (Call){.file = CALL_NONE};
    if (number < 0)
        return (Call){.file = CALL_PAGE, .kind = WAIT_READ};
    if (awaits_completions((long)number, at))
        return (Call){.file = CALL_ASYNC, .kind = WAIT_READ};
    for (gsize i = 0; i < G_N_ELEMENTS(by_name); i++)
        if (by_name[i] == number)
            return (Call){CALL_PATH, WAIT_NAME, AT_FDCWD, argument(&at)};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].number == number) {
            if (number == SYS_sendfile)
                argument(&at);
            Call call = {.file = rows[i].file, .kind = rows[i].kind, .fd = (int)argument(&at)};
            call.path = call.file == CALL_PATH ? argument(&at) : 0;
            return call;
        }
    return (Call){.file = CALL_NONE};
}
