/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that are a snapshot: nothing is copied, the snapshot stays while one is there, crashes.
 */
#include "driver/provision/provision.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

static VolumeParams params = {.type = VOLUME_CEPHFS,
                              .cluster_id = (char *)"c",
                              .fs_name = (char *)"f",
                              .name_prefix = (char *)"p-",
                              .cache = TRUE};
static VolumeId location = {.type = VOLUME_CEPHFS,
                            .cluster_id = (char *)"c",
                            .fs_name = (char *)"f",
                            .group = (char *)"csi"};
static Secrets secrets = {(char *)"u", (char *)"AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="};
#define AT(backend, id) (&(ProvisionTarget){backend, id, &secrets, G_MAXINT64})

enum { GIB = 1 << 30 };
typedef enum From { NOTHING, SNAPSHOT, ITSELF, SHALLOW, DATASET } From;

static VolumeId named(const char *name)
{
    VolumeId id = location;
    id.name = (char *)name;
    return id;
}

static VolumeId snap(void)
{
    VolumeId id = named("s");
    id.group = NULL;
    return id;
}

static int create(const Backend *b, const char *name, From from)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) made = NULL;
    VolumeId id = named(name), of = named("p-shallow"), s = snap();
    VolumeParams with = params;
    DatasetName dataset = {NULL, (char *)"p-v", (char *)"s"};
    ProvisionRequest request = {.name = name, .params = &params, .range = {GIB, 0}};
    if (from == SNAPSHOT || from == ITSELF) {
        request.from_snapshot = &s;
        request.source = "h1~snap~cephfs~c~f~s";
        request.backing_snapshot = from == ITSELF;
    } else if (from == SHALLOW) {
        request.from_volume = &of;
        request.source = "h1~cephfs~c~f~csi~p-shallow";
    } else if (from == DATASET) {
        with.dataset = &dataset;
        request.params = &with;
        request.backing_snapshot = TRUE;
        request.range.required = 0;
    }
    if (!provision_create(AT(b, &id), &request, &record, &made, &error))
        return error->code;
    if (from == ITSELF || from == DATASET) {
        ck_assert_str_eq(made->path, "/volumes/csi/p-v/.snap/s");
        ck_assert_int_eq(record->bytes, GIB);
    }
    return 0;
}

static int delete (const Backend *b, const char *name)
{
    g_autoptr(GError) error = NULL;
    VolumeId id = named(name);
    return provision_delete(AT(b, &id), &error) ? 0 : error->code;
}

static int snapshot(const Backend *b, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SnapshotRecord) record = NULL;
    VolumeId of = named(name), s = snap();
    return provision_snapshot_create(AT(b, &s), "s", &of, &record, &error) ? 0 : error->code;
}

static int unsnapshot(const Backend *b)
{
    g_autoptr(GError) error = NULL;
    VolumeId s = snap();
    if (provision_snapshot_delete(AT(b, &s), &error))
        return 0;
    if (error->code == HEARTH_ERROR_FAILED_PRECONDITION)
        ck_assert_ptr_nonnull(strstr(error->message, "p-shallow"));
    return error->code;
}

static guint left(const Fake *f)
{
    return g_hash_table_size(f->records) + g_hash_table_size(f->volumes) +
           g_hash_table_size(f->snapshots) + g_hash_table_size(f->copies) +
           g_hash_table_size(f->holders) + g_hash_table_size(f->sealed);
}

START_TEST(nothing_is_copied_and_the_snapshot_stays)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), HEARTH_ERROR_NOT_FOUND);
    ck_assert_uint_eq(left(f), 0);
    ck_assert_int_eq(create(b, "p-v", NOTHING), 0);
    ck_assert_int_eq(snapshot(b, "p-v"), 0);
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), 0);
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), 0);
    ck_assert_int_eq(f->creations, 1);
    ck_assert_int_eq(create(b, "p-shallow", SNAPSHOT), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(unsnapshot(b), HEARTH_ERROR_FAILED_PRECONDITION);
    /* Refused, so others may still use it. */
    ck_assert_int_eq(create(b, "p-shallow2", ITSELF), 0);
    ck_assert_int_eq(delete (b, "p-shallow2"), 0);
    /* The volume it is of may go before it. */
    ck_assert_int_eq(delete (b, "p-v"), 0);
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), 0);
    ck_assert_int_eq(create(b, "p-late", ITSELF), 0);
    ck_assert_int_eq(delete (b, "p-late"), 0);
    ck_assert_int_eq(delete (b, "p-shallow"), 0);
    ck_assert_int_eq(delete (b, "p-shallow"), 0);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

