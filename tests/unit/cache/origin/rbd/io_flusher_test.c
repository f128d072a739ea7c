/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/origin/rbd/io_flusher.h"
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/unit/harness.h"

static gboolean has_sys_resource(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
    return (data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE)) != 0;
}

START_TEST(what_is_said_to_be_allowed_is)
{
    ck_assert_int_eq(io_flusher_allowed(), has_sys_resource());
    ck_assert_int_eq(io_flusher_set(), has_sys_resource());
}
END_TEST

HARNESS_MAIN("cache/origin/rbd/io_flusher", what_is_said_to_be_allowed_is)
