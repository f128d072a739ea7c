/* SPDX-License-Identifier: Apache-2.0 */
/* The GroupController over the fake: what is answered, what is refused, members as snapshots. */
#include "tests/unit/driver/service/world.h"

#define VOLUME_1 "h1~cephfs~c~f~csi~csi-vol-pvc-1"
#define VOLUME_2 "h1~cephfs~c~f~csi~csi-vol-pvc-2"
#define GROUP "h1~group~cephfs~c~f~csi-vol-group-g1"

static World *world_of_two(void)
{
    World *w = world_new();
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(create(w, create_request("pvc-2", good_parameters, 2 * GIB), NULL, NULL), 0);
    return w;
}

static char **copied(const char *const *strings, gsize *n)
{
    *n = strings ? g_strv_length((char **)strings) : 0;
    return *n ? g_strdupv((char **)strings) : NULL;
}

static int take(World *w, const char *name, const char *const *volumes,
                const char *const *parameters, Csi__V1__CreateVolumeGroupSnapshotResponse **out)
{
    Csi__V1__CreateVolumeGroupSnapshotRequest *r =
        g_new0(Csi__V1__CreateVolumeGroupSnapshotRequest, 1);
    csi__v1__create_volume_group_snapshot_request__init(r);
    r->name = g_strdup(name);
    r->source_volume_ids = copied(volumes, &r->n_source_volume_ids);
    WORLD_MAP(Csi__V1__CreateVolumeGroupSnapshotRequest__ParametersEntry,
              csi__v1__create_volume_group_snapshot_request__parameters_entry__init, parameters,
              r->parameters, r->n_parameters);
    WORLD_MAP(Csi__V1__CreateVolumeGroupSnapshotRequest__SecretsEntry,
              csi__v1__create_volume_group_snapshot_request__secrets_entry__init, good_secrets,
              r->secrets, r->n_secrets);
    return world_call(w->client, "/csi.v1.GroupController/CreateVolumeGroupSnapshot", r,
                      &csi__v1__create_volume_group_snapshot_response__descriptor, out, NULL);
}

static int drop(World *w, const char *id, const char *const *snapshots)
{
    Csi__V1__DeleteVolumeGroupSnapshotRequest *r =
        g_new0(Csi__V1__DeleteVolumeGroupSnapshotRequest, 1);
    csi__v1__delete_volume_group_snapshot_request__init(r);
    r->group_snapshot_id = g_strdup(id);
    r->snapshot_ids = copied(snapshots, &r->n_snapshot_ids);
    WORLD_MAP(Csi__V1__DeleteVolumeGroupSnapshotRequest__SecretsEntry,
              csi__v1__delete_volume_group_snapshot_request__secrets_entry__init, good_secrets,
              r->secrets, r->n_secrets);
    return world_call(w->client, "/csi.v1.GroupController/DeleteVolumeGroupSnapshot", r,
                      &csi__v1__delete_volume_group_snapshot_response__descriptor, NULL, NULL);
}

static int get_as(World *w, const char *id, const char *const *secrets,
                  Csi__V1__GetVolumeGroupSnapshotResponse **out)
{
    Csi__V1__GetVolumeGroupSnapshotRequest *r = g_new0(Csi__V1__GetVolumeGroupSnapshotRequest, 1);
    csi__v1__get_volume_group_snapshot_request__init(r);
    r->group_snapshot_id = g_strdup(id);
    WORLD_MAP(Csi__V1__GetVolumeGroupSnapshotRequest__SecretsEntry,
              csi__v1__get_volume_group_snapshot_request__secrets_entry__init, secrets, r->secrets,
              r->n_secrets);
    return world_call(w->client, "/csi.v1.GroupController/GetVolumeGroupSnapshot", r,
                      &csi__v1__get_volume_group_snapshot_response__descriptor, out, NULL);
}

static int get(World *w, const char *id, Csi__V1__GetVolumeGroupSnapshotResponse **out)
{
    return get_as(w, id, good_secrets, out);
}

static const char *const both[] = {VOLUME_1, VOLUME_2, NULL};

