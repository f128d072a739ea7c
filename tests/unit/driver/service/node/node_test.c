/* SPDX-License-Identifier: Apache-2.0 */
/* The Node service through a real RPC server and client, over a node without a kernel. */
#include "driver/service/node/node.h"
#include "driver/volume/topology.h"
#include "csi.pb-c.h"
#include "driver/rpc/client.h"
#include "tests/unit/driver/node/world.h"

typedef Csi__V1__VolumeCapability Capability;
typedef Csi__V1__NodeStageVolumeRequest StageRequest;
typedef Csi__V1__NodePublishVolumeRequest PublishRequest;

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

typedef struct Fixture {
    World *world;
    NodeService *service;
    RpcServer *server;
    RpcClient *client;
    char *socket_path, *staged, *target;
    GError *error;
    /* A request for a capability, whose fields a test may change. */
    Csi__V1__VolumeCapability__MountVolume mount;
    Csi__V1__VolumeCapability__BlockVolume block;
    Csi__V1__VolumeCapability__AccessMode mode;
    Capability capability;
    Csi__V1__NodeStageVolumeRequest__VolumeContextEntry context[3], *context_rows[3];
} Fixture;

static void set_context(Fixture *f, int i, char *key, char *value)
{
    csi__v1__node_stage_volume_request__volume_context_entry__init(&f->context[i]);
    f->context[i].key = key;
    f->context[i].value = value;
    f->context_rows[i] = &f->context[i];
}

static Fixture *setup_on(gboolean selinux)
{
    Fixture *f = g_new0(Fixture, 1);
    g_autoptr(GError) error = NULL;
    f->world = world_new();
    f->world->base.selinux = selinux;
    f->staged = world_path(f->world, "staged");
    f->target = world_path(f->world, "target");
    f->socket_path = world_path(f->world, "csi.sock");
    NodeServiceConfig config = {.node_id = "node-1",
                                .hearthd_socket = f->world->socket_path,
                                .tier = "nvme",
                                .zone = "rack-7",
                                .mounter = &f->world->base};
    f->service = node_service_new(&config, &error);
    ck_assert_msg(f->service != NULL, "%s", error ? error->message : "");
    RpcServerConfig rpc = {.socket_path = f->socket_path, .workers = 4};
    f->server = rpc_server_new(&rpc, &error);
    ck_assert_msg(f->server != NULL, "%s", error ? error->message : "");
    rpc_server_add(f->server, node_service_methods(), f->service);
    ck_assert_msg(rpc_server_start(f->server, &error), "%s", error ? error->message : "");
    f->client = rpc_client_connect(f->socket_path, &error);
    ck_assert_msg(f->client != NULL, "%s", error ? error->message : "");

    csi__v1__volume_capability__mount_volume__init(&f->mount);
    csi__v1__volume_capability__block_volume__init(&f->block);
    csi__v1__volume_capability__access_mode__init(&f->mode);
    csi__v1__volume_capability__init(&f->capability);
    f->mode.mode = MODE(MULTI_NODE_MULTI_WRITER);
    f->capability.access_mode = &f->mode;
    f->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    f->capability.mount = &f->mount;
    set_context(f, 0, "type", "dir");
    set_context(f, 1, "rootPath", "/srv/v");
    set_context(f, 2, "storage.kubernetes.io/csiProvisionerIdentity", "x");
    return f;
}

static Fixture *setup(void)
{
    return setup_on(TRUE);
}

static void teardown(Fixture *f)
{
    g_clear_error(&f->error);
    rpc_client_close(f->client);
    ck_assert(rpc_server_stop(f->server, 5000));
    node_service_free(f->service);
    world_free(f->world);
    g_free(f->staged);
    g_free(f->target);
    g_free(f->socket_path);
    g_free(f);
}

/* The code of a call; 0: success. The response is freed unless asked for. */
static int call(Fixture *f, const char *name, const void *request,
                const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    g_autofree char *path = g_strconcat("/csi.v1.Node/", name, NULL);
    g_clear_error(&f->error);
    ProtobufCMessage *r = rpc_client_call(f->client, path, request, type, 20000, &f->error);
    if (response)
        *response = r;
    else if (r)
        protobuf_c_message_free_unpacked(r, NULL);
    if (r)
        return 0;
    ck_assert_msg(f->error->domain == HEARTH_ERROR, "%s", f->error->message);
    return f->error->code;
}

static StageRequest stage_request(Fixture *f)
{
    StageRequest r = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    r.volume_id = "h1~dir~v";
    r.staging_target_path = f->staged;
    r.volume_capability = &f->capability;
    r.volume_context = f->context_rows;
    r.n_volume_context = 3;
    return r;
}

