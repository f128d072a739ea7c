/* SPDX-License-Identifier: Apache-2.0 */
/* Without root the only group to give files to is one's own, so what is tested are the bits. */
#include "driver/node/mount/fsgroup.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/error.h"
#include "tests/unit/harness.h"

static gboolean apply(const char *root, GError **error)
{
    FsgroupWalk *left = NULL;
    return fsgroup_apply(root, getgid(), G_MAXINT64, G_MAXUINT64, &left, error);
}

/* In memory, if there is such a place: a disk takes a minute for the largest trees. */
static char *memory_tmpdir(void)
{
    char *root = g_strdup("/dev/shm/hearth-test-XXXXXX");
    if (g_mkdtemp(root))
        return root;
    g_free(root);
    return harness_tmpdir();
}

static char *make(const char *dir, const char *name, mode_t mode, gboolean is_dir)
{
    char *path = g_build_filename(dir, name, NULL);
    if (is_dir)
        ck_assert_int_eq(mkdir(path, 0700), 0);
    else
        ck_assert(g_file_set_contents(path, "x", 1, NULL));
    ck_assert_int_eq(chmod(path, mode), 0);
    return path;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

START_TEST(every_file_gets_what_the_group_needs)
{
    g_autofree char *root = harness_tmpdir();
    g_autofree char *dir = make(root, "d", 0700, TRUE);
    g_autofree char *file = make(dir, "f", 0600, FALSE);
    g_autofree char *script = make(root, "s", 0500, FALSE);
    g_autofree char *outside = harness_tmpdir();
    g_autofree char *kept = make(outside, "k", 0600, FALSE);
    g_autofree char *link = g_build_filename(root, "l", NULL);
    ck_assert_int_eq(symlink(kept, link), 0);
    ck_assert_int_eq(chmod(root, 0755), 0);
    gboolean fits;
    ck_assert(fsgroup_fits(root, getgid(), &fits, NULL) && !fits);
    ck_assert(apply(root, NULL));
    ck_assert(fsgroup_fits(root, getgid(), &fits, NULL) && fits);
    ck_assert_uint_eq(mode_of(root), 02775);
    ck_assert_uint_eq(mode_of(dir), 02770);
    ck_assert_uint_eq(mode_of(file), 0660);
    ck_assert_uint_eq(mode_of(script), 0760);
    ck_assert_uint_eq(mode_of(kept), 0600);
    harness_remove(g_steal_pointer(&root));
    harness_remove(g_steal_pointer(&outside));
}
END_TEST

START_TEST(a_root_that_fits_is_not_walked)
{
    g_autofree char *root = harness_tmpdir();
    g_autofree char *file = make(root, "f", 0600, FALSE);
    ck_assert_int_eq(chmod(root, 02770), 0);
    ck_assert(apply(root, NULL));
    ck_assert_uint_eq(mode_of(file), 0600);
    harness_remove(g_steal_pointer(&root));
}
END_TEST

START_TEST(a_walk_that_was_cut_short_is_taken_up)
{
    g_autofree char *root = harness_tmpdir();
    g_autofree char *file = make(root, "f", 0600, FALSE);
    ck_assert_int_eq(chmod(root, 0700), 0);
    g_autoptr(GError) error = NULL;
    FsgroupWalk *left = NULL;
    ck_assert(!fsgroup_apply(root, getgid(), 0, G_MAXUINT64, &left, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_DEADLINE_EXCEEDED);
    gboolean fits;
    ck_assert(fsgroup_fits(root, getgid(), &fits, NULL) && !fits);
    ck_assert(fsgroup_apply(root, getgid(), G_MAXINT64, G_MAXUINT64, &left, NULL));
    ck_assert_ptr_null(left);
    ck_assert_uint_eq(mode_of(file), 0660);
    harness_remove(g_steal_pointer(&root));
}
END_TEST

#define DEEP 2000
#define MEMORY_KIB 8192
#define VERY_DEEP 20000
#define TOO_DEEP 32769
#define BRANCHES 100
#define BRANCH_DEPTH 20

static void make_file(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

/* Goes down; makes the directory when there is none. */
static int down(int dir, const char *name)
{
    ck_assert(mkdirat(dir, name, 0700) == 0 || errno == EEXIST);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(fd, 0);
    close(dir);
    return fd;
}

static void expect_mode(int dir, const char *name, mode_t mode)
{
    struct stat st;
    ck_assert_int_eq(fstatat(dir, name, &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 07777, mode);
}

static char *long_name(void)
{
    return g_strnfill(255, 'n');
}

static char *make_deep(guint levels, const char *name, gboolean files)
{
    char *root = memory_tmpdir();
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    for (guint i = 0; i < levels; i++) {
        if (files) {
            make_file(fd, "a");
            make_file(fd, "z");
        }
        fd = down(fd, name);
    }
    close(fd);
    return root;
}

/* Deeper than nftw(3) goes. */
static void remove_deep(char *root)
{
    char *argv[] = {(char *)"rm", (char *)"-rf", root, NULL};
    ck_assert(
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL));
    g_free(root);
}

static void allow_descriptors(rlim_t more)
{
    int next = dup(0);
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)next + more;
    close(next);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(a_deep_tree_takes_no_more_descriptors)
{
    g_autofree char *name = long_name();
    char *root = make_deep(DEEP, name, TRUE);
    allow_descriptors(16);
    g_autoptr(GError) error = NULL;
    ck_assert_msg(apply(root, &error), "%.200s", error ? error->message : "");
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    for (guint i = 0; i < DEEP; i++) {
        expect_mode(fd, "a", 0660);
        expect_mode(fd, "z", 0660);
        expect_mode(fd, name, 02770);
        fd = down(fd, name);
    }
    close(fd);
    remove_deep(root);
}
END_TEST

START_TEST(a_directory_that_was_closed_meanwhile_is_read_on)
{
    char *root = memory_tmpdir();
    char name[16];
    for (guint i = 0; i < BRANCHES; i++) {
        int fd = open(root, O_RDONLY | O_DIRECTORY);
        g_snprintf(name, sizeof(name), "%u", i);
        fd = down(fd, name);
        for (guint k = 0; k < BRANCH_DEPTH; k++)
            fd = down(fd, "d");
        make_file(fd, "f");
        close(fd);
    }
    allow_descriptors(16);
    ck_assert(apply(root, NULL));
    for (guint i = 0; i < BRANCHES; i++) {
        int fd = open(root, O_RDONLY | O_DIRECTORY);
        g_snprintf(name, sizeof(name), "%u", i);
        fd = down(fd, name);
        for (guint k = 0; k < BRANCH_DEPTH; k++) {
            expect_mode(fd, "d", 02770);
            fd = down(fd, "d");
        }
        expect_mode(fd, "f", 0660);
        close(fd);
    }
    remove_deep(root);
}
END_TEST

static void make_branches(const char *root)
{
    char name[16];
    for (guint i = 0; i < BRANCHES; i++) {
        int fd = open(root, O_RDONLY | O_DIRECTORY);
        g_snprintf(name, sizeof(name), "%u", i);
        fd = down(fd, name);
        for (guint k = 0; k < BRANCH_DEPTH; k++) {
            make_file(fd, "a");
            fd = down(fd, "d");
        }
        make_file(fd, "f");
        close(fd);
    }
}

/* How many files below are not as they should be. */
static int wrong;
static int count_wrong(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)path, (void)flag;
    if (ftw->level > 0 && (st->st_mode & 07777) != (S_ISDIR(st->st_mode) ? 02770 : 0660))
        wrong++;
    return 0;
}

START_TEST(each_call_goes_on_where_the_last_has_ended)
{
    /* Of a tree of 100 branches, 20 levels with a file and a directory each: 4,200 entries. */
    static const guint64 steps[] = {1, 7, 1000};
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        char *root = memory_tmpdir();
        make_branches(root);
        FsgroupWalk *left = NULL;
        g_autoptr(GError) error = NULL;
        guint64 calls = 1;
        while (!fsgroup_apply(root, getgid(), G_MAXINT64, steps[i], &left, &error)) {
            ck_assert_int_eq(error->code, HEARTH_ERROR_DEADLINE_EXCEEDED);
            ck_assert_ptr_nonnull(left);
            ck_assert_uint_lt(calls++, 20000 / steps[i]);
            g_clear_error(&error);
        }
        ck_assert_ptr_null(left);
        wrong = 0;
        nftw(root, count_wrong, 16, FTW_PHYS);
        ck_assert_int_eq(wrong, 0);
        remove_deep(root);
    }
}
END_TEST

START_TEST(a_walk_begins_anew_when_its_place_is_gone)
{
    char *root = memory_tmpdir();
    make_branches(root);
    FsgroupWalk *left = NULL;
    g_autoptr(GError) error = NULL;
    ck_assert(!fsgroup_apply(root, getgid(), G_MAXINT64, 1000, &left, &error));
    char *argv[] = {(char *)"sh", (char *)"-c",
                    (char *)"mkdir -m 700 \"$0/n\" && mv \"$0\"/[0-9]* \"$0/n\"", root, NULL};
    ck_assert(
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL));
    g_clear_error(&error);
    ck_assert_msg(fsgroup_apply(root, getgid(), G_MAXINT64, G_MAXUINT64, &left, &error), "%s",
                  error ? error->message : "");
    wrong = 0;
    nftw(root, count_wrong, 16, FTW_PHYS);
    ck_assert_int_eq(wrong, 0);
    remove_deep(root);
}
END_TEST

