/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots. Those of CephFS are ready as soon as they are taken. The class's parameters are
 * ceph-csi's: clusterID, fsName and pool must be those of the volume, snapshotNamePrefix begins the
 * snapshot's name in Ceph.
 */
#include <string.h>
#include "driver/service/controller/internal.h"
#include "driver/volume/name.h"
#include "driver/volume/params.h"

#define DEFAULT_PREFIX "csi-snap-" /* ceph-csi's too */
#define K8S "csi.storage.k8s.io/"

gboolean controller_snapshot_class(GHashTable *parameters, const VolumeId *source,
                                   const char *prefix_name, const char **prefix, GError **error)
{
    GHashTableIter iter;
    gpointer name, value;
    g_hash_table_iter_init(&iter, parameters);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        const char *of_volume = NULL;
        if (g_str_has_prefix(name, K8S))
            continue;
        if (strcmp(name, "clusterID") == 0)
            of_volume = source->cluster_id;
        else if (strcmp(name, "fsName") == 0)
            of_volume = source->fs_name;
        else if (strcmp(name, "pool") == 0)
            of_volume = source->pool;
        else if (strcmp(name, prefix_name) == 0)
            *prefix = value;
        else if (strcmp(name, "deletionPolicy") == 0)
            continue; /* a field of the class: Kubernetes' own tests repeat it here */
        else {
            g_autofree char *shown = g_strescape(name, NULL);
            return hearth_fail(
                error, HEARTH_ERROR_INVALID_ARGUMENT,
                "parameter \"%.100s\" is not known for snapshots; known: clusterID, fsName, "
                "pool, %s, and those of " K8S,
                shown, prefix_name);
        }
        if (*prefix != value && g_strcmp0(of_volume, value) != 0)
            return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                               "%s of the class is not that of the volume (%s); a snapshot "
                               "is where its volume is",
                               (const char *)name, of_volume ? of_volume : "none");
    }
    if (name_is_plain(*prefix) && **prefix != '_' && strlen(*prefix) <= PARAMS_PREFIX_MAX)
        return TRUE;
    return hearth_fail(
        error, HEARTH_ERROR_INVALID_ARGUMENT,
        "%s must have at most %d letters, digits, '.', '_', '-', and begin with a letter "
        "or digit",
        prefix_name, PARAMS_PREFIX_MAX);
}

Csi__V1__Snapshot *controller_snapshot(RpcCall *call, const VolumeId *id,
                                       const SnapshotRecord *record)
{
    g_autoptr(VolumeId) source = provision_snapshot_source(id, record);
    g_autofree char *text = snapshot_id_encode(id, NULL);
    g_autofree char *source_text = volume_id_encode(source, NULL);
    Csi__V1__Snapshot *out = rpc_alloc(call, sizeof(*out));
    Csi__V1__Timestamp *time = rpc_alloc(call, sizeof(*time));
    if (!out || !time)
        return NULL;
    csi__v1__snapshot__init(out);
    csi__v1__timestamp__init(time);
    time->seconds = record->created;
    out->snapshot_id = rpc_strdup(call, text ? text : "");
    out->source_volume_id = rpc_strdup(call, source_text ? source_text : "");
    if (record->group_snapshot) {
        g_autoptr(VolumeId) group = volume_id_copy(id);
        g_free(group->name);
        group->name = g_strdup(record->group_snapshot);
        g_autofree char *group_text = group_id_encode(group, NULL);
        out->group_snapshot_id = rpc_strdup(call, group_text ? group_text : "");
    }
    out->size_bytes = record->bytes;
    out->creation_time = time;
    out->ready_to_use = TRUE;
    return out;
}

CONTROLLER_HANDLER(controller_create_snapshot)
{
    Controller *c = service;
    const Csi__V1__CreateSnapshotRequest *r = (const Csi__V1__CreateSnapshotRequest *)request;
    if (!name_check_request(r->name, error))
        return FALSE;
    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    const char *prefix = DEFAULT_PREFIX;
    if (!controller_resolve(c, r->source_volume_id, given, deadline_us, &ref, error) ||
        !controller_snapshot_class(parameters, ref.id, "snapshotNamePrefix", &prefix, error))
        return FALSE;

    const VolumeId *source = ref.id;
    g_autoptr(VolumeId) id = volume_id_copy(source);
    g_clear_pointer(&id->group, g_free);
    g_clear_pointer(&id->handle, g_free);
    id->adopted = FALSE;
    g_free(id->name);
    id->name = name_backend(prefix, r->name, snapshot_id_room(id), error);
    g_autofree char *text = id->name ? snapshot_id_encode(id, error) : NULL;
    g_autoptr(BusyHold) hold = text ? busy_take(c->busy, text, NULL, error) : NULL;
    g_autoptr(SnapshotRecord) record = NULL;
    ProvisionTarget at = ref.at;
    at.id = id;
    if (!hold || !provision_snapshot_create(&at, r->name, source, &record, error))
        return FALSE;
    controller_describe_snapshot(c, &ref.at, id->name, parameters);
    ((Csi__V1__CreateSnapshotResponse *)response)->snapshot = controller_snapshot(call, id, record);
    return TRUE;
}

