/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/PID/syscall tells about a thread that sleeps in a call on a file. */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_CALLS_H
#define HEARTH_CMD_HEARTHCTL_WHY_CALLS_H

#include "cmd/hearthctl/why/causes.h"

typedef enum CallFile {
    CALL_NONE,  /* it does not wait for a file */
    CALL_FD,    /* for the one of descriptor `fd` */
    CALL_PATH,  /* for the one whose name is at `path`, from descriptor `fd` (AT_FDCWD: the cwd) */
    CALL_PAGE,  /* for a page of memory, which may be one of a file */
    CALL_ASYNC, /* for completions of reads, or of others' work */
} CallFile;

typedef struct Call {
    CallFile file;
    WaitKind kind;
    int fd;
    guint64 path;
} Call;

/* `line` is the file's; "running" and what is none of these calls give CALL_NONE. */
Call call_parse(const char *line);

#endif