static int stage(Fixture *f, const StageRequest *r)
{
    return call(f, "NodeStageVolume", r, &csi__v1__node_stage_volume_response__descriptor, NULL);
}

static PublishRequest publish_request(Fixture *f)
{
    PublishRequest r = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
    r.volume_id = "h1~dir~v";
    r.staging_target_path = f->staged;
    r.target_path = f->target;
    r.volume_capability = &f->capability;
    return r;
}

static int publish(Fixture *f, const PublishRequest *r)
{
    return call(f, "NodePublishVolume", r, &csi__v1__node_publish_volume_response__descriptor,
                NULL);
}

static int unpublish(Fixture *f, char *volume, char *path)
{
    Csi__V1__NodeUnpublishVolumeRequest r = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
    r.volume_id = volume;
    r.target_path = path;
    return call(f, "NodeUnpublishVolume", &r, &csi__v1__node_unpublish_volume_response__descriptor,
                NULL);
}

static int unstage(Fixture *f, char *volume, char *path)
{
    Csi__V1__NodeUnstageVolumeRequest r = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
    r.volume_id = volume;
    r.staging_target_path = path;
    return call(f, "NodeUnstageVolume", &r, &csi__v1__node_unstage_volume_response__descriptor,
                NULL);
}

static int stats(Fixture *f, char *volume, char *path, ProtobufCMessage **response)
{
    Csi__V1__NodeGetVolumeStatsRequest r = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;
    r.volume_id = volume;
    r.volume_path = path;
    return call(f, "NodeGetVolumeStats", &r, &csi__v1__node_get_volume_stats_response__descriptor,
                response);
}

#define expect(code, run)                                                                          \
    do {                                                                                           \
        int got_ = (run);                                                                          \
        ck_assert_msg(got_ == (code), #run ": %d %s", got_, f->error ? f->error->message : "ok");  \
    } while (0)

START_TEST(a_volume_lives_and_leaves_nothing)
{
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    expect(0, stage(f, &s));
    expect(0, stage(f, &s));
    expect(0, publish(f, &p));
    expect(0, publish(f, &p));
    g_autoptr(MountEntry) target = world_mounted(f->world, f->target);
    ck_assert_str_eq(target->source, "hearth:h1~dir~v");
    expect(0, unpublish(f, "h1~dir~v", f->target));
    expect(0, unpublish(f, "h1~dir~v", f->target));
    expect(0, unstage(f, "h1~dir~v", f->staged));
    expect(0, unstage(f, "h1~dir~v", f->staged));
    ck_assert_uint_eq(world_mounts(f->world), 0);
    world_expect_volumes(f->world, 0);
    world_expect_all_closed(f->world);
    teardown(f);
}
END_TEST

START_TEST(bad_arguments_of_stage_are_refused)
{
    Fixture *f = setup();
    StageRequest r = stage_request(f);
    r.volume_id = "";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    g_autofree char *long_id = g_strnfill(257, 'v');
    r.volume_id = long_id;
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    r.volume_id = "a\nb";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    r = stage_request(f);
    r.staging_target_path = "";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    r.staging_target_path = "relative";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    r.staging_target_path = "/tmp/../etc";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    r.staging_target_path = "/nonexistent-directory/x/y";
    expect(HEARTH_ERROR_FAILED_PRECONDITION, stage(f, &r));
    r = stage_request(f);
    r.volume_capability = NULL;
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    r = stage_request(f);
    r.n_volume_context = 1; /* no rootPath */
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &r));
    ck_assert_ptr_nonnull(strstr(f->error->message, "rootPath"));
    ck_assert_uint_eq(f->world->opens, 0);
    ck_assert(!g_file_test(f->staged, G_FILE_TEST_EXISTS));
    teardown(f);
}
END_TEST

START_TEST(capabilities_that_cannot_be_served_are_refused)
{
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    char *suid[] = {"suid"};
    for (int i = 0; i < 5; i++) {
        f->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
        f->capability.mount = &f->mount;
        f->capability.access_mode = &f->mode;
        f->mode.mode = MODE(SINGLE_NODE_WRITER);
        f->mount.n_mount_flags = 0;
        if (i == 0) {
            f->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
            f->capability.block = &f->block;
        } else if (i == 1) {
            f->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET;
        } else if (i == 2) {
            f->capability.access_mode = NULL;
        } else if (i == 3) {
            f->mode.mode = MODE(UNKNOWN);
        } else {
            f->mount.mount_flags = suid;
            f->mount.n_mount_flags = 1;
        }
        expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &s));
        expect(HEARTH_ERROR_INVALID_ARGUMENT, publish(f, &p));
    }
    teardown(f);
}
END_TEST

