/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of the cgroups that this process is in, version 2 or 1 (Linux, admin-guide/cgroup-v2.rst).
 * A container sees its own cgroup, and those above it only where the runtime shows them.
 */
#ifndef HEARTH_COMMON_CGROUP_H
#define HEARTH_COMMON_CGROUP_H

#include <glib.h>
#include <stdint.h>

/* CGROUP_NONE: no limit. */
#define CGROUP_NONE UINT64_MAX

typedef struct Cgroup {
    const char *membership; /* /proc/self/cgroup */
    const char *mounts;     /* /sys/fs/cgroup */
} Cgroup;
#define CGROUP_OF_PROCESS ((Cgroup){"/proc/self/cgroup", "/sys/fs/cgroup"})

/* Of processes and threads. *file is the limit that leaves least, the caller's; unchanged if there
 * is none. Returns how many more can be made, or CGROUP_NONE. */
uint64_t cgroup_threads_left(const Cgroup *cgroup, char **file, uint64_t *most);
/* Bytes, or CGROUP_NONE. */
uint64_t cgroup_memory_most(const Cgroup *cgroup);

#endif
