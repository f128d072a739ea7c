/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/id.h"
#include <string.h>
#include "tests/unit/harness.h"

static VolumeId cephfs(const char *cluster, const char *name)
{
    return (VolumeId){.type = VOLUME_CEPHFS,
                      .cluster_id = (char *)cluster,
                      .fs_name = (char *)"cephfs",
                      .group = (char *)"csi",
                      .name = (char *)name};
}

START_TEST(encodes_readably_and_back)
{
    VolumeId id = cephfs("be0c062e-e99b-4795-af54-b17ac4ae44ff",
                         "csi-vol-pvc-6a2b1c3d-0000-4000-8000-123456789abc");
    g_autofree char *text = volume_id_encode(&id, NULL);
    ck_assert_str_eq(text, "h1~cephfs~be0c062e-e99b-4795-af54-b17ac4ae44ff~cephfs~csi~"
                           "csi-vol-pvc-6a2b1c3d-0000-4000-8000-123456789abc");
    ck_assert_uint_le(strlen(text), VOLUME_ID_MAX);
    g_autoptr(VolumeId) back = volume_id_decode(text, NULL);
    ck_assert_ptr_nonnull(back);
    ck_assert_int_eq(back->type, VOLUME_CEPHFS);
    ck_assert_str_eq(back->cluster_id, id.cluster_id);
    ck_assert_str_eq(back->fs_name, id.fs_name);
    ck_assert_str_eq(back->group, id.group);
    ck_assert_str_eq(back->name, id.name);
}
END_TEST

START_TEST(escapes_what_paths_and_mount_options_divide_at)
{
    VolumeId id = cephfs("rook ceph~%,:é", "v");
    g_autofree char *text = volume_id_encode(&id, NULL);
    ck_assert_str_eq(text, "h1~cephfs~rook%20ceph%7E%25%2C%3A%C3%A9~cephfs~csi~v");
    g_autoptr(VolumeId) back = volume_id_decode(text, NULL);
    ck_assert_str_eq(back->cluster_id, id.cluster_id);
}
END_TEST

