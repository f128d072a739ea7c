/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cache/report/status.h"
#include "common/dataset_key.h"
#include <unistd.h>

static void assert_number(const json_t *object, const char *name, json_int_t value)
{
    const json_t *member = json_object_get(object, name);
    ck_assert_msg(json_is_integer(member), "%s", name);
    ck_assert_msg(json_integer_value(member) == value, "%s", name);
}

START_TEST(status_tells_of_the_store)
{
    char *dir = harness_tmpdir();
    const StoreStats stats = {.objects = 1,
                              .bytes = 2,
                              .max_bytes = 3,
                              .max_inodes = 4,
                              .evicted_objects = 5,
                              .evicted_bytes = 6,
                              .fills_completed = 7,
                              .fills_failed = 8,
                              .fills_active = 9,
                              .origin_bytes = 10,
                              .disk_errors = 11,
                              .high_percent = 14,
                              .low_percent = 15,
                              .disk = STORE_DISK_SUSPECT};
    const ReportStatus status = {
        .uptime_sec = 12,
        .cache_dir = dir,
        .store = &stats,
        .volumes = 13,
        .io_flusher = TRUE,
        .uses = {.memory = {[REPORT_IMAGE_BUFFERS] = {16, 17}}, .threads = {18, 19}}};
    json_t *r = report_status(&status);
    const json_t *daemon = json_object_get(r, "daemon"), *cache = json_object_get(r, "cache");
    ck_assert_str_eq(json_string_value(json_object_get(daemon, "version")), HEARTH_VERSION);
    assert_number(daemon, "pid", getpid());
    assert_number(daemon, "uptimeSec", 12);
    ck_assert(json_is_true(json_object_get(daemon, "ioFlusher")));
    assert_number(r, "volumes", 13);
    assert_number(daemon, "threads", 18);
    ck_assert_int_ge(json_integer_value(json_object_get(daemon, "cpuMs")), 0);
    ck_assert(json_is_integer(json_object_get(daemon, "cpuMs")));
    assert_number(daemon, "maxThreads", 19);
    const json_t *memory = json_object_get(daemon, "memory");
    ck_assert_int_gt(json_integer_value(json_object_get(memory, "residentBytes")), 0);
    const json_t *images = json_array_get(json_object_get(memory, "kinds"), REPORT_IMAGE_BUFFERS);
    ck_assert_str_eq(json_string_value(json_object_get(images, "kind")), "imageBuffers");
    assert_number(images, "bytes", 16);
    assert_number(images, "maxBytes", 17);
    ck_assert_str_eq(json_string_value(json_object_get(cache, "dir")), dir);
    ck_assert_str_eq(json_string_value(json_object_get(cache, "disk")), "suspect");
    assert_number(cache, "objects", 1);
    assert_number(cache, "bytes", 2);
    assert_number(cache, "maxBytes", 3);
    assert_number(cache, "maxInodes", 4);
    assert_number(cache, "evictedObjects", 5);
    assert_number(cache, "evictedBytes", 6);
    assert_number(cache, "fillsCompleted", 7);
    assert_number(cache, "fillsFailed", 8);
    assert_number(cache, "fillsActive", 9);
    assert_number(cache, "originBytes", 10);
    assert_number(cache, "diskErrors", 11);
    assert_number(cache, "highPercent", 14);
    assert_number(cache, "lowPercent", 15);
    ck_assert_int_gt(json_integer_value(json_object_get(cache, "freeBytes")), 0);
    json_decref(r);
    harness_remove(dir);
}
END_TEST

START_TEST(status_without_a_store_is_off_and_complete)
{
    const StoreStats bypass = {.disk = STORE_DISK_BYPASS}, ok = {.disk = STORE_DISK_OK};
    const ReportStatus none = {0}, failing = {.store = &bypass}, fine = {.store = &ok};
    json_t *a = report_status(&none), *b = report_status(&failing), *c = report_status(&fine);
    const json_t *off = json_object_get(a, "cache"), *on = json_object_get(b, "cache");
    ck_assert_str_eq(json_string_value(json_object_get(off, "disk")), "off");
    ck_assert_str_eq(json_string_value(json_object_get(off, "dir")), "");
    ck_assert_str_eq(json_string_value(json_object_get(on, "disk")), "bypass");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(c, "cache"), "disk")), "ok");
    ck_assert_uint_eq(json_object_size(off), json_object_size(on));
    json_decref(a);
    json_decref(b);
    json_decref(c);
}
END_TEST

