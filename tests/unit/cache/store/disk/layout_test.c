/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/disk/layout.h"
#include "tests/unit/harness.h"

static const LayoutOptions first = {.boot_id = "first", .any_filesystem = TRUE};
static const LayoutOptions second = {.boot_id = "second", .any_filesystem = TRUE};

static LayoutTrust open_ok(Layout *layout, const char *dir, const LayoutOptions *options)
{
    g_autoptr(GError) error = NULL;
    LayoutTrust trust;
    ck_assert_msg(layout_open(layout, dir, options, &trust, &error), "%s",
                  error ? error->message : "");
    return trust;
}

static void assert_refused(const char *dir, int code, const char *word)
{
    g_autoptr(GError) error = NULL;
    Layout layout;
    LayoutTrust trust;
    ck_assert(!layout_open(&layout, dir, &first, &trust, &error));
    ck_assert_msg(g_error_matches(error, G_IO_ERROR, code), "%d: %s", error->code, error->message);
    ck_assert_msg(strstr(error->message, dir) && strstr(error->message, word), "%s",
                  error->message);
}

START_TEST(trust_follows_close_and_boot)
{
    char *dir = harness_tmpdir();
    Layout layout;
    ck_assert_int_eq(open_ok(&layout, dir, &first), LAYOUT_CLEAN);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &first), LAYOUT_SAME_BOOT);
    ck_assert_int_eq(layout_mark(&layout, FORMAT_STATE_CLEAN, 0), 0);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &second), LAYOUT_CLEAN);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &first), LAYOUT_UNTRUSTED);
    layout_close(&layout);
    harness_remove(dir);
}
END_TEST

START_TEST(distrust_outlives_an_owner_who_dies_before_the_scan_is_done)
{
    char *dir = harness_tmpdir();
    Layout layout;
    open_ok(&layout, dir, &first);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &second), LAYOUT_UNTRUSTED);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &second), LAYOUT_UNTRUSTED);
    ck_assert_int_eq(layout_mark(&layout, FORMAT_STATE_OPEN, 0), 0);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &second), LAYOUT_SAME_BOOT);
    layout_close(&layout);
    harness_remove(dir);
}
END_TEST

START_TEST(an_unknown_boot_equals_no_other)
{
    char *dir = harness_tmpdir();
    Layout layout;
    LayoutOptions unknown = {.boot_id = "", .any_filesystem = TRUE};
    open_ok(&layout, dir, &unknown);
    layout_close(&layout);
    ck_assert_int_eq(open_ok(&layout, dir, &unknown), LAYOUT_UNTRUSTED);
    layout_close(&layout);
    harness_remove(dir);
}
END_TEST

START_TEST(a_second_owner_is_refused)
{
    char *dir = harness_tmpdir();
    Layout layout;
    open_ok(&layout, dir, &first);
    assert_refused(dir, G_IO_ERROR_BUSY, "another hearthd");
    layout_close(&layout);
    open_ok(&layout, dir, &first);
    layout_close(&layout);
    harness_remove(dir);
}
END_TEST

START_TEST(another_format_version_is_refused_by_name)
{
    char *dir = harness_tmpdir();
    g_autofree char *header = g_build_filename(dir, "hearth-store", NULL);
    Layout layout;
    open_ok(&layout, dir, &first);
    layout_close(&layout);
    hearth_autofd int fd = open(header, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "\x07", 1, 8), 1);
    assert_refused(dir, G_IO_ERROR_NOT_SUPPORTED, "version 7");
    harness_remove(dir);
}
END_TEST

START_TEST(a_damaged_header_is_refused)
{
    char *dir = harness_tmpdir();
    g_autofree char *header = g_build_filename(dir, "hearth-store", NULL);
    Layout layout;
    open_ok(&layout, dir, &first);
    layout_close(&layout);
    hearth_autofd int fd = open(header, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 20), 1);
    assert_refused(dir, G_IO_ERROR_INVALID_DATA, "damaged");
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    assert_refused(dir, G_IO_ERROR_INVALID_DATA, "damaged");
    harness_remove(dir);
}
END_TEST

