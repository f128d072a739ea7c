/* SPDX-License-Identifier: Apache-2.0 */
/* What of the kernel's mounter needs no root; tests/integration has the mounts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "driver/node/mount/mount.h"
#include "driver/node/mount/mount_lookup.h"
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

static void must_be_the_same(const MountEntry *found, const MountEntry *listed)
{
    ck_assert_uint_eq(found->dev, listed->dev);
    ck_assert_str_eq(found->root, listed->root);
    ck_assert_str_eq(found->target, listed->target);
    ck_assert_str_eq(found->type, listed->type);
    ck_assert_str_eq(found->source, listed->source);
    ck_assert_pstr_eq(found->lower, listed->lower);
    ck_assert_pstr_eq(found->context, listed->context);
    ck_assert_int_eq(found->read_only, listed->read_only);
}

START_TEST(finds_a_mount_as_the_table_has_it)
{
    unsigned same = 0;
    g_autoptr(NodeMounter) m = node_mounter_new();
    g_autoptr(GPtrArray) table = m->ops->list(m, NULL);
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *listed = table->pdata[i];
        g_autoptr(MountEntry) found = NULL;
        ck_assert(m->ops->find(m, listed->target, &found, NULL));
        /* Others are below a later mount, where no path leads. */
        if (!found || found->id != listed->id)
            continue;
        must_be_the_same(found, listed);
        same++;
    }
    ck_assert_uint_gt(same, 1);
}
END_TEST

START_TEST(finds_no_mount_where_none_is)
{
    g_autoptr(NodeMounter) m = node_mounter_new();
    char *dir = harness_tmpdir();
    g_autofree char *file = g_build_filename(dir, "file", NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    g_autofree char *below = g_build_filename(dir, "absent", "x", NULL);
    g_autofree char *under_file = g_build_filename(file, "x", NULL);
    ck_assert(g_file_set_contents(file, "x", 1, NULL));
    ck_assert_int_eq(symlink("/proc", link), 0);
    const char *const paths[] = {dir, file, link, below, under_file, "/proc/self"};
    for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
        MountEntry *found = (MountEntry *)paths;
        ck_assert(m->ops->find(m, paths[i], &found, NULL));
        ck_assert_ptr_null(found);
    }
    harness_remove(dir);
}
END_TEST

START_TEST(finds_a_mount_without_reading_the_table)
{
    unsigned release, version;
    struct utsname kernel;
    MountEntry *entry = NULL;
    ck_assert_int_eq(uname(&kernel), 0);
    ck_assert_int_eq(sscanf(kernel.release, "%u.%u", &release, &version), 2);
    /* A sandbox may filter the call. */
    const gboolean told = mount_lookup("/proc", &entry);
    if (!told && (release < 6 || (release == 6 && version < 13) || errno == EPERM))
        return;
    ck_assert(told);
    ck_assert_str_eq(entry->type, "proc");
    mount_entry_free(entry);
}
END_TEST

HARNESS_MAIN("driver/node/mount/mount", makes_and_finds_an_empty_directory,
             refuses_what_is_no_empty_directory, lists_the_mounts_of_this_machine,
             finds_a_mount_as_the_table_has_it, finds_no_mount_where_none_is,
             finds_a_mount_without_reading_the_table)
