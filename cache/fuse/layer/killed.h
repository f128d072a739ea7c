/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a reader of the kernel's is about to die. */
#ifndef HEARTH_CACHE_FUSE_LAYER_KILLED_H
#define HEARTH_CACHE_FUSE_LAYER_KILLED_H

#include <glib.h>
#include <sys/types.h>

/*
 * Whether a signal that ends the thread is pending. The kernel tells of any signal of a reader, by
 * FUSE_INTERRUPT, and the first only; but most programs, and all page faults, take EINTR for a read
 * error. FALSE also for a thread that this process does not see in /proc.
 */
gboolean thread_is_killed(pid_t thread);

#endif
