/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program: by posix_spawn(3) with its arguments, no shell; in a process group of its own,
 * with standard input empty and LC_ALL=C; bounded in time.
 */
#ifndef HEARTH_DRIVER_NODE_IMAGE_RUN_H
#define HEARTH_DRIVER_NODE_IMAGE_RUN_H

#include <glib.h>
#include "common/error.h"

/*
 * argv[0] is looked for in PATH, /usr/sbin and /sbin. *status is the exit status, or 128 + the
 * signal that ended it; *output the end of what it said on both streams, in one line. FALSE:
 * DEADLINE_EXCEEDED after timeout_ms (it is killed), FAILED_PRECONDITION when there is no such
 * program, INTERNAL.
 */
gboolean run_program(const char *const *argv, gint64 timeout_ms, int *status, char **output,
                     GError **error);

#endif
