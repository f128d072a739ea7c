/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/backend.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/harness.h"

static VolumeId id = {.type = VOLUME_DIR, .name = (char *)"p-n"};
static VolumeParams params = {.type = VOLUME_DIR};

static void put(const char *dir, const char *file)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    ck_assert(g_file_set_contents(path, "x", 1, NULL));
}

static int count(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    int n = 0;
    while (g_dir_read_name(d))
        n++;
    return n;
}

static gboolean create(const Backend *b)
{
    g_autoptr(BackendVolume) made = b->ops->volume_create(b->impl, &id, &params, 1, 0, NULL);
    return made != NULL;
}

START_TEST(a_volume_is_a_directory_for_every_user)
{
    char *root = harness_tmpdir();
    g_autoptr(Backend) b = backend_dir_new(root, NULL);
    ck_assert(create(b));
    ck_assert(create(b));
    g_autoptr(BackendVolume) v = b->ops->volume_look(b->impl, &id, 0, NULL);
    g_autofree char *path = g_build_filename(root, "p-n", NULL);
    ck_assert_str_eq(v->path, path);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode, S_IFDIR | 0777);
    harness_remove(root);
}
END_TEST

START_TEST(removing_follows_no_link_out_of_the_volume)
{
    char *root = harness_tmpdir(), *outside = harness_tmpdir();
    put(outside, "precious");
    g_autoptr(Backend) b = backend_dir_new(root, NULL);
    ck_assert(create(b));
    g_autofree char *deep = g_build_filename(root, "p-n", "a", "b", NULL);
    ck_assert_int_eq(g_mkdir_with_parents(deep, 0700), 0);
    put(deep, "file");
    g_autofree char *link = g_build_filename(deep, "link", NULL);
    ck_assert_int_eq(symlink(outside, link), 0);
    ck_assert(b->ops->volume_remove(b->impl, &id, FALSE, 0, NULL));
    ck_assert(b->ops->volume_remove(b->impl, &id, FALSE, 0, NULL));
    ck_assert_int_eq(count(root), 1); /* .hearth */
    g_autofree char *private = g_build_filename(root, ".hearth", NULL);
    ck_assert_int_eq(count(private), 0);
    ck_assert_int_eq(count(outside), 1);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(b->ops->volume_look(b->impl, &id, 0, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND));
    harness_remove(root);
    harness_remove(outside);
}
END_TEST

START_TEST(a_link_in_the_volumes_place_is_not_followed)
{
    char *root = harness_tmpdir(), *outside = harness_tmpdir();
    put(outside, "precious");
    g_autoptr(Backend) b = backend_dir_new(root, NULL);
    g_autofree char *link = g_build_filename(root, "p-n", NULL);
    ck_assert_int_eq(symlink(outside, link), 0);
    ck_assert_ptr_null(b->ops->volume_look(b->impl, &id, 0, NULL));
    ck_assert(!create(b));
    struct stat st;
    ck_assert_int_eq(stat(outside, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    ck_assert(b->ops->volume_remove(b->impl, &id, FALSE, 0, NULL));
    ck_assert_int_eq(count(outside), 1);
    ck_assert_int_eq(count(root), 1); /* .hearth */
    harness_remove(root);
    harness_remove(outside);
}
END_TEST

START_TEST(an_interrupted_removal_is_finished_by_the_next)
{
    char *root = harness_tmpdir();
    g_autoptr(Backend) b = backend_dir_new(root, NULL);
    g_autofree char *trash = g_build_filename(root, ".hearth", "trash.p-n", NULL);
    ck_assert_int_eq(g_mkdir(trash, 0700), 0);
    put(trash, "file");
    ck_assert(b->ops->volume_remove(b->impl, &id, FALSE, 0, NULL));
    ck_assert(!g_file_test(trash, G_FILE_TEST_EXISTS));
    harness_remove(root);
}
END_TEST

START_TEST(records_are_exclusive_and_whole)
{
    char *root = harness_tmpdir();
    g_autoptr(Backend) b = backend_dir_new(root, NULL);
    g_autoptr(GError) error = NULL;
    gsize length;
    ck_assert_ptr_null(b->ops->record_read(b->impl, "n", &length, 0, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND));
    gboolean existed = TRUE;
    ck_assert(b->ops->record_create(b->impl, "n", "one", &existed, 0, NULL));
    ck_assert(!existed);
    ck_assert(b->ops->record_create(b->impl, "n", "another", &existed, 0, NULL));
    ck_assert(existed);
    g_autofree char *text = b->ops->record_read(b->impl, "n", &length, 0, NULL);
    ck_assert_str_eq(text, "one");
    ck_assert_uint_eq(length, 3);
    g_autofree char *private = g_build_filename(root, ".hearth", NULL);
    ck_assert_int_eq(count(private), 1);
    ck_assert(b->ops->record_remove(b->impl, "n", 0, NULL));
    ck_assert(b->ops->record_remove(b->impl, "n", 0, NULL));
    ck_assert_int_eq(count(private), 0);
    harness_remove(root);
}
END_TEST

START_TEST(a_root_that_is_not_there_is_named)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(backend_dir_new("/nonexistent/root", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/root"));
}
END_TEST

HARNESS_MAIN("driver/backend/dir", a_volume_is_a_directory_for_every_user,
             removing_follows_no_link_out_of_the_volume,
             a_link_in_the_volumes_place_is_not_followed,
             an_interrupted_removal_is_finished_by_the_next, records_are_exclusive_and_whole,
             a_root_that_is_not_there_is_named)
