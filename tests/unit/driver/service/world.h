/* SPDX-License-Identifier: Apache-2.0 */
/* A served Controller over the fake backend, and calls to it with what a test usually sends. */
#ifndef HEARTH_TESTS_SERVICE_WORLD_H
#define HEARTH_TESTS_SERVICE_WORLD_H

#include "csi.pb-c.h"
#include "driver/rpc/client.h"
#include "driver/service/controller/controller.h"
#include "driver/service/identity.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

#define CALL_MS 20000
#define GIB (G_GINT64_CONSTANT(1) << 30)

typedef struct World {
    char *dir, *socket;
    Fake *fake;
    Controller *controller;
    IdentityConfig identity;
    RpcServer *server;
    RpcClient *client;
} World;

static inline World *world_new(void)
{
    World *w = g_new0(World, 1);
    w->dir = harness_tmpdir();
    w->socket = g_build_filename(w->dir, "csi.sock", NULL);
    w->fake = fake_new();
    Backend *backends[] = {fake_backend(w->fake)};
    w->controller = controller_new(backends, 1);
    w->identity = (IdentityConfig){.driver_name = "csi.hearth.dev",
                                   .version = "1.2.3",
                                   .group_controller = controller_has_groups(w->controller),
                                   .probe = controller_probe,
                                   .probe_data = w->controller};
    RpcServerConfig config = {.socket_path = w->socket};
    w->server = rpc_server_new(&config, NULL);
    rpc_server_add(w->server, identity_methods(), &w->identity);
    rpc_server_add(w->server, controller_methods(), w->controller);
    rpc_server_add(w->server, controller_group_methods(), w->controller);
    ck_assert(rpc_server_start(w->server, NULL));
    w->client = rpc_client_connect(w->socket, NULL);
    ck_assert_ptr_nonnull(w->client);
    return w;
}

static inline void world_free(World *w)
{
    rpc_client_close(w->client);
    ck_assert(rpc_server_stop(w->server, 1000));
    controller_free(w->controller);
    g_free(w->socket);
    harness_remove(w->dir);
    g_free(w);
}

/* Gives the controller a user of its own, as a mounted Secret. */
static inline void world_own_user(World *w)
{
    g_autofree char *user = g_build_filename(w->dir, "userID", NULL);
    g_autofree char *key = g_build_filename(w->dir, "userKey", NULL);
    ck_assert(g_file_set_contents(user, "u", -1, NULL));
    ck_assert(g_file_set_contents(key, "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==\n", -1, NULL));
    controller_set_secret_dir(w->controller, w->dir);
}

/* A map of one type of entry out of "name=value" strings ending with NULL; see CREATE_INIT. */
#define WORLD_MAP(Entry, init, strings, field, count)                                              \
    do {                                                                                           \
        const char *const *s_ = (strings);                                                         \
        gsize n_ = s_ ? g_strv_length((char **)s_) : 0;                                            \
        (field) = g_new0(Entry *, n_ + 1);                                                         \
        (count) = n_;                                                                              \
        for (gsize i_ = 0; i_ < n_; i_++) {                                                        \
            g_auto(GStrv) parts_ = g_strsplit(s_[i_], "=", 2);                                     \
            (field)[i_] = g_new0(Entry, 1);                                                        \
            init((field)[i_]);                                                                     \
            (field)[i_]->key = g_strdup(parts_[0]);                                                \
            (field)[i_]->value = g_strdup(parts_[1]);                                              \
        }                                                                                          \
    } while (0)

/* protobuf-c frees with free(), and GLib's allocator is malloc(), so *_free_unpacked() frees these.
 */
static inline Csi__V1__VolumeCapability *
world_capability(Csi__V1__VolumeCapability__AccessMode__Mode mode, gboolean block)
{
    Csi__V1__VolumeCapability *c = g_new0(Csi__V1__VolumeCapability, 1);
    csi__v1__volume_capability__init(c);
    c->access_mode = g_new0(Csi__V1__VolumeCapability__AccessMode, 1);
    csi__v1__volume_capability__access_mode__init(c->access_mode);
    c->access_mode->mode = mode;
    if (block) {
        c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        c->block = g_new0(Csi__V1__VolumeCapability__BlockVolume, 1);
        csi__v1__volume_capability__block_volume__init(c->block);
    } else {
        c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
        c->mount = g_new0(Csi__V1__VolumeCapability__MountVolume, 1);
        csi__v1__volume_capability__mount_volume__init(c->mount);
    }
    return c;
}

#define RWX CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER

static const char *const good_secrets[] = {
    "userID=u", "userKey=AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==", NULL};
static const char *const good_parameters[] = {"clusterID=c", "fsName=f", NULL};

