/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ValidateVolumeCapabilities: whether an existing volume matches the request. Each part that the
 * answer confirms was compared.
 */
#include <string.h>
#include "driver/service/capability.h"
#include "driver/service/controller/internal.h"
#include "driver/volume/attributes.h"

/* NULL: the volume matches the request. Else the reason, the caller's. */
static char *find_mismatch(const Csi__V1__ValidateVolumeCapabilitiesRequest *r, const VolumeId *id,
                           const VolumeRecord *record, const BackendVolume *volume)
{
    g_autoptr(GError) cause = NULL;
    if (!capability_check_supported(r->volume_capabilities, r->n_volume_capabilities, id->type,
                                    &cause))
        return g_strdup(cause->message);
    if (record->backing && !capability_reads_only(r->volume_capabilities, r->n_volume_capabilities))
        return g_strdup("volume_capabilities: the volume is a snapshot, for reading only");
    g_autoptr(GHashTable) wanted = CONTEXT_TABLE(r->mutable_parameters, r->n_mutable_parameters);
    json_auto_t *changes = mutable_parse(wanted, id->type, &cause);
    if (!changes)
        return g_strdup(cause->message);
    const char *other = mutable_difference(changes, record->changes);
    if (other)
        return g_strdup_printf("mutable_parameters: the volume has another %s", other);

    g_autoptr(GHashTable) context = CONTEXT_TABLE(r->volume_context, r->n_volume_context);
    ContextPair pairs[CONTEXT_MAX];
    gsize n = context_of(id, record, volume, pairs);
    const char *differs = context_difference(pairs, n, context);
    char *text = differs ? g_strdup_printf("volume_context: %s is another one's", differs) : NULL;
    context_clear(pairs, n);
    if (text || r->n_parameters == 0)
        return text;
    if (id->adopted)
        return g_strdup("parameters: those of a volume of ceph-csi are in its journal");

    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(VolumeParams) params = params_parse(parameters, &cause);
    CapacityRange any = {0};
    const VolumeRequest wanted_request = {
        .name = record->request_name, .params = params, .id = id, .source = record->source};
    if (!params || !volume_record_check_same(record, &wanted_request, any, &cause))
        return g_strdup(cause->message);
    return NULL;
}

/*
 * A static volume has no record. Without mounting it, all that can be checked is that its location
 * exists and accepts this user. *why is the reason if not; the caller's.
 */
static gboolean check_static(const Controller *c,
                             const Csi__V1__ValidateVolumeCapabilitiesRequest *r,
                             GHashTable *context, gint64 deadline_us, char **why, GError **error)
{
    VolumeAttributes a;
    g_autoptr(GError) cause = NULL;
    if (!attributes_read(r->volume_id, context, &a, error))
        return FALSE;
    const VolumeId location = {.type = a.type,
                               .cluster_id = (char *)a.cluster_id,
                               .fs_name = (char *)a.fs_name,
                               .pool = (char *)a.pool,
                               .rados_namespace =
                                   (char *)(a.rados_namespace ? a.rados_namespace : "")};
    const Backend *b = controller_backend(c, location.type, error);
    if (!b)
        return FALSE;
    const gboolean incomplete =
        !a.cluster_id || (a.type == VOLUME_RBD && !a.pool) ||
        (a.type == VOLUME_CEPHFS && (!a.fs_name || (!a.root_path && !a.dataset)));
    if (incomplete) {
        *why =
            g_strdup(location.type == VOLUME_RBD
                         ? "volume_context: a static image has clusterID and pool"
                         : "volume_context: a static volume has clusterID, fsName, and rootPath or "
                           "dataset");
        return TRUE;
    }
    if (!capability_check_supported(r->volume_capabilities, r->n_volume_capabilities, location.type,
                                    &cause)) {
        *why = g_strdup(cause->message);
        return TRUE;
    }
    if (a.is_snapshot && !capability_reads_only(r->volume_capabilities, r->n_volume_capabilities)) {
        *why = g_strdup("volume_capabilities: the volume is a snapshot, for reading only");
        return TRUE;
    }
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(Secrets) secrets = NULL;
    if (!controller_secrets(b, given, &secrets, error))
        return FALSE;
    void *session = b->ops->open(b->impl, &location, secrets, deadline_us, &cause);
    if (session)
        b->ops->close(session);
    else if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT))
        *why = g_strdup(cause->message);
    else
        g_propagate_error(error, g_steal_pointer(&cause));
    return session || *why;
}

CONTROLLER_HANDLER(controller_validate_volume_capabilities)
{
    Controller *c = service;
    const Csi__V1__ValidateVolumeCapabilitiesRequest *r =
        (const Csi__V1__ValidateVolumeCapabilitiesRequest *)request;
    Csi__V1__ValidateVolumeCapabilitiesResponse *out =
        (Csi__V1__ValidateVolumeCapabilitiesResponse *)response;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(GHashTable) context = CONTEXT_TABLE(r->volume_context, r->n_volume_context);
    g_autofree char *why = NULL;
    gint64 deadline_us = controller_deadline(call);
    /* What is wrong with the request itself comes before whether there is such a volume. */
    if (*r->volume_id &&
        !capability_check_form(r->volume_capabilities, r->n_volume_capabilities, error))
        return FALSE;
    if (g_strcmp0(g_hash_table_lookup(context, "staticVolume"), "true") == 0) {
        if (!check_static(c, r, context, deadline_us, &why, error))
            return FALSE;
    } else {
        ref_auto VolumeRef ref = {0};
        g_autoptr(VolumeRecord) record = NULL;
        g_autoptr(BackendVolume) volume = NULL;
        if (!controller_resolve(c, r->volume_id, given, deadline_us, &ref, error) ||
            !provision_look(&ref.at, &record, &volume, error))
            return FALSE;
        why = find_mismatch(r, ref.id, record, volume);
    }
    if (why) {
        out->message = rpc_strdup(call, why);
        return TRUE;
    }
    /*
     * The request is of the call's arena, so its parts can be given back as they are; every map's
     * entry is a message of a key and a value, whatever its descriptor is called.
     */
    Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *confirmed =
        rpc_alloc(call, sizeof(*confirmed));
    if (!confirmed)
        return TRUE;
    csi__v1__validate_volume_capabilities_response__confirmed__init(confirmed);
    confirmed->n_volume_capabilities = r->n_volume_capabilities;
    confirmed->volume_capabilities = r->volume_capabilities;
    confirmed->n_volume_context = r->n_volume_context;
    confirmed->volume_context = (void *)r->volume_context;
    confirmed->n_parameters = r->n_parameters;
    confirmed->parameters = (void *)r->parameters;
    confirmed->n_mutable_parameters = r->n_mutable_parameters;
    confirmed->mutable_parameters = (void *)r->mutable_parameters;
    out->confirmed = confirmed;
    return TRUE;
}
