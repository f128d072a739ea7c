/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/metrics.h"
#include <string.h>
#include "tests/unit/harness.h"

static VolumeReport *volume(const char *id, const char *type, uint64_t read)
{
    VolumeReport *v = g_new0(VolumeReport, 1);
    v->volume = g_strdup(id);
    v->type = type;
    v->served.bytes_store = read;
    v->served.bytes_origin = 2 * read;
    return v;
}

static char *text_of(const MetricsSource *source)
{
    g_autoptr(GBytes) bytes = metrics_text(source);
    gsize size;
    const char *text = g_bytes_get_data(bytes, &size);
    return g_strndup(text, size);
}

static guint lines_with(const char *text, const char *begin)
{
    guint count = 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        count += g_str_has_prefix(*line, begin);
    return count;
}

START_TEST(volumes_are_told_by_what_serves_them)
{
    g_autoptr(GPtrArray) volumes =
        g_ptr_array_new_with_free_func((GDestroyNotify)volume_report_free);
    g_ptr_array_add(volumes, volume("dataset-00000000000000000000000000000001", "cephfs", 1));
    g_ptr_array_add(volumes, volume("image", "rbd", 2));
    VolumeReport *tree = volume("tree", "cephfs", 3);
    tree->name = g_strdup("team/data");
    g_ptr_array_add(volumes, tree);
    const StoreStats stats = {.bytes = 5, .max_bytes = 9, .evicted_bytes_by = {1, 2, 3}};
    static const StoreTimes times;
    const MetricsSource source = {.store = &stats, .times = &times, .volumes = volumes};
    g_autofree char *text = text_of(&source);
    ck_assert_ptr_nonnull(strstr(text, "layer=\"fill\",source=\"cache\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearth_volume_read_bytes_total{volume=\"image\",name="
                                       "\"image\",dataset=\"\",layer=\"block\",source="
                                       "\"ceph\"} 4\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "{volume=\"tree\",name=\"team/data\",dataset=\"\",layer=\"live\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearth_cache_disk_state{state=\"ok\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearth_cache_evicted_bytes_total{reason=\"asked\"} 3\n"));
    ck_assert_uint_eq(lines_with(text, "# TYPE hearth_volume_read_bytes "), 1);
    ck_assert(g_str_has_suffix(text, "# EOF\n"));
}
END_TEST

START_TEST(without_a_cache_there_is_nothing_of_it)
{
    g_autoptr(GPtrArray) volumes = g_ptr_array_new();
    MetricsSource source = {
        .volumes = volumes,
        .uses = {.memory = {[REPORT_CLIENT_DATA] = {3, 4}, [REPORT_LIVE_INODES] = {5, 0}},
                 .threads = {6, 7}}};
    g_autofree char *text = text_of(&source);
    ck_assert_ptr_nonnull(strstr(text, "hearth_cache_disk_state{state=\"none\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearth_cache_disk_state{state=\"off\"} 0\n"));
    source.cache_dir = "/nowhere";
    g_autofree char *unusable = text_of(&source);
    ck_assert_ptr_nonnull(strstr(unusable, "hearth_cache_disk_state{state=\"none\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(unusable, "hearth_cache_disk_state{state=\"off\"} 1\n"));
    ck_assert_ptr_null(strstr(text, "hearth_cache_used_bytes"));
    ck_assert_ptr_nonnull(strstr(text, "hearthd_memory_used_bytes{kind=\"clientData\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearthd_memory_limit_bytes{kind=\"clientData\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearthd_memory_used_bytes{kind=\"liveInodes\"} 5\n"));
    ck_assert_ptr_null(strstr(text, "hearthd_memory_limit_bytes{kind=\"liveInodes\"}"));
    ck_assert_ptr_nonnull(strstr(text, "hearthd_threads 6\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearthd_threads_limit 7\n"));
}
END_TEST

START_TEST(not_more_volumes_are_told_than_there_is_room_for)
{
    g_autoptr(GPtrArray) volumes =
        g_ptr_array_new_with_free_func((GDestroyNotify)volume_report_free);
    for (guint i = 0; i < METRICS_EACH_MAX + 5; i++) {
        g_autofree char *id = g_strdup_printf("v%04u", i);
        g_ptr_array_add(volumes, volume(id, "cephfs", i));
    }
    json_t *datasets = json_array();
    for (guint i = 0; i < METRICS_EACH_MAX + 5; i++)
        json_array_append_new(datasets,
                              json_pack("{s:s, s:s, s:s, s:i, s:[{s:s}]}", "dataset", "d", "name",
                                        "imagenet@v1", "label", "0a1b", "bytesCached", (int)i,
                                        "places", "rootPath", "/a"));
    const MetricsSource source = {.volumes = volumes, .datasets = datasets};
    g_autofree char *text = text_of(&source);
    ck_assert_uint_eq(lines_with(text, "hearth_volume_opens_total{"), METRICS_EACH_MAX);
    ck_assert_uint_eq(lines_with(text, "hearth_dataset_cached_bytes{"), METRICS_EACH_MAX);
    ck_assert_ptr_nonnull(
        strstr(text, "{dataset=\"d\",name=\"imagenet@v1\",label=\"0a1b\",path=\"/a\"} 255\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearth_volumes 261\n"));
    ck_assert_ptr_nonnull(strstr(text, "hearth_volumes_left_out 5\n"));
    json_decref(datasets);
}
END_TEST

HARNESS_MAIN("cache/report/metrics", volumes_are_told_by_what_serves_them,
             without_a_cache_there_is_nothing_of_it,
             not_more_volumes_are_told_than_there_is_room_for)