START_TEST(readers_get_a_read_only_mount)
{
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    expect(0, stage(f, &s));
    p.readonly = 1;
    expect(0, publish(f, &p));
    g_autoptr(MountEntry) target = world_mounted(f->world, f->target);
    ck_assert(target->read_only);
    g_autoptr(MountEntry) staged = world_mounted(f->world, f->staged);
    ck_assert(!staged->read_only);
    expect(0, unpublish(f, "h1~dir~v", f->target));
    expect(0, unstage(f, "h1~dir~v", f->staged));

    f->mode.mode = MODE(MULTI_NODE_READER_ONLY);
    expect(0, stage(f, &s));
    g_autoptr(MountEntry) again = world_mounted(f->world, f->staged);
    ck_assert(again->read_only);
    pthread_mutex_lock(&f->world->lock);
    const FakeVolume *v = g_hash_table_lookup(f->world->volumes, "h1~dir~v");
    ck_assert(json_is_true(json_object_get(v->spec, "readOnly")));
    pthread_mutex_unlock(&f->world->lock);
    teardown(f);
}
END_TEST

static gboolean has_shared_locks(Fixture *f)
{
    pthread_mutex_lock(&f->world->lock);
    const FakeVolume *v = g_hash_table_lookup(f->world->volumes, "h1~dir~v");
    const gboolean has = json_is_true(json_object_get(v->spec, "sharedLocks"));
    pthread_mutex_unlock(&f->world->lock);
    return has;
}

START_TEST(only_writers_on_several_nodes_share_locks)
{
    static const struct {
        Csi__V1__VolumeCapability__AccessMode__Mode mode;
        gboolean shared;
    } modes[] = {
        {MODE(MULTI_NODE_MULTI_WRITER), TRUE},   {MODE(SINGLE_NODE_WRITER), FALSE},
        {MODE(SINGLE_NODE_MULTI_WRITER), FALSE}, {MODE(SINGLE_NODE_SINGLE_WRITER), FALSE},
        {MODE(MULTI_NODE_READER_ONLY), FALSE},
    };
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    for (guint i = 0; i < G_N_ELEMENTS(modes); i++) {
        f->mode.mode = modes[i].mode;
        expect(0, stage(f, &s));
        ck_assert_int_eq(has_shared_locks(f), modes[i].shared);
        expect(0, unstage(f, "h1~dir~v", f->staged));
    }
    /* A hearthd of before does not know them. */
    f->mode.mode = MODE(MULTI_NODE_MULTI_WRITER);
    f->world->unknown = "sharedLocks";
    expect(0, stage(f, &s));
    ck_assert(!has_shared_locks(f));
    teardown(f);
}
END_TEST

START_TEST(a_context_of_kubelets_reaches_the_mount)
{
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    char *flags[] = {"noatime", "context=\"system_u:object_r:container_file_t:s0:c1,c2\""};
    f->mount.mount_flags = flags;
    f->mount.n_mount_flags = 2;
    expect(0, stage(f, &s));
    expect(0, publish(f, &p));
    g_autoptr(MountEntry) target = world_mounted(f->world, f->target);
    ck_assert_str_eq(target->context, "system_u:object_r:container_file_t:s0:c1,c2");
    flags[1] = "context=\"system_u:object_r:container_file_t:s0:c3,c4\"";
    expect(HEARTH_ERROR_ALREADY_EXISTS, stage(f, &s));
    expect(HEARTH_ERROR_FAILED_PRECONDITION, publish(f, &p));
    flags[1] = "context=\"system_u:object_r:container_file_t:s0:c3,c4";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &s));
    ck_assert_ptr_nonnull(strstr(f->error->message, "quote is not closed"));
    expect(0, unpublish(f, "h1~dir~v", f->target));
    expect(0, unstage(f, "h1~dir~v", f->staged));
    teardown(f);
}
END_TEST

START_TEST(a_context_means_nothing_where_selinux_is_off)
{
    Fixture *f = setup_on(FALSE);
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    char *flags[] = {"context=\"system_u:object_r:container_file_t:s0:c1,c2\""};
    f->mount.mount_flags = flags;
    f->mount.n_mount_flags = 1;
    expect(0, stage(f, &s));
    expect(0, publish(f, &p));
    g_autoptr(MountEntry) target = world_mounted(f->world, f->target);
    ck_assert_ptr_null(target->context);
    flags[0] = "context=\"a";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stage(f, &s));
    expect(0, unpublish(f, "h1~dir~v", f->target));
    expect(0, unstage(f, "h1~dir~v", f->staged));
    teardown(f);
}
END_TEST

