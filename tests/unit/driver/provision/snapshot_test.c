/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots and copies over the fake: repeating, crashes at every step, what is refused. */
#include "driver/provision/provision.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

static VolumeParams params = {.type = VOLUME_CEPHFS,
                              .cluster_id = (char *)"c",
                              .fs_name = (char *)"f",
                              .name_prefix = (char *)"p-",
                              .cache = TRUE};
static VolumeId volume = {.type = VOLUME_CEPHFS,
                          .cluster_id = (char *)"c",
                          .fs_name = (char *)"f",
                          .group = (char *)"csi",
                          .name = (char *)"p-v"};
static VolumeId target = {.type = VOLUME_CEPHFS,
                          .cluster_id = (char *)"c",
                          .fs_name = (char *)"f",
                          .group = (char *)"csi",
                          .name = (char *)"p-t"};
/* As the target, at another location. */
static VolumeId far_target = {.type = VOLUME_CEPHFS,
                              .cluster_id = (char *)"c",
                              .fs_name = (char *)FAKE_BESIDE,
                              .group = (char *)"csi",
                              .name = (char *)"p-t"};
#define FAR_SNAPSHOT "p-v@hearth-clone-h1~cephfs~c~" FAKE_BESIDE "~csi~p-t"
/* What the calls below copy to. */
static const VolumeId *to = &target;
static VolumeId snap = {
    .type = VOLUME_CEPHFS, .cluster_id = (char *)"c", .fs_name = (char *)"f", .name = (char *)"s"};
static Secrets secrets = {(char *)"u", (char *)"AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="};
#define AT(backend, id) (&(ProvisionTarget){backend, id, &secrets, deadline()})

enum { GIB = 1 << 30 };

/* How long calls may take; -1: as long as they like. */
static gint64 patience_ms = -1;

static gint64 deadline(void)
{
    return patience_ms < 0 ? G_MAXINT64 : g_get_monotonic_time() + patience_ms * 1000;
}

typedef enum From { NOTHING, SNAPSHOT, VOLUME } From;

static int create_sized(const Backend *b, const VolumeId *id, From from, CapacityRange range,
                        gint64 *bytes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) made = NULL;
    ProvisionRequest request = {.name = id->name, .params = &params, .range = range};
    if (from == SNAPSHOT) {
        request.from_snapshot = &snap;
        request.source = "h1~snap~cephfs~c~f~s";
    } else if (from == VOLUME) {
        request.from_volume = &volume;
        request.source = "h1~cephfs~c~f~csi~p-v";
    }
    if (!provision_create(AT(b, id), &request, &record, &made, &error))
        return error->code;
    if (bytes)
        *bytes = made->bytes;
    return 0;
}

static int create(const Backend *b, const VolumeId *id, From from)
{
    return create_sized(b, id, from, (CapacityRange){GIB, 0}, NULL);
}

static int delete (const Backend *b, const VolumeId *id)
{
    g_autoptr(GError) error = NULL;
    return provision_delete(AT(b, id), &error) ? 0 : error->code;
}

static int snapshot(const Backend *b, const VolumeId *source)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SnapshotRecord) record = NULL;
    if (!provision_snapshot_create(AT(b, &snap), "s", source, &record, &error))
        return error->code;
    ck_assert_str_eq(record->source_name, source->name);
    ck_assert_int_eq(record->bytes, GIB);
    return 0;
}

static int unsnapshot(const Backend *b)
{
    g_autoptr(GError) error = NULL;
    return provision_snapshot_delete(AT(b, &snap), &error) ? 0 : error->code;
}

static int look(const Backend *b)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SnapshotRecord) record = NULL;
    return provision_snapshot_look(AT(b, &snap), &record, &error) ? 0 : error->code;
}

static guint left(const Fake *f)
{
    return g_hash_table_size(f->records) + g_hash_table_size(f->volumes) +
           g_hash_table_size(f->snapshots) + g_hash_table_size(f->copies) +
           (f->beside ? left(f->beside) : 0);
}

