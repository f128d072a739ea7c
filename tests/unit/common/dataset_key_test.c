/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dataset_key.h"
#include <string.h>
#include "tests/unit/harness.h"

static char *key(const char *path)
{
    return dataset_key("c1", "fs", path);
}

START_TEST(whatever_shows_a_snapshot_has_one_key)
{
    g_autofree char *class = key("/volumes/team/corpus/.snap/v1");
    g_autofree char *volume = key("/volumes/team/corpus/.snap/v1/0a1b-2c3d");
    ck_assert_uint_eq(strlen(class), DATASET_KEY_DIGITS);
    ck_assert_uint_eq(strspn(class, "0123456789abcdef"), DATASET_KEY_DIGITS);
    ck_assert_str_eq(class, volume);
}
END_TEST

/* It is in labels of nodes and in files of users: it may never change. */
START_TEST(the_key_of_a_place_is_for_ever)
{
    g_autofree char *k = key("/volumes/team/corpus/.snap/v1");
    ck_assert_str_eq(k, "266feee00dc6a1ee");
}
END_TEST

START_TEST(what_differs_has_another)
{
    const char *const paths[] = {
        "/volumes/team/corpus/.snap/v1",
        "/volumes/team/corpus/.snap/v2",
        "/volumes/team/corpus2/.snap/v1",
        "/volumes/other/corpus/.snap/v1",
        "/volumes/team/corpus/.snap/v1/u/sub",
        "/data/.snap/v1",
        "/data/.snap/v1/sub",
    };
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++)
        ck_assert(g_hash_table_add(seen, key(paths[i])));
    ck_assert(g_hash_table_add(seen, dataset_key("c2", "fs", paths[0])));
    ck_assert(g_hash_table_add(seen, dataset_key("c1", "fs2", paths[0])));
    ck_assert(g_hash_table_add(seen, dataset_key("c1f", "s", paths[0])));
}
END_TEST

START_TEST(a_live_volume_has_none)
{
    const char *const paths[] = {"/volumes/csi/v/uuid", "/", "", "/data/.snap", "/data/.snap/",
                                 "/data/.snapshots/v1"};
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++)
        ck_assert_ptr_null(key(paths[i]));
    ck_assert_ptr_null(key(NULL));
}
END_TEST

START_TEST(the_title_is_what_classes_say)
{
    g_autofree char *a = dataset_key_title("/volumes/team/corpus/.snap/v1/0a1b");
    g_autofree char *b = dataset_key_title("/data/.snap/v1");
    g_autofree char *c = dataset_key_title("/volumes/csi/imagenet/.snap/2026-11/0a1b");
    ck_assert_str_eq(a, "team/corpus@v1");
    ck_assert_str_eq(b, "/data/.snap/v1");
    ck_assert_str_eq(c, "imagenet@2026-11");
}
END_TEST

START_TEST(a_title_is_meant_with_its_group_and_without)
{
    ck_assert(dataset_title_matches("imagenet@v1", "imagenet@v1"));
    ck_assert(dataset_title_matches("imagenet@v1", "csi/imagenet@v1"));
    ck_assert(dataset_title_matches("team/imagenet@v1", "imagenet@v1"));
    ck_assert(dataset_title_matches("team/imagenet@v1", "team/imagenet@v1"));
    ck_assert(!dataset_title_matches("team/imagenet@v1", "csi/imagenet@v1"));
    ck_assert(!dataset_title_matches("imagenet@v1", "imagenet@v2"));
    ck_assert(!dataset_title_matches("imagenet@v1", "imagenet"));
    ck_assert(!dataset_title_matches("/data/.snap/v1", "/data/.snap/v1"));
    static const char *const none[] = {"", "a", "@v", "a@", "/a@v", "g/a/b@v", "a@b@c", "a@b/c"};
    for (gsize i = 0; i < G_N_ELEMENTS(none); i++)
        ck_assert_msg(!dataset_title_is(none[i]), "%s", none[i]);
}
END_TEST

HARNESS_MAIN("common/dataset_key", whatever_shows_a_snapshot_has_one_key,
             the_key_of_a_place_is_for_ever, what_differs_has_another, a_live_volume_has_none,
             the_title_is_what_classes_say, a_title_is_meant_with_its_group_and_without)
