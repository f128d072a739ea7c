/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/driver/service/world.h"

#define ID "h1~cephfs~c~f~csi~csi-vol-pvc-1"

/* One that must be refused with INVALID_ARGUMENT and this in its message; the request is freed. */
static void refused(World *w, Csi__V1__CreateVolumeRequest *r, int code, const char *because)
{
    g_autofree char *message = NULL;
    int got = create(w, r, NULL, &message);
    ck_assert_msg(got == code, "%d: %s", got, message);
    ck_assert_msg(strstr(message, because) != NULL, "%s", message);
    ck_assert_uint_eq(g_hash_table_size(w->fake->records), 0);
}

START_TEST(a_volume_says_all_that_staging_needs)
{
    World *w = world_new();
    static const char *const parameters[] = {"clusterID=c",
                                             "fsName=f",
                                             "cacheQuota=1Ki",
                                             "csi.storage.k8s.io/pv/name=pvc-1",
                                             "csi.storage.k8s.io/pvc/name=data",
                                             "csi.storage.k8s.io/pvc/namespace=team",
                                             "cache=on",
                                             "readTimeout=1m",
                                             NULL};
    Csi__V1__CreateVolumeResponse *r = NULL;
    ck_assert_int_eq(create(w, create_request("pvc-1", parameters, 3 * GIB), &r, NULL), 0);
    ck_assert_str_eq(r->volume->volume_id, ID);
    ck_assert_int_eq(r->volume->capacity_bytes, 3 * GIB);
    ck_assert_uint_eq(r->volume->n_accessible_topology, 0);
    static const char *const expected[][2] = {{"type", "cephfs"},
                                              {"clusterID", "c"},
                                              {"fsName", "f"},
                                              {"rootPath", "/volumes/csi/csi-vol-pvc-1"},
                                              {"cache", "on"},
                                              {"cacheQuota", "1024"},
                                              {"readTimeout", "60s"},
                                              {"csi.storage.k8s.io/pv/name", "pvc-1"},
                                              {"csi.storage.k8s.io/pvc/name", "data"},
                                              {"csi.storage.k8s.io/pvc/namespace", "team"}};
    ck_assert_uint_eq(r->volume->n_volume_context, G_N_ELEMENTS(expected));
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        ck_assert_str_eq(r->volume->volume_context[i]->key, expected[i][0]);
        ck_assert_str_eq(r->volume->volume_context[i]->value, expected[i][1]);
    }
    csi__v1__create_volume_response__free_unpacked(r, NULL);
    world_free(w);
}
END_TEST

START_TEST(repeating_gives_the_same_volume_and_another_size_does_not)
{
    World *w = world_new();
    Csi__V1__CreateVolumeResponse *a = NULL, *b = NULL;
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), &a, NULL), 0);
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), &b, NULL), 0);
    ck_assert_str_eq(a->volume->volume_id, b->volume->volume_id);
    ck_assert_int_eq(w->fake->creations, 1);
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, 2 * GIB), NULL, NULL),
                     HEARTH_ERROR_ALREADY_EXISTS);
    csi__v1__create_volume_response__free_unpacked(a, NULL);
    csi__v1__create_volume_response__free_unpacked(b, NULL);
    ck_assert_int_eq(delete (w, delete_request(ID, good_secrets)), 0);
    ck_assert_int_eq(delete (w, delete_request(ID, good_secrets)), 0);
    ck_assert_uint_eq(g_hash_table_size(w->fake->volumes), 0);
    world_free(w);
}
END_TEST

START_TEST(bad_requests_are_refused_before_anything_is_made)
{
    World *w = world_new();
    const int invalid = HEARTH_ERROR_INVALID_ARGUMENT;
    refused(w, create_request("", good_parameters, GIB), invalid, "name is empty");
    g_autofree char *name = g_strnfill(300, 'n');
    refused(w, create_request(name, good_parameters, GIB), invalid, "300 bytes");
    refused(w, create_request("pvc-1", NULL, GIB), invalid, "clusterID is missing");
    static const char *const typo[] = {"clusterID=c", "fsName=f", "chache=on", NULL};
    refused(w, create_request("pvc-1", typo, GIB), invalid, "\"chache\"");
    static const char *const dir[] = {"type=dir", NULL};
    refused(w, create_request("pvc-1", dir, GIB), invalid, "--dir-root");
    refused(w, create_request("pvc-1", good_parameters, -1), invalid, "negative");

    refused(w, create_request("pvc-1", good_parameters, 0), invalid, "capacity_range");

    Csi__V1__CreateVolumeRequest *r = create_request("pvc-1", good_parameters, 2 * GIB);
    r->capacity_range->limit_bytes = GIB;
    refused(w, r, HEARTH_ERROR_OUT_OF_RANGE, "limit_bytes");

    r = create_request("pvc-1", good_parameters, GIB);
    csi__v1__volume_capability__free_unpacked(r->volume_capabilities[0], NULL);
    r->volume_capabilities[0] = world_capability(RWX, TRUE);
    refused(w, r, invalid, "volumeMode: Filesystem");

    r = create_request("pvc-1", good_parameters, GIB);
    csi__v1__volume_capability__free_unpacked(r->volume_capabilities[0], NULL);
    r->n_volume_capabilities = 0;
    refused(w, r, invalid, "volume_capabilities is empty");

    r = create_request("pvc-1", good_parameters, GIB);
    r->volume_content_source = g_new0(Csi__V1__VolumeContentSource, 1);
    csi__v1__volume_content_source__init(r->volume_content_source);
    refused(w, r, invalid, "neither a snapshot nor a volume");

    r = create_request("pvc-1", good_parameters, GIB);
    for (gsize i = 0; i < r->n_secrets; i++)
        protobuf_c_message_free_unpacked(&r->secrets[i]->base, NULL);
    r->n_secrets = 0;
    refused(w, r, invalid, "userID and userKey");
    world_free(w);
}
END_TEST

