/* SPDX-License-Identifier: Apache-2.0 */
/* The audit over the fake: nothing after calls that ended, what each crash leaves, and what repair
 * does and does not do about it. */
#include "driver/provision/audit.h"
#include "driver/provision/provision.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

#define VOL(n)                                                                                     \
    {                                                                                              \
        .type = VOLUME_CEPHFS, .cluster_id = (char *)"c", .fs_name = (char *)"f",                  \
        .group = (char *)"csi", .name = (char *)(n)                                                \
    }

static VolumeParams params = {.type = VOLUME_CEPHFS,
                              .cluster_id = (char *)"c",
                              .fs_name = (char *)"f",
                              .name_prefix = (char *)"p-",
                              .cache = TRUE};
static VolumeId location = VOL(NULL), volume = VOL("p-v"), target = VOL("p-t"),
                snap = VOL("csi-snap-s");
static Secrets secrets = {(char *)"u", (char *)"AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="};
#define AT(backend, id) (&(ProvisionTarget){backend, id, &secrets, G_MAXINT64})

enum { GIB = 1 << 30 };

static int create(const Backend *b, const VolumeId *id, gboolean clone)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) made = NULL;
    ProvisionRequest request = {.name = id->name + 2, .params = &params, .range = {GIB, 0}};
    if (clone) {
        request.from_volume = &volume;
        request.source = "h1~cephfs~c~f~csi~p-v";
    }
    if (!provision_create(AT(b, id), &request, &record, &made, &error))
        return error->code;
    return 0;
}

static int delete_volume(const Backend *b, const VolumeId *id)
{
    g_autoptr(GError) error = NULL;
    return provision_delete(AT(b, id), &error) ? 0 : error->code;
}

static int snapshot(const Backend *b)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SnapshotRecord) record = NULL;
    return provision_snapshot_create(AT(b, &snap), "s", &volume, &record, &error) ? 0 : error->code;
}

static AuditReport *audit(const Backend *b)
{
    g_autoptr(GError) error = NULL;
    AuditReport *report = audit_report_new();
    gboolean good = provision_audit(b, &location, &secrets, 10000, report, &error);
    ck_assert_msg(good, "%s", error ? error->message : "");
    return report;
}

/* "problem name", one a line, in the order of names. */
static char *summary(const Backend *b)
{
    g_autoptr(AuditReport) report = audit(b);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < report->findings->len; i++) {
        const AuditFinding *f = report->findings->pdata[i];
        g_autofree char *name = audit_finding_name(f);
        g_ptr_array_add(lines, g_strdup_printf("%s %s\n", audit_text(f->kind)->name, name));
    }
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("", (char **)lines->pdata);
}

static void expect(const Backend *b, const char *wanted)
{
    g_autofree char *got = summary(b);
    ck_assert_str_eq(got, wanted);
}

/* Of the only finding; 0 or the code. */
static int repair(const Backend *b, gint64 min_age, gboolean named)
{
    g_autoptr(AuditReport) report = audit(b);
    g_autoptr(GError) error = NULL;
    ck_assert_uint_eq(report->findings->len, 1);
    const AuditFinding *f = report->findings->pdata[0];
    const ProvisionTarget at = {b, f->id, &secrets, g_get_monotonic_time() + 10 * G_USEC_PER_SEC};
    return provision_repair(&at, f, min_age, named, &error) ? 0 : error->code;
}

START_TEST(what_calls_leave_when_they_end_is_in_step)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    expect(b, "");
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    ck_assert_int_eq(snapshot(b), 0);
    ck_assert_int_eq(create(b, &target, TRUE), 0);
    expect(b, "");
    g_autoptr(AuditReport) report = audit(b);
    ck_assert_uint_eq(report->records, 3);
    ck_assert_uint_eq(report->volumes, 2);
    ck_assert_uint_eq(report->snapshots, 1);
}
END_TEST

/* Whichever step fails, repair leaves nothing, unless the volume is whole. */
START_TEST(repair_removes_what_a_crash_left)
{
    for (int after = 0; after < 2; after++) {
        for (int step = 1; step < 6; step++) {
            Fake *f = fake_new();
            g_autoptr(Backend) b = fake_backend(f);
            f->fail_at = step;
            f->fail_after = after;
            create(b, &volume, FALSE);
            if (f->fail_at > 0)
                delete_volume(b, &volume);
            f->fail_at = 0;
            g_autoptr(AuditReport) report = audit(b);
            gboolean whole = g_hash_table_size(f->volumes) == 1;
            ck_assert_uint_eq(report->findings->len,
                              !whole && g_hash_table_size(f->records) == 1 ? 1 : 0);
            if (report->findings->len)
                ck_assert_int_eq(repair(b, 0, FALSE), 0);
            ck_assert_uint_eq(g_hash_table_size(f->records), whole);
            expect(b, "");
        }
    }
}
END_TEST

