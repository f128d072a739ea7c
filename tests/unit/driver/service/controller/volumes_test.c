/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/driver/service/world.h"

#define ID "h1~cephfs~c~f~csi~csi-vol-pvc-1"

static int expand(World *w, const char *id, gint64 required, gint64 limit, gint64 *bytes)
{
    Csi__V1__ControllerExpandVolumeRequest *r = g_new0(Csi__V1__ControllerExpandVolumeRequest, 1);
    csi__v1__controller_expand_volume_request__init(r);
    r->volume_id = g_strdup(id);
    r->capacity_range = g_new0(Csi__V1__CapacityRange, 1);
    csi__v1__capacity_range__init(r->capacity_range);
    r->capacity_range->required_bytes = required;
    r->capacity_range->limit_bytes = limit;
    WORLD_MAP(Csi__V1__ControllerExpandVolumeRequest__SecretsEntry,
              csi__v1__controller_expand_volume_request__secrets_entry__init, good_secrets,
              r->secrets, r->n_secrets);
    Csi__V1__ControllerExpandVolumeResponse *out = NULL;
    int code = world_call(w->client, "/csi.v1.Controller/ControllerExpandVolume", r,
                          &csi__v1__controller_expand_volume_response__descriptor, &out, NULL);
    if (code == 0) {
        *bytes = out->capacity_bytes;
        ck_assert(!out->node_expansion_required);
        csi__v1__controller_expand_volume_response__free_unpacked(out, NULL);
    }
    return code;
}

