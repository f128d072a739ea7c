/* SPDX-License-Identifier: Apache-2.0 */
/* Group snapshots over the fake: one moment, whatever crashed before; what is refused; nothing
 * left. */
#include "driver/provision/provision.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

#define PLACE .type = VOLUME_CEPHFS, .cluster_id = (char *)"c", .fs_name = (char *)"f"

static VolumeParams params = {PLACE, .name_prefix = (char *)"p-", .cache = TRUE};
static VolumeId a = {PLACE, .group = (char *)"csi", .name = (char *)"p-a"};
static VolumeId b = {PLACE, .group = (char *)"csi", .name = (char *)"p-b"};
static VolumeId missing = {PLACE, .group = (char *)"csi", .name = (char *)"p-z"};
static VolumeId group = {PLACE, .name = (char *)"g"};

typedef struct World {
    Fake *fake;
    Backend *backend;
    Secrets secrets;
} World;
#define AT(w, id) (&(ProvisionTarget){(w)->backend, id, &(w)->secrets, G_MAXINT64})

static World world_with(VolumeId *const *volumes, gsize n)
{
    World w = {.fake = fake_new(),
               .secrets = {.user = (char *)"u",
                           .key = (char *)"AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="}};
    w.backend = fake_backend(w.fake);
    for (gsize i = 0; i < n; i++) {
        ProvisionRequest r = {
            .name = volumes[i]->name, .params = &params, .range = {.required = 1 << 30}};
        g_autoptr(VolumeRecord) record = NULL;
        g_autoptr(BackendVolume) volume = NULL;
        ck_assert(provision_create(AT(&w, volumes[i]), &r, &record, &volume, NULL));
    }
    return w;
}

static World world_of_two(void)
{
    VolumeId *const both[] = {&a, &b};
    return world_with(both, 2);
}

static int create(World *w, const char *request, VolumeId *first, VolumeId *second,
                  GroupRecord **out)
{
    g_autoptr(GPtrArray) sources = g_ptr_array_new();
    g_autoptr(GroupRecord) record = NULL;
    g_autoptr(GError) error = NULL;
    g_ptr_array_add(sources, first);
    if (second)
        g_ptr_array_add(sources, second);
    gboolean good = provision_group_create(AT(w, &group), request, sources, &record, &error);
    if (good && out)
        *out = g_steal_pointer(&record);
    return good ? 0 : error->code;
}

static int remove_group(World *w, const char *const *snapshots)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = snapshots ? g_ptr_array_new() : NULL;
    for (; snapshots && *snapshots; snapshots++)
        g_ptr_array_add(names, (char *)*snapshots);
    return provision_group_delete(AT(w, &group), names, &error) ? 0 : error->code;
}

static gboolean of_one_moment(World *w)
{
    gpointer first = NULL, second = NULL;
    return g_hash_table_lookup_extended(w->fake->snapshots, "p-a@g-0", NULL, &first) &&
           g_hash_table_lookup_extended(w->fake->snapshots, "p-b@g-1", NULL, &second) &&
           first == second;
}

static void nothing_left(World *w, guint volumes)
{
    ck_assert_uint_eq(g_hash_table_size(w->fake->snapshots), 0);
    ck_assert_uint_eq(g_hash_table_size(w->fake->records), volumes);
}