START_TEST(a_backends_refusal_passes_through_without_the_key)
{
    World *w = world_new();
    Csi__V1__CreateVolumeRequest *r = create_request("pvc-1", good_parameters, GIB);
    g_free(r->secrets[1]->value);
    r->secrets[1]->value = g_strdup("AQAAAAAAAAAAABAAZmVkY2JhOTg3NjU0MzIxMA==");
    g_autofree char *message = NULL;
    ck_assert_int_eq(create(w, r, NULL, &message), HEARTH_ERROR_UNAUTHENTICATED);
    ck_assert_ptr_null(strstr(message, "AQAAAAAAAAAAABAAZmVkY2JhOTg3NjU0MzIxMA=="));
    world_free(w);
}
END_TEST

START_TEST(deleting_what_is_not_ours_succeeds_and_nothing_else_does)
{
    World *w = world_new();
    ck_assert_int_eq(delete (w, delete_request("", NULL)), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(delete (w, delete_request("unknown", NULL)), 0);
    ck_assert_int_eq(delete (w, delete_request("h2~later~x", NULL)),
                     HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(delete (w, delete_request(ID, NULL)), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(delete (w, delete_request("h1~dir~x", NULL)), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(delete (w, delete_request(ID, good_secrets)), 0);
    world_free(w);
}
END_TEST

static void *create_thread(void *data)
{
    World *w = data;
    g_autoptr(RpcClient) client = rpc_client_connect(w->socket, NULL);
    int code = world_call(client, "/csi.v1.Controller/CreateVolume",
                          create_request("pvc-1", good_parameters, GIB),
                          &csi__v1__create_volume_response__descriptor, NULL, NULL);
    return GINT_TO_POINTER(code);
}

START_TEST(a_second_call_for_a_busy_volume_is_aborted)
{
    World *w = world_new();
    w->fake->hold = TRUE;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, create_thread, w), 0);
    pthread_mutex_lock(&w->fake->lock);
    while (!w->fake->held)
        pthread_cond_wait(&w->fake->changed, &w->fake->lock);
    pthread_mutex_unlock(&w->fake->lock);

    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL),
                     HEARTH_ERROR_ABORTED);
    /* By its name, though it would have another ID. */
    static const char *const other[] = {"clusterID=other", "fsName=f", NULL};
    ck_assert_int_eq(create(w, create_request("pvc-1", other, GIB), NULL, NULL),
                     HEARTH_ERROR_ABORTED);
    ck_assert_int_eq(delete (w, delete_request(ID, good_secrets)), HEARTH_ERROR_ABORTED);

    pthread_mutex_lock(&w->fake->lock);
    w->fake->hold = FALSE;
    pthread_cond_broadcast(&w->fake->changed);
    pthread_mutex_unlock(&w->fake->lock);
    void *code;
    pthread_join(thread, &code);
    ck_assert_int_eq(GPOINTER_TO_INT(code), 0);
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert_int_eq(w->fake->creations, 1);
    world_free(w);
}
END_TEST

/* TRUE when confirmed. */
static gboolean confirmed(World *w, Csi__V1__ValidateVolumeCapabilitiesRequest *request)
{
    Csi__V1__ValidateVolumeCapabilitiesResponse *r = NULL;
    ck_assert_int_eq(validate(w, request, &r), 0);
    gboolean is = r->confirmed != NULL;
    if (is)
        ck_assert_uint_eq(r->confirmed->n_volume_capabilities, 1);
    else
        ck_assert_str_ne(r->message, "");
    csi__v1__validate_volume_capabilities_response__free_unpacked(r, NULL);
    return is;
}