START_TEST(repair_leaves_what_is_young)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    g_hash_table_remove_all(f->volumes);
    expect(b, "record-without-volume f/csi/p-v\n");
    ck_assert_int_eq(repair(b, 600, FALSE), HEARTH_ERROR_FAILED_PRECONDITION);
    expect(b, "record-without-volume f/csi/p-v\n");
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    expect(b, "");
}
END_TEST

START_TEST(half_a_volume_goes_with_its_record)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    f->incomplete = TRUE;
    expect(b, "volume-incomplete f/csi/p-v\n");
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    ck_assert_uint_eq(g_hash_table_size(f->records) + g_hash_table_size(f->volumes), 0);
}
END_TEST

START_TEST(what_the_backend_left_is_found_and_repaired)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    f->leftover = TRUE;
    expect(b, "leftover f/csi/trash\n");
    ck_assert_int_eq(repair(b, 1000, FALSE), 0);
    ck_assert(!f->leftover);
    expect(b, "");
}
END_TEST

START_TEST(a_volume_without_a_record_goes_by_name_only)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    g_hash_table_insert(f->volumes, g_strdup("csi-vol-pvc-1"), g_strdup(""));
    expect(b, "volume-without-record f/csi/csi-vol-pvc-1\n");
    ck_assert_int_eq(repair(b, 0, FALSE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(g_hash_table_size(f->volumes), 1);
    ck_assert_int_eq(repair(b, 0, TRUE), 0);
    ck_assert_uint_eq(g_hash_table_size(f->volumes), 0);
}
END_TEST

START_TEST(whose_a_volume_is_shows_in_its_prefix)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    g_hash_table_insert(f->volumes, g_strdup("p-other"), g_strdup(""));
    g_hash_table_insert(f->volumes, g_strdup("home"), g_strdup(""));
    /* ceph-csi's */
    g_hash_table_insert(f->volumes, g_strdup("csi-vol-5a0e5b0c-1d7c-4b0e-9a44-6f0f4b8f0f0f"),
                        g_strdup(""));
    g_hash_table_insert(f->volumes, g_strdup("csi-vol-5a0e5b0c-1d7c-4b0e-9a44-6f0f4b8f0f0f-temp"),
                        g_strdup(""));
    expect(b, "");
    /* Now a record shows that p- is a prefix of a class. */
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    expect(b, "volume-without-record f/csi/p-other\n");
}
END_TEST

START_TEST(snapshots_are_looked_at_from_both_sides)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    ck_assert_int_eq(snapshot(b), 0);
    g_hash_table_insert(f->snapshots, g_strdup("p-v@by-hand"), (char *)"");
    expect(b, "");

    g_hash_table_remove(f->snapshots, "p-v@csi-snap-s");
    expect(b, "record-without-snapshot f/csi/p-v@csi-snap-s\n");
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    expect(b, "");
    ck_assert_uint_eq(g_hash_table_size(f->records), 1);

    g_hash_table_insert(f->snapshots, g_strdup("p-v@csi-snap-s"), (char *)"");
    expect(b, "snapshot-without-record f/csi/p-v@csi-snap-s\n");
    ck_assert_int_eq(repair(b, 0, FALSE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(repair(b, 0, TRUE), 0);
    ck_assert(g_hash_table_contains(f->snapshots, "p-v@by-hand"));
}
END_TEST

static int take_group(const Backend *b)
{
    VolumeId group = VOL("csi-vol-group-g");
    group.group = NULL;
    g_autoptr(GPtrArray) sources = g_ptr_array_new();
    g_autoptr(GroupRecord) record = NULL;
    g_autoptr(GError) error = NULL;
    g_ptr_array_add(sources, &volume);
    return provision_group_create(AT(b, &group), "g", sources, &record, &error) ? 0 : error->code;
}

START_TEST(a_group_that_was_not_taken_is_found_and_goes_with_its_snapshots)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    ck_assert_int_eq(take_group(b), 0);
    expect(b, "");
    g_hash_table_remove_all(f->snapshots); /* as half of its deletion would */
    g_autofree char *half = summary(b);
    ck_assert_ptr_nonnull(strstr(half, "group-unfinished f/csi-vol-group-g\n"));
    f->fail_at = 8; /* it is deleted, and taken again but for the note */
    ck_assert_int_eq(take_group(b), HEARTH_ERROR_UNAVAILABLE);
    expect(b, "group-unfinished f/csi-vol-group-g\n");
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 1);
    ck_assert_int_eq(repair(b, 600, FALSE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
    ck_assert_uint_eq(g_hash_table_size(f->records), 1);
    expect(b, "");
    /* Of a controller that was killed late. */
    g_hash_table_insert(f->snapshots, g_strdup("p-v@csi-vol-group-g-01234567-0"), (char *)"");
    expect(b, "snapshot-without-record f/csi/p-v@csi-vol-group-g-01234567-0\n");
}
END_TEST

START_TEST(what_a_clone_is_made_through_stays_while_it_is_made)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    ck_assert_int_eq(create(b, &target, TRUE), 0);
    g_hash_table_insert(f->snapshots, g_strdup("p-v@hearth-clone-p-t"), (char *)"");
    expect(b, "copy-snapshot f/csi/p-v@hearth-clone-p-t\n");

    g_hash_table_insert(f->copies, g_strdup("p-t"), g_strdup("p-v@hearth-clone-p-t"));
    f->copy_looks = 100;
    expect(b, "");
    f->copy_fails = TRUE;
    expect(b, "copy-failed f/csi/p-t\n");
    /* The snapshot goes too. */
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
    expect(b, "");

    /* Of a target that is gone. */
    g_hash_table_insert(f->snapshots, g_strdup("p-v@hearth-clone-p-t"), (char *)"");
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
}
END_TEST