START_TEST(a_single_writer_has_one_target)
{
    Fixture *f = setup();
    f->mode.mode = MODE(SINGLE_NODE_SINGLE_WRITER);
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    expect(0, stage(f, &s));
    expect(0, publish(f, &p));
    g_autofree char *second = world_path(f->world, "second");
    p.target_path = second;
    expect(HEARTH_ERROR_FAILED_PRECONDITION, publish(f, &p));
    f->mode.mode = MODE(SINGLE_NODE_MULTI_WRITER);
    expect(0, publish(f, &p));
    teardown(f);
}
END_TEST

START_TEST(bad_arguments_of_publish_are_refused)
{
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    PublishRequest p = publish_request(f);
    expect(HEARTH_ERROR_FAILED_PRECONDITION, publish(f, &p));
    expect(0, stage(f, &s));
    p.staging_target_path = "";
    expect(HEARTH_ERROR_FAILED_PRECONDITION, publish(f, &p));
    p = publish_request(f);
    p.target_path = "";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, publish(f, &p));
    p.target_path = f->staged;
    expect(HEARTH_ERROR_INVALID_ARGUMENT, publish(f, &p));
    p = publish_request(f);
    p.volume_capability = NULL;
    expect(HEARTH_ERROR_INVALID_ARGUMENT, publish(f, &p));
    p = publish_request(f);
    p.volume_id = "";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, publish(f, &p));
    p.volume_id = "h1~dir~w";
    expect(HEARTH_ERROR_FAILED_PRECONDITION, publish(f, &p));
    ck_assert_uint_eq(world_mounts(f->world), 1);
    teardown(f);
}
END_TEST

START_TEST(growing_a_tree_of_files_tells_its_size)
{
    Fixture *f = setup();
    Csi__V1__NodeExpandVolumeRequest e = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;
    const ProtobufCMessageDescriptor *type = &csi__v1__node_expand_volume_response__descriptor;
    expect(HEARTH_ERROR_INVALID_ARGUMENT, call(f, "NodeExpandVolume", &e, type, NULL));
    e.volume_id = "h1~dir~v";
    expect(HEARTH_ERROR_INVALID_ARGUMENT, call(f, "NodeExpandVolume", &e, type, NULL));
    e.volume_path = f->staged;
    expect(HEARTH_ERROR_NOT_FOUND, call(f, "NodeExpandVolume", &e, type, NULL));
    StageRequest r = stage_request(f);
    expect(0,
           call(f, "NodeStageVolume", &r, &csi__v1__node_stage_volume_response__descriptor, NULL));
    ProtobufCMessage *response;
    expect(0, call(f, "NodeExpandVolume", &e, type, &response));
    ck_assert_int_gt(((const Csi__V1__NodeExpandVolumeResponse *)response)->capacity_bytes, 0);
    protobuf_c_message_free_unpacked(response, NULL);
    teardown(f);
}
END_TEST

START_TEST(clearing_what_is_not_there_succeeds)
{
    Fixture *f = setup();
    expect(0, unpublish(f, "unknown", f->target));
    expect(0, unpublish(f, "unknown", "/nonexistent-directory/x/y"));
    expect(0, unstage(f, "unknown", f->staged));
    expect(0, unstage(f, "unknown", "/nonexistent-directory/x/y"));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, unpublish(f, "", f->target));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, unpublish(f, "v", ""));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, unpublish(f, "v", "/tmp/.."));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, unstage(f, "", f->staged));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, unstage(f, "v", ""));
    teardown(f);
}
END_TEST

