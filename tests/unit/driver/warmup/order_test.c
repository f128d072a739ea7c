/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/order.h"
#include <string.h>
#include "common/field.h"
#include "tests/unit/harness.h"

#define ORDER                                                                                      \
    "{\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"u.1.0\", \"rate\": 1048576, "           \
    "\"paths\": [\"a\", \"b/c\"], \"origin\": {\"clusterID\": \"c\", \"fsName\": \"f\", "          \
    "\"rootPath\": \"/volumes/g/v/.snap/s/*\"}}"

static gboolean read_text(const char *text, WarmupOrder *order)
{
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    const gboolean good = warmup_order_read(json, order);
    json_decref(json);
    return good;
}

static json_t *doing(const WarmupDoing *doing)
{
    g_auto(WarmupOrder) order = {.run = NULL};
    ck_assert(read_text(ORDER, &order));
    return warmup_doing_json(&order, doing);
}

START_TEST(a_node_reads_what_the_controller_orders)
{
    json_t *object =
        json_loads("{\"metadata\": {\"namespace\": \"jobs\", \"name\": \"w\", \"uid\": "
                   "\"u\", \"generation\": 1}, \"spec\": {\"persistentVolumeClaim\": "
                   "\"data\", \"paths\": [\"a\", \"b//c\"], \"rate\": \"1Mi\"}}",
                   0, NULL);
    json_t *status = json_loads("{\"run\": \"u.1.0\", \"origin\": {\"clusterID\": \"c\", "
                                "\"fsName\": \"f\", \"rootPath\": \"/volumes/g/v/.snap/s/*\"}}",
                                0, NULL);
    g_auto(Warmup) warmup;
    g_auto(WarmupOrder) order = {.run = NULL};
    ck_assert(warmup_read(object, &warmup, NULL));
    json_t *json = warmup_order_json(&warmup, status), *wanted = json_loads(ORDER, 0, NULL);
    ck_assert(json_equal(json, wanted));
    ck_assert(warmup_order_read(json, &order));
    ck_assert_str_eq(order.namespace, "jobs");
    ck_assert_str_eq(order.name, "w");
    ck_assert_str_eq(order.run, "u.1.0");
    ck_assert_uint_eq(order.rate, 1 << 20);
    ck_assert_uint_eq(order.paths->len, 2);
    ck_assert_str_eq(order.paths->pdata[1], "b/c");
    ck_assert_str_eq(order.origin.root_path, "/volumes/g/v/.snap/s/*");
    json_decref(json);
    json_decref(wanted);
    json_decref(status);
    json_decref(object);
}
END_TEST

START_TEST(what_is_no_order_is_refused)
{
    static const char *const others[] = {
        "{}",
        "[]",
        "{\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"u.1.0\"}",
        "{\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"\", \"origin\": {\"clusterID\": "
        "\"c\", \"rootPath\": \"/volumes/g/v/.snap/s\"}}",
        "{\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"u\", \"paths\": [1], \"origin\": "
        "{\"clusterID\": \"c\", \"rootPath\": \"/volumes/g/v/.snap/s\"}}",
        "{\"namespace\": \"jobs\", \"name\": \"w\", \"run\": \"u\", \"origin\": {\"clusterID\": "
        "\"c\", \"rootPath\": \"/etc\"}}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_auto(WarmupOrder) order = {.run = NULL};
        ck_assert_msg(!read_text(others[i], &order), "%s", others[i]);
    }
}
END_TEST

START_TEST(how_far_a_node_is)
{
    json_t *entry = doing(&(WarmupDoing){
        .state = "Running", .bytes = 25, .total = 100, .bytes_per_second = 10, .percent = -1});
    ck_assert_str_eq(field_text(entry, "run"), "u.1.0");
    ck_assert_uint_eq(field_count(entry, "percent"), 25);
    ck_assert_uint_eq(field_count(entry, "bytes"), 25);
    ck_assert_uint_eq(field_count(entry, "totalBytes"), 100);
    ck_assert_uint_eq(field_count(entry, "etaSeconds"), 8);
    ck_assert_ptr_null(json_object_get(entry, "message"));
    json_decref(entry);
    /* All of it is not yet done as long as it runs. */
    entry = doing(&(WarmupDoing){.state = "Running", .bytes = 100, .total = 100, .percent = -1});
    ck_assert_uint_eq(field_count(entry, "percent"), 99);
    ck_assert_ptr_null(json_object_get(entry, "etaSeconds"));
    json_decref(entry);
    entry = doing(&(WarmupDoing){.state = "Succeeded", .percent = 40});
    ck_assert_uint_eq(field_count(entry, "percent"), 100);
    json_decref(entry);
}
END_TEST

START_TEST(a_message_is_short_and_text)
{
    g_autofree char *much = g_strnfill(5000, 'x');
    json_t *entry = doing(&(WarmupDoing){.state = "Failed", .message = much});
    ck_assert_uint_eq(strlen(field_text(entry, "message")), 200);
    json_decref(entry);
    entry = doing(&(WarmupDoing){.state = "Failed", .message = (char *)"a\xff z"});
    ck_assert_ptr_nonnull(strstr(field_text(entry, "message"), " z"));
    json_decref(entry);
}
END_TEST

START_TEST(a_message_tells_no_place)
{
    static const struct {
        const char *said, *told;
    } cases[] = {
        {"/volumes/g/v/.snap/s/*: No such file", "the dataset/*: No such file"},
        {"open \"/volumes/g/v/.snap/s\": denied", "open \"the dataset\": denied"},
        {"(/volumes/g/other) and /etc/ceph, too", "((path)) and (path), too"},
        {"at=/run/hearth/hearthd.sock; try again", "at=(path); try again"},
        {"/a:b: Input/output error", "(path): Input/output error"},
        {"3 files; the first: train/0001.tar: Input/output error",
         "3 files; the first: train/0001.tar: Input/output error"},
        {"Error opening file \u201c/run/x y\u201d: denied",
         "Error opening file \u201c(path) y\u201d: denied"},
        {"Failed to open \u201c/run/x\u201d: denied", "Failed to open \u201c(path)\u201d: denied"},
        {"200 MB/s, 1/2", "200 MB/s, 1/2"},
        {"/", "(path)"},
        {"", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        json_t *entry = doing(&(WarmupDoing){.state = "Failed", .message = (char *)cases[i].said});
        const char *told = json_string_value(json_object_get(entry, "message"));
        ck_assert_msg(g_strcmp0(told, cases[i].told) == 0, "%s: %s", cases[i].said, told);
        json_decref(entry);
    }
}
END_TEST

HARNESS_MAIN("driver/warmup/order", a_node_reads_what_the_controller_orders,
             what_is_no_order_is_refused, how_far_a_node_is, a_message_is_short_and_text,
             a_message_tells_no_place)
