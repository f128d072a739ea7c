/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GroupController service: snapshots of several volumes at one moment. The class's
 * parameters are those of snapshots, with volumeGroupNamePrefix (ceph-csi's name) for the prefix.
 */
#include <string.h>
#include "driver/service/controller/internal.h"
#include "driver/volume/name.h"

#define DEFAULT_PREFIX "csi-vol-group-" /* ceph-csi's too */
/* Of the snapshots' names of releases without attempts, "-63". It decides which names of requests
 * are used as they are, so it stays. */
#define MEMBER_ROOM 3

gboolean controller_has_groups(const Controller *c)
{
    for (gsize i = 0; i < c->n_backends; i++) {
        if (c->backends[i]->ops->snapshot_create_group)
            return TRUE;
    }
    return FALSE;
}

static Csi__V1__VolumeGroupSnapshot *group_of(RpcCall *call, const char *text, const VolumeId *id,
                                              const GroupRecord *record)
{
    Csi__V1__VolumeGroupSnapshot *out = rpc_alloc(call, sizeof(*out));
    Csi__V1__Timestamp *time = rpc_alloc(call, sizeof(*time));
    Csi__V1__Snapshot **list = rpc_alloc(call, record->members->len * sizeof(*list));
    if (!out || !time || !list)
        return NULL;
    csi__v1__volume_group_snapshot__init(out);
    csi__v1__timestamp__init(time);
    time->seconds = record->created;
    out->group_snapshot_id = rpc_strdup(call, text);
    out->creation_time = time;
    out->ready_to_use = TRUE;
    out->snapshots = list;
    for (guint i = 0; i < record->members->len; i++) {
        const GroupMember *m = record->members->pdata[i];
        VolumeId snapshot = *id;
        snapshot.name = m->snapshot;
        SnapshotRecord as = {.source_group = m->group,
                             .source_name = m->volume,
                             .group_snapshot = id->name,
                             .bytes = m->bytes,
                             .created = record->created};
        if (!(list[i] = controller_snapshot(call, &snapshot, &as)))
            return NULL;
        out->n_snapshots++;
    }
    return out;
}

static void free_source(gpointer source)
{
    volume_id_free(source);
}

/* The volumes, checked to be distinct and at one location. */
static GPtrArray *read_sources(char *const *ids, gsize n, GError **error)
{
    g_autoptr(GPtrArray) sources = g_ptr_array_new_with_free_func(free_source);
    if (n == 0 || n > GROUP_MAX_MEMBERS) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "source_volume_ids has %" G_GSIZE_FORMAT " volumes; give 1 to %d", n,
                    GROUP_MAX_MEMBERS);
        return NULL;
    }
    for (gsize i = 0; i < n; i++) {
        g_autoptr(VolumeId) source = volume_id_decode(ids[i], error);
        if (!source)
            return NULL;
        for (guint k = 0; k < sources->len; k++) {
            if (strcmp(ids[k], ids[i]) == 0) {
                hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                            "source_volume_ids has volume %s twice", ids[i]);
                return NULL;
            }
        }
        if (sources->len > 0 && !volume_id_same_location(sources->pdata[0], source)) {
            g_autofree char *first = volume_id_location_text(sources->pdata[0]);
            g_autofree char *other = volume_id_location_text(source);
            hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volumes %s (%s) and %s (%s) cannot be snapshotted together; a group is of "
                        "one location",
                        ids[0], first, ids[i], other);
            return NULL;
        }
        g_ptr_array_add(sources, g_steal_pointer(&source));
    }
    return g_steal_pointer(&sources);
}

static CONTROLLER_HANDLER(create_group)
{
    Controller *c = service;
    const Csi__V1__CreateVolumeGroupSnapshotRequest *r =
        (const Csi__V1__CreateVolumeGroupSnapshotRequest *)request;
    if (!name_check_request(r->name, error))
        return FALSE;
    g_autoptr(GPtrArray) sources =
        read_sources(r->source_volume_ids, r->n_source_volume_ids, error);
    const VolumeId *first = sources ? sources->pdata[0] : NULL;
    const Backend *b = first ? controller_backend(c, first->type, error) : NULL;
    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(Secrets) secrets = NULL;
    const char *prefix = DEFAULT_PREFIX;
    if (!b ||
        !controller_snapshot_class(parameters, first, "volumeGroupNamePrefix", &prefix, error) ||
        !controller_secrets(b, given, &secrets, error))
        return FALSE;

    g_autoptr(VolumeId) id = volume_id_copy(first);
    g_clear_pointer(&id->group, g_free);
    g_free(id->name);
    gsize room = group_id_room(id);
    id->name = name_backend(prefix, r->name, room > MEMBER_ROOM ? room - MEMBER_ROOM : 0, error);
    g_autofree char *text = id->name ? group_id_encode(id, error) : NULL;
    g_autoptr(BusyHold) hold = text ? busy_take(c->busy, text, NULL, error) : NULL;
    g_autoptr(GroupRecord) record = NULL;
    const ProvisionTarget at = {b, id, secrets, controller_deadline(call)};
    if (!hold || !provision_group_create(&at, r->name, sources, &record, error))
        return FALSE;
    ((Csi__V1__CreateVolumeGroupSnapshotResponse *)response)->group_snapshot =
        group_of(call, text, id, record);
    return TRUE;
}