START_TEST(snapshots_are_made_and_removed_twice)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(snapshot(b, &volume), HEARTH_ERROR_NOT_FOUND);
    ck_assert_uint_eq(left(f), 0);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(look(b), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(snapshot(b, &volume), 0);
    ck_assert_int_eq(snapshot(b, &volume), 0);
    ck_assert_int_eq(look(b), 0);
    ck_assert_int_eq(create(b, &target, NOTHING), 0);
    ck_assert_int_eq(snapshot(b, &target), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_int_eq(delete (b, &target), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(a_snapshot_outlives_its_volume)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(snapshot(b, &volume), 0);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_int_eq(look(b), 0);
    ck_assert_int_eq(create(b, &target, SNAPSHOT), 0);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(delete (b, &target), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(someone_elses_snapshot_keeps_the_volume_and_its_name)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    g_hash_table_insert(f->snapshots, g_strdup("p-v@s"), (char *)"");
    ck_assert_int_eq(snapshot(b, &volume), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(delete (b, &volume), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(g_hash_table_size(f->volumes), 1);
}
END_TEST

/* Promise 6: whatever step a call dies at, before or after its effect, its repetition ends it. */
typedef int (*Call)(const Backend *b);

static int call_snapshot(const Backend *b)
{
    return snapshot(b, &volume);
}
static int call_restore(const Backend *b)
{
    return create_sized(b, to, SNAPSHOT, (CapacityRange){2u << 30, 0}, NULL);
}
static int call_clone(const Backend *b)
{
    return create_sized(b, to, VOLUME, (CapacityRange){2u << 30, 0}, NULL);
}
static int call_delete_target(const Backend *b)
{
    return delete (b, to);
}

static int roll_forward(Call before, Call call)
{
    int steps = 0;
    for (int after = 0; after <= 1; after++) {
        for (int step = 1;; step++) {
            Fake *f = fake_new_with_beside();
            g_autoptr(Backend) b = fake_backend(f);
            ck_assert_int_eq(create(b, &volume, NOTHING), 0);
            if (before)
                ck_assert_int_eq(before(b), 0);
            f->fail_at = step;
            f->fail_after = after;
            f->copy_looks = 2;
            if (call(b) == 0) {
                f->fail_at = 0;
                break;
            }
            steps++;
            f->fail_at = 0;
            ck_assert_int_eq(call(b), 0);
            ck_assert_int_eq(call(b), 0);
            /* Whatever there is now goes by the ordinary calls. */
            ck_assert_int_eq(delete (b, to), 0);
            ck_assert_int_eq(unsnapshot(b), 0);
            ck_assert_int_eq(delete (b, &volume), 0);
            ck_assert_uint_eq(left(f), 0);
        }
    }
    return steps;
}

START_TEST(every_call_rolls_forward_from_every_step)
{
    ck_assert_int_eq(roll_forward(NULL, call_snapshot), 4); /* record, snapshot */
    ck_assert_int_eq(roll_forward(NULL, unsnapshot), 0);
    ck_assert_int_eq(roll_forward(call_snapshot, unsnapshot), 6);   /* seal, snapshot, record */
    ck_assert_int_eq(roll_forward(call_snapshot, call_restore), 6); /* record, copy, size */
    /* record, snapshot, copy, size, snapshot away */
    ck_assert_int_eq(roll_forward(NULL, call_clone), 10);
    ck_assert_int_eq(roll_forward(call_clone, call_delete_target), 6);
}
END_TEST

START_TEST(a_copy_to_another_location_rolls_forward_from_every_step)
{
    to = &far_target;
    ck_assert_int_eq(roll_forward(call_snapshot, call_restore), 6);
    ck_assert_int_eq(roll_forward(NULL, call_clone), 10);
    ck_assert_int_eq(roll_forward(call_clone, call_delete_target), 6);
    to = &target;
}
END_TEST

START_TEST(a_copy_to_another_location_is_whole_there_and_leaves_nothing_at_its_source)
{
    Fake *f = fake_new_with_beside();
    g_autoptr(Backend) b = fake_backend(f);
    gint64 bytes;
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    /* Each location may have a volume of the name. */
    ck_assert_int_eq(create(b, &target, VOLUME), 0);
    ck_assert_int_eq(create_sized(b, &far_target, VOLUME, (CapacityRange){2u << 30, 0}, &bytes), 0);
    ck_assert_int_eq(bytes, 2ll << 30);
    ck_assert(g_hash_table_contains(f->beside->records, "vol.p-t"));
    ck_assert(g_hash_table_contains(f->beside->volumes, "p-t"));
    ck_assert_uint_eq(g_hash_table_size(f->snapshots) + g_hash_table_size(f->beside->snapshots), 0);
    ck_assert_int_eq(delete (b, &far_target), 0);
    ck_assert_uint_eq(left(f->beside), 0);
    ck_assert(g_hash_table_contains(f->volumes, "p-t"));
    ck_assert_int_eq(delete (b, &target), 0);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(the_source_of_a_copy_to_another_location_may_go_before_it)
{
    Fake *f = fake_new_with_beside();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    /* While it is copied: the snapshot that it is copied through stays. */
    patience_ms = 100;
    f->beside->copy_looks = 1000;
    ck_assert_int_eq(create(b, &far_target, VOLUME), HEARTH_ERROR_ABORTED);
    ck_assert(g_hash_table_contains(f->snapshots, FAR_SNAPSHOT));
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert(g_hash_table_contains(f->snapshots, FAR_SNAPSHOT));
    f->beside->copy_looks = 0;
    ck_assert_int_eq(create(b, &far_target, VOLUME), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
    ck_assert_int_eq(delete (b, &far_target), 0);
    patience_ms = -1;
    ck_assert_uint_eq(left(f), 0);
    /* What a copy left that nobody knows of any more, or whose location is gone. */
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    g_hash_table_insert(f->snapshots, g_strdup(FAR_SNAPSHOT), NULL);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_uint_eq(left(f), 0);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    g_hash_table_insert(f->snapshots, g_strdup(FAR_SNAPSHOT), NULL);
    g_clear_pointer(&f->beside, fake_free);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(a_volume_of_the_same_name_at_the_sources_location_is_not_the_source)
{
    Fake *f = fake_new_with_beside();
    g_autoptr(Backend) b = fake_backend(f);
    VolumeId far_volume = far_target;
    far_volume.name = volume.name;
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(create(b, &far_volume, NOTHING), 0);
    ck_assert_int_eq(create(b, &far_target, VOLUME), 0);
    /* By its name, p-t is copied from a p-v that has such a snapshot; by its location it is not. */
    g_hash_table_insert(f->beside->snapshots, g_strdup("p-v@hearth-clone-p-t"), NULL);
    ck_assert_int_eq(delete (b, &far_volume), 0);
    ck_assert_uint_eq(g_hash_table_size(f->beside->snapshots), 0);
    ck_assert_int_eq(delete (b, &far_target), 0);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(what_a_crash_left_of_a_clone_goes_with_its_target)
{
    for (int after = 0; after <= 1; after++) {
        for (int step = 1; step <= 5; step++) {
            Fake *f = fake_new();
            g_autoptr(Backend) b = fake_backend(f);
            ck_assert_int_eq(create(b, &volume, NOTHING), 0);
            f->fail_at = step;
            f->fail_after = after;
            ck_assert_int_ne(call_clone(b), 0);
            f->fail_at = 0;
            ck_assert_int_eq(delete (b, &target), 0);
            ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
            ck_assert_int_eq(delete (b, &volume), 0);
            ck_assert_uint_eq(left(f), 0);
        }
    }
}
END_TEST

START_TEST(a_long_copy_is_aborted_until_it_is_complete)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(snapshot(b, &volume), 0);
    f->copy_looks = 1000000;
    patience_ms = 100;
    ck_assert_int_eq(create(b, &target, SNAPSHOT), HEARTH_ERROR_ABORTED);
    ck_assert_int_eq(unsnapshot(b), HEARTH_ERROR_FAILED_PRECONDITION);
    f->copy_looks = 0;
    patience_ms = -1;
    ck_assert_int_eq(create(b, &target, SNAPSHOT), 0);
    ck_assert_int_eq(f->creations, 2);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(create(b, &target, SNAPSHOT), 0); /* though its source is gone */
}
END_TEST

START_TEST(a_copy_that_failed_leaves_nothing_and_begins_anew)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    f->copy_fails = TRUE;
    ck_assert_int_eq(create(b, &target, VOLUME), HEARTH_ERROR_INTERNAL);
    ck_assert_uint_eq(g_hash_table_size(f->records), 1);
    ck_assert_uint_eq(g_hash_table_size(f->volumes), 1);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
    f->copy_fails = FALSE;
    ck_assert_int_eq(create(b, &target, VOLUME), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
}
END_TEST

START_TEST(a_copy_is_as_large_as_its_source_or_larger)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    gint64 bytes = 0;
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(create_sized(b, &target, VOLUME, (CapacityRange){GIB / 2, 0}, NULL),
                     HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_int_eq(create_sized(b, &target, VOLUME, (CapacityRange){0, GIB / 2}, NULL),
                     HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_uint_eq(g_hash_table_size(f->records), 1);
    ck_assert_int_eq(create_sized(b, &target, VOLUME, (CapacityRange){3u << 29, 0}, &bytes), 0);
    ck_assert_int_eq(bytes, 3u << 29);
    ck_assert_int_eq(delete (b, &target), 0);
    fake_set_size(f, "p-v", 3u << 29);
    ck_assert_int_eq(create_sized(b, &target, VOLUME, (CapacityRange){0, 0}, &bytes), 0);
    ck_assert_int_eq(bytes, 3u << 29);
}
END_TEST

START_TEST(sources_are_part_of_the_request)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &target, SNAPSHOT), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(create(b, &target, VOLUME), HEARTH_ERROR_NOT_FOUND);
    ck_assert_uint_eq(left(f), 0);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(snapshot(b, &volume), 0);
    ck_assert_int_eq(create(b, &target, SNAPSHOT), 0);
    ck_assert_int_eq(create(b, &target, SNAPSHOT), 0);
    ck_assert_int_eq(create(b, &target, VOLUME), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(create(b, &target, NOTHING), HEARTH_ERROR_ALREADY_EXISTS);
}
END_TEST

START_TEST(a_source_may_go_while_it_is_copied)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    f->copy_looks = 1000000;
    patience_ms = 100;
    ck_assert_int_eq(create(b, &target, VOLUME), HEARTH_ERROR_ABORTED);
    ck_assert_int_eq(delete (b, &volume), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 1);
    f->copy_looks = 0;
    patience_ms = -1;
    ck_assert_int_eq(create(b, &target, VOLUME), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
    ck_assert_int_eq(delete (b, &target), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(a_copy_that_stalls_is_resumed_though_its_source_is_gone)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(snapshot(b, &volume), 0);
    f->copy_looks = 1000000;
    patience_ms = 100;
    ck_assert_int_eq(create(b, &target, SNAPSHOT), HEARTH_ERROR_ABORTED);
    g_hash_table_remove(f->records, "snap.s");
    f->stalls = TRUE;
    patience_ms = -1;
    ck_assert_int_eq(create(b, &target, SNAPSHOT), 0);
    ck_assert(!f->stalls);
    ck_assert_int_eq(f->creations, 2);
}
END_TEST

START_TEST(a_volume_that_creating_tells_of_is_not_looked_at_again)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    f->tells = TRUE;
    ck_assert_int_eq(create(b, &volume, NOTHING), 0);
    ck_assert_int_eq(f->looks, 1); /* whether someone else's is there */
}
END_TEST

HARNESS_MAIN("driver/provision/snapshot", snapshots_are_made_and_removed_twice,
             a_snapshot_outlives_its_volume, someone_elses_snapshot_keeps_the_volume_and_its_name,
             every_call_rolls_forward_from_every_step,
             a_copy_to_another_location_rolls_forward_from_every_step,
             a_copy_to_another_location_is_whole_there_and_leaves_nothing_at_its_source,
             the_source_of_a_copy_to_another_location_may_go_before_it,
             a_volume_of_the_same_name_at_the_sources_location_is_not_the_source,
             what_a_crash_left_of_a_clone_goes_with_its_target,
             a_long_copy_is_aborted_until_it_is_complete,
             a_copy_that_failed_leaves_nothing_and_begins_anew,
             a_copy_is_as_large_as_its_source_or_larger, sources_are_part_of_the_request,
             a_source_may_go_while_it_is_copied,
             a_copy_that_stalls_is_resumed_though_its_source_is_gone,
             a_volume_that_creating_tells_of_is_not_looked_at_again)