START_TEST(a_directory_with_other_things_is_left_alone)
{
    char *dir = harness_tmpdir();
    g_autofree char *other = g_build_filename(dir, "partial", NULL);
    g_autofree char *file = g_build_filename(other, "thesis.tex", NULL);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert(g_file_set_contents(file, "x", 1, NULL));
    assert_refused(dir, G_IO_ERROR_INVALID_DATA, "not empty");
    ck_assert_int_eq(access(file, F_OK), 0);
    harness_remove(dir);
}
END_TEST

START_TEST(a_file_is_no_directory)
{
    char *dir = harness_tmpdir();
    g_autofree char *file = g_build_filename(dir, "file", NULL);
    g_autofree char *below = g_build_filename(file, "below", NULL);
    ck_assert(g_file_set_contents(file, "x", 1, NULL));
    assert_refused(file, G_IO_ERROR_NOT_DIRECTORY, "name a directory");
    assert_refused(below, G_IO_ERROR_NOT_DIRECTORY, "name a directory");
    harness_remove(dir);
}
END_TEST

START_TEST(a_directory_that_may_not_be_written_is_refused)
{
    char *dir = harness_tmpdir();
    if (geteuid() != 0) {
        ck_assert_int_eq(chmod(dir, 0500), 0);
        assert_refused(dir, G_IO_ERROR_PERMISSION_DENIED, "give hearthd's user");
        chmod(dir, 0700);
    } else {
        /* Root may write anywhere but here. */
        assert_refused("/proc/self", G_IO_ERROR_INVALID_DATA, "not empty");
    }
    harness_remove(dir);
}
END_TEST

START_TEST(partial_is_emptied_and_objects_are_kept)
{
    char *dir = harness_tmpdir();
    g_autofree char *left = g_build_filename(dir, "partial", "17", NULL);
    ObjectId id = {{0xab, 1}};
    Layout layout;
    for (int named = 0; named < 2; named++) {
        LayoutOptions options = {
            .boot_id = "first", .any_filesystem = TRUE, .named_partials = named};
        open_ok(&layout, dir, &options);
        Partial partial;
        ck_assert_int_eq(layout_partial_create(&layout, &id, &partial), 0);
        ck_assert_int_eq(layout_partial_link(&layout, &partial, &id), 0);
        ck_assert_int_eq(layout_partial_link(&layout, &partial, &id), -EEXIST);
        close(partial.fd);
        ck_assert(g_file_set_contents(left, "x", 1, NULL));
        layout_close(&layout);
        open_ok(&layout, dir, &options);
        ck_assert_int_ne(access(left, F_OK), 0);
        int fd = layout_open_object(&layout, &id);
        ck_assert_int_ge(fd, 0);
        close(fd);
        ck_assert_int_eq(layout_unlink_object(&layout, &id), 0);
        layout_close(&layout);
    }
    harness_remove(dir);
}
END_TEST