START_TEST(a_volume_grows_and_never_shrinks)
{
    World *w = world_new();
    gint64 bytes = 0;
    ck_assert_int_eq(expand(w, ID, GIB, 0, &bytes), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(expand(w, ID, 2 * GIB, 0, &bytes), 0);
    ck_assert_int_eq(bytes, 2 * GIB);
    ck_assert_int_eq(expand(w, ID, 2 * GIB, 0, &bytes), 0);
    ck_assert_int_eq(expand(w, ID, GIB, 0, &bytes), 0);
    ck_assert_int_eq(bytes, 2 * GIB);
    ck_assert_int_eq(w->fake->resizes, 1);
    ck_assert_int_eq(expand(w, ID, GIB / 2, GIB, &bytes), HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_int_eq(expand(w, ID, 0, 0, &bytes), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(expand(w, ID, -1, 0, &bytes), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(expand(w, "", GIB, 0, &bytes), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(expand(w, "other", GIB, 0, &bytes), HEARTH_ERROR_NOT_FOUND);

    /* Creating it again is still the same request, and tells the size it has. */
    Csi__V1__CreateVolumeResponse *again = NULL;
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), &again, NULL), 0);
    ck_assert_int_eq(again->volume->capacity_bytes, 2 * GIB);
    csi__v1__create_volume_response__free_unpacked(again, NULL);
    world_free(w);
}
END_TEST

static int list(World *w, int max, const char *token, Csi__V1__ListVolumesResponse **out)
{
    Csi__V1__ListVolumesRequest *r = g_new0(Csi__V1__ListVolumesRequest, 1);
    csi__v1__list_volumes_request__init(r);
    r->max_entries = max;
    r->starting_token = g_strdup(token);
    return world_call(w->client, "/csi.v1.Controller/ListVolumes", r,
                      &csi__v1__list_volumes_response__descriptor, out, NULL);
}

START_TEST(a_list_is_read_in_pages)
{
    World *w = world_new();
    world_own_user(w);
    for (int i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("pvc-%d", i);
        ck_assert_int_eq(create(w, create_request(name, good_parameters, GIB), NULL, NULL), 0);
    }
    g_hash_table_insert(w->fake->records, g_strdup("snap.x"), g_strdup("{}"));
    g_hash_table_insert(w->fake->records, g_strdup("vol.csi-vol-pvc-15"), g_strdup("damaged"));
    g_autofree char *token = g_strdup("");
    for (int i = 0; i < 5; i += 2) {
        Csi__V1__ListVolumesResponse *page = NULL;
        ck_assert_int_eq(list(w, 2, token, &page), 0);
        ck_assert_uint_eq(page->n_entries, i < 4 ? 2 : 1);
        g_autofree char *id = g_strdup_printf("h1~cephfs~c~f~csi~csi-vol-pvc-%d", i);
        ck_assert_str_eq(page->entries[0]->volume->volume_id, id);
        ck_assert_int_eq(page->entries[0]->volume->capacity_bytes, GIB);
        g_free(token);
        token = g_strdup(page->next_token);
        ck_assert_int_eq(*token == '\0', i == 4);
        csi__v1__list_volumes_response__free_unpacked(page, NULL);
        if (i == 0) /* the last of a page may go before the next is asked for */
            ck_assert_int_eq(
                delete (w, delete_request("h1~cephfs~c~f~csi~csi-vol-pvc-1", good_secrets)), 0);
    }
    ck_assert_int_eq(list(w, 0, "no token", NULL), HEARTH_ERROR_ABORTED);
    ck_assert_int_eq(list(w, -1, "", NULL), HEARTH_ERROR_INVALID_ARGUMENT);
    world_free(w);
}
END_TEST

static int get(World *w, const char *id)
{
    Csi__V1__ControllerGetVolumeRequest *r = g_new0(Csi__V1__ControllerGetVolumeRequest, 1);
    csi__v1__controller_get_volume_request__init(r);
    r->volume_id = g_strdup(id);
    Csi__V1__ControllerGetVolumeResponse *out = NULL;
    int code = world_call(w->client, "/csi.v1.Controller/ControllerGetVolume", r,
                          &csi__v1__controller_get_volume_response__descriptor, &out, NULL);
    if (code == 0) {
        ck_assert_str_eq(out->volume->volume_id, id);
        csi__v1__controller_get_volume_response__free_unpacked(out, NULL);
    }
    return code;
}

static int room(World *w, const char *const *parameters, gint64 *bytes)
{
    Csi__V1__GetCapacityRequest *r = g_new0(Csi__V1__GetCapacityRequest, 1);
    csi__v1__get_capacity_request__init(r);
    WORLD_MAP(Csi__V1__GetCapacityRequest__ParametersEntry,
              csi__v1__get_capacity_request__parameters_entry__init, parameters, r->parameters,
              r->n_parameters);
    Csi__V1__GetCapacityResponse *out = NULL;
    int code = world_call(w->client, "/csi.v1.Controller/GetCapacity", r,
                          &csi__v1__get_capacity_response__descriptor, &out, NULL);
    if (code == 0) {
        *bytes = out->available_capacity;
        csi__v1__get_capacity_response__free_unpacked(out, NULL);
    }
    return code;
}

START_TEST(calls_without_secrets_need_a_user)
{
    World *w = world_new();
    gint64 bytes;
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(list(w, 0, "", NULL), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(get(w, ID), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(room(w, good_parameters, &bytes), HEARTH_ERROR_FAILED_PRECONDITION);
    world_own_user(w);
    ck_assert_int_eq(get(w, ID), 0);
    ck_assert_int_eq(get(w, "h1~cephfs~c~f~csi~other"), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(get(w, ""), HEARTH_ERROR_INVALID_ARGUMENT);
    g_autofree char *user = g_build_filename(w->dir, "userID", NULL);
    ck_assert_int_eq(g_remove(user), 0);
    ck_assert_int_eq(get(w, ID), HEARTH_ERROR_FAILED_PRECONDITION);
    world_free(w);
}
END_TEST

START_TEST(room_is_told_by_parameters)
{
    World *w = world_new();
    world_own_user(w);
    w->fake->available = 10 * GIB;
    static const char *const pool[] = {"clusterID=c", "fsName=f", "pool=p", NULL};
    static const char *const typo[] = {"clusterId=c", NULL};
    gint64 bytes = 0;
    ck_assert_int_eq(room(w, good_parameters, &bytes), 0);
    ck_assert_int_eq(bytes, 10 * GIB);
    ck_assert_int_eq(room(w, pool, &bytes), 0);
    ck_assert_int_eq(bytes, 5 * GIB);
    ck_assert_int_eq(room(w, NULL, &bytes), 0);
    ck_assert_int_eq(bytes, 10 * GIB);
    ck_assert_int_eq(room(w, typo, &bytes), HEARTH_ERROR_INVALID_ARGUMENT);
    world_free(w);
}
END_TEST

HARNESS_MAIN("driver/service/controller/volumes", a_volume_grows_and_never_shrinks,
             a_list_is_read_in_pages, calls_without_secrets_need_a_user, room_is_told_by_parameters)