START_TEST(names_the_parts_of_an_id_that_is_too_long)
{
    g_autofree char *cluster = g_strnfill(100, 'c');
    VolumeId id = cephfs(cluster, "csi-vol-pvc");
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(volume_id_encode(&id, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_ptr_nonnull(strstr(error->message, "fsName \"cephfs\""));
    ck_assert_ptr_nonnull(strstr(error->message, "128"));
}
END_TEST

START_TEST(room_is_what_encoding_leaves)
{
    VolumeId id = cephfs("be0c062e-e99b-4795-af54-b17ac4ae44ff", NULL);
    gsize room = volume_id_room(&id);
    g_autofree char *fits = g_strnfill(room, 'n'), *exceeds = g_strnfill(room + 1, 'n');
    id.name = fits;
    g_autofree char *text = volume_id_encode(&id, NULL);
    ck_assert_uint_eq(strlen(text), VOLUME_ID_MAX);
    id.name = exceeds;
    ck_assert_ptr_null(volume_id_encode(&id, NULL));
    g_autofree char *cluster = g_strnfill(128, 'c');
    id.cluster_id = cluster;
    ck_assert_uint_eq(volume_id_room(&id), 0);
}
END_TEST

static int code_of(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeId) id = volume_id_decode(text, &error);
    if (id)
        return 0;
    ck_assert(error->domain == HEARTH_ERROR);
    ck_assert(g_utf8_validate(error->message, -1, NULL));
    return error->code;
}

START_TEST(refuses_what_it_would_not_write)
{
    static const char *const bad[] = {
        "some-volume",
        "h1",
        "h1~",
        "h1~cephfs",
        "h1~cephfs~c~f~g",
        "h1~cephfs~c~f~g~n~x",
        "h1~cephfs~~f~g~n",
        "h1~cephfs~c~f~g~",
        "h1~rbd~c~p~n",
        "h1~rbd~c~p~s~",
        "h1~rbd~c~~s~n",
        "h1~rbd~~p~s~n",
        "h1~rbd~c~p~s~g~n",
        "h1~rbd~c~p~a%2Fb~n",
        "h1~dir~",
        "h1~dir~a~b",
        "h1~dir~..",
        "h1~dir~.",
        "h1~dir~.hearth",
        "h1~dir~-n",
        "h1~dir~a/b",
        "h1~dir~%2E%2E",
        "h1~dir~%2F",
        "h1~dir~a%00b",
        "h1~dir~a%0Ab",
        "h1~dir~%61",
        "h1~dir~a b",
        "h1~dir~a%20b",
        "h1~cephfs~c%2f~f~g~n",
        "h1~cephfs~c%7e~f~g~n",
        "h1~cephfs~c%~f~g~n",
        "h1~cephfs~c%4~f~g~n",
        "h1~cephfs~c%FF~f~g~n",
        "h1~cephfs~..~f~g~n",
        "H1~dir~a",
        " h1~dir~a",
        "h1~dir~a\n",
        "0001-0011-be0c062e-e99b-4795-af54-b17ac4ae44ff-0000000000000001-x"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(code_of(bad[i]) == HEARTH_ERROR_NOT_FOUND, "%s: %d", bad[i], code_of(bad[i]));
    g_autofree char *tail = g_strnfill(200, 'n');
    g_autofree char *longer = g_strconcat("h1~dir~", tail, NULL);
    ck_assert_int_eq(code_of(longer), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(code_of(""), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(code_of("h1~dir~a"), 0);
}
END_TEST

START_TEST(does_not_take_a_later_versions_volume_for_missing)
{
    ck_assert_int_eq(code_of("h2~cephfs~anything"), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(code_of("h10~x"), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(code_of("h~x"), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(code_of("h2~d\324\324"), HEARTH_ERROR_FAILED_PRECONDITION); /* fuzzed */
}
END_TEST

START_TEST(an_images_namespace_may_be_the_pools_own)
{
    VolumeId id = {.type = VOLUME_RBD,
                   .cluster_id = (char *)"c",
                   .pool = (char *)"fast pool",
                   .rados_namespace = (char *)"",
                   .name = (char *)"csi-vol-n"};
    g_autofree char *text = volume_id_encode(&id, NULL);
    ck_assert_str_eq(text, "h1~rbd~c~fast%20pool~~csi-vol-n");
    g_autoptr(VolumeId) back = volume_id_decode(text, NULL);
    ck_assert_str_eq(back->pool, "fast pool");
    ck_assert_str_eq(back->rados_namespace, "");
    ck_assert(volume_id_same_location(&id, back));
    id.rados_namespace = (char *)"team";
    g_autofree char *in_team = volume_id_encode(&id, NULL);
    ck_assert_str_eq(in_team, "h1~rbd~c~fast%20pool~team~csi-vol-n");
    ck_assert(!volume_id_same_location(&id, back));
    ck_assert_int_gt(volume_id_compare_locations(&id, back), 0);
    ck_assert(!volume_id_same_location_within(&id, back));
    id.rados_namespace = (char *)"";
    id.cluster_id = (char *)"d";
    ck_assert(!volume_id_same_location(&id, back) && volume_id_same_location_within(&id, back));
    id.cluster_id = (char *)"c";
    id.rados_namespace = (char *)"team";
    g_autofree char *snapshot = snapshot_id_encode(&id, NULL);
    ck_assert_str_eq(snapshot, "h1~snap~rbd~c~fast%20pool~team~csi-vol-n");
    g_autofree char *words = volume_id_location_text(&id);
    ck_assert_str_eq(words, "namespace team of pool fast pool of cluster c");
}
END_TEST

START_TEST(a_snapshots_id_is_not_a_volumes)
{
    VolumeId snapshot = {.type = VOLUME_CEPHFS,
                         .cluster_id = (char *)"c d",
                         .fs_name = (char *)"f",
                         .name = (char *)"s"};
    g_autofree char *text = snapshot_id_encode(&snapshot, NULL);
    ck_assert_str_eq(text, "h1~snap~cephfs~c%20d~f~s");
    g_autoptr(VolumeId) back = snapshot_id_decode(text, NULL);
    ck_assert_str_eq(back->cluster_id, "c d");
    ck_assert_str_eq(back->name, "s");
    ck_assert_ptr_null(back->group);
    ck_assert_uint_eq(snapshot_id_room(&snapshot) + strlen(text), VOLUME_ID_MAX + 1);
    static const char *const not_ours[] = {"h1~cephfs~c~f~g~n",
                                           "h1~snap~cephfs~c~f",
                                           "h1~snap~cephfs~c~f~g~n",
                                           "h1~snap~",
                                           "h1~snap",
                                           "h1~snap~rbd~c~f~n",
                                           "x"};
    for (gsize i = 0; i < G_N_ELEMENTS(not_ours); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(snapshot_id_decode(not_ours[i], &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND));
    }
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(volume_id_decode(text, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND));
    g_clear_error(&error);
    ck_assert_ptr_null(snapshot_id_decode("h2~snap~cephfs~c~f~s", &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
}
END_TEST

HARNESS_MAIN("driver/volume/id", an_images_namespace_may_be_the_pools_own,
             a_snapshots_id_is_not_a_volumes, encodes_readably_and_back,
             escapes_what_paths_and_mount_options_divide_at,
             names_the_parts_of_an_id_that_is_too_long, room_is_what_encoding_leaves,
             refuses_what_it_would_not_write, does_not_take_a_later_versions_volume_for_missing)