START_TEST(a_very_deep_tree_takes_little_memory)
{
    char *root = make_deep(VERY_DEEP, "n", FALSE);
    struct rusage before, after;
    FsgroupWalk *left = NULL;
    g_autoptr(GError) error = NULL;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    /* In two calls, the second of which goes down again. */
    ck_assert(!fsgroup_apply(root, getgid(), G_MAXINT64, 3 * VERY_DEEP / 2, &left, &error));
    g_clear_error(&error);
    ck_assert_msg(fsgroup_apply(root, getgid(), G_MAXINT64, G_MAXUINT64, &left, &error), "%.200s",
                  error ? error->message : "");
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, MEMORY_KIB);
#endif
    remove_deep(root);
}
END_TEST

START_TEST(a_tree_that_is_too_deep_is_refused_in_few_words)
{
    char *root = make_deep(TOO_DEEP, "n", FALSE);
    g_autoptr(GError) error = NULL;
    ck_assert(!apply(root, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(error->message, root));
    ck_assert_ptr_nonnull(strstr(error->message, "32768"));
    ck_assert_uint_lt(strlen(error->message), 300);
    remove_deep(root);
}
END_TEST

HARNESS_MAIN("driver/node/mount/fsgroup", every_file_gets_what_the_group_needs,
             a_root_that_fits_is_not_walked, a_walk_that_was_cut_short_is_taken_up,
             a_deep_tree_takes_no_more_descriptors,
             a_directory_that_was_closed_meanwhile_is_read_on,
             each_call_goes_on_where_the_last_has_ended, a_walk_begins_anew_when_its_place_is_gone,
             a_very_deep_tree_takes_little_memory, a_tree_that_is_too_deep_is_refused_in_few_words)