START_TEST(usage_is_in_bytes_and_inodes)
{
    Fixture *f = setup();
    StageRequest s = stage_request(f);
    expect(0, stage(f, &s));
    ProtobufCMessage *response;
    expect(0, stats(f, "h1~dir~v", f->staged, &response));
    const Csi__V1__NodeGetVolumeStatsResponse *r = (const void *)response;
    ck_assert_uint_eq(r->n_usage, 2);
    ck_assert_int_eq(r->usage[0]->unit, CSI__V1__VOLUME_USAGE__UNIT__BYTES);
    ck_assert_int_eq(r->usage[0]->total, 1000 * 4096);
    ck_assert_int_eq(r->usage[0]->used, 400 * 4096);
    ck_assert_int_eq(r->usage[0]->available, 500 * 4096);
    ck_assert_int_eq(r->usage[1]->unit, CSI__V1__VOLUME_USAGE__UNIT__INODES);
    ck_assert_int_eq(r->usage[1]->used, 10);
    protobuf_c_message_free_unpacked(response, NULL);
    expect(HEARTH_ERROR_NOT_FOUND, stats(f, "unknown", f->staged, NULL));
    expect(HEARTH_ERROR_NOT_FOUND, stats(f, "h1~dir~v", f->target, NULL));
    expect(HEARTH_ERROR_NOT_FOUND, stats(f, "h1~dir~v", "/nonexistent-directory/x", NULL));
    expect(HEARTH_ERROR_NOT_FOUND, stats(f, "h1~dir~v", "some/path", NULL));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stats(f, "", f->staged, NULL));
    expect(HEARTH_ERROR_INVALID_ARGUMENT, stats(f, "h1~dir~v", "", NULL));
    teardown(f);
}
END_TEST

START_TEST(info_and_capabilities_are_constant)
{
    Fixture *f = setup();
    Csi__V1__NodeGetInfoRequest q = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
    ProtobufCMessage *response;
    expect(0, call(f, "NodeGetInfo", &q, &csi__v1__node_get_info_response__descriptor, &response));
    const Csi__V1__NodeGetInfoResponse *info = (const void *)response;
    ck_assert_str_eq(info->node_id, "node-1");
    /* The tier and the zone of the fixture may change. */
    static const char *const segments[][2] = {{TOPOLOGY_NODE, "node-1"}};
    ck_assert_uint_eq(info->accessible_topology->n_segments, G_N_ELEMENTS(segments));
    for (size_t i = 0; i < G_N_ELEMENTS(segments); i++) {
        ck_assert_str_eq(info->accessible_topology->segments[i]->key, segments[i][0]);
        ck_assert_str_eq(info->accessible_topology->segments[i]->value, segments[i][1]);
    }
    protobuf_c_message_free_unpacked(response, NULL);
    Csi__V1__NodeGetCapabilitiesRequest c = CSI__V1__NODE_GET_CAPABILITIES_REQUEST__INIT;
    expect(0, call(f, "NodeGetCapabilities", &c,
                   &csi__v1__node_get_capabilities_response__descriptor, &response));
    ck_assert_uint_eq(((const Csi__V1__NodeGetCapabilitiesResponse *)response)->n_capabilities, 6);
    protobuf_c_message_free_unpacked(response, NULL);
    teardown(f);
}
END_TEST

START_TEST(a_node_that_kubelet_would_refuse_does_not_start)
{
    g_autofree char *long_id = g_strnfill(257, 'n');
    const NodeServiceConfig bad[] = {
        {.node_id = "", .tier = "nvme"},
        {.tier = "nvme"},
        {.node_id = long_id, .tier = "nvme"},
        {.node_id = "n", .tier = "gold"},
        {.node_id = "n"},
        {.node_id = "n", .tier = "none", .zone = "a b"},
        {.node_id = "n", .tier = "none", .zone = "-a"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(node_service_new(&bad[i], &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    }
}
END_TEST

START_TEST(ready_follows_hearthd)
{
    Fixture *f = setup();
    ck_assert(node_service_probe(f->service, NULL));
    world_kill_hearthd(f->world);
    g_autoptr(GError) error = NULL;
    ck_assert(!node_service_probe(f->service, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE));
    StageRequest s = stage_request(f);
    expect(HEARTH_ERROR_UNAVAILABLE, stage(f, &s));
    world_start_hearthd(f->world);
    ck_assert(node_service_probe(f->service, NULL));
    expect(0, stage(f, &s));
    teardown(f);
}
END_TEST

HARNESS_MAIN("driver/service/node/node", a_volume_lives_and_leaves_nothing,
             bad_arguments_of_stage_are_refused, capabilities_that_cannot_be_served_are_refused,
             readers_get_a_read_only_mount, only_writers_on_several_nodes_share_locks,
             a_single_writer_has_one_target, a_context_of_kubelets_reaches_the_mount,
             a_context_means_nothing_where_selinux_is_off, bad_arguments_of_publish_are_refused,
             clearing_what_is_not_there_succeeds, growing_a_tree_of_files_tells_its_size,
             usage_is_in_bytes_and_inodes, info_and_capabilities_are_constant,
             a_node_that_kubelet_would_refuse_does_not_start, ready_follows_hearthd)
