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

/* "" when there is no group; the caller's. */
static char *member_name(World *w, guint i)
{
    const char *text = g_hash_table_lookup(w->fake->records, "group.g");
    g_autoptr(GroupRecord) record =
        text ? group_record_decode("g", text, strlen(text), NULL) : NULL;
    const GroupMember *m = record ? record->members->pdata[i] : NULL;
    return g_strdup(m ? m->snapshot : "");
}

static gboolean of_one_moment(World *w)
{
    gpointer first = NULL, second = NULL;
    g_autofree char *a_name = member_name(w, 0), *b_name = member_name(w, 1);
    g_autofree char *a_key = g_strconcat("p-a@", a_name, NULL);
    g_autofree char *b_key = g_strconcat("p-b@", b_name, NULL);
    return g_hash_table_lookup_extended(w->fake->snapshots, a_key, NULL, &first) &&
           g_hash_table_lookup_extended(w->fake->snapshots, b_key, NULL, &second) &&
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
    ck_assert(g_str_has_prefix(first->snapshot, "g-") && g_str_has_suffix(first->snapshot, "-0"));
    ck_assert_int_eq(first->bytes, 1 << 30);
    ck_assert(of_one_moment(&w));
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    ck_assert_int_eq(w.fake->moments, 1);

    g_autofree char *zero = member_name(&w, 0), *one = member_name(&w, 1);
    VolumeId member = {PLACE, .name = zero};
    g_autoptr(GError) error = NULL;
    ck_assert(!provision_snapshot_delete(AT(&w, &member), &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_INVALID_ARGUMENT);

    const char *const wrong[] = {zero, "g-2", NULL}, *const too_few[] = {zero, NULL};
    const char *const right[] = {one, zero, NULL};
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
    g_autofree char *name = member_name(w, 0);
    g_autofree char *handle = g_strconcat("h1~snap~cephfs~c~f~", name, NULL);
    VolumeId member = {PLACE, .name = name};
    ProvisionRequest r = {.name = id->name,
                          .params = &params,
                          .range = {.required = 1 << 30},
                          .from_snapshot = &member,
                          .source = handle,
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

START_TEST(an_attempt_of_before_is_followed_by_one_with_names_of_its_own)
{
    World w = world_of_two();
    static const char record[] =
        "{\"version\":1,\"kind\":\"groupSnapshot\",\"requestName\":\"r\",\"created\":"
        "\"2026-01-01T00:00:00Z\",\"taken\":false,\"members\":[{\"volume\":\"p-a\","
        "\"group\":\"csi\",\"snapshot\":\"g-0\",\"bytes\":1},{\"volume\":\"p-b\","
        "\"group\":\"csi\",\"snapshot\":\"g-1\",\"bytes\":1}]}";
    g_hash_table_insert(w.fake->records, g_strdup("group.g"), g_strdup(record));
    g_hash_table_insert(w.fake->records, g_strdup("snap.g-0"), g_strdup("{}"));
    g_hash_table_insert(w.fake->snapshots, g_strdup("p-a@g-0"), NULL);
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
    ck_assert(of_one_moment(&w));
    ck_assert(!g_hash_table_contains(w.fake->snapshots, "p-a@g-0"));
    ck_assert(!g_hash_table_contains(w.fake->records, "snap.g-0"));
    ck_assert_int_eq(remove_group(&w, NULL), 0);
    nothing_left(&w, 2);
    backend_free(w.backend);
}
END_TEST

typedef struct Meanwhile {
    World *w;
    gboolean deletes, creates, is_older;
    char *name; /* of its first member */
} Meanwhile;

/* What a release without attempts does when there is a record: it takes the snapshots anew, under
 * the names that are there. */
static void take_as_older(World *w)
{
    static const char untaken[] = "\"taken\":false";
    const char *text = g_hash_table_lookup(w->fake->records, "group.g");
    const char *at = text ? strstr(text, untaken) : NULL;
    if (!at)
        return;
    g_autofree char *a_name = member_name(w, 0), *b_name = member_name(w, 1);
    gpointer moment = GINT_TO_POINTER(++w->fake->moments);
    g_hash_table_insert(w->fake->snapshots, g_strconcat("p-a@", a_name, NULL), moment);
    g_hash_table_insert(w->fake->snapshots, g_strconcat("p-b@", b_name, NULL), moment);
    g_autofree char *before = g_strndup(text, (gsize)(at - text));
    g_hash_table_insert(w->fake->records, g_strdup("group.g"),
                        g_strconcat(before, "\"taken\":true", at + strlen(untaken), NULL));
}

static void other_controller(void *data)
{
    Meanwhile *m = data;
    if (m->is_older)
        take_as_older(m->w);
    if (m->deletes)
        ck_assert_int_eq(remove_group(m->w, NULL), 0);
    if (m->creates) {
        ck_assert_int_eq(create(m->w, "r", &a, &b, NULL), 0);
        m->name = member_name(m->w, 0);
    }
}

static void freeze(World *w, int step, Meanwhile *m)
{
    w->fake->frozen_at = step;
    w->fake->meanwhile = other_controller;
    w->fake->meanwhile_data = m;
    m->w = w;
}

/* Whether the call had as many steps. */
static gboolean was_frozen(World *w)
{
    const gboolean frozen = w->fake->frozen_at == 0;
    w->fake->frozen_at = 0;
    return frozen;
}

/* What the other controller has acknowledged, and nothing else. */
static void is_theirs(World *w, Meanwhile *m, int step)
{
    g_autofree char *name = member_name(w, 0);
    ck_assert_msg(strcmp(name, m->name) == 0, "step %d: %s is no more, but %s", step, m->name,
                  name);
    ck_assert_msg(of_one_moment(w) && is_there(w), "step %d", step);
    ck_assert_uint_eq(g_hash_table_size(w->fake->snapshots), 2);
    ck_assert_int_eq(remove_group(w, NULL), 0);
    nothing_left(w, 2);
    g_free(m->name);
}

START_TEST(a_creation_that_was_frozen_leaves_the_group_of_another)
{
    int frozen_calls = 0;
    for (int failed_at = 0; failed_at <= 7; failed_at++) {
        gboolean frozen = TRUE;
        for (int step = 1; frozen; step++) {
            World w = world_of_two();
            w.fake->fail_after = TRUE;
            w.fake->fail_at = failed_at;
            if (failed_at > 0)
                create(&w, "r", &a, &b, NULL);
            w.fake->fail_at = 0;
            Meanwhile m = {.creates = TRUE};
            freeze(&w, step, &m);
            create(&w, "r", &a, &b, NULL);
            frozen = was_frozen(&w);
            if (frozen)
                is_theirs(&w, &m, step);
            frozen_calls += frozen;
            backend_free(w.backend);
        }
    }
    ck_assert_int_gt(frozen_calls, 50);
}
END_TEST

START_TEST(a_creation_that_was_frozen_leaves_the_group_of_an_older_release)
{
    int left = 0;
    gboolean frozen = TRUE;
    for (int step = 1; frozen; step++) {
        World w = world_of_two();
        Meanwhile m = {.is_older = TRUE};
        freeze(&w, step, &m);
        const gboolean failed = create(&w, "r", &a, &b, NULL) != 0;
        frozen = was_frozen(&w);
        if (frozen && failed) {
            ck_assert_msg(of_one_moment(&w) && is_there(&w), "step %d", step);
            left++;
        }
        backend_free(w.backend);
    }
    ck_assert_int_gt(left, 3);
}
END_TEST

START_TEST(what_an_older_release_has_taken_stays_when_taking_is_refused)
{
    World w = world_of_two();
    Meanwhile m = {.is_older = TRUE};
    w.fake->fail_code = HEARTH_ERROR_NOT_FOUND;
    w.fake->fail_at = 4;
    freeze(&w, 4, &m);
    ck_assert_int_eq(create(&w, "r", &a, &b, NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert(of_one_moment(&w) && is_there(&w));
    backend_free(w.backend);
}
END_TEST

START_TEST(a_creation_that_was_frozen_does_not_bring_a_deleted_group_back)
{
    gboolean frozen = TRUE;
    for (int step = 1; frozen; step++) {
        World w = world_of_two();
        Meanwhile m = {.creates = TRUE, .deletes = TRUE};
        freeze(&w, step, &m);
        create(&w, "r", &a, &b, NULL);
        frozen = was_frozen(&w);
        if (frozen)
            is_theirs(&w, &m, step);
        backend_free(w.backend);
    }
}
END_TEST

START_TEST(a_deletion_that_was_frozen_leaves_a_later_group_of_the_name)
{
    gboolean frozen = TRUE;
    int step = 1;
    for (; frozen; step++) {
        World w = world_of_two();
        ck_assert_int_eq(create(&w, "r", &a, &b, NULL), 0);
        Meanwhile m = {.creates = TRUE, .deletes = TRUE};
        freeze(&w, step, &m);
        remove_group(&w, NULL);
        frozen = was_frozen(&w);
        if (frozen)
            is_theirs(&w, &m, step);
        backend_free(w.backend);
    }
    ck_assert_int_gt(step, 5);
}
END_TEST

HARNESS_MAIN("driver/provision/group", a_group_is_taken_once_and_goes_as_a_whole,
             another_request_does_not_get_it, what_cannot_be_leaves_nothing,
             a_member_that_a_volume_shows_keeps_the_group,
             a_crash_at_any_step_ends_in_one_moment_or_none,
             all_snapshots_of_an_attempt_that_failed_are_no_group,
             a_group_of_before_counts_as_taken,
             an_attempt_of_before_is_followed_by_one_with_names_of_its_own,
             a_creation_that_was_frozen_leaves_the_group_of_another,
             a_creation_that_was_frozen_leaves_the_group_of_an_older_release,
             what_an_older_release_has_taken_stays_when_taking_is_refused,
             a_creation_that_was_frozen_does_not_bring_a_deleted_group_back,
             a_deletion_that_was_frozen_leaves_a_later_group_of_the_name)