START_TEST(validation_confirms_what_is_so)
{
    World *w = world_new();
    static const char *const ours[] = {"rootPath=/volumes/csi/csi-vol-pvc-1", "cache=on",
                                       "storage.kubernetes.io/csiProvisionerIdentity=x", NULL};
    static const char *const wrong[] = {"rootPath=/", NULL};
    static const char *const off[] = {"clusterID=c", "fsName=f", "cache=off", NULL};
    ck_assert_int_eq(validate(w, validate_request(ID, NULL, NULL), NULL), HEARTH_ERROR_NOT_FOUND);
    ck_assert_int_eq(create(w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    ck_assert(confirmed(w, validate_request(ID, NULL, NULL)));
    ck_assert(confirmed(w, validate_request(ID, ours, good_parameters)));
    ck_assert(!confirmed(w, validate_request(ID, wrong, NULL)));
    ck_assert(!confirmed(w, validate_request(ID, NULL, off)));
    Csi__V1__ValidateVolumeCapabilitiesRequest *block = validate_request(ID, NULL, NULL);
    csi__v1__volume_capability__free_unpacked(block->volume_capabilities[0], NULL);
    block->volume_capabilities[0] = world_capability(RWX, TRUE);
    ck_assert(!confirmed(w, block));
    world_free(w);
}
END_TEST

START_TEST(validation_has_the_specs_codes)
{
    World *w = world_new();
    ck_assert_int_eq(validate(w, validate_request("", NULL, NULL), NULL),
                     HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(validate(w, validate_request("unknown", NULL, NULL), NULL),
                     HEARTH_ERROR_NOT_FOUND);
    Csi__V1__ValidateVolumeCapabilitiesRequest *r = validate_request("unknown", NULL, NULL);
    csi__v1__volume_capability__free_unpacked(r->volume_capabilities[0], NULL);
    r->n_volume_capabilities = 0;
    ck_assert_int_eq(validate(w, r, NULL), HEARTH_ERROR_INVALID_ARGUMENT);
    world_free(w);
}
END_TEST

static guint capabilities(World *w)
{
    Csi__V1__ControllerGetCapabilitiesRequest *c =
        g_new0(Csi__V1__ControllerGetCapabilitiesRequest, 1);
    csi__v1__controller_get_capabilities_request__init(c);
    Csi__V1__ControllerGetCapabilitiesResponse *out = NULL;
    ck_assert_int_eq(world_call(w->client, "/csi.v1.Controller/ControllerGetCapabilities", c,
                                &csi__v1__controller_get_capabilities_response__descriptor, &out,
                                NULL),
                     0);
    guint bits = 0;
    for (gsize i = 0; i < out->n_capabilities; i++)
        bits |= 1u << out->capabilities[i]->rpc->type;
    csi__v1__controller_get_capabilities_response__free_unpacked(out, NULL);
    return bits;
}

#define ALWAYS                                                                                     \
    (BIT(CREATE_DELETE_VOLUME) | BIT(SINGLE_NODE_MULTI_WRITER) | BIT(EXPAND_VOLUME) |              \
     BIT(CREATE_DELETE_SNAPSHOT) | BIT(CLONE_VOLUME) | BIT(MODIFY_VOLUME))
#define WITH_USER                                                                                  \
    (BIT(LIST_VOLUMES) | BIT(VOLUME_CONDITION) | BIT(GET_CAPACITY) | BIT(GET_VOLUME) |             \
     BIT(LIST_SNAPSHOTS) | BIT(GET_SNAPSHOT))
#define BIT(name) (1u << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name)

START_TEST(what_needs_a_user_is_advertised_with_one)
{
    World *w = world_new();
    ck_assert_uint_eq(capabilities(w), ALWAYS);
    world_own_user(w);
    ck_assert_uint_eq(capabilities(w), ALWAYS | WITH_USER);
    world_free(w);
}
END_TEST

START_TEST(what_is_not_there_is_unimplemented)
{
    World *w = world_new();
    Csi__V1__ControllerPublishVolumeRequest *r = g_new0(Csi__V1__ControllerPublishVolumeRequest, 1);
    csi__v1__controller_publish_volume_request__init(r);
    ck_assert_int_eq(world_call(w->client, "/csi.v1.Controller/ControllerPublishVolume", r,
                                &csi__v1__controller_publish_volume_response__descriptor, NULL,
                                NULL),
                     HEARTH_ERROR_UNIMPLEMENTED);
    world_free(w);
}
END_TEST

HARNESS_MAIN("driver/service/controller/controller", a_volume_says_all_that_staging_needs,
             repeating_gives_the_same_volume_and_another_size_does_not,
             bad_requests_are_refused_before_anything_is_made,
             a_backends_refusal_passes_through_without_the_key,
             deleting_what_is_not_ours_succeeds_and_nothing_else_does,
             a_second_call_for_a_busy_volume_is_aborted, validation_confirms_what_is_so,
             validation_has_the_specs_codes, what_needs_a_user_is_advertised_with_one,
             what_is_not_there_is_unimplemented)
