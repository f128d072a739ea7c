/* SPDX-License-Identifier: Apache-2.0 */
/* Mutable parameters: merged, kept whole through crashes and races, refused where nothing is done.
 */
#include "driver/provision/provision.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

static VolumeParams params = {.type = VOLUME_CEPHFS,
                              .cluster_id = (char *)"c",
                              .fs_name = (char *)"f",
                              .name_prefix = (char *)"p-",
                              .cache = TRUE};
static VolumeId id = {.type = VOLUME_CEPHFS,
                      .cluster_id = (char *)"c",
                      .fs_name = (char *)"f",
                      .group = (char *)"csi",
                      .name = (char *)"p-n"};
static Secrets secrets = {(char *)"u", (char *)"AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="};
#define AT(backend, id) (&(ProvisionTarget){backend, id, &secrets, G_MAXINT64})

static int create(const Backend *b, const char *changes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    json_t *object = json_loads(changes, 0, NULL);
    ProvisionRequest request = {
        .name = "n", .params = &params, .range = {1 << 30, 0}, .changes = object};
    gboolean good = provision_create(AT(b, &id), &request, &record, &volume, &error);
    json_decref(object);
    return good ? 0 : error->code;
}

static int modify(const Backend *b, const char *changes)
{
    g_autoptr(GError) error = NULL;
    json_t *object = json_loads(changes, 0, NULL);
    gboolean good = provision_modify(AT(b, &id), object, &error);
    json_decref(object);
    return good ? 0 : error->code;
}

static void is(const Backend *b, const char *wanted)
{
    json_t *now = provision_read_mutable(AT(b, &id), NULL);
    char *text = json_dumps(now, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(text, wanted);
    free(text);
    json_decref(now);
}

START_TEST(changes_are_merged_and_kept)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(modify(b, "{\"warm\":\"none\"}"), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(create(b, "{\"warm\":\"onStage\"}"), 0);
    ck_assert_int_eq(create(b, "{\"warm\":\"onStage\"}"), 0);
    ck_assert_int_eq(create(b, "{}"), HEARTH_ERROR_ALREADY_EXISTS);
    is(b, "{\"warm\":\"onStage\"}");
    ck_assert_int_eq(modify(b, "{\"cacheQuota\":5}"), 0);
    ck_assert_int_eq(modify(b, "{\"cacheQuota\":5}"), 0);
    is(b, "{\"cacheQuota\":5,\"warm\":\"onStage\"}");
    ck_assert_int_eq(modify(b, "{\"cacheQuota\":0,\"warm\":\"none\"}"), 0);
    is(b, "{\"cacheQuota\":0,\"warm\":\"none\"}");
}
END_TEST

START_TEST(a_crash_leaves_the_old_or_the_new)
{
    for (int after = 0; after <= 1; after++) {
        Fake *f = fake_new();
        g_autoptr(Backend) b = fake_backend(f);
        ck_assert_int_eq(create(b, "{\"warm\":\"onStage\"}"), 0);
        f->fail_at = 1;
        f->fail_after = after;
        ck_assert_int_eq(modify(b, "{\"warm\":\"none\"}"), HEARTH_ERROR_UNAVAILABLE);
        is(b, after ? "{\"warm\":\"none\"}" : "{\"warm\":\"onStage\"}");
        ck_assert_int_eq(modify(b, "{\"warm\":\"none\"}"), 0);
        is(b, "{\"warm\":\"none\"}");
    }
}
END_TEST

/* Another controller changes the record between our reading and writing. */
static Fake *raced;
static gboolean race(void *session, const RecordChange *change, gboolean *same, gint64 deadline_us,
                     GError **error)
{
    if (raced) {
        json_t *theirs = json_loads("{\"cacheQuota\":7}", 0, NULL);
        g_autofree char *other =
            volume_record_change("p-n", change->expected, strlen(change->expected), theirs, NULL);
        json_decref(theirs);
        g_hash_table_insert(raced->records, g_strdup(change->name), g_steal_pointer(&other));
        raced = NULL;
    }
    return fake_record_replace(session, change, same, deadline_us, error);
}

START_TEST(two_changes_at_once_both_count)
{
    Fake *f = fake_new();
    BackendOps ops = fake_ops;
    ops.record_replace = race;
    g_autoptr(Backend) b = fake_backend(f);
    b->ops = &ops;
    ck_assert_int_eq(create(b, "{}"), 0);
    raced = f;
    ck_assert_int_eq(modify(b, "{\"warm\":\"onStage\"}"), 0);
    is(b, "{\"cacheQuota\":7,\"warm\":\"onStage\"}");
}
END_TEST

static json_t *limited;
static gboolean limit(void *session, const VolumeId *volume, const json_t *limits,
                      gint64 deadline_us, GError **error)
{
    (void)session, (void)volume, (void)deadline_us, (void)error;
    json_decref(limited);
    limited = json_deep_copy(limits);
    return TRUE;
}

START_TEST(limits_are_put_in_force_or_refused)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, "{\"readIopsPerSecond\":9}"), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_uint_eq(g_hash_table_size(f->records) + g_hash_table_size(f->volumes), 0);
    BackendOps ops = fake_ops;
    ops.volume_limit = limit;
    b->ops = &ops;
    ck_assert_int_eq(create(b, "{\"readIopsPerSecond\":9}"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(limited, "readIopsPerSecond")), 9);
    ck_assert_int_eq(modify(b, "{\"readIopsPerSecond\":0}"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(limited, "readIopsPerSecond")), 0);
    g_clear_pointer(&limited, json_decref);
}
END_TEST

START_TEST(what_has_no_record_cannot_change)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    g_hash_table_insert(f->volumes, g_strdup("p-n"), g_strdup(""));
    ck_assert_int_eq(modify(b, "{\"warm\":\"none\"}"), HEARTH_ERROR_NOT_FOUND);
    id.adopted = TRUE;
    ck_assert_int_eq(modify(b, "{\"warm\":\"none\"}"), HEARTH_ERROR_INVALID_ARGUMENT);
    id.adopted = FALSE;
    ck_assert_uint_eq(g_hash_table_size(f->records), 0);
}
END_TEST

HARNESS_MAIN("driver/provision/modify", changes_are_merged_and_kept,
             a_crash_leaves_the_old_or_the_new, two_changes_at_once_both_count,
             limits_are_put_in_force_or_refused, what_has_no_record_cannot_change)
