/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/dataset_origin.h"
#include <string.h>
#include "tests/unit/harness.h"

#define ROOT "/volumes/csi/csi-vol-1/.snap/v1"

static gboolean origin_of(const char *json, DatasetOrigin *origin)
{
    json_t *context = json_loads(json, 0, NULL);
    ck_assert_ptr_nonnull(context);
    const gboolean is = dataset_origin_of(context, NULL, origin);
    json_decref(context);
    return is;
}

START_TEST(a_volume_and_a_class_of_one_dataset_have_one_name)
{
    g_auto(DatasetOrigin) volume = {.cluster_id = NULL}, class = {.cluster_id = NULL};
    g_autofree char *key = dataset_key("c", "f", ROOT);
    ck_assert(origin_of(
        "{\"clusterID\": \"c\", \"fsName\": \"f\", \"rootPath\": \"" ROOT "/2f0e\"}", &volume));
    ck_assert(origin_of("{\"clusterID\": \"c\", \"fsName\": \"f\", \"dataset\": \"csi-vol-1@v1\", "
                        "\"csi.storage.k8s.io/fstype\": \"ext4\"}",
                        &class));
    ck_assert_str_eq(volume.id, key);
    ck_assert_str_eq(class.id, key);
    ck_assert_str_eq(volume.root_path, ROOT "/2f0e");
    ck_assert_str_eq(class.root_path, ROOT "/*"); /* the mgr's name is for who opens it */
}
END_TEST

START_TEST(what_is_no_snapshot_is_no_dataset)
{
    static const char *const others[] = {
        "{}",
        "{\"clusterID\": \"c\", \"fsName\": \"f\", \"rootPath\": \"/volumes/csi/v/1\"}",
        "{\"clusterID\": \"c\", \"pool\": \"rbd\", \"imageName\": \"i\"}",
        "{\"fsName\": \"f\", \"rootPath\": \"" ROOT "/2f0e\"}",
        "{\"clusterID\": \"c\", \"fsName\": \"f\", \"dataset\": \"no snapshot\"}",
        "{\"clusterID\": 1, \"fsName\": [], \"rootPath\": {}}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        DatasetOrigin origin;
        ck_assert_msg(!origin_of(others[i], &origin), "%s", others[i]);
    }
}
END_TEST

START_TEST(it_is_written_and_read_again)
{
    g_auto(DatasetOrigin) was = {.cluster_id = NULL}, is = {.cluster_id = NULL};
    ck_assert(origin_of("{\"clusterID\": \"c\", \"rootPath\": \"" ROOT "/2f0e\"}", &was));
    json_t *json = dataset_origin_json(&was);
    ck_assert(dataset_origin_read(json, &is));
    ck_assert_str_eq(is.id, was.id);
    ck_assert_str_eq(is.cluster_id, "c");
    ck_assert_str_eq(is.fs_name, "");
    ck_assert_str_eq(is.root_path, ROOT "/2f0e");
    json_decref(json);
    DatasetOrigin none;
    ck_assert(!dataset_origin_read(NULL, &none));
}
END_TEST

HARNESS_MAIN("driver/warmth/dataset_origin", a_volume_and_a_class_of_one_dataset_have_one_name,
             what_is_no_snapshot_is_no_dataset, it_is_written_and_read_again)