START_TEST(volume_has_every_member)
{
    VolumeReport v = {
        .volume = (char *)"v",
        .name = (char *)"team/data",
        .claim = (char *)"team/data",
        .pv = (char *)"pvc-1",
        .type = "cephfs",
        .cluster_id = (char *)"c",
        .fs_name = (char *)"fs",
        .root_path = (char *)"/root",
        .attached = TRUE,
        .cache = TRUE,
        .bytes_total = -1,
        .bytes_cached = 1,
        .objects = 2,
        .served = {.opens = 3,
                   .hits = 4,
                   .misses = 5,
                   .bytes_store = 6,
                   .bytes_fill = 7,
                   .bytes_origin = 8,
                   .bytes_written = UINT64_MAX,
                   .open_us = 11,
                   .reads = 12,
                   .read_us = 13,
                   .origin_reads = 14,
                   .origin_us = 15,
                   .nodes = 10},
    };
    json_t *r = report_volume(&v);
    ck_assert_str_eq(json_string_value(json_object_get(r, "volume")), "v");
    ck_assert_str_eq(json_string_value(json_object_get(r, "type")), "cephfs");
    ck_assert_str_eq(json_string_value(json_object_get(r, "clusterID")), "c");
    ck_assert_str_eq(json_string_value(json_object_get(r, "fsName")), "fs");
    ck_assert_str_eq(json_string_value(json_object_get(r, "rootPath")), "/root");
    ck_assert(json_is_true(json_object_get(r, "attached")));
    ck_assert(json_is_true(json_object_get(r, "cache")));
    ck_assert(json_is_false(json_object_get(r, "readOnly")));
    assert_number(r, "bytesTotal", -1);
    assert_number(r, "bytesCached", 1);
    assert_number(r, "objects", 2);
    assert_number(r, "opens", 3);
    assert_number(r, "hits", 4);
    assert_number(r, "misses", 5);
    assert_number(r, "bytesStore", 6);
    assert_number(r, "bytesFill", 7);
    assert_number(r, "bytesOrigin", 8);
    assert_number(r, "bytesWritten", G_MAXINT64); /* never negative */
    assert_number(r, "nodes", 10);
    assert_number(r, "openUs", 11);
    assert_number(r, "reads", 12);
    assert_number(r, "readUs", 13);
    assert_number(r, "originReads", 14);
    assert_number(r, "originUs", 15);
    ck_assert_str_eq(json_string_value(json_object_get(r, "uncached")), "");
    ck_assert(json_is_false(json_object_get(r, "rests")));
    ck_assert_str_eq(json_string_value(json_object_get(r, "name")), "team/data");
    ck_assert_str_eq(json_string_value(json_object_get(r, "claim")), "team/data");
    ck_assert_str_eq(json_string_value(json_object_get(r, "persistentVolume")), "pvc-1");
    ck_assert_str_eq(json_string_value(json_object_get(r, "label")), "");
    ck_assert_uint_eq(json_object_size(r), 33);
    json_decref(r);
    v.rests = TRUE;
    v.uncached = "no lock";
    v.root_path = (char *)"/volumes/csi/imagenet/.snap/2026-11/0a1b";
    r = report_volume(&v);
    ck_assert_str_eq(json_string_value(json_object_get(r, "uncached")), "no lock");
    ck_assert(json_is_true(json_object_get(r, "rests")));
    g_autofree char *label = dataset_key("c", "fs", v.root_path);
    ck_assert_str_eq(json_string_value(json_object_get(r, "label")), label);
    json_decref(r);
}
END_TEST

HARNESS_MAIN("cache/report/status", status_tells_of_the_store,
             status_without_a_store_is_off_and_complete, volume_has_every_member)
