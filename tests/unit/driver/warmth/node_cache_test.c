/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/publications.h"
#include "driver/warmth/node_cache.h"
#include <string.h>
#include "tests/unit/harness.h"

static json_t *dataset(const char *snapshot, json_int_t cached, json_int_t total)
{
    g_autofree char *path = g_strdup_printf("/volumes/team/corpus/.snap/%s/u", snapshot);
    return json_pack("{s:s, s:[{s:s, s:s, s:s}], s:I, s:I}", "dataset", "ffff", "places",
                     "clusterID", "c1", "fsName", "fs", "rootPath", path, "bytesCached", cached,
                     "bytesTotal", total);
}

/* Takes the datasets. */
static json_t *status_of(json_t *datasets)
{
    json_t *answer = json_pack("{s:{s:s}, s:{s:s, s:i, s:i, s:i}}", "daemon", "version", "0.1.0",
                               "cache", "disk", "ok", "bytes", 5, "maxBytes", 10, "freeBytes", 7);
    json_t *status = node_cache_status(answer, datasets, 1700000000000000);
    ck_assert_ptr_nonnull(status);
    json_decref(answer);
    json_decref(datasets);
    return status;
}

static gboolean read_status(json_t *status, NodeCacheReport *report)
{
    json_t *object = json_pack("{s:{s:s}, s:o}", "metadata", "name", "n1", "status", status);
    gboolean good = node_cache_read(object, report);
    json_decref(object);
    return good;
}

START_TEST(what_is_written_is_what_is_read)
{
    g_auto(NodeCacheReport) r = {0};
    g_autofree char *id = dataset_key("c1", "fs", "/volumes/team/corpus/.snap/v1");
    json_t *status = status_of(json_pack("[o, o]", dataset("v1", 30, 100), dataset("v2", 60, 60)));
    ck_assert_str_eq(json_string_value(json_object_get(status, "warm")), "1/2");
    ck_assert_str_eq(json_string_value(json_object_get(status, "shown")),
                     "team/corpus@v2 100%, team/corpus@v1 30%");
    ck_assert_str_eq(json_string_value(json_object_get(status, "heartbeatTime")),
                     "2023-11-14T22:13:20Z");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(status, "cache"), "used")),
                     "5/10");
    ck_assert(read_status(status, &r));
    ck_assert_str_eq(r.node, "n1");
    ck_assert_str_eq(r.disk, "ok");
    ck_assert_uint_eq(r.bytes, 5);
    ck_assert_uint_eq(r.max_bytes, 10);
    ck_assert_uint_eq(r.free_bytes, 7);
    ck_assert_int_eq(r.heartbeat_us, 1700000000000000);
    ck_assert_uint_eq(r.datasets->len, 2);
    const NodeCacheDataset *most = &g_array_index(r.datasets, NodeCacheDataset, 0),
                           *least = &g_array_index(r.datasets, NodeCacheDataset, 1);
    ck_assert_uint_eq(most->bytes, 60);
    ck_assert_str_eq(least->id, id);
    ck_assert_uint_eq(least->bytes, 30);
    ck_assert_uint_eq(least->total, 100);
}
END_TEST

