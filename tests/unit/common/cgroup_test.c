/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup.h"
#include <string.h>
#include "tests/unit/harness.h"

/* FILE TEXT, FILE TEXT, ..., NULL: below the directory. */
static void put(const char *dir, ...) G_GNUC_NULL_TERMINATED;
static void put(const char *dir, ...)
{
    va_list args;
    const char *name;
    va_start(args, dir);
    while ((name = va_arg(args, const char *))) {
        g_autofree char *file = g_build_filename(dir, name, NULL);
        g_autofree char *above = g_path_get_dirname(file);
        ck_assert_int_eq(g_mkdir_with_parents(above, 0700), 0);
        ck_assert(g_file_set_contents(file, va_arg(args, const char *), -1, NULL));
    }
    va_end(args);
}

typedef struct Seen {
    uint64_t left, most, memory;
    char *file; /* below the directory */
} Seen;

static Seen see(const char *dir)
{
    g_autofree char *membership = g_build_filename(dir, "membership", NULL);
    g_autofree char *mounts = g_build_filename(dir, "cgroup", NULL);
    const Cgroup cgroup = {membership, mounts};
    g_autofree char *file = NULL;
    Seen seen = {0};
    seen.left = cgroup_threads_left(&cgroup, &file, &seen.most);
    seen.memory = cgroup_memory_most(&cgroup);
    seen.file = file ? g_strdup(file + strlen(mounts)) : NULL;
    return seen;
}

START_TEST(the_narrowest_limit_of_all_above_counts)
{
    char *dir = harness_tmpdir();
    put(dir, "membership", "0::/kube/pod/one\n", "cgroup/kube/pods.txt", "", NULL);
    put(dir, "cgroup/kube/pids.max", "max\n", "cgroup/kube/pids.current", "900\n",
        "cgroup/kube/pod/pids.max", "100\n", "cgroup/kube/pod/pids.current", "60\n",
        "cgroup/kube/pod/one/pids.max", "90\n", "cgroup/kube/pod/one/pids.current", "10\n",
        "cgroup/kube/pod/memory.max", "4096\n", "cgroup/kube/pod/one/memory.max", "max\n", NULL);
    const Seen seen = see(dir);
    ck_assert_uint_eq(seen.left, 40);
    ck_assert_uint_eq(seen.most, 100);
    ck_assert_str_eq(seen.file, "/kube/pod/pids.max");
    ck_assert_uint_eq(seen.memory, 4096);
    g_free(seen.file);
    harness_remove(dir);
}
END_TEST

START_TEST(a_container_sees_its_own_at_the_mount)
{
    char *dir = harness_tmpdir();
    put(dir, "membership", "0::/\n", "cgroup/pids.max", "50\n", "cgroup/pids.current", "70\n",
        "cgroup/memory.max", "8192\n", NULL);
    Seen seen = see(dir);
    ck_assert_uint_eq(seen.left, 0); /* it was lowered */
    ck_assert_uint_eq(seen.memory, 8192);
    g_free(seen.file);
    /* The path of the host, which is not mounted here. */
    put(dir, "membership", "0::/host/path/of/it\n", NULL);
    seen = see(dir);
    ck_assert_uint_eq(seen.most, 50);
    g_free(seen.file);
    harness_remove(dir);
}
END_TEST

START_TEST(version_1_has_a_hierarchy_for_each)
{
    char *dir = harness_tmpdir();
    put(dir, "membership", "5:cpu,memory:/m\n4:pids:/p\n0::/u\n", NULL);
    put(dir, "cgroup/pids/p/pids.max", "30\n", "cgroup/pids/p/pids.current", "10\n",
        "cgroup/memory/m/memory.limit_in_bytes", "12288\n", "cgroup/memory/memory.limit_in_bytes",
        "9223372036854771712\n", NULL);
    const Seen seen = see(dir);
    ck_assert_uint_eq(seen.left, 20);
    ck_assert_str_eq(seen.file, "/pids/p/pids.max");
    ck_assert_uint_eq(seen.memory, 12288);
    g_free(seen.file);
    harness_remove(dir);
}
END_TEST

START_TEST(without_a_limit_there_is_none)
{
    char *dir = harness_tmpdir();
    Seen seen = see(dir);
    ck_assert(seen.left == CGROUP_NONE && seen.memory == CGROUP_NONE && !seen.file);
    put(dir, "membership", "nonsense\n::\n0::/a\n", "cgroup/a/pids.max", "many\n",
        "cgroup/a/pids.current", "1\n", "cgroup/a/memory.max", "-1\n", NULL);
    seen = see(dir);
    ck_assert(seen.left == CGROUP_NONE && seen.memory == CGROUP_NONE && !seen.file);
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("common/cgroup", the_narrowest_limit_of_all_above_counts,
             a_container_sees_its_own_at_the_mount, version_1_has_a_hierarchy_for_each,
             without_a_limit_there_is_none)
