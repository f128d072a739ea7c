/* SPDX-License-Identifier: Apache-2.0 */
/* What of the kernel's mounter needs no root; tests/integration has the mounts. */
#include <fcntl.h>
#include <string.h>
#include "driver/node/mount/mount.h"
#include "tests/unit/harness.h"

#define must_refuse(call, wanted)                                                                  \
    do {                                                                                           \
        g_autoptr(GError) error_ = NULL;                                                           \
        GError **error = &error_;                                                                  \
        ck_assert(!(call));                                                                        \
        ck_assert_msg(g_error_matches(error_, HEARTH_ERROR, wanted), "%d %s", error_->code,        \
                      error_->message);                                                            \
    } while (0)

START_TEST(makes_and_finds_an_empty_directory)
{
    g_autoptr(NodeMounter) m = node_mounter_new();
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "x", NULL);
    gboolean made = FALSE;
    ck_assert(m->ops->make_dir(m, path, &made, NULL));
    ck_assert(made);
    ck_assert(m->ops->make_dir(m, path, &made, NULL));
    ck_assert(!made);
    ck_assert(m->ops->remove_dir(m, path, NULL));
    ck_assert(m->ops->remove_dir(m, path, NULL));
    ck_assert(!g_file_test(path, G_FILE_TEST_EXISTS));
    harness_remove(dir);
}
END_TEST

START_TEST(refuses_what_is_no_empty_directory)
{
    g_autoptr(NodeMounter) m = node_mounter_new();
    char *dir = harness_tmpdir();
    g_autofree char *file = g_build_filename(dir, "file", NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    g_autofree char *empty = g_build_filename(dir, "empty", NULL);
    gboolean made;
    ck_assert(g_file_set_contents(file, "x", 1, NULL));
    ck_assert_int_eq(g_mkdir(empty, 0700), 0);
    ck_assert_int_eq(symlink(empty, link), 0);
    must_refuse(m->ops->make_dir(m, dir, &made, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->make_dir(m, file, &made, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->make_dir(m, link, &made, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->remove_dir(m, dir, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->remove_dir(m, file, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->remove_dir(m, link, error), HEARTH_ERROR_FAILED_PRECONDITION);
    /* Nothing is placed through a symlink or on a mount point. */
    int fd = open(empty, O_PATH | O_CLOEXEC);
    must_refuse(m->ops->place(m, fd, link, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->place(m, fd, file, error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->place(m, fd, "/proc", error), HEARTH_ERROR_FAILED_PRECONDITION);
    must_refuse(m->ops->make_dir(m, "/proc", &made, error), HEARTH_ERROR_FAILED_PRECONDITION);
    close(fd);
    harness_remove(dir);
}
END_TEST

START_TEST(lists_the_mounts_of_this_machine)
{
    g_autoptr(NodeMounter) m = node_mounter_new();
    g_autoptr(GPtrArray) table = m->ops->list(m, NULL);
    ck_assert_ptr_nonnull(table);
    const MountEntry *proc = mount_find(table, "/proc");
    ck_assert_ptr_nonnull(proc);
    ck_assert_str_eq(proc->type, "proc");
    struct statvfs st;
    ck_assert(m->ops->statvfs(m, "/proc", proc->dev, 10000, &st, NULL));
    must_refuse(m->ops->statvfs(m, "/proc", proc->dev + 1, 10000, &st, error),
                HEARTH_ERROR_NOT_FOUND);
    ck_assert(m->ops->probe(m, -1, "/proc", 10000, NULL));
}
END_TEST

HARNESS_MAIN("driver/node/mount/mount", makes_and_finds_an_empty_directory,
             refuses_what_is_no_empty_directory, lists_the_mounts_of_this_machine)
