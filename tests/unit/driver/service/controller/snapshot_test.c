/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/driver/service/world.h"

#define VOLUME "h1~cephfs~c~f~csi~csi-vol-pvc-1"
#define SNAPSHOT "h1~snap~cephfs~c~f~csi-snap-s1"

static int snapshot(World *w, const char *name, const char *volume, const char *const *parameters,
                    Csi__V1__CreateSnapshotResponse **out)
{
    Csi__V1__CreateSnapshotRequest *r = g_new0(Csi__V1__CreateSnapshotRequest, 1);
    csi__v1__create_snapshot_request__init(r);
    r->name = g_strdup(name);
    r->source_volume_id = g_strdup(volume);
    WORLD_MAP(Csi__V1__CreateSnapshotRequest__ParametersEntry,
              csi__v1__create_snapshot_request__parameters_entry__init, parameters, r->parameters,
              r->n_parameters);
    WORLD_MAP(Csi__V1__CreateSnapshotRequest__SecretsEntry,
              csi__v1__create_snapshot_request__secrets_entry__init, good_secrets, r->secrets,
              r->n_secrets);
    return world_call(w->client, "/csi.v1.Controller/CreateSnapshot", r,
                      &csi__v1__create_snapshot_response__descriptor, out, NULL);
}

static int unsnapshot(World *w, const char *id)
{
    Csi__V1__DeleteSnapshotRequest *r = g_new0(Csi__V1__DeleteSnapshotRequest, 1);
    csi__v1__delete_snapshot_request__init(r);
    r->snapshot_id = g_strdup(id);
    WORLD_MAP(Csi__V1__DeleteSnapshotRequest__SecretsEntry,
              csi__v1__delete_snapshot_request__secrets_entry__init, good_secrets, r->secrets,
              r->n_secrets);
    return world_call(w->client, "/csi.v1.Controller/DeleteSnapshot", r,
                      &csi__v1__delete_snapshot_response__descriptor, NULL, NULL);
}

START_TEST(a_snapshot_says_what_it_is)
{
    World *w = world_new();
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    gint64 before = g_get_real_time() / G_USEC_PER_SEC;
    Csi__V1__CreateSnapshotResponse *r = NULL;
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, good_parameters, &r), 0);
    ck_assert_str_eq(r->snapshot->snapshot_id, SNAPSHOT);
    ck_assert_str_eq(r->snapshot->source_volume_id, VOLUME);
    ck_assert_int_eq(r->snapshot->size_bytes, GIB);
    ck_assert(r->snapshot->ready_to_use);
    ck_assert_int_ge(r->snapshot->creation_time->seconds, before);
    csi__v1__create_snapshot_response__free_unpacked(r, NULL);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, NULL, NULL), 0);
    ck_assert_int_eq(unsnapshot(w, SNAPSHOT), 0);
    ck_assert_int_eq(unsnapshot(w, SNAPSHOT), 0);
    ck_assert_uint_eq(g_hash_table_size(w->fake->snapshots), 0);
    world_free(w);
}
END_TEST

START_TEST(bad_snapshots_are_refused)
{
    World *w = world_new();
    const int invalid = HEARTH_ERROR_INVALID_ARGUMENT;
    static const char *const elsewhere[] = {"clusterID=d", NULL};
    static const char *const typo[] = {"clusterId=c", NULL};
    static const char *const prefix[] = {"snapshotNamePrefix=../", NULL};
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(snapshot(w, "", VOLUME, NULL, NULL), invalid);
    ck_assert_int_eq(snapshot(w, "s1", "", NULL, NULL), invalid);
    ck_assert_int_eq(snapshot(w, "s1", "other", NULL, NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME "x", NULL, NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, elsewhere, NULL), invalid);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, typo, NULL), invalid);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, prefix, NULL), invalid);
    ck_assert_int_eq(unsnapshot(w, ""), invalid);
    ck_assert_int_eq(unsnapshot(w, "other"), 0);
    ck_assert_int_eq(unsnapshot(w, VOLUME), 0); /* no snapshot, so there is nothing to delete */
    ck_assert_uint_eq(g_hash_table_size(w->fake->volumes), 1);
    ck_assert_uint_eq(g_hash_table_size(w->fake->records), 1);
    world_free(w);
}
END_TEST

static int list(World *w, int max, const char *token, const char *id, const char *source,
                Csi__V1__ListSnapshotsResponse **out)
{
    Csi__V1__ListSnapshotsRequest *r = g_new0(Csi__V1__ListSnapshotsRequest, 1);
    csi__v1__list_snapshots_request__init(r);
    r->max_entries = max;
    r->starting_token = g_strdup(token);
    r->snapshot_id = g_strdup(id);
    r->source_volume_id = g_strdup(source);
    WORLD_MAP(Csi__V1__ListSnapshotsRequest__SecretsEntry,
              csi__v1__list_snapshots_request__secrets_entry__init, good_secrets, r->secrets,
              r->n_secrets);
    return world_call(w->client, "/csi.v1.Controller/ListSnapshots", r,
                      &csi__v1__list_snapshots_response__descriptor, out, NULL);
}

/* The number of entries and, unless NULL, the first one's ID. */
static gsize listed(World *w, const char *id, const char *source, const char *first)
{
    Csi__V1__ListSnapshotsResponse *r = NULL;
    ck_assert_int_eq(list(w, 0, "", id, source, &r), 0);
    gsize n = r->n_entries;
    if (first)
        ck_assert_str_eq(r->entries[0]->snapshot->snapshot_id, first);
    csi__v1__list_snapshots_response__free_unpacked(r, NULL);
    return n;
}