static inline Csi__V1__CreateVolumeRequest *
create_request(const char *name, const char *const *parameters, gint64 required)
{
    Csi__V1__CreateVolumeRequest *r = g_new0(Csi__V1__CreateVolumeRequest, 1);
    csi__v1__create_volume_request__init(r);
    r->name = g_strdup(name);
    r->capacity_range = g_new0(Csi__V1__CapacityRange, 1);
    csi__v1__capacity_range__init(r->capacity_range);
    r->capacity_range->required_bytes = required;
    r->volume_capabilities = g_new0(Csi__V1__VolumeCapability *, 1);
    r->volume_capabilities[r->n_volume_capabilities++] = world_capability(RWX, FALSE);
    WORLD_MAP(Csi__V1__CreateVolumeRequest__ParametersEntry,
              csi__v1__create_volume_request__parameters_entry__init, parameters, r->parameters,
              r->n_parameters);
    WORLD_MAP(Csi__V1__CreateVolumeRequest__SecretsEntry,
              csi__v1__create_volume_request__secrets_entry__init, good_secrets, r->secrets,
              r->n_secrets);
    return r;
}

static inline Csi__V1__DeleteVolumeRequest *delete_request(const char *id,
                                                           const char *const *secrets)
{
    Csi__V1__DeleteVolumeRequest *r = g_new0(Csi__V1__DeleteVolumeRequest, 1);
    csi__v1__delete_volume_request__init(r);
    r->volume_id = g_strdup(id);
    WORLD_MAP(Csi__V1__DeleteVolumeRequest__SecretsEntry,
              csi__v1__delete_volume_request__secrets_entry__init, secrets, r->secrets,
              r->n_secrets);
    return r;
}

static inline Csi__V1__ValidateVolumeCapabilitiesRequest *
validate_request(const char *id, const char *const *context, const char *const *parameters)
{
    Csi__V1__ValidateVolumeCapabilitiesRequest *r =
        g_new0(Csi__V1__ValidateVolumeCapabilitiesRequest, 1);
    csi__v1__validate_volume_capabilities_request__init(r);
    r->volume_id = g_strdup(id);
    r->volume_capabilities = g_new0(Csi__V1__VolumeCapability *, 1);
    r->volume_capabilities[r->n_volume_capabilities++] = world_capability(RWX, FALSE);
    WORLD_MAP(Csi__V1__ValidateVolumeCapabilitiesRequest__VolumeContextEntry,
              csi__v1__validate_volume_capabilities_request__volume_context_entry__init, context,
              r->volume_context, r->n_volume_context);
    WORLD_MAP(Csi__V1__ValidateVolumeCapabilitiesRequest__ParametersEntry,
              csi__v1__validate_volume_capabilities_request__parameters_entry__init, parameters,
              r->parameters, r->n_parameters);
    WORLD_MAP(Csi__V1__ValidateVolumeCapabilitiesRequest__SecretsEntry,
              csi__v1__validate_volume_capabilities_request__secrets_entry__init, good_secrets,
              r->secrets, r->n_secrets);
    return r;
}

/* Sends and frees the request. 0 or the code; *response and *message (both may be NULL) are the
 * caller's. */
static inline int world_call(RpcClient *client, const char *path, void *request,
                             const ProtobufCMessageDescriptor *type, void *response, char **message)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = rpc_client_call(client, path, request, type, CALL_MS, &error);
    protobuf_c_message_free_unpacked(request, NULL);
    if (response)
        *(ProtobufCMessage **)response = NULL;
    if (!reply) {
        ck_assert_msg(error->domain == HEARTH_ERROR, "%s", error->message);
        if (message)
            *message = g_strdup(error->message);
        return error->code;
    }
    if (response)
        *(ProtobufCMessage **)response = reply;
    else
        protobuf_c_message_free_unpacked(reply, NULL);
    return 0;
}

static inline int create(World *w, Csi__V1__CreateVolumeRequest *request,
                         Csi__V1__CreateVolumeResponse **response, char **message)
{
    return world_call(w->client, "/csi.v1.Controller/CreateVolume", request,
                      &csi__v1__create_volume_response__descriptor, response, message);
}

static inline int delete (World *w, Csi__V1__DeleteVolumeRequest *request)
{
    return world_call(w->client, "/csi.v1.Controller/DeleteVolume", request,
                      &csi__v1__delete_volume_response__descriptor, NULL, NULL);
}

static inline int validate(World *w, Csi__V1__ValidateVolumeCapabilitiesRequest *request,
                           Csi__V1__ValidateVolumeCapabilitiesResponse **response)
{
    return world_call(w->client, "/csi.v1.Controller/ValidateVolumeCapabilities", request,
                      &csi__v1__validate_volume_capabilities_response__descriptor, response, NULL);
}

#endif
