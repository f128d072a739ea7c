/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/mutable.h"
#include <string.h>
#include "common/error.h"
#include "tests/unit/harness.h"

static json_t *parse(VolumeType type, const char *name, const char *value, GError **error)
{
    g_autoptr(GHashTable) map = g_hash_table_new(g_str_hash, g_str_equal);
    if (name)
        g_hash_table_insert(map, (char *)name, (char *)value);
    return mutable_parse(map, type, error);
}

static void refuses(VolumeType type, const char *name, const char *value, const char *because)
{
    g_autoptr(GError) error = NULL;
    ck_assert_msg(!parse(type, name, value, &error), "%s=%s", name, value);
    ck_assert_int_eq(error->code, HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error->message, because) != NULL, "%s", error->message);
}

START_TEST(values_have_one_spelling)
{
    static const char *const pairs[][3] = {{"cacheQuota", "1Gi", "1073741824"},
                                           {"cacheQuota", "0", "0"},
                                           {"warm", "onStage", "\"onStage\""},
                                           {"warm", "none", "\"none\""}};
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        json_t *object = parse(VOLUME_CEPHFS, pairs[i][0], pairs[i][1], NULL);
        json_t *wanted = json_loads(pairs[i][2], JSON_DECODE_ANY, NULL);
        ck_assert(json_equal(json_object_get(object, pairs[i][0]), wanted));
        ck_assert(!mutable_has_limits(object));
        json_decref(object);
        json_decref(wanted);
    }
    json_t *none = parse(VOLUME_CEPHFS, NULL, NULL, NULL);
    ck_assert_uint_eq(json_object_size(none), 0);
    json_decref(none);
}
END_TEST

START_TEST(what_is_wrong_or_not_enforced_is_refused)
{
    refuses(VOLUME_CEPHFS, "cacheQuota", "much", "100Gi");
    refuses(VOLUME_CEPHFS, "warm", "always", "onStage");
    refuses(VOLUME_CEPHFS, "colour", "blue", "known: cacheQuota");
    refuses(VOLUME_CEPHFS, "readIopsPerSecond", "100", "nothing enforces");
    refuses(VOLUME_DIR, "cacheQuota", "1", "nothing enforces");
    refuses(VOLUME_RBD, "readIopsPerSecond", "-1", "a number");
    refuses(VOLUME_RBD, "warm", "onStage", "nothing enforces");
    refuses(VOLUME_RBD, "iopsPerGiB", "10", "it adds to baseIops");
}
END_TEST

START_TEST(limits_are_told_apart)
{
    json_t *object = parse(VOLUME_RBD, "writeBytesPerSecond", "1Mi", NULL);
    ck_assert(mutable_has_limits(object));
    ck_assert_int_eq(json_integer_value(json_object_get(object, "writeBytesPerSecond")), 1 << 20);
    json_t *other = json_object();
    ck_assert_str_eq(mutable_difference(object, other), "writeBytesPerSecond");
    ck_assert_ptr_null(mutable_difference(other, object));
    json_decref(other);
    json_decref(object);
}
END_TEST

START_TEST(what_is_said_anew_of_a_limit_is_all_that_counts)
{
    json_t *now = json_pack("{s:i, s:i, s:i, s:i}", "baseIops", 10, "iopsPerGiB", 5,
                            "readBytesPerSecond", 7, "cacheQuota", 1);
    json_t *changes = json_pack("{s:i, s:i}", "maxIops", 20, "baseReadBps", 3);
    json_t *merged = mutable_merge(now, changes);
    json_t *wanted = json_pack("{s:i, s:i, s:i}", "maxIops", 20, "baseReadBps", 3, "cacheQuota", 1);
    ck_assert(json_equal(merged, wanted));
    ck_assert_uint_eq(json_object_size(now), 4);
    json_decref(wanted);
    json_decref(merged);
    json_decref(changes);
    json_decref(now);
}
END_TEST

HARNESS_MAIN("driver/volume/mutable", values_have_one_spelling,
             what_is_wrong_or_not_enforced_is_refused, limits_are_told_apart,
             what_is_said_anew_of_a_limit_is_all_that_counts)
