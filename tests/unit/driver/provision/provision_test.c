/* SPDX-License-Identifier: Apache-2.0 */
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
static const CapacityRange gib = {1 << 30, 0};

static int create(const Backend *b, const VolumeParams *p, CapacityRange range)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    ProvisionRequest request = {.name = "n", .params = p, .range = range};
    if (!provision_create(AT(b, &id), &request, &record, &volume, &error))
        return error->code;
    ck_assert_str_eq(volume->path, "/volumes/csi/p-n");
    ck_assert_int_eq(record->bytes, 1 << 30);
    return 0;
}

static int delete (const Backend *b, const VolumeId *which)
{
    g_autoptr(GError) error = NULL;
    return provision_delete(AT(b, which), &error) ? 0 : error->code;
}

static int look(const Backend *b)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    return provision_look(AT(b, &id), &record, &volume, &error) ? 0 : error->code;
}

START_TEST(creating_and_deleting_twice_is_fine)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(look(b), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(create(b, &params, gib), 0);
    ck_assert_int_eq(create(b, &params, gib), 0);
    ck_assert_int_eq(f->creations, 1);
    ck_assert_int_eq(look(b), 0);
    ck_assert_int_eq(delete (b, &id), 0);
    ck_assert_int_eq(delete (b, &id), 0);
    ck_assert_uint_eq(g_hash_table_size(f->records) + g_hash_table_size(f->volumes), 0);
    ck_assert_int_eq(look(b), HEARTH_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_volume_is_pinned_by_the_call_that_ends_its_creation)
{
    VolumeParams pinned = params;
    pinned.mds_pin = (char *)"export:1";
    for (int after = 0; after <= 1; after++) {
        Fake *f = fake_new();
        g_autoptr(Backend) b = fake_backend(f);
        f->fail_at = after ? 2 : 3; /* record, volume, pin: it is made, and not pinned */
        f->fail_after = after;
        ck_assert_int_eq(create(b, &pinned, gib), HEARTH_ERROR_UNAVAILABLE);
        ck_assert_str_eq(f->pin, "");
        ck_assert_int_eq(create(b, &pinned, gib), 0);
        ck_assert_str_eq(f->pin, "export:1");
        ck_assert_int_eq(f->creations, 1);
        ck_assert_int_eq(create(b, &params, gib), HEARTH_ERROR_ALREADY_EXISTS);
    }
}
END_TEST

START_TEST(another_request_of_the_name_is_refused)
{
    g_autoptr(Backend) b = fake_backend(fake_new());
    ck_assert_int_eq(create(b, &params, gib), 0);
    ck_assert_int_eq(create(b, &params, (CapacityRange){2 << 29, 0}), 0);
    ck_assert_int_eq(create(b, &params, (CapacityRange){1 << 29, 0}), HEARTH_ERROR_ALREADY_EXISTS);
    VolumeParams other = params;
    other.cache = FALSE;
    ck_assert_int_eq(create(b, &other, gib), HEARTH_ERROR_ALREADY_EXISTS);
}
END_TEST

/* Promise 6: whatever step a creation dies at, before or after its effect, the next one ends it. */
START_TEST(a_creation_rolls_forward_from_every_step)
{
    int steps = 0;
    for (int after = 0; after <= 1; after++) {
        for (int step = 1;; step++) {
            Fake *f = fake_new();
            g_autoptr(Backend) b = fake_backend(f);
            f->fail_at = step;
            f->fail_after = after;
            if (create(b, &params, gib) == 0)
                break;
            steps++;
            f->fail_at = 0;
            ck_assert_int_eq(create(b, &params, gib), 0);
            ck_assert_int_eq(f->creations, 1);
            ck_assert_uint_eq(g_hash_table_size(f->records), 1);
            ck_assert_int_eq(delete (b, &id), 0);
        }
    }
    ck_assert_int_eq(steps, 4);
}
END_TEST

START_TEST(a_deletion_rolls_forward_from_every_step)
{
    int steps = 0;
    for (int after = 0; after <= 1; after++) {
        for (int step = 1;; step++) {
            Fake *f = fake_new();
            g_autoptr(Backend) b = fake_backend(f);
            ck_assert_int_eq(create(b, &params, gib), 0);
            f->fail_at = step;
            f->fail_after = after;
            if (delete (b, &id) == 0)
                break;
            steps++;
            f->fail_at = 0;
            ck_assert_int_eq(delete (b, &id), 0);
            ck_assert_uint_eq(g_hash_table_size(f->records) + g_hash_table_size(f->volumes), 0);
        }
    }
    ck_assert_int_eq(steps, 4);
}
END_TEST

START_TEST(what_a_dying_backend_left_in_part_is_finished)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &params, gib), 0);
    f->incomplete = TRUE;
    ck_assert_int_eq(look(b), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(create(b, &params, gib), 0);
    ck_assert(!f->incomplete);
    ck_assert_int_eq(look(b), 0);
}
END_TEST

