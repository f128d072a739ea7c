/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples what the threads of a job do, from /proc: whether they run, or sleep in a call on a file,
 * and of which mount that file is. This sees what the kernel's pressure (PSI) and delay accounting
 * do not: a thread that waits for an answer over FUSE does not count there as one that waits for
 * I/O. It takes root, and a PID namespace that has the job's processes.
 */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_WAITS_H
#define HEARTH_CMD_HEARTHCTL_WHY_WAITS_H

#include "cmd/hearthctl/why/causes.h"

typedef struct Waits Waits;

/* The processes whose cgroup is of this pod. */
Waits *waits_of_pods(const char *const *uids);
/* A process and its descendants. */
Waits *waits_of_process(int pid);
void waits_free(Waits *waits);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Waits, waits_free)

/* Looks once at all threads. FALSE: there was no process of the job. */
gboolean waits_look(Waits *waits);

/* Of all looks that saw a process of it: a thread counts once for each of them. */
typedef struct WaitsSum {
    guint looks;
    guint64 threads; /* those that were seen, asleep or not */
    guint64 running;
    double cpu_sec;
    gboolean ended; /* the last look saw none any more */
} WaitsSum;
WaitsSum waits_sum(const Waits *waits);
/* Threads that waited for a file of this device ("major:minor"), by kind. */
void waits_on(const Waits *waits, const char *device, guint64 kinds[WAIT_KINDS]);
/* Threads that waited uninterruptibly, as for a disk, for files of other devices than these. */
guint64 waits_elsewhere(const Waits *waits, const char *const *devices);
/* Threads that waited for a page of memory, whose file is not known. */
guint64 waits_for_pages(const Waits *waits);
/* Threads that waited for completions of io_uring or aio, whose file is not known. */
guint64 waits_for_completions(const Waits *waits);

#endif
