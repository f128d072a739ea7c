/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/report/finding.h"
#include <string.h>

START_TEST(the_worst_counts_and_each_comes_with_its_fix)
{
    g_autoptr(Findings) findings = findings_new();
    ck_assert_int_eq(findings_worst(findings), FINDING_OK);
    findings_add(findings, FINDING_WARN, "clock", "run chrony", "%d s off", 3);
    findings_add(findings, FINDING_OK, "kernel", NULL, "Linux");
    ck_assert_int_eq(findings_worst(findings), FINDING_WARN);
    findings_add(findings, FINDING_UNKNOWN, "disk", "be root", "not seen");
    ck_assert_int_eq(findings_worst(findings), FINDING_WARN);
    findings_add(findings, FINDING_BAD, "fuse", "modprobe fuse", "gone");
    ck_assert_int_eq(findings_worst(findings), FINDING_BAD);
    ck_assert_uint_eq(findings_count(findings, FINDING_OK), 1);
    g_auto(GStrv) lines = findings_lines(findings, &(View){0});
    ck_assert_str_eq(lines[1], "warn     clock   3 s off");
    ck_assert_str_eq(lines[2], "                 -> run chrony");
    ck_assert_str_eq(lines[3], "ok       kernel  Linux");
    ck_assert_str_eq(lines[9], "1 bad, 1 warnings, 1 not checked, 1 ok");
    ck_assert_str_eq(lines[10], "bad: fuse");
    ck_assert_uint_eq(g_strv_length(lines), 11);
}
END_TEST

START_TEST(as_json_nothing_is_left_out)
{
    g_autoptr(Findings) findings = findings_new();
    findings_add(findings, FINDING_UNKNOWN, "disk", NULL, "not \xff seen");
    json_t *json = findings_json(findings);
    const json_t *one = json_array_get(json_object_get(json, "findings"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(json, "worst")), "unknown");
    ck_assert_str_eq(json_string_value(json_object_get(one, "name")), "disk");
    ck_assert_str_eq(json_string_value(json_object_get(one, "level")), "unknown");
    ck_assert_str_eq(json_string_value(json_object_get(one, "mend")), "");
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(one, "found")), "seen"));
    json_decref(json);
}
END_TEST

START_TEST(kernels_are_compared_by_numbers)
{
    ck_assert(finding_kernel_is("6.12.3-amd64", 6, 9));
    ck_assert(finding_kernel_is("6.9", 6, 9));
    ck_assert(!finding_kernel_is("6.1.0-28-amd64", 6, 9));
    ck_assert(finding_kernel_is("10.0", 6, 12));
    ck_assert(!finding_kernel_is("5.15.0", 6, 1));
    ck_assert(!finding_kernel_is("hurd", 1, 0));
}
END_TEST

START_TEST(options_are_found_whole)
{
    ck_assert(finding_has_option("ro", "ro"));
    ck_assert(finding_has_option("rw,relatime,sync", "sync"));
    ck_assert(!finding_has_option("rw,errors=remount-ro", "ro"));
    ck_assert(!finding_has_option("rw,async", "sync"));
    ck_assert(!finding_has_option("root,rw", "ro"));
    ck_assert(!finding_has_option("", "ro"));
    ck_assert(!finding_has_option(NULL, "ro"));
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/report/finding", the_worst_counts_and_each_comes_with_its_fix,
             as_json_nothing_is_left_out, kernels_are_compared_by_numbers, options_are_found_whole)