START_TEST(it_cannot_grow_or_be_snapshotted_but_copied)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    g_autoptr(GError) error = NULL;
    gint64 bytes;
    VolumeId id = named("p-shallow");
    ck_assert_int_eq(create(b, "p-v", NOTHING), 0);
    ck_assert_int_eq(snapshot(b, "p-v"), 0);
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), 0);
    ck_assert(!provision_expand(AT(b, &id), (CapacityRange){2LL * GIB, 0}, &bytes, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_INVALID_ARGUMENT);
    g_autoptr(SnapshotRecord) record = NULL;
    g_clear_error(&error);
    VolumeId other = snap();
    other.name = (char *)"s2";
    ck_assert(!provision_snapshot_create(AT(b, &other), "s2", &id, &record, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(create(b, "p-copy", SHALLOW), 0);
    ck_assert_int_eq(f->creations, 2);
    ck_assert_int_eq(delete (b, "p-copy"), 0);
    ck_assert_int_eq(delete (b, "p-shallow"), 0);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(delete (b, "p-v"), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

/* A crash at every step of creation; then the snapshot is deleted only after the volume. */
START_TEST(a_crash_while_creating_leaves_no_volume_without_its_snapshot)
{
    for (int step = 1; step < 20; step++) {
        Fake *f = fake_new();
        g_autoptr(Backend) b = fake_backend(f);
        ck_assert_int_eq(create(b, "p-v", NOTHING), 0);
        ck_assert_int_eq(snapshot(b, "p-v"), 0);
        f->fail_at = (step + 1) / 2;
        f->fail_after = step % 2 == 0;
        gboolean crashed = create(b, "p-shallow", ITSELF) != 0;
        f->fail_at = 0;
        int removed = unsnapshot(b);
        int again = create(b, "p-shallow", ITSELF);
        ck_assert_int_eq(again, removed == 0 ? HEARTH_ERROR_NOT_FOUND : 0);
        ck_assert_int_eq(delete (b, "p-shallow"), 0);
        ck_assert_int_eq(unsnapshot(b), 0);
        ck_assert_int_eq(delete (b, "p-v"), 0);
        ck_assert_uint_eq(left(f), 0);
        if (!crashed)
            return;
    }
    ck_abort_msg("it never ran through");
}
END_TEST

/* And of the deletion of either. */
START_TEST(a_crash_while_deleting_is_finished_by_the_next)
{
    gboolean crashed = TRUE;
    for (int step = 1; crashed && step < 40; step++) {
        Fake *f = fake_new();
        g_autoptr(Backend) b = fake_backend(f);
        ck_assert_int_eq(create(b, "p-v", NOTHING), 0);
        ck_assert_int_eq(snapshot(b, "p-v"), 0);
        ck_assert_int_eq(create(b, "p-shallow", ITSELF), 0);
        f->fail_at = (step + 1) / 2;
        f->fail_after = step % 2 == 0;
        int first = delete (b, "p-shallow");
        int second = first ? 0 : unsnapshot(b);
        crashed = f->fail_at == 0;
        f->fail_at = 0;
        if (first)
            ck_assert_int_eq(delete (b, "p-shallow"), 0);
        if (first || second)
            ck_assert_int_eq(unsnapshot(b), 0);
        ck_assert_int_eq(delete (b, "p-v"), 0);
        ck_assert_uint_eq(left(f), 0);
    }
    ck_assert(!crashed);
}
END_TEST

START_TEST(a_snapshot_being_deleted_gets_no_new_volume)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, "p-v", NOTHING), 0);
    ck_assert_int_eq(snapshot(b, "p-v"), 0);
    f->fail_at = 2; /* the seal is there, the snapshot too */
    ck_assert_int_ne(unsnapshot(b), 0);
    f->fail_at = 0;
    g_hash_table_insert(f->sealed, g_strdup("snap.s"), (char *)"");
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), HEARTH_ERROR_ABORTED);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(create(b, "p-shallow", ITSELF), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(delete (b, "p-v"), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

/* Our snapshot is held as a shallow volume holds it, by as many as there are. */
START_TEST(a_dataset_of_ours_stays_while_volumes_show_it)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, "p-shallow", DATASET), HEARTH_ERROR_NOT_FOUND);
    ck_assert_uint_eq(left(f), 0);
    ck_assert_int_eq(create(b, "p-v", NOTHING), 0);
    ck_assert_int_eq(create(b, "p-shallow", DATASET), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(snapshot(b, "p-v"), 0);
    ck_assert_int_eq(create(b, "p-shallow", DATASET), 0);
    ck_assert_int_eq(create(b, "p-shallow", DATASET), 0);
    ck_assert_int_eq(create(b, "p-shallow2", DATASET), 0);
    ck_assert_int_eq(create(b, "p-shallow", NOTHING), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(f->creations, 1);
    ck_assert_int_eq(unsnapshot(b), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(delete (b, "p-shallow2"), 0);
    ck_assert_int_eq(delete (b, "p-v"), 0);
    ck_assert_int_eq(create(b, "p-late", DATASET), 0);
    ck_assert_int_eq(delete (b, "p-late"), 0);
    ck_assert_int_eq(unsnapshot(b), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(delete (b, "p-shallow"), 0);
    ck_assert_int_eq(delete (b, "p-shallow"), 0);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_uint_eq(left(f), 0);
}
END_TEST

/* Somebody else's: a name record is all that is made, at any step. */
START_TEST(a_dataset_of_anyone_is_not_touched)
{
    for (int step = 1; step < 20; step++) {
        Fake *f = fake_new();
        g_autoptr(Backend) b = fake_backend(f);
        g_hash_table_insert(f->volumes, g_strdup("p-v"), g_strdup(""));
        g_hash_table_insert(f->snapshots, g_strdup("p-v@s"), NULL);
        f->fail_at = (step + 1) / 2;
        f->fail_after = step % 2 == 0;
        gboolean crashed = create(b, "p-shallow", DATASET) != 0;
        f->fail_at = 0;
        ck_assert_int_eq(create(b, "p-shallow", DATASET), 0);
        ck_assert_uint_eq(g_hash_table_size(f->holders), 0);
        ck_assert_uint_eq(g_hash_table_size(f->records), 1);
        ck_assert_int_eq(delete (b, "p-shallow"), 0);
        ck_assert_uint_eq(left(f), 2);
        /* It goes with its owner. */
        g_hash_table_remove(f->snapshots, "p-v@s");
        ck_assert_int_eq(create(b, "p-shallow", DATASET), HEARTH_ERROR_NOT_FOUND);
        ck_assert_uint_eq(left(f), 1);
        if (!crashed)
            return;
    }
    ck_abort_msg("it never ran through");
}
END_TEST

START_TEST(a_snapshot_of_another_volume_by_its_name_is_not_held)
{
    Fake *f = fake_new();
    g_autoptr(Backend) b = fake_backend(f);
    ck_assert_int_eq(create(b, "p-w", NOTHING), 0);
    ck_assert_int_eq(snapshot(b, "p-w"), 0);
    g_hash_table_insert(f->volumes, g_strdup("p-v"), g_strdup(""));
    g_hash_table_insert(f->snapshots, g_strdup("p-v@s"), NULL);
    ck_assert_int_eq(create(b, "p-shallow", DATASET), 0);
    ck_assert_int_eq(unsnapshot(b), 0);
    ck_assert_int_eq(delete (b, "p-shallow"), 0);
}
END_TEST

HARNESS_MAIN("driver/provision/shallow", a_dataset_of_ours_stays_while_volumes_show_it,
             a_dataset_of_anyone_is_not_touched,
             a_snapshot_of_another_volume_by_its_name_is_not_held,
             nothing_is_copied_and_the_snapshot_stays, it_cannot_grow_or_be_snapshotted_but_copied,
             a_crash_while_creating_leaves_no_volume_without_its_snapshot,
             a_crash_while_deleting_is_finished_by_the_next,
             a_snapshot_being_deleted_gets_no_new_volume)
