/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps secrets out of core dumps. Ceph's libraries hold copies of keys wherever they like on the
 * heap, so it is not single buffers that are left out of a core but all private memory:
 *
 *  - the kernel makes no core (PR_SET_DUMPABLE 0, RLIMIT_CORE 0), also none for a core_pattern that
 *    is a program, and only root may attach a debugger or read /proc/PID/mem;
 *  - a debugger that makes one by itself (gdb's gcore) asks coredump_filter what to leave out: all.
 *
 * A debugger told to ignore the filter, or root reading the memory, still sees the keys: root can
 * ask for them anyway.
 */
#ifndef HEARTH_COMMON_NO_CORES_H
#define HEARTH_COMMON_NO_CORES_H

/* Before any secret is there, and before the first thread. Failures are written to stderr. */
void no_cores(const char *program);

#endif