/* The members' names; NULL when the caller names none. FALSE: one is no snapshot's ID. */
static gboolean read_members(char *const *ids, gsize n, GPtrArray **names, GError **error)
{
    *names = n ? g_ptr_array_new_with_free_func(g_free) : NULL;
    for (gsize i = 0; i < n; i++) {
        g_autoptr(VolumeId) id = snapshot_id_decode(ids[i], NULL);
        if (!id) {
            g_autofree char *start = g_strndup(ids[i], VOLUME_ID_MAX);
            g_autofree char *shown = g_strescape(start, NULL);
            return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                               "snapshot_ids has \"%s\", which is no snapshot of this driver",
                               shown);
        }
        g_ptr_array_add(*names, g_strdup(id->name));
    }
    return TRUE;
}

static CONTROLLER_HANDLER(delete_group)
{
    (void)response;
    Controller *c = service;
    const Csi__V1__DeleteVolumeGroupSnapshotRequest *r =
        (const Csi__V1__DeleteVolumeGroupSnapshotRequest *)request;
    g_autoptr(GError) cause = NULL;
    g_autoptr(VolumeId) id = group_id_decode(r->group_snapshot_id, &cause);
    if (!id) {
        if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
            return TRUE; /* none of ours: deleted already */
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    const Backend *b = controller_backend(c, id->type, error);
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(Secrets) secrets = NULL;
    g_autoptr(GPtrArray) members = NULL;
    if (!b || !read_members(r->snapshot_ids, r->n_snapshot_ids, &members, error))
        return FALSE;
    GHashTable *as = controller_deleter(c, given);
    if (!(as ? controller_secrets(b, as, &secrets, error)
             : controller_own_secrets(c, b, id->cluster_id, &secrets, error)))
        return FALSE;
    g_autoptr(BusyHold) hold = busy_take(c->busy, r->group_snapshot_id, NULL, error);
    const ProvisionTarget at = {b, id, secrets, controller_deadline(call)};
    return hold && provision_group_delete(&at, members, error);
}

static CONTROLLER_HANDLER(get_group)
{
    Controller *c = service;
    const Csi__V1__GetVolumeGroupSnapshotRequest *r =
        (const Csi__V1__GetVolumeGroupSnapshotRequest *)request;
    g_autoptr(VolumeId) id = group_id_decode(r->group_snapshot_id, error);
    const Backend *b = id ? controller_backend(c, id->type, error) : NULL;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(Secrets) secrets = NULL;
    g_autoptr(GPtrArray) members = NULL;
    g_autoptr(GroupRecord) record = NULL;
    if (!b || !read_members(r->snapshot_ids, r->n_snapshot_ids, &members, error))
        return FALSE;
    if (!controller_user(c, b, id, given, &secrets, error))
        return FALSE;
    const ProvisionTarget at = {b, id, secrets, controller_deadline(call)};
    if (!provision_group_look(&at, members, &record, error))
        return FALSE;
    ((Csi__V1__GetVolumeGroupSnapshotResponse *)response)->group_snapshot =
        group_of(call, r->group_snapshot_id, id, record);
    return TRUE;
}

static CONTROLLER_HANDLER(get_capabilities)
{
    (void)request, (void)service, (void)error;
    Csi__V1__GroupControllerGetCapabilitiesResponse *r =
        (Csi__V1__GroupControllerGetCapabilitiesResponse *)response;
    Csi__V1__GroupControllerServiceCapability *capability = rpc_alloc(call, sizeof(*capability));
    Csi__V1__GroupControllerServiceCapability__RPC *rpc = rpc_alloc(call, sizeof(*rpc));
    r->capabilities = rpc_alloc(call, sizeof(*r->capabilities));
    if (!capability || !rpc || !r->capabilities)
        return TRUE; /* the call ends as RESOURCE_EXHAUSTED */
    csi__v1__group_controller_service_capability__init(capability);
    csi__v1__group_controller_service_capability__rpc__init(rpc);
    rpc->type =
        CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT;
    capability->type_case = CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
    capability->rpc = rpc;
    r->capabilities[r->n_capabilities++] = capability;
    return TRUE;
}

#define ROW(name, lower, handler)                                                                  \
    {                                                                                              \
        "/csi.v1.GroupController/" name, &csi__v1__##lower##_request__descriptor,                  \
            &csi__v1__##lower##_response__descriptor, handler                                      \
    }

static const RpcMethod methods[] = {
    ROW("GroupControllerGetCapabilities", group_controller_get_capabilities, get_capabilities),
    ROW("CreateVolumeGroupSnapshot", create_volume_group_snapshot, create_group),
    ROW("DeleteVolumeGroupSnapshot", delete_volume_group_snapshot, delete_group),
    ROW("GetVolumeGroupSnapshot", get_volume_group_snapshot, get_group),
    {NULL, NULL, NULL, NULL},
};

const RpcMethod *controller_group_methods(void)
{
    return methods;
}