START_TEST(lists_are_by_id_by_source_and_in_pages)
{
    World *w = world_new();
    static const char other[] = "h1~cephfs~c~f~csi~csi-vol-pvc-2";
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(create(w, create_request("pvc-2", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, NULL, NULL), 0);
    ck_assert_int_eq(snapshot(w, "s2", other, NULL, NULL), 0);
    ck_assert_int_eq(snapshot(w, "s3", VOLUME, NULL, NULL), 0);
    ck_assert_uint_eq(listed(w, "", "", SNAPSHOT), 3);
    ck_assert_uint_eq(listed(w, SNAPSHOT, "", SNAPSHOT), 1);
    ck_assert_uint_eq(listed(w, SNAPSHOT, other, NULL), 0);
    ck_assert_uint_eq(listed(w, "", VOLUME, SNAPSHOT), 2);
    ck_assert_uint_eq(listed(w, "", "other", NULL), 0);
    ck_assert_uint_eq(listed(w, "other", "", NULL), 0);
    Csi__V1__ListSnapshotsResponse *r = NULL;
    ck_assert_int_eq(list(w, 1, "", "", VOLUME, &r), 0);
    ck_assert_str_eq(r->next_token, SNAPSHOT);
    csi__v1__list_snapshots_response__free_unpacked(r, NULL);
    ck_assert_int_eq(list(w, 1, SNAPSHOT, "", VOLUME, &r), 0);
    ck_assert_str_eq(r->entries[0]->snapshot->snapshot_id, "h1~snap~cephfs~c~f~csi-snap-s3");
    ck_assert_str_eq(r->next_token, "");
    csi__v1__list_snapshots_response__free_unpacked(r, NULL);
    ck_assert_int_eq(list(w, 0, "nonsense", "", "", NULL), HEARTH_ERROR_ABORTED);
    world_free(w);
}
END_TEST

static Csi__V1__CreateVolumeRequest *from(const char *name, const char *snapshot_id,
                                          const char *volume_id, const char *const *parameters)
{
    Csi__V1__CreateVolumeRequest *r = create_request(name, parameters, GIB);
    Csi__V1__VolumeContentSource *s = g_new0(Csi__V1__VolumeContentSource, 1);
    csi__v1__volume_content_source__init(s);
    r->volume_content_source = s;
    if (snapshot_id) {
        s->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
        s->snapshot = g_new0(Csi__V1__VolumeContentSource__SnapshotSource, 1);
        csi__v1__volume_content_source__snapshot_source__init(s->snapshot);
        s->snapshot->snapshot_id = g_strdup(snapshot_id);
    } else {
        s->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
        s->volume = g_new0(Csi__V1__VolumeContentSource__VolumeSource, 1);
        csi__v1__volume_content_source__volume_source__init(s->volume);
        s->volume->volume_id = g_strdup(volume_id);
    }
    return r;
}

START_TEST(a_volume_names_what_it_was_made_from)
{
    World *w = world_new();
    Csi__V1__CreateVolumeResponse *r = NULL;
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(snapshot(w, "s1", VOLUME, NULL, NULL), 0);
    ck_assert_int_eq(create(w, from("pvc-2", SNAPSHOT, NULL, good_parameters), &r, NULL), 0);
    ck_assert_str_eq(r->volume->content_source->snapshot->snapshot_id, SNAPSHOT);
    csi__v1__create_volume_response__free_unpacked(r, NULL);
    ck_assert_int_eq(create(w, from("pvc-3", NULL, VOLUME, good_parameters), &r, NULL), 0);
    ck_assert_str_eq(r->volume->content_source->volume->volume_id, VOLUME);
    csi__v1__create_volume_response__free_unpacked(r, NULL);

    static const char *const elsewhere[] = {"clusterID=c", "fsName=g", NULL};
    const int invalid = HEARTH_ERROR_INVALID_ARGUMENT, not_found = HEARTH_ERROR_NOT_FOUND;
    ck_assert_int_eq(create(w, from("pvc-4", SNAPSHOT, NULL, elsewhere), NULL, NULL), invalid);
    /* Where the backend says that it can. */
    static const char *const beside[] = {"clusterID=c", "fsName=" FAKE_BESIDE, NULL};
    w->fake->beside = fake_new();
    w->fake->beside->main = w->fake;
    ck_assert_int_eq(create(w, from("pvc-5", SNAPSHOT, NULL, beside), &r, NULL), 0);
    ck_assert_str_eq(r->volume->volume_id, "h1~cephfs~c~" FAKE_BESIDE "~csi~csi-vol-pvc-5");
    csi__v1__create_volume_response__free_unpacked(r, NULL);
    ck_assert_int_eq(create(w, from("pvc-4", "", NULL, good_parameters), NULL, NULL), invalid);
    ck_assert_int_eq(create(w, from("pvc-4", "other", NULL, good_parameters), NULL, NULL),
                     not_found);
    ck_assert_int_eq(create(w, from("pvc-4", SNAPSHOT "x", NULL, good_parameters), NULL, NULL),
                     not_found);
    ck_assert_int_eq(create(w, from("pvc-4", NULL, VOLUME "x", good_parameters), NULL, NULL),
                     not_found);
    ck_assert_int_eq(create(w, from("pvc-2", NULL, VOLUME, good_parameters), NULL, NULL),
                     HEARTH_ERROR_ALREADY_EXISTS);
    world_free(w);
}
END_TEST

HARNESS_MAIN("driver/service/controller/snapshot", a_snapshot_says_what_it_is,
             bad_snapshots_are_refused, lists_are_by_id_by_source_and_in_pages,
             a_volume_names_what_it_was_made_from)
