/* SPDX-License-Identifier: Apache-2.0 */
/* Limits by the size of a volume, with the figures of ceph-csi's own test of them. */
#include "driver/volume/qos.h"
#include <string.h>
#include "tests/unit/harness.h"

#define GIB ((gint64)1 << 30)

static void gives(const char *params, const char *changes, gint64 bytes, const char *wanted)
{
    json_t *p = json_loads(params, 0, NULL), *c = json_loads(changes, 0, NULL);
    json_t *limits = qos_limits(p, c, bytes);
    char *text = limits ? json_dumps(limits, JSON_COMPACT | JSON_SORT_KEYS) : strdup("none");
    ck_assert_str_eq(text, wanted);
    free(text);
    json_decref(limits);
    json_decref(p);
    json_decref(c);
}

#define BY_SIZE                                                                                    \
    "{\"baseIops\": 3000, \"maxIops\": 15000, \"iopsPerGiB\": 30, \"baseReadBps\": 209715200,"     \
    " \"readBpsPerGiB\": 2097152, \"baseVolSizeBytes\": 21474836480}"

START_TEST(a_limit_grows_with_the_volume_up_to_its_maximum)
{
    gives(BY_SIZE, "{}", 20 * GIB, "{\"iopsPerSecond\":3000,\"readBytesPerSecond\":209715200}");
    gives(BY_SIZE, "{}", 100 * GIB, "{\"iopsPerSecond\":5400,\"readBytesPerSecond\":377487360}");
    gives(BY_SIZE, "{}", 200 * GIB, "{\"iopsPerSecond\":8400,\"readBytesPerSecond\":587202560}");
    gives(BY_SIZE, "{}", 600 * GIB, "{\"iopsPerSecond\":15000,\"readBytesPerSecond\":1426063360}");
}
END_TEST

START_TEST(without_a_base_size_it_does_not_grow)
{
    gives("{\"baseWriteIops\": 1000, \"writeIopsPerGiB\": 10}", "{}", 100 * GIB,
          "{\"writeIopsPerSecond\":1000}");
    gives("{\"iopsPerGiB\": 10, \"baseVolSizeBytes\": 1}", "{}", 100 * GIB, "none");
    gives("{}", "{}", GIB, "none");
}
END_TEST

START_TEST(a_maximum_alone_is_the_limit)
{
    gives("{\"maxWriteBps\": 5}", "{}", GIB, "{\"writeBytesPerSecond\":5}");
}
END_TEST

START_TEST(what_was_changed_takes_the_place_of_the_class)
{
    gives("{\"baseIops\": 10, \"maxIops\": 20}", "{\"baseIops\": 50}", GIB,
          "{\"iopsPerSecond\":50}");
    gives("{\"baseIops\": 10}", "{\"iopsPerSecond\": 0}", GIB, "{\"iopsPerSecond\":0}");
    gives("{\"baseIops\": 10, \"baseBps\": 7}", "{\"maxIops\": 0}", GIB,
          "{\"bytesPerSecond\":7,\"iopsPerSecond\":0}");
}
END_TEST

START_TEST(what_limits_nothing_is_refused)
{
    static const struct {
        const char *given, *says;
    } of[] = {
        {"{\"iopsPerGiB\": 10}", "iopsPerGiB alone limits nothing: it adds to baseIops"},
        {"{\"writeBpsPerGiB\": 10, \"baseVolSizeBytes\": 1}", "it adds to baseWriteBps"},
        {"{\"readIopsPerGiB\": 10, \"baseIops\": 5}", "it adds to baseReadIops"},
        {"{\"iopsPerGiB\": 10, \"baseIops\": 5}", NULL},
        {"{\"iopsPerGiB\": 10, \"maxIops\": 5}", NULL},
        {"{\"baseVolSizeBytes\": 5}", NULL},
        {"{}", NULL},
    };
    ck_assert(qos_check(NULL, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_autoptr(GError) error = NULL;
        json_t *given = json_loads(of[i].given, 0, NULL);
        ck_assert_msg(qos_check(given, &error) == !of[i].says, "%s", of[i].given);
        if (of[i].says)
            ck_assert_msg(strstr(error->message, of[i].says) != NULL, "%s", error->message);
        json_decref(given);
    }
}
END_TEST

START_TEST(too_much_is_no_small_number)
{
    gives("{\"baseIops\": 1, \"iopsPerGiB\": 9223372036854775807, \"baseVolSizeBytes\": 1}", "{}",
          10 * GIB, "{\"iopsPerSecond\":9223372036854775807}");
}
END_TEST

HARNESS_MAIN("driver/volume/qos", a_limit_grows_with_the_volume_up_to_its_maximum,
             without_a_base_size_it_does_not_grow, a_maximum_alone_is_the_limit,
             what_was_changed_takes_the_place_of_the_class, what_limits_nothing_is_refused,
             too_much_is_no_small_number)
