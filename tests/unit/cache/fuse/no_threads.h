/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what happens when no thread can be made. */
#ifndef HEARTH_TESTS_NO_THREADS_H
#define HEARTH_TESTS_NO_THREADS_H

#include <sys/resource.h>
#include <unistd.h>
#include "tests/unit/harness.h"

/* Root always may make threads, so the process is another user from then on. */
static inline void allow_threads(gboolean allowed)
{
    if (getuid() == 0)
        ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &limit), 0);
    limit.rlim_cur = allowed ? limit.rlim_max : 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &limit), 0);
}

#endif
