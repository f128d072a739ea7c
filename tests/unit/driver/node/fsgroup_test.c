/* Without root the only group to give files to is one's own, so what is tested are the bits. */
#include "driver/node/fsgroup.h"
#include <sys/stat.h>
#include <unistd.h>
#include "driver/error.h"
#include "tests/unit/harness.h"

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
    ck_assert(fsgroup_apply(root, getgid(), G_MAXINT64, NULL));
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
    ck_assert(fsgroup_apply(root, getgid(), G_MAXINT64, NULL));
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
    ck_assert(!fsgroup_apply(root, getgid(), 0, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_DEADLINE_EXCEEDED);
    gboolean fits;
    ck_assert(fsgroup_fits(root, getgid(), &fits, NULL) && !fits);
    ck_assert(fsgroup_apply(root, getgid(), G_MAXINT64, NULL));
    ck_assert_uint_eq(mode_of(file), 0660);
    harness_remove(g_steal_pointer(&root));
}
END_TEST

HARNESS_MAIN("driver/node/fsgroup", every_file_gets_what_the_group_needs,
             a_root_that_fits_is_not_walked, a_walk_that_was_cut_short_is_taken_up)