START_TEST(a_tier_and_a_zone_are_read_as_label_values)
{
    static const struct {
        const char *zone, *read;
    } cases[] = {{"rack-7", "rack-7"},
                 {NULL, ""},
                 {"", ""},
                 {"-a", ""},
                 {"a b", ""},
                 {"a_", ""},
                 {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(NodeCacheReport) r = {0};
        json_t *status = status_of(json_array());
        node_cache_place(status, "nvme", cases[i].zone);
        ck_assert(read_status(status, &r));
        ck_assert_str_eq(r.tier, "nvme");
        ck_assert_str_eq(r.zone, cases[i].read);
    }
    g_auto(NodeCacheReport) r = {0};
    ck_assert(read_status(status_of(json_array()), &r));
    ck_assert_str_eq(r.tier, "");
}
END_TEST

/* Handles with spaces between. */
static json_t *uncached_status(const char *handles)
{
    g_auto(GStrv) list = g_strsplit(handles, " ", -1);
    json_t *uncached = json_array();
    for (gsize i = 0; list[i]; i++)
        json_array_append_new(uncached,
                              json_pack("{s:s, s:s}", "volume", list[i], "uncached", "why"));
    json_t *answer = json_pack("{s:o}", "uncached", uncached), *none = json_array();
    json_t *status = node_cache_status(answer, none, 1700000000000000);
    json_decref(answer);
    json_decref(none);
    return status;
}

START_TEST(volumes_that_get_no_cache_are_told_and_are_news)
{
    json_t *before = uncached_status("b a"), *same = uncached_status("a b"),
           *after = uncached_status("a b c"), *none = status_of(json_array());
    g_auto(NodeCacheReport) r = {0}, r0 = {0};
    ck_assert(!node_cache_is_news(before, same));
    ck_assert(node_cache_is_news(before, after));
    ck_assert(node_cache_is_news(after, before));
    ck_assert(read_status(after, &r));
    ck_assert_uint_eq(r.uncached->len, 3);
    ck_assert_str_eq(r.uncached->pdata[0], "a");
    ck_assert_str_eq(r.uncached->pdata[2], "c");
    /* A hearthd of the release before tells none. */
    ck_assert(read_status(none, &r0));
    ck_assert_uint_eq(r0.uncached->len, 0);
    json_decref(before);
    json_decref(same);
}
END_TEST

static int percent(json_int_t cached, json_int_t total)
{
    json_t *status = status_of(json_pack("[o]", dataset("v1", cached, total)));
    json_t *one = json_array_get(json_object_get(status, "datasets"), 0);
    int p = (int)json_integer_value(json_object_get(one, "percent"));
    json_decref(status);
    return p;
}

START_TEST(a_hundred_is_when_nothing_is_missing)
{
    ck_assert_int_eq(percent(0, 100), 0);
    ck_assert_int_eq(percent(1, 100), 1);
    ck_assert_int_eq(percent((1LL << 60) - 1, 1LL << 60), 99);
    ck_assert_int_eq(percent(100, 100), 100);
    ck_assert_int_eq(percent(101, 100), 100);
    ck_assert_int_eq(percent(0, 0), 100);
}
END_TEST

START_TEST(a_dataset_of_several_places_is_told_once)
{
    json_t *datasets = json_pack("[o, o, o, o]", dataset("v1", 1, 2), dataset("v1", 1, 2),
                                 dataset("v2", 1, 2), dataset("v1", 1, 2));
    json_t *live = json_pack("{s:s, s:[{s:s, s:s, s:s}], s:i, s:i}", "dataset", "f", "places",
                             "clusterID", "c", "fsName", "f", "rootPath", "/no/snapshot",
                             "bytesCached", 1, "bytesTotal", 2);
    json_array_append_new(datasets, live);
    json_t *status = status_of(datasets);
    ck_assert_uint_eq(json_array_size(json_object_get(status, "datasets")), 2);
    json_decref(status);
}
END_TEST

START_TEST(the_largest_are_told_when_there_are_too_many)
{
    json_t *many = json_array();
    for (int i = 0; i < NODE_CACHE_DATASETS_MAX + 10; i++) {
        g_autofree char *name = g_strdup_printf("v%d", i);
        json_array_append_new(many, dataset(name, i, 1000));
    }
    json_t *status = status_of(many);
    const json_t *list = json_object_get(status, "datasets");
    ck_assert_uint_eq(json_array_size(list), NODE_CACHE_DATASETS_MAX);
    const json_t *last = json_array_get(list, NODE_CACHE_DATASETS_MAX - 1);
    ck_assert_int_eq(json_integer_value(json_object_get(last, "bytes")), 10);
    ck_assert_str_eq(json_string_value(json_object_get(status, "shown")),
                     "team/corpus@v265 26%, team/corpus@v264 26%, team/corpus@v263 26%, 253 more");
    json_decref(status);
}
END_TEST

START_TEST(pods_that_lost_a_mount_are_told_once_and_are_news)
{
    Publication pods[] = {{(char *)"v", (char *)"/b", (char *)"uid-b"},
                          {(char *)"v", (char *)"/a", (char *)"uid-a"},
                          {(char *)"w", (char *)"/c", (char *)"uid-b"}};
    g_autoptr(GPtrArray) lost = g_ptr_array_new(), none = g_ptr_array_new();
    for (guint i = 0; i < G_N_ELEMENTS(pods); i++)
        g_ptr_array_add(lost, &pods[i]);
    json_t *before = status_of(json_array()), *after = status_of(json_array());
    node_cache_lost(before, none);
    node_cache_lost(after, none);
    ck_assert(!node_cache_is_news(before, after));
    node_cache_lost(after, lost);
    ck_assert(node_cache_is_news(before, after));
    g_auto(NodeCacheReport) r = {0};
    ck_assert(read_status(after, &r));
    ck_assert_uint_eq(r.lost->len, 2);
    ck_assert_str_eq(r.lost->pdata[0], "uid-a");
    ck_assert_str_eq(r.lost->pdata[1], "uid-b");
    json_decref(before);
}
END_TEST

static gboolean is_news(json_int_t before, json_int_t after)
{
    json_t *old = status_of(json_pack("[o]", dataset("v1", before, 100)));
    json_t *new = status_of(json_pack("[o]", dataset("v1", after, 100)));
    gboolean news = node_cache_is_news(old, new);
    json_decref(old);
    json_decref(new);
    return news;
}

START_TEST(news_is_another_quarter_dataset_or_disk)
{
    ck_assert(!is_news(30, 30));
    ck_assert(!is_news(30, 49));
    ck_assert(is_news(30, 50));
    ck_assert(is_news(99, 100));
    ck_assert(is_news(25, 24));
    json_t *one = status_of(json_pack("[o]", dataset("v1", 1, 100)));
    json_t *other = status_of(json_pack("[o]", dataset("v2", 1, 100)));
    json_t *none = status_of(json_array());
    json_t *bad = json_deep_copy(one);
    json_object_set_new(json_object_get(bad, "cache"), "disk", json_string("bypass"));
    ck_assert(node_cache_is_news(NULL, one));
    ck_assert(node_cache_is_news(one, other));
    ck_assert(node_cache_is_news(one, none));
    ck_assert(node_cache_is_news(one, bad));
    json_decref(one);
    json_decref(other);
    json_decref(none);
    json_decref(bad);
}
END_TEST

START_TEST(of_a_strange_resource_nothing_is_believed)
{
    g_auto(NodeCacheReport) r = {0};
    json_t *object = json_object();
    ck_assert(!node_cache_read(object, &r));
    json_decref(object);
    ck_assert(
        read_status(json_pack("{s:s, s:[i, {}, {s:s, s:i}, {s:s, s:I, s:s}]}", "heartbeatTime",
                              "yesterday", "datasets", 5, "id", "../../etc", "bytes", 1, "id",
                              "0123456789abcdef", "bytes", (json_int_t)-5, "totalBytes", "x"),
                    &r));
    ck_assert_int_eq(r.heartbeat_us, 0);
    ck_assert_uint_eq(r.datasets->len, 1);
    ck_assert_uint_eq(g_array_index(r.datasets, NodeCacheDataset, 0).bytes, 0);
}
END_TEST

static gboolean run_is_news(const char *before, const char *after)
{
    json_t *old = status_of(json_array()), *new = status_of(json_array());
    json_object_set_new(old, "warmups", json_loads(before, 0, NULL));
    json_object_set_new(new, "warmups", json_loads(after, 0, NULL));
    const gboolean news = node_cache_is_news(old, new);
    json_decref(old);
    json_decref(new);
    return news;
}

START_TEST(runs_of_warmups_are_news_by_state_and_steps_of_five)
{
#define AT(state, percent)                                                                         \
    "[{\"run\": \"u.1.0\", \"state\": \"" state "\", \"percent\": " percent "}]"
    ck_assert(!run_is_news("[]", "[]"));
    ck_assert(run_is_news("[]", AT("Running", "0")));
    ck_assert(run_is_news(AT("Running", "0"), "[]"));
    ck_assert(!run_is_news(AT("Running", "41"), AT("Running", "44")));
    ck_assert(run_is_news(AT("Running", "44"), AT("Running", "45")));
    ck_assert(run_is_news(AT("Running", "99"), AT("Succeeded", "99")));
    ck_assert(run_is_news(AT("Running", "5"), "[{\"run\": \"u.2.0\", \"state\": \"Running\"}]"));
#undef AT
}
END_TEST

HARNESS_MAIN("driver/warmth/node_cache", pods_that_lost_a_mount_are_told_once_and_are_news,
             volumes_that_get_no_cache_are_told_and_are_news,
             a_tier_and_a_zone_are_read_as_label_values, what_is_written_is_what_is_read,
             a_hundred_is_when_nothing_is_missing, a_dataset_of_several_places_is_told_once,
             the_largest_are_told_when_there_are_too_many, news_is_another_quarter_dataset_or_disk,
             of_a_strange_resource_nothing_is_believed,
             runs_of_warmups_are_news_by_state_and_steps_of_five)