START_TEST(what_a_clone_at_another_location_is_made_through_is_known_there)
{
    Fake *f = fake_new_with_beside();
    g_autoptr(Backend) b = fake_backend(f);
    VolumeId far_target = target;
    far_target.fs_name = (char *)FAKE_BESIDE;
    const char *snapshot = "p-v@hearth-clone-h1~cephfs~c~" FAKE_BESIDE "~csi~p-t";
    g_autofree char *finding = g_strdup_printf("copy-snapshot f/csi/%s\n", snapshot);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    ck_assert_int_eq(create(b, &far_target, TRUE), 0);
    g_hash_table_insert(f->snapshots, g_strdup(snapshot), (char *)"");
    expect(b, finding);
    g_hash_table_insert(f->beside->copies, g_strdup("p-t"), g_strdup(snapshot));
    f->beside->copy_looks = 100;
    expect(b, "");
    g_hash_table_remove_all(f->beside->copies);
    /* Of a target that is gone, and of a location that is. */
    g_hash_table_remove_all(f->beside->records);
    expect(b, finding);
    g_clear_pointer(&f->beside, fake_free);
    expect(b, finding);
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    ck_assert_uint_eq(g_hash_table_size(f->snapshots), 0);
    expect(b, "");
}
END_TEST

START_TEST(a_copy_of_the_wrong_size_is_finished)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    ck_assert_int_eq(create(b, &target, TRUE), 0);
    fake_set_size(f, "p-t", GIB / 2);
    expect(b, "copy-unfinished f/csi/p-t\n");
    ck_assert_int_eq(repair(b, 0, FALSE), 0);
    expect(b, "");
    ck_assert(g_hash_table_contains(f->volumes, "p-t"));
}
END_TEST

START_TEST(a_damaged_record_is_for_people)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, &volume, FALSE), 0);
    g_hash_table_insert(f->records, g_strdup("vol.p-v"), g_strdup("{}"));
    expect(b, "record-damaged f/csi/p-v\n");
    ck_assert_int_eq(repair(b, 0, TRUE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(g_hash_table_size(f->volumes), 1);
}
END_TEST

HARNESS_MAIN("driver/provision/audit", what_calls_leave_when_they_end_is_in_step,
             repair_removes_what_a_crash_left, repair_leaves_what_is_young,
             half_a_volume_goes_with_its_record, what_the_backend_left_is_found_and_repaired,
             a_volume_without_a_record_goes_by_name_only, whose_a_volume_is_shows_in_its_prefix,
             snapshots_are_looked_at_from_both_sides,
             a_group_that_was_not_taken_is_found_and_goes_with_its_snapshots,
             what_a_clone_is_made_through_stays_while_it_is_made,
             what_a_clone_at_another_location_is_made_through_is_known_there,
             a_copy_of_the_wrong_size_is_finished, a_damaged_record_is_for_people)