START_TEST(a_half_made_volume_can_be_deleted)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    f->fail_at = 2; /* the volume, after the record */
    ck_assert_int_eq(create(b, &params, gib), HEARTH_ERROR_UNAVAILABLE);
    ck_assert_uint_eq(g_hash_table_size(f->records), 1);
    ck_assert_int_eq(look(b), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(delete (b, &id), 0);
    ck_assert_uint_eq(g_hash_table_size(f->records), 0);
}
END_TEST

START_TEST(a_refused_creation_frees_the_name)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    f->fail_at = 2;
    f->fail_code = HEARTH_ERROR_INVALID_ARGUMENT;
    VolumeParams wrong = params;
    wrong.pool = (char *)"no-such-pool";
    ck_assert_int_eq(create(b, &wrong, gib), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_uint_eq(g_hash_table_size(f->records), 0);
    ck_assert_int_eq(create(b, &params, gib), 0);
}
END_TEST

START_TEST(what_someone_else_made_is_neither_adopted_nor_deleted)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    g_hash_table_insert(f->volumes, g_strdup("p-n"), g_strdup(""));
    ck_assert_int_eq(create(b, &params, gib), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_uint_eq(g_hash_table_size(f->records), 0);
    ck_assert_int_eq(delete (b, &id), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(g_hash_table_size(f->volumes), 1);
}
END_TEST

START_TEST(a_free_name_is_not_looked_at_and_one_that_is_free_no_more_is)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    f->says_free = TRUE;
    ck_assert_int_eq(create(b, &params, gib), 0);
    int after_creation = f->looks;
    f->says_free = FALSE;
    ck_assert_int_eq(delete (b, &id), 0);
    f->looks = 0;
    ck_assert_int_eq(create(b, &params, gib), 0);
    ck_assert_int_eq(f->looks, after_creation + 1);
    f->says_free = TRUE; /* as of before */
    ck_assert_int_eq(create(b, &params, gib), 0);
    ck_assert_int_eq(f->creations, 2);
    ck_assert_int_eq(create(b, &params, (CapacityRange){2LL << 30, 0}),
                     HEARTH_ERROR_ALREADY_EXISTS);
}
END_TEST

START_TEST(a_record_of_another_group_is_another_volumes)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &params, gib), 0);
    g_hash_table_remove_all(f->volumes); /* the fake's names have no group */
    VolumeId other = id;
    other.group = (char *)"other";
    ck_assert_int_eq(delete (b, &other), 0);
    ck_assert_uint_eq(g_hash_table_size(f->records), 1);
}
END_TEST

HARNESS_MAIN("driver/provision/provision", creating_and_deleting_twice_is_fine,
             a_volume_is_pinned_by_the_call_that_ends_its_creation,
             another_request_of_the_name_is_refused, a_creation_rolls_forward_from_every_step,
             a_deletion_rolls_forward_from_every_step,
             what_a_dying_backend_left_in_part_is_finished, a_half_made_volume_can_be_deleted,
             a_refused_creation_frees_the_name,
             what_someone_else_made_is_neither_adopted_nor_deleted,
             a_free_name_is_not_looked_at_and_one_that_is_free_no_more_is,
             a_record_of_another_group_is_another_volumes)