START_TEST(an_object_directory_removed_is_made_again)
{
    char *dir = harness_tmpdir();
    g_autofree char *sub = g_build_filename(dir, "objects", "ab", NULL);
    ObjectId id = {{0xab, 1}};
    Layout layout;
    open_ok(&layout, dir, &first);
    ck_assert_int_eq(rmdir(sub), 0);
    Partial partial;
    ck_assert_int_eq(layout_partial_create(&layout, &id, &partial), 0);
    ck_assert_int_eq(layout_partial_link(&layout, &partial, &id), 0);
    close(partial.fd);
    layout_close(&layout);
    harness_remove(dir);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_past_the_page_cache_stays_as_it_is)
{
    char *dir = harness_tmpdir();
    ObjectId id = {{0xab, 1}};
    Layout layout;
    Partial partial;
    int direct = 0;
    struct stat st;
    struct rlimit before, none;
    open_ok(&layout, dir, &first);
    ck_assert_int_eq(layout_partial_create(&layout, &id, &partial), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(layout_partial_direct(&partial, 8192, &direct), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(direct, -1);
    ck_assert_int_eq(fstat(partial.fd, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    close(partial.fd);
    layout_close(&layout);
    harness_remove(dir);
}
END_TEST

static unsigned open_until(Layout *layout, const ObjectId *id, int fds[], unsigned most, int error)
{
    unsigned n = 0;
    int fd = -1;
    while (n < most && (fd = layout_open_object(layout, id)) >= 0)
        fds[n++] = fd;
    ck_assert_int_eq(fd, error);
    return n;
}

static void leave_descriptors_for_connections(const LayoutOptions *options)
{
    char *dir = harness_tmpdir();
    ObjectId id = {{0xab, 1}};
    Layout layout;
    Partial partial;
    int fds[128], others[32];
    struct rlimit before, few;
    open_ok(&layout, dir, options);
    ck_assert_int_eq(layout_partial_create(&layout, &id, &partial), 0);
    ck_assert_int_eq(layout_partial_link(&layout, &partial, &id), 0);
    close(partial.fd);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){128, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    const unsigned n = open_until(&layout, &id, fds, G_N_ELEMENTS(fds), -EMFILE);
    ck_assert_int_eq(layout_partial_create(&layout, &id, &partial), -EMFILE);
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(others[i], 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++)
        close(others[i]);
    /* One that is closed makes room for another. */
    close(fds[n - 1]);
    fds[n - 1] = layout_open_object(&layout, &id);
    ck_assert_int_ge(fds[n - 1], 0);
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    layout_close(&layout);
    harness_remove(dir);
}

START_TEST(descriptors_are_left_for_connections)
{
    LayoutOptions named = first;
    named.named_partials = TRUE;
    leave_descriptors_for_connections(&first);
    leave_descriptors_for_connections(&named);
}
END_TEST

START_TEST(a_vanished_directory_is_noticed_and_made_again)
{
    char *parent = harness_tmpdir();
    g_autofree char *dir = g_build_filename(parent, "cache", NULL);
    Layout layout;
    LayoutTrust trust;
    open_ok(&layout, dir, &first);
    ck_assert(layout_present(&layout));
    harness_remove(g_strdup(dir));
    ck_assert(!layout_present(&layout));
    int dir_fd = layout.dir_fd;
    ck_assert(layout_reopen(&layout, &first, &trust, NULL));
    ck_assert(layout_present(&layout));
    ck_assert_int_eq(layout.dir_fd, dir_fd);
    assert_refused(dir, G_IO_ERROR_BUSY, "another hearthd");
    /* Part of it only: the lock is still ours. */
    g_autofree char *objects = g_build_filename(dir, "objects", NULL);
    harness_remove(g_strdup(objects));
    ck_assert(!layout_present(&layout));
    ck_assert(layout_reopen(&layout, &first, &trust, NULL));
    ck_assert(layout_present(&layout));
    assert_refused(dir, G_IO_ERROR_BUSY, "another hearthd");
    layout_close(&layout);
    harness_remove(parent);
}
END_TEST

HARNESS_MAIN("cache/store/disk/layout", trust_follows_close_and_boot,
             distrust_outlives_an_owner_who_dies_before_the_scan_is_done,
             an_unknown_boot_equals_no_other, a_second_owner_is_refused,
             descriptors_are_left_for_connections, another_format_version_is_refused_by_name,
             a_damaged_header_is_refused, a_directory_with_other_things_is_left_alone,
             a_file_is_no_directory, a_directory_that_may_not_be_written_is_refused,
             partial_is_emptied_and_objects_are_kept, an_object_directory_removed_is_made_again,
             a_file_that_cannot_be_opened_past_the_page_cache_stays_as_it_is,
             a_vanished_directory_is_noticed_and_made_again)