START_TEST(a_groups_members_are_snapshots)
{
    World *w = world_of_two();
    Csi__V1__CreateVolumeGroupSnapshotResponse *made = NULL;
    ck_assert_int_eq(take(w, "g1", both, good_parameters, &made), 0);
    const Csi__V1__VolumeGroupSnapshot *group = made->group_snapshot;
    ck_assert_str_eq(group->group_snapshot_id, GROUP);
    ck_assert(group->ready_to_use);
    ck_assert_uint_eq(group->n_snapshots, 2);
    const char *first = group->snapshots[0]->snapshot_id;
    ck_assert(
        g_regex_match_simple("^h1~snap~cephfs~c~f~csi-vol-group-g1-[0-9a-f]{8}-0$", first, 0, 0));
    ck_assert_str_eq(group->snapshots[1]->group_snapshot_id, GROUP);
    ck_assert_int_eq(group->snapshots[1]->size_bytes, 2 * GIB);

    Csi__V1__GetVolumeGroupSnapshotResponse *got = NULL;
    ck_assert_int_eq(get(w, GROUP, &got), 0);
    ck_assert_uint_eq(got->group_snapshot->n_snapshots, 2);
    csi__v1__get_volume_group_snapshot_response__free_unpacked(got, NULL);

    const char *const others[] = {group->snapshots[0]->snapshot_id, VOLUME_1, NULL};
    ck_assert_int_eq(drop(w, GROUP, others), HEARTH_ERROR_INVALID_ARGUMENT);
    const char *const members[] = {group->snapshots[1]->snapshot_id,
                                   group->snapshots[0]->snapshot_id, NULL};
    ck_assert_int_eq(drop(w, GROUP, members), 0);
    ck_assert_int_eq(drop(w, GROUP, members), 0);
    ck_assert_int_eq(get(w, GROUP, NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert_uint_eq(g_hash_table_size(w->fake->snapshots), 0);
    csi__v1__create_volume_group_snapshot_response__free_unpacked(made, NULL);
    world_free(w);
}
END_TEST

START_TEST(bad_groups_are_refused)
{
    World *w = world_of_two();
    const int invalid = HEARTH_ERROR_INVALID_ARGUMENT;
    static const char *const twice[] = {VOLUME_1, VOLUME_1, NULL};
    static const char *const missing[] = {VOLUME_1, VOLUME_1 "x", NULL};
    static const char *const locations[] = {VOLUME_1, "h1~cephfs~c~g~csi~csi-vol-pvc-2", NULL};
    static const char *const typo[] = {"snapshotNamePrefix=x", NULL};
    ck_assert_int_eq(take(w, "", both, NULL, NULL), invalid);
    ck_assert_int_eq(take(w, "g1", NULL, NULL, NULL), invalid);
    ck_assert_int_eq(take(w, "g1", twice, NULL, NULL), invalid);
    ck_assert_int_eq(take(w, "g1", missing, NULL, NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(take(w, "g1", locations, NULL, NULL), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(take(w, "g1", both, typo, NULL), invalid);
    ck_assert_int_eq(drop(w, "", NULL), invalid);
    ck_assert_int_eq(drop(w, VOLUME_1, NULL), 0);
    ck_assert_int_eq(get(w, "", NULL), invalid);
    ck_assert_int_eq(get(w, "some-group", NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert_uint_eq(g_hash_table_size(w->fake->records), 2);
    world_free(w);
}
END_TEST

/* snapshot-controller sends none unless the class names a secret for it. */
START_TEST(a_group_is_found_without_a_secret)
{
    World *w = world_of_two();
    ck_assert_int_eq(take(w, "g1", both, good_parameters, NULL), 0);
    ck_assert_int_eq(get_as(w, GROUP, NULL, NULL), HEARTH_ERROR_FAILED_PRECONDITION);
    world_own_user(w);
    ck_assert_int_eq(get_as(w, GROUP, NULL, NULL), 0);
    world_free(w);
}
END_TEST

START_TEST(a_class_may_repeat_its_deletion_policy)
{
    World *w = world_of_two();
    static const char *const repeated[] = {"clusterID=c", "deletionPolicy=Delete", NULL};
    ck_assert_int_eq(take(w, "g1", both, repeated, NULL), 0);
    world_free(w);
}
END_TEST

/* A release without attempts gave the group this name, and may have begun it. */
START_TEST(a_long_name_stays_the_groups_name)
{
    World *w = world_of_two();
    Csi__V1__CreateVolumeGroupSnapshotResponse *made = NULL;
    g_autofree char *name = g_strnfill(88, 'n');
    g_autofree char *id = g_strconcat("h1~group~cephfs~c~f~csi-vol-group-", name, NULL);
    ck_assert_int_eq(take(w, name, both, good_parameters, &made), 0);
    ck_assert_str_eq(made->group_snapshot->group_snapshot_id, id);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_le(strlen(made->group_snapshot->snapshots[i]->snapshot_id), 128);
    ck_assert_int_eq(get(w, id, NULL), 0);
    ck_assert_int_eq(drop(w, id, NULL), 0);
    ck_assert_uint_eq(g_hash_table_size(w->fake->snapshots), 0);
    csi__v1__create_volume_group_snapshot_response__free_unpacked(made, NULL);
    world_free(w);
}
END_TEST

HARNESS_MAIN("driver/service/controller/group", a_groups_members_are_snapshots,
             bad_groups_are_refused, a_long_name_stays_the_groups_name,
             a_group_is_found_without_a_secret, a_class_may_repeat_its_deletion_policy)
