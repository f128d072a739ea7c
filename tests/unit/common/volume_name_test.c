/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "common/dataset_key.h"
#include "common/volume_name.h"
#include <string.h>

#define SNAPSHOT "/volumes/csi/imagenet/.snap/2026-11/0a1b"

static void assert_name(const char *claim, const char *pv, const char *root_path,
                        const char *wanted)
{
    const VolumeNames names = {.id = "h1~x",
                               .claim = claim,
                               .pv = pv,
                               .cluster_id = "c1",
                               .fs_name = "fs",
                               .root_path = root_path};
    g_autofree char *name = volume_name(&names);
    ck_assert_str_eq(name, wanted);
}

START_TEST(the_claim_comes_first_and_the_id_last)
{
    assert_name("train/data", "pvc-1", SNAPSHOT, "train/data");
    assert_name("", "pvc-1", SNAPSHOT, "imagenet@2026-11");
    assert_name("", "", "/volumes/team/laion/.snap/v3/*", "team/laion@v3");
    assert_name("", "pvc-1", "/volumes/csi/v/uuid", "pvc-1");
    assert_name("", "pvc-1", "/data/.snap/v1", "pvc-1");
    g_autofree char *label = dataset_key("c1", "fs", "/data/.snap/v1");
    assert_name("", "", "/data/.snap/v1", label);
    assert_name("", "", "/volumes/csi/v/uuid", "h1~x");
    assert_name("", "", "", "h1~x");
}
END_TEST

START_TEST(a_snapshot_that_cannot_be_printed_has_no_name)
{
    assert_name("", "pv", "/volumes/csi/a b/.snap/v", "pv");
    assert_name("", "pv", "/volumes/csi/a\nb/.snap/v", "pv");
    assert_name("", "pv", "/volumes/csi/a\x1b[2J/.snap/v", "pv");
    g_autofree char *letters = g_strnfill(300, 'x');
    g_autofree char *path = g_strdup_printf("/volumes/csi/%s/.snap/v", letters);
    assert_name("", "pv", path, "pv");
}
END_TEST

START_TEST(only_names_of_kubernetes_are_taken)
{
    static const char *const good[] = {"a/b", "team-1/data.x-0", "0/1"};
    static const char *const bad[] = {"",           "a",     "/b",    "a/",   "a/b/c",
                                      "A/b",        "a/b c", "a/b\n", "a/-b", "a/b\"}",
                                      "a\x1b[1m/b", "a/b-",  "a/../b"};
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        ck_assert_msg(volume_name_is_claim(good[i]), "%s", good[i]);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(!volume_name_is_claim(bad[i]), "%s", bad[i]);
    g_autofree char *longest = g_strnfill(253, 'a');
    g_autofree char *longer = g_strnfill(254, 'a');
    g_autofree char *namespace = g_strdup_printf("%.64s/b", longest);
    ck_assert(volume_name_is_object(longest));
    ck_assert(!volume_name_is_object(longer));
    ck_assert(!volume_name_is_claim(namespace));
}
END_TEST

HARNESS_MAIN("common/volume_name", the_claim_comes_first_and_the_id_last,
             a_snapshot_that_cannot_be_printed_has_no_name, only_names_of_kubernetes_are_taken)
