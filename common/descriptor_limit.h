/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEARTH_COMMON_DESCRIPTOR_LIMIT_H
#define HEARTH_COMMON_DESCRIPTOR_LIMIT_H

#include <errno.h>
#include <sys/resource.h>

/* Lets the process have as many descriptors as its hard limit allows. 0 or an errno. */
static inline int raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return errno;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? errno : 0;
}

#endif