CONTROLLER_HANDLER(controller_delete_snapshot)
{
    (void)response;
    Controller *c = service;
    const Csi__V1__DeleteSnapshotRequest *r = (const Csi__V1__DeleteSnapshotRequest *)request;
    g_autoptr(GError) cause = NULL;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    if (!controller_resolve_snapshot(c, r->snapshot_id, controller_deleter(c, given), deadline_us,
                                     &ref, &cause)) {
        if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
            return TRUE; /* no snapshot of ours: deleted already */
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_autoptr(BusyHold) hold = busy_take(c->busy, r->snapshot_id, NULL, error);
    return hold && provision_snapshot_delete(&ref.at, error);
}

/* A class need not have list secrets; NULL: the driver's own user. */
static GHashTable *reader(GHashTable *given)
{
    return g_hash_table_size(given) > 0 ? given : NULL;
}

CONTROLLER_HANDLER(controller_get_snapshot)
{
    const Csi__V1__GetSnapshotRequest *r = (const Csi__V1__GetSnapshotRequest *)request;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(SnapshotRecord) record = NULL;
    ref_auto VolumeRef ref = {0};
    if (!controller_resolve_snapshot(service, r->snapshot_id, reader(given),
                                     controller_deadline(call), &ref, error) ||
        !provision_snapshot_look(&ref.at, &record, error))
        return FALSE;
    ((Csi__V1__GetSnapshotResponse *)response)->snapshot =
        controller_snapshot(call, ref.id, record);
    return TRUE;
}

typedef struct Listing {
    RpcCall *call;
    const VolumeId *token, *source; /* NULL: from the start; of every volume */
    guint max;
    gint64 deadline_us;
    Csi__V1__ListSnapshotsResponse *out;
    gboolean more;
} Listing;

static void add_entry(Listing *l, const VolumeId *id, const SnapshotRecord *record)
{
    Csi__V1__ListSnapshotsResponse__Entry *entry = rpc_alloc(l->call, sizeof(*entry));
    if (!entry)
        return;
    csi__v1__list_snapshots_response__entry__init(entry);
    entry->snapshot = controller_snapshot(l->call, id, record);
    l->out->entries[l->out->n_entries++] = entry;
}

static gboolean list_location(const ProvisionTarget *location, void *data, gboolean *stop,
                              GError **error)
{
    Listing *l = data;
    int order = controller_location_order(location->id, l->token);
    if (order < 0 || (l->source && controller_location_order(location->id, l->source) != 0))
        return TRUE;
    g_autoptr(GPtrArray) list =
        provision_snapshot_list(location, l->source, order == 0 ? l->token->name : NULL,
                                l->max - (guint)l->out->n_entries, &l->more, error);
    for (guint i = 0; list && i < list->len; i++) {
        const ProvisionSnapshot *snapshot = list->pdata[i];
        add_entry(l, snapshot->id, snapshot->record);
    }
    *stop = l->more;
    return list != NULL;
}

/* Whether the error means an empty list: the ID is not ours, or its snapshot does not exist. */
static gboolean is_nothing(GError **cause, GError **error)
{
    if (g_error_matches(*cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(cause));
    return FALSE;
}

static gboolean list_one(const Controller *c, Listing *l, const char *text, const char *source_text,
                         GHashTable *given, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(SnapshotRecord) record = NULL;
    ref_auto VolumeRef ref = {0};
    if (!controller_resolve_snapshot(c, text, reader(given), l->deadline_us, &ref, &cause) ||
        !provision_snapshot_look(&ref.at, &record, &cause))
        return is_nothing(&cause, error);
    g_autoptr(VolumeId) of = provision_snapshot_source(ref.id, record);
    g_autofree char *of_text = volume_id_encode(of, NULL);
    if (!*source_text || g_strcmp0(source_text, of_text) == 0)
        add_entry(l, ref.id, record);
    return TRUE;
}

CONTROLLER_HANDLER(controller_list_snapshots)
{
    const Controller *c = service;
    const Csi__V1__ListSnapshotsRequest *r = (const Csi__V1__ListSnapshotsRequest *)request;
    Listing l = {.call = call,
                 .out = (Csi__V1__ListSnapshotsResponse *)response,
                 .deadline_us = controller_deadline(call)};
    g_autoptr(VolumeId) token = NULL;
    ref_auto VolumeRef source = {0};
    g_autoptr(GError) cause = NULL;
    if (!controller_page(r->max_entries, &l.max, error))
        return FALSE;
    if (*r->starting_token && !(token = snapshot_id_decode(r->starting_token, NULL))) {
        controller_bad_token(error);
        return FALSE;
    }
    l.token = token;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    l.out->entries = rpc_alloc(call, l.max * sizeof(*l.out->entries));
    if (!l.out->entries)
        return TRUE;
    if (*r->snapshot_id)
        return list_one(c, &l, r->snapshot_id, r->source_volume_id, given, error);
    if (*r->source_volume_id &&
        !controller_resolve(c, r->source_volume_id, reader(given), l.deadline_us, &source, &cause))
        return is_nothing(&cause, error);
    l.source = source.id;
    if (!controller_each_location(c, given, list_location, &l, l.deadline_us, error))
        return FALSE;
    if (l.more && l.out->n_entries)
        l.out->next_token = l.out->entries[l.out->n_entries - 1]->snapshot->snapshot_id;
    return TRUE;
}
