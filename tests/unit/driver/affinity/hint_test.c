/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/hint.h"
#include <string.h>
#include "driver/warmth/labels.h"
#include "tests/unit/harness.h"

#define ROOT "/volumes/csi/csi-vol-1/.snap/v1/2f0e"

static json_t *volume(const char *driver, const char *phase, const char *root, const char *claim)
{
    json_t *object =
        json_pack("{s:{s:s}, s:{s:{s:s, s:{s:s, s:s, s:s}}, s:{s:s, s:s, s:s}}, s:{s:s}}",
                  "metadata", "name", "pv", "spec", "csi", "driver", driver, "volumeAttributes",
                  "clusterID", "c", "fsName", "f", "rootPath", root, "claimRef", "namespace",
                  "jobs", "name", claim, "uid", "u-1", "status", "phase", phase);
    ck_assert_ptr_nonnull(object);
    return object;
}

static gboolean wants(json_t *object)
{
    g_auto(Hint) hint = {0};
    const gboolean wanted = hint_of_volume(object, "csi.hearth.dev", NULL, &hint);
    json_decref(object);
    return wanted;
}

START_TEST(bound_volume_of_a_snapshot_wants_a_hint_for_its_claim)
{
    g_auto(Hint) hint = {0};
    g_autofree char *key = dataset_key("c", "f", ROOT);
    json_t *object = volume("csi.hearth.dev", "Bound", ROOT, "data");
    ck_assert(hint_of_volume(object, "csi.hearth.dev", NULL, &hint));
    ck_assert_str_eq(hint.namespace, "jobs");
    ck_assert_str_eq(hint.claim, "data");
    ck_assert_str_eq(hint.claim_uid, "u-1");
    ck_assert_str_eq(hint.dataset, key);
    json_decref(object);
}
END_TEST

START_TEST(others_want_none)
{
    ck_assert(wants(volume("csi.hearth.dev", "Bound", ROOT, "data")));
    ck_assert(!wants(volume("cephfs.csi.ceph.com", "Bound", ROOT, "data")));
    ck_assert(!wants(volume("csi.hearth.dev", "Released", ROOT, "data")));
    ck_assert(!wants(volume("csi.hearth.dev", "Available", ROOT, "data")));
    ck_assert(!wants(volume("csi.hearth.dev", "Bound", "/volumes/csi/csi-vol-1/2f0e", "data")));
    ck_assert(!wants(volume("csi.hearth.dev", "Bound", "", "data")));
    ck_assert(!wants(volume("csi.hearth.dev", "Bound", ROOT, "")));
    ck_assert(!wants(json_object()));
    ck_assert(!wants(json_pack("{s:s, s:[]}", "spec", "text", "status")));
}
END_TEST

static char *dataset_named(const char *text, const char *cluster_config)
{
    g_auto(Hint) hint = {0};
    json_t *object = volume("csi.hearth.dev", "Bound", "", "data");
    json_t *csi = json_object_get(json_object_get(object, "spec"), "csi");
    json_t *context = json_object_get(csi, "volumeAttributes");
    json_object_del(context, "rootPath");
    json_object_set_new(context, "dataset", json_string(text));
    const gboolean wanted = hint_of_volume(object, "csi.hearth.dev", cluster_config, &hint);
    json_decref(object);
    return g_strdup(wanted ? hint.dataset : "");
}

START_TEST(static_volume_may_name_its_dataset)
{
    char *dir = harness_tmpdir();
    g_autofree char *config = g_build_filename(dir, "config.json", NULL);
    g_autofree char *csi = dataset_key("c", "f", "/volumes/csi/train/.snap/v1/2f0e");
    g_autofree char *ours = dataset_key("c", "f", "/volumes/ours/train/.snap/v1/2f0e");
    ck_assert(g_file_set_contents(config,
                                  "[{\"clusterID\": \"c\", \"monitors\": [\"a\"],"
                                  " \"cephFS\": {\"subvolumeGroup\": \"ours\"}}]",
                                  -1, NULL));
    const char *const cases[][3] = {
        {"train@v1", NULL, csi},       {"ours/train@v1", NULL, ours}, {"train@v1", config, ours},
        {"csi/train@v1", config, csi}, {"train@v1", "/nowhere", csi}, {"train", config, ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = dataset_named(cases[i][0], cases[i][1]);
        ck_assert_str_eq(got, cases[i][2]);
    }
    harness_remove(dir);
}
END_TEST

START_TEST(what_is_written_is_read)
{
    g_auto(Hint) read = {0};
    Hint hint = {"jobs", "data", "u-1", "0123456789abcdef", NULL};
    json_t *object = hint_object(&hint);
    ck_assert(hint_read(object, &read));
    ck_assert_str_eq(read.namespace, "jobs");
    ck_assert_str_eq(read.claim, "data");
    ck_assert_str_eq(read.claim_uid, "u-1");
    ck_assert_str_eq(read.dataset, "0123456789abcdef");
    json_decref(object);
}
END_TEST

START_TEST(object_is_found_by_the_selector)
{
    Hint hint = {"jobs", "data", "u-1", "0123456789abcdef", NULL};
    g_auto(GStrv) selector = g_strsplit(HINT_SELECTOR, "=", 2);
    json_t *object = hint_object(&hint);
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    ck_assert_str_eq(json_string_value(json_object_get(labels, selector[0])), selector[1]);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(object, "spec"), "label")),
                     WARM_LABEL_PREFIX "0123456789abcdef");
    json_decref(object);
}
END_TEST

START_TEST(hint_that_someone_changed_is_not_taken_for_right)
{
    static const char *const specs[][2] = {
        {"0123456789abcdef", "warm.csi.hearth.dev/ffffffffffffffff"},
        {"0123456789abcdef", ""},
        {"0123", "warm.csi.hearth.dev/0123"},
        {"0123456789abcdef0", "warm.csi.hearth.dev/0123456789abcdef0"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(specs); i++) {
        g_auto(Hint) read = {0};
        json_t *object =
            json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "metadata", "namespace", "jobs", "name",
                      "data", "spec", "dataset", specs[i][0], "label", specs[i][1]);
        ck_assert(hint_read(object, &read));
        ck_assert_str_eq(read.dataset, "");
        ck_assert_str_eq(read.claim_uid, "");
        json_decref(object);
    }
}
END_TEST

START_TEST(object_without_a_name_is_none)
{
    g_auto(Hint) hint = {0};
    json_t *object = json_pack("{s:{}}", "metadata");
    ck_assert(!hint_read(object, &hint));
    json_decref(object);
}
END_TEST

HARNESS_MAIN("driver/affinity/hint", bound_volume_of_a_snapshot_wants_a_hint_for_its_claim,
             others_want_none, static_volume_may_name_its_dataset, what_is_written_is_read,
             object_is_found_by_the_selector, hint_that_someone_changed_is_not_taken_for_right,
             object_without_a_name_is_none)
