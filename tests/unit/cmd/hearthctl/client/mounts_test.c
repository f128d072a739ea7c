/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/client/mounts.h"
#include <gio/gio.h>
#include <string.h>

static const char table[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:40 / /var/stage/globalmount rw,nosuid shared:7 master:2 - fuse.hearth "
    "hearth:pvc-1 rw,user_id=0\n"
    "31 22 0:40 / /var/pods/p1/mount rw - fuse.hearth hearth:pvc-1 rw\n"
    "32 22 0:40 /train/a\\040b /var/pods/p2/sub rw - fuse.hearth hearth:pvc-1 rw\n"
    "33 22 0:41 / /mnt/odd\\040name\\134 rw - fuse.hearth hearth:pvc\\0402 rw\n"
    "34 22 0:42 / /mnt/other rw - fuse.other hearth:pvc-3 rw\n"
    "35 22 0:43 / /mnt/twice rw - fuse.hearth hearth:below rw\n"
    "36 35 0:44 / /mnt/twice rw - tmpfs tmpfs rw\n"
    "37 22 0:45 / /mnt/again rw - tmpfs tmpfs rw\n"
    "38 37 0:46 / /mnt/again rw - fuse.hearth hearth:above rw\n"
    "39 30 0:47 / /var/stage/globalmount/scratch rw - tmpfs tmpfs rw\n"
    "50 22 0:50 / /var/stage/d rw - overlay hearth:pvc-d "
    "ro,lowerdir+=/run/hearth/0123456789abcdef0123456789abcdef.3.manifest,datadir+=/var/objects,"
    "datadir+=/run/hearth/0123456789abcdef0123456789abcdef.3.fill\n"
    "51 22 0:50 /sub /var/pods/d rw - overlay hearth:pvc-d "
    "ro,lowerdir=/d/0123456789abcdef0123456789abcdef.12.manifest::/o::/f\n"
    "54 22 0:54 / /var/stage/second rw - overlay hearth:pvc-s "
    "ro,lowerdir=/d/0123456789abcdef0123456789abcdef-2.12.manifest::/o::/f\n"
    "52 22 0:51 / /mnt/overlay rw - overlay overlay rw,lowerdir=/a:/b\n"
    "53 22 0:52 / /mnt/odd rw - overlay hearth:pvc-o rw,lowerdir=/a/x.manifest:/b\n"
    "garbage\n"
    "40 22 0:48 / /mnt/short rw\n";

static void assert_found(const char *path, const char *volume, const char *inside)
{
    g_autofree char *v = NULL, *i = NULL;
    g_autoptr(GError) error = NULL;
    ck_assert_msg(mounts_find_volume(table, path, &v, &i, &error), "%s",
                  error ? error->message : "");
    ck_assert_str_eq(v, volume);
    ck_assert_str_eq(i, inside);
}

static void assert_none(const char *path, const char *part)
{
    g_autofree char *v = NULL, *i = NULL;
    g_autoptr(GError) error = NULL;
    ck_assert(!mounts_find_volume(table, path, &v, &i, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND));
    ck_assert_msg(strstr(error->message, part) != NULL, "%s", error->message);
}

START_TEST(path_is_mapped_into_its_volume)
{
    assert_found("/var/stage/globalmount", "pvc-1", "");
    assert_found("/var/stage/globalmount/a/b", "pvc-1", "a/b");
    assert_found("/var/pods/p1/mount/x", "pvc-1", "x");
}
END_TEST

START_TEST(bind_mount_of_a_subdirectory_keeps_its_root)
{
    assert_found("/var/pods/p2/sub", "pvc-1", "train/a b");
    assert_found("/var/pods/p2/sub/c", "pvc-1", "train/a b/c");
}
END_TEST

START_TEST(escaped_characters_are_read)
{
    assert_found("/mnt/odd name\\/f", "pvc 2", "f");
}
END_TEST

START_TEST(deepest_and_last_mount_counts)
{
    assert_none("/mnt/twice/x", "tmpfs");
    assert_found("/mnt/again/x", "above", "x");
    assert_none("/var/stage/globalmount/scratch/x", "tmpfs");
}
END_TEST

START_TEST(path_elsewhere_is_refused)
{
    assert_none("/etc", "ext4");
    assert_none("/mnt/other", "fuse.other");
    /* A name that merely begins like a mount point. */
    assert_none("/var/pods/p1/mountain", "ext4");
    assert_none("/mnt/short", "ext4");
}
END_TEST

#define DATASET "dataset-0123456789abcdef0123456789abcdef"

START_TEST(mount_of_a_dataset_is_the_volume_served_for_all_of_them)
{
    assert_found("/var/stage/d/a", DATASET, "a");
    assert_found("/var/pods/d/a", DATASET, "sub/a");
    assert_found("/var/stage/second/a", DATASET "-2", "a");
    assert_none("/mnt/overlay/x", "overlay");
    assert_none("/mnt/odd/x", "overlay");
    g_autofree char *served = mounts_served_volume(table, "pvc-d");
    g_autofree char *plain = mounts_served_volume(table, "pvc-1");
    g_autofree char *unknown = mounts_served_volume(table, "pvc-none");
    ck_assert_str_eq(served, DATASET);
    ck_assert_str_eq(plain, "pvc-1");
    ck_assert_str_eq(unknown, "pvc-none");
}
END_TEST

static void assert_lost(const GPtrArray *lost, guint i, const char *volume, const char *point)
{
    ck_assert_uint_lt(i, lost->len);
    const LostMount *one = lost->pdata[i];
    ck_assert_str_eq(one->volume, volume);
    ck_assert_str_eq(one->point, point);
}

START_TEST(mounts_that_nobody_serves_are_found_at_their_pods)
{
    json_auto_t *served =
        json_pack("[{s:s, s:b}, {s:s, s:b}, {s:s, s:b}]", "volume", "pvc 2", "attached", TRUE,
                  "volume", "below", "attached", FALSE, "volume", "above", "attached", TRUE);
    g_autoptr(GPtrArray) lost = mounts_lost(table, served, "/");
    assert_lost(lost, 0, "pvc-1", "/var/pods/p1/mount");
    assert_lost(lost, 1, "pvc-1", "/var/pods/p2/sub");
    assert_lost(lost, 2, "below", "/mnt/twice");
    ck_assert_uint_eq(lost->len, 3);
    g_autoptr(GPtrArray) within = mounts_lost(table, served, "/p2/");
    assert_lost(within, 0, "pvc-1", "/var/pods/p2/sub");
    ck_assert_uint_eq(within->len, 1);
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/mounts", mount_of_a_dataset_is_the_volume_served_for_all_of_them,
             path_is_mapped_into_its_volume, bind_mount_of_a_subdirectory_keeps_its_root,
             escaped_characters_are_read, deepest_and_last_mount_counts, path_elsewhere_is_refused,
             mounts_that_nobody_serves_are_found_at_their_pods)