START_TEST(a_group_is_taken_once_and_goes_as_a_whole)
{
    World w = world_of_two();
    g_autoptr(GroupRecord) record = NULL;
    ck_assert_int_eq(create(&w, "r", &b, &a, &record), 0);
    ck_assert_uint_eq(record->members->len, 2);
    const GroupMember *first = record->members->pdata[0];
    ck_assert_str_eq(first->volume, "p-a");
    ck_assert_str_eq(first->snapshot, "g-0");
    ck_assert_int_eq(first->bytes, 1 << 30);
    ck_assert(of_one_moment(&w));
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    ck_assert_int_eq(w.fake->moments, 1);

    VolumeId member = {PLACE, .name = (char *)"g-0"};
    g_autoptr(GError) error = NULL;
    ck_assert(!provision_snapshot_delete(AT(&w, &member), &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_INVALID_ARGUMENT);

    static const char *const wrong[] = {"g-0", "g-2", NULL}, *const too_few[] = {"g-0", NULL};
    static const char *const right[] = {"g-1", "g-0", NULL};
    ck_assert_int_eq(remove_group(&w, wrong), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(remove_group(&w, too_few), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert(of_one_moment(&w));
    ck_assert_int_eq(remove_group(&w, right), 0);
    ck_assert_int_eq(remove_group(&w, right), 0);
    nothing_left(&w, 2);
    backend_free(w.backend);
}
END_TEST

START_TEST(another_request_does_not_get_it)
{
    World w = world_of_two();
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    ck_assert_int_eq(create(&w, "other", &a, &b, NULL), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(create(&w, "r", &a, NULL, NULL), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(remove_group(&w, NULL), 0);
    nothing_left(&w, 2);
    g_hash_table_insert(w.fake->snapshots, g_strdup("p-b@g-1"), NULL);
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_uint_eq(g_hash_table_size(w.fake->records), 2);
    backend_free(w.backend);
}
END_TEST

START_TEST(what_cannot_be_leaves_nothing)
{
    World w = world_of_two();
    ck_assert_int_eq(create(&w, "r", &a, &missing, NULL), HEARTH_ERROR_NOT_FOUND);
    nothing_left(&w, 2);
    /* Refused when it comes to it: the records are written by then. */
    w.fake->fail_code = HEARTH_ERROR_FAILED_PRECONDITION;
    w.fake->fail_at = 4;
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), HEARTH_ERROR_FAILED_PRECONDITION);
    nothing_left(&w, 2);
    backend_free(w.backend);
}
END_TEST

/* A volume that is the first member itself. */
static int show(World *w, const VolumeId *id, gboolean *made)
{
    VolumeId member = {PLACE, .name = (char *)"g-0"};
    ProvisionRequest r = {.name = id->name,
                          .params = &params,
                          .range = {.required = 1 << 30},
                          .from_snapshot = &member,
                          .source = "h1~snap~cephfs~c~f~g-0",
                          .backing_snapshot = TRUE};
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    g_autoptr(GError) error = NULL;
    *made = provision_create(AT(w, id), &r, &record, &volume, &error);
    return *made ? 0 : error->code;
}

START_TEST(a_member_that_a_volume_shows_keeps_the_group)
{
    World w = world_of_two();
    gboolean made;
    VolumeId shown = {PLACE, .group = (char *)"csi", .name = (char *)"p-shown"};
    VolumeId later = {PLACE, .group = (char *)"csi", .name = (char *)"p-later"};
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    /* The volume may go before: the member's record says where it was. */
    ck_assert(provision_delete(AT(&w, &a), NULL));
    ck_assert_int_eq(show(&w, &shown, &made), 0);
    ck_assert_int_eq(remove_group(&w, NULL), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert(of_one_moment(&w));
    ck_assert_int_eq(show(&w, &later, &made), 0);
    /* It cannot be in a group itself. */
    ck_assert_int_eq(provision_delete(AT(&w, &later), NULL), TRUE);
    g_autoptr(GPtrArray) sources = g_ptr_array_new();
    g_autoptr(GroupRecord) record = NULL;
    g_autoptr(GError) error = NULL;
    VolumeId other = {PLACE, .name = (char *)"other"};
    g_ptr_array_add(sources, &shown);
    ck_assert(!provision_group_create(AT(&w, &other), "r2", sources, &record, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert(provision_delete(AT(&w, &shown), NULL));
    ck_assert_int_eq(remove_group(&w, NULL), 0);
    nothing_left(&w, 1);
    backend_free(w.backend);
}
END_TEST

START_TEST(a_crash_at_any_step_ends_in_one_moment_or_none)
{
    for (int after = 0; after <= 1; after++) {
        int step = 1;
        for (gboolean failed = TRUE; failed; step++) {
            World w = world_of_two();
            w.fake->fail_at = step;
            w.fake->fail_after = after != 0;
            failed = create(&w, "r", &a, &b, NULL) != 0;
            w.fake->fail_at = 0;
            if (step % 2) {
                ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
                ck_assert_msg(of_one_moment(&w), "step %d", step);
            }
            w.fake->fail_at = step;
            gboolean again = remove_group(&w, NULL) != 0;
            w.fake->fail_at = 0;
            failed = failed || again;
            ck_assert_int_eq(remove_group(&w, NULL), 0);
            nothing_left(&w, 2);
            backend_free(w.backend);
        }
        ck_assert_int_gt(step, 5);
    }
}
END_TEST

static gboolean is_there(World *w)
{
    g_autoptr(GroupRecord) record = NULL;
    return provision_group_look(AT(w, &group), NULL, &record, NULL);
}

/* As when Ceph makes the last snapshot after the call for it was given up. */
START_TEST(all_snapshots_of_an_attempt_that_failed_are_no_group)
{
    int left_all = 0;
    gboolean failed = TRUE;
    for (int step = 1; failed; step++) {
        World w = world_of_two();
        w.fake->fail_at = step;
        w.fake->fail_after = TRUE;
        failed = create(&w, "r", &a, &b, NULL) != 0;
        w.fake->fail_at = 0;
        const char *record = g_hash_table_lookup(w.fake->records, "group.g");
        const gboolean noted = record && strstr(record, "\"taken\":true");
        ck_assert(is_there(&w) == noted);
        if (failed && g_hash_table_size(w.fake->snapshots) == 2 && !noted) {
            left_all++;
            ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
            ck_assert_int_eq(w.fake->moments, 2);
            ck_assert(of_one_moment(&w) && is_there(&w));
        }
        backend_free(w.backend);
    }
    ck_assert_int_gt(left_all, 0);
}
END_TEST

START_TEST(a_group_of_before_counts_as_taken)
{
    World w = world_of_two();
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    g_auto(GStrv) parts =
        g_strsplit(g_hash_table_lookup(w.fake->records, "group.g"), ",\"taken\":true", -1);
    ck_assert_uint_eq(g_strv_length(parts), 2);
    g_hash_table_insert(w.fake->records, g_strdup("group.g"), g_strjoinv("", parts));
    ck_assert(is_there(&w));
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    ck_assert_int_eq(w.fake->moments, 1);
    backend_free(w.backend);
}
END_TEST

HARNESS_MAIN("driver/provision/group", a_group_is_taken_once_and_goes_as_a_whole,
             another_request_does_not_get_it, what_cannot_be_leaves_nothing,
             a_member_that_a_volume_shows_keeps_the_group,
             a_crash_at_any_step_ends_in_one_moment_or_none,
             all_snapshots_of_an_attempt_that_failed_are_no_group,
             a_group_of_before_counts_as_taken)
