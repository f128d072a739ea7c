/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/why/calls.h"
#include <fcntl.h>
#include <sys/syscall.h>

static Call parse(long number, const char *arguments)
{
    g_autofree char *line = g_strdup_printf("%ld %s 0x7ffd 0x7f00\n", number, arguments);
    return call_parse(line);
}

START_TEST(a_call_by_descriptor_names_it)
{
    Call call = parse(SYS_read, "0x3 0x7f3e597e9000 0x20000 0x0 0x0 0x0");
    ck_assert_int_eq(call.file, CALL_FD);
    ck_assert_int_eq(call.kind, WAIT_READ);
    ck_assert_int_eq(call.fd, 3);
    call = parse(SYS_fsync, "0xb 0x0 0x0 0x0 0x0 0x0");
    ck_assert_int_eq(call.kind, WAIT_WRITE);
    ck_assert_int_eq(call.fd, 11);
    call = parse(SYS_sendfile, "0x4 0x5 0x0 0x100 0x0 0x0");
    ck_assert_int_eq(call.fd, 5);
    ck_assert_int_eq(parse(SYS_getdents64, "0x7 0x1 0x2 0x0 0x0 0x0").kind, WAIT_NAME);
}
END_TEST

START_TEST(a_call_by_path_tells_where_the_path_is)
{
    Call call = parse(SYS_openat, "0xffffff9c 0x7ffd12345678 0x0 0x0 0x0 0x0");
    ck_assert_int_eq(call.file, CALL_PATH);
    ck_assert_int_eq(call.kind, WAIT_NAME);
    ck_assert_int_eq(call.fd, AT_FDCWD);
    ck_assert_uint_eq(call.path, 0x7ffd12345678);
    call = parse(SYS_chdir, "0x7ffd00000001 0x0 0x0 0x0 0x0 0x0");
    ck_assert_int_eq(call.file, CALL_PATH);
    ck_assert_int_eq(call.fd, AT_FDCWD);
    ck_assert_uint_eq(call.path, 0x7ffd00000001);
}
END_TEST

START_TEST(a_fault_waits_for_a_page)
{
    ck_assert_int_eq(call_parse("-1 0x7ffe39 0x55f3\n").file, CALL_PAGE);
}
END_TEST

START_TEST(completions_may_be_of_reads)
{
    ck_assert_int_eq(parse(SYS_io_uring_enter, "0x4 0x8 0x1 0x1 0x0 0x8").file, CALL_ASYNC);
    ck_assert_int_eq(parse(SYS_io_uring_enter, "0x4 0x8 0x0 0x1 0x0 0x8").file, CALL_NONE);
    ck_assert_int_eq(parse(SYS_io_uring_enter, "0x4 0x8 0x1 0x0 0x0 0x8").file, CALL_NONE);
    ck_assert_int_eq(parse(SYS_io_getevents, "0x7f00 0x1 0x8 0x7f01 0x0 0x0").file, CALL_ASYNC);
    ck_assert_int_eq(parse(SYS_io_submit, "0x7f00 0x1 0x7f01 0x0 0x0 0x0").file, CALL_NONE);
}
END_TEST

START_TEST(other_calls_wait_for_no_file)
{
    ck_assert_int_eq(call_parse("running\n").file, CALL_NONE);
    ck_assert_int_eq(call_parse("").file, CALL_NONE);
    ck_assert_int_eq(parse(SYS_futex, "0x55 0x80 0x0 0x0 0x0 0x0").file, CALL_NONE);
    ck_assert_int_eq(parse(SYS_flock, "0x3 0x2 0x0 0x0 0x0 0x0").file, CALL_NONE);
    ck_assert_int_eq(parse(SYS_fcntl, "0x3 0x7 0x0 0x0 0x0 0x0").file, CALL_NONE);
    ck_assert_int_eq(parse(SYS_clock_nanosleep, "0x0 0x0 0x7f 0x0 0x0 0x0").file, CALL_NONE);
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/why/calls", a_call_by_descriptor_names_it,
             a_call_by_path_tells_where_the_path_is, a_fault_waits_for_a_page,
             completions_may_be_of_reads, other_calls_wait_for_no_file)
