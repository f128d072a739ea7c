/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test program shares. A program is one file of tests that mirrors one source file;
 * it ends with HARNESS_MAIN(...). No root, no Ceph.
 */
#ifndef HEARTH_TESTS_HARNESS_H
#define HEARTH_TESTS_HARNESS_H

#include <check.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <ftw.h>
#include <stdio.h>

/* One row a test: HARNESS_MAIN("cache/store/evict", evict_skips_open_object, evict_...). */
#define HARNESS_MAIN(suite_name, ...)                                                              \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        Suite *suite = suite_create(suite_name);                                                   \
        TCase *tcase = tcase_create(suite_name);                                                   \
        tcase_set_timeout(tcase, 180);                                                             \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)                              \
            tcase_add_test(tcase, tests[i]);                                                       \
        suite_add_tcase(suite, tcase);                                                             \
        SRunner *runner = srunner_create(suite);                                                   \
        srunner_run_all(runner, CK_NORMAL);                                                        \
        int failed = srunner_ntests_failed(runner);                                                \
        srunner_free(runner);                                                                      \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;                                               \
    }

static inline int harness_remove_cb(const char *path, const struct stat *st, int flag,
                                    struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

/* A directory for one test; free and remove it with harness_remove(). */
static inline char *harness_tmpdir(void)
{
    char *dir = g_dir_make_tmp("hearth-test-XXXXXX", NULL);
    ck_assert_ptr_nonnull(dir);
    return dir;
}

static inline void harness_remove(char *dir)
{
    nftw(dir, harness_remove_cb, 16, FTW_DEPTH | FTW_PHYS);
    g_free(dir);
}

/* How many threads this process has. */
static inline unsigned harness_threads(void)
{
    GDir *tasks = g_dir_open("/proc/self/task", 0, NULL);
    unsigned n = 0;
    while (g_dir_read_name(tasks))
        n++;
    g_dir_close(tasks);
    return n;
}

#endif
