/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CreateVolume and DeleteVolume. Each call: check the arguments, find the backend, lock, provision,
 * answer. The locks are the request's name and the volume's ID, so that neither two creations nor a
 * creation and a deletion of one volume overlap; the second call gets ABORTED.
 */
#include <string.h>
#include "driver/service/capability.h"
#include "driver/service/controller/internal.h"
#include "driver/volume/name.h"

#define refuse(error, ...) hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

/* Checks that do not depend on the backend. */
static gboolean check_create(const Csi__V1__CreateVolumeRequest *r, GError **error)
{
    if (!name_check_request(r->name, error) ||
        !capability_check_form(r->volume_capabilities, r->n_volume_capabilities, error))
        return FALSE;
    const Csi__V1__CapacityRange *range = r->capacity_range;
    if (range && range->required_bytes == 0 && range->limit_bytes == 0)
        return refuse(error, "capacity_range has neither required_bytes nor limit_bytes; set one, "
                             "or leave the range out for the default of 1 GiB");
    return TRUE;
}

/* The content that the volume starts with: one of the two has an ID, or none when it is empty. */
typedef struct Source {
    VolumeRef snapshot, volume;
    const char *text; /* the ID as given */
    char *at;         /* the ID that a source of ceph-csi would have as ours; else NULL */
} Source;

static void source_clear(Source *source)
{
    controller_ref_clear(&source->snapshot);
    controller_ref_clear(&source->volume);
    g_free(source->at);
}
#define source_auto __attribute__((cleanup(source_clear)))

/* The ID of a source of ceph-csi in our own form, by which provisioning finds it. */
static char *own_id_of_source(const VolumeId *id, gboolean snapshot, GError **error)
{
    VolumeId own = *id;
    own.handle = NULL;
    if (!snapshot)
        return volume_id_encode(&own, error);
    own.group = NULL;
    return snapshot_id_encode(&own, error);
}

/* Whether the backend can copy to the target's location from the location `from`. */
static gboolean check_reach(const ProvisionTarget *at, const VolumeId *from, const char *text,
                            GError **error)
{
    const Backend *b = at->backend;
    const VolumeId *to = at->id;
    if (volume_id_same_location(from, to))
        return TRUE;
    g_autoptr(GError) cause = NULL;
    gboolean can = b->ops->check_reach && from->type == to->type;
    if (can && b->ops->check_reach(b->impl, from, to, at->secrets, at->deadline_us, &cause))
        return TRUE;
    if (can && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_autofree char *theirs = volume_id_location_text(from);
    g_autofree char *ours = volume_id_location_text(to);
    return hearth_fail(
        error, HEARTH_ERROR_INVALID_ARGUMENT,
        "volume_content_source %s is in %s, the class's volumes are in %s: %s", text, theirs, ours,
        cause ? cause->message
              : "a copy has its source's type; use a class of that, or copy the data in a "
                "pod that has both");
}

/* Resolves the source of the request, and checks that the volume `at` can be copied from it. */
static gboolean read_source(const Creation *n, const ProvisionTarget *at, Source *source,
                            GError **error)
{
    const Csi__V1__VolumeContentSource *from = n->request->volume_content_source;
    const VolumeId *found;
    if (!from)
        return TRUE;
    if (from->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT) {
        source->text = from->snapshot->snapshot_id;
        if (!controller_resolve_snapshot(n->controller, source->text, n->given, n->deadline_us,
                                         &source->snapshot, error))
            return FALSE;
        found = source->snapshot.id;
    } else if (from->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME) {
        source->text = from->volume->volume_id;
        if (!controller_resolve(n->controller, source->text, n->given, n->deadline_us,
                                &source->volume, error))
            return FALSE;
        found = source->volume.id;
    } else {
        return refuse(error, "volume_content_source names neither a snapshot nor a volume");
    }
    if (!check_reach(at, found, source->text, error))
        return FALSE;
    if (!found->handle)
        return TRUE;
    source->at = own_id_of_source(found, source->snapshot.id != NULL, error);
    return source->at != NULL;
}

/*
 * Whether the volume shows a snapshot instead of copying it. The rule is ceph-csi's: a request that
 * only reads gets the snapshot itself, at once, unless the class says otherwise (backingSnapshot).
 * A volume of a dataset always shows one.
 */
static gboolean choose_backing(const Creation *n, const VolumeId *from_snapshot,
                               gboolean *backing_snapshot, GError **error)
{
    const Csi__V1__CreateVolumeRequest *r = n->request;
    const VolumeParams *params = n->params;
    gboolean reads = capability_reads_only(r->volume_capabilities, r->n_volume_capabilities);
    if (params->dataset) {
        *backing_snapshot = TRUE;
        if (r->volume_content_source)
            return refuse(error, "the class has a dataset, so its volumes start as that and "
                                 "nothing else: leave dataSource out, or use another class");
        return reads || refuse(error, "the class has a dataset, which is a snapshot and cannot be "
                                      "written: ask for accessModes [ReadOnlyMany]");
    }
    /* ceph-csi counts the volumes that show a snapshot of its own, and would not count ours. */
    gboolean own = from_snapshot && !from_snapshot->handle;
    *backing_snapshot =
        own && reads && n->backend->ops->snapshot_path && params->backing_snapshot != BACKING_NEVER;
    if (from_snapshot && !own && params->backing_snapshot == BACKING_ALWAYS)
        return refuse(error, "backingSnapshot=true: a snapshot of ceph-csi is not shown, only "
                             "copied; use backingSnapshot=false");
    if (from_snapshot && !reads && params->backing_snapshot == BACKING_ALWAYS)
        return refuse(error, "backingSnapshot=true gives the snapshot itself, which cannot be "
                             "written: ask for ReadOnlyMany, or use backingSnapshot=false for a "
                             "copy");
    return TRUE;
}

/* Logs each parameter once, because every volume of the class repeats it. */
static void warn_ignored_parameters(Controller *c, const VolumeParams *params)
{
    for (guint i = 0; i < params->meaningless->len; i++) {
        const char *name = params->meaningless->pdata[i];
        pthread_mutex_lock(&c->warned_lock);
        gboolean first = g_hash_table_add(c->warned, (char *)name);
        pthread_mutex_unlock(&c->warned_lock);
        if (first)
            g_message("parameter %s has no meaning with this driver and is not used", name);
    }
}

CONTROLLER_HANDLER(controller_create_volume)
{
    Controller *c = service;
    const Csi__V1__CreateVolumeRequest *r = (const Csi__V1__CreateVolumeRequest *)request;
    if (!check_create(r, error))
        return FALSE;
    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(VolumeParams) params = params_parse(parameters, error);
    if (!params || !capability_check_supported(r->volume_capabilities, r->n_volume_capabilities,
                                               params->type, error))
        return FALSE;
    warn_ignored_parameters(c, params);
    CapacityRange range = {0};
    if (r->capacity_range)
        range = (CapacityRange){r->capacity_range->required_bytes, r->capacity_range->limit_bytes};
    gint64 bytes;
    const Backend *b = controller_backend(c, params->type, error);
    if (!b || !capacity_choose(range, params->type, &bytes, error))
        return FALSE;
    g_autoptr(Secrets) secrets = NULL;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autofree char *text = NULL;
    g_autoptr(BusyHold) name_hold = busy_take(c->busy, r->name, NULL, error);
    const TopologyPool *pool;
    const Creation creation = {c, r, b, params, given, controller_deadline(call)};
    if (!name_hold || !controller_choose_pool(&creation, &pool, error))
        return FALSE;
    g_autoptr(VolumeId) id = controller_location(b, params, r->name, &text, error);
    source_auto Source source = {.text = NULL};
    gboolean backing_snapshot;
    g_autoptr(GHashTable) given_changes =
        CONTEXT_TABLE(r->mutable_parameters, r->n_mutable_parameters);
    json_auto_t *changes = mutable_parse(given_changes, params->type, error);
    if (!id || !changes || !controller_secrets(b, given, &secrets, error))
        return FALSE;
    const ProvisionTarget at = {b, id, secrets, creation.deadline_us};
    if (!read_source(&creation, &at, &source, error) ||
        !choose_backing(&creation, source.snapshot.id, &backing_snapshot, error))
        return FALSE;

    g_autoptr(BusyHold) id_hold = busy_take(c->busy, text, NULL, error);
    if (!id_hold)
        return FALSE;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    ProvisionRequest wanted = {.name = r->name,
                               .params = params,
                               .range = range,
                               .from_snapshot = source.snapshot.id,
                               .from_volume = source.volume.id,
                               .source = source.text,
                               .source_at = source.at,
                               .backing_snapshot = backing_snapshot,
                               .changes = changes};
    if (!provision_create(&at, &wanted, &record, &volume, error))
        return FALSE;
    g_autoptr(VolumeId) made = volume_id_copy(id);
    g_free(made->name);
    made->name = g_strdup(record->name);
    g_autofree char *handle = volume_id_encode(made, error);
    if (!handle)
        return FALSE;
    const ProvisionTarget at_made = {b, made, secrets, creation.deadline_us};
    if (!record->backing)
        controller_describe_volume(c, &at_made, params);
    Csi__V1__Volume *out = controller_volume(call, handle, made, record, volume);
    controller_accessible(c, call, pool, out);
    ((Csi__V1__CreateVolumeResponse *)response)->volume = out;
    return TRUE;
}

CONTROLLER_HANDLER(controller_delete_volume)
{
    (void)response;
    Controller *c = service;
    const Csi__V1__DeleteVolumeRequest *r = (const Csi__V1__DeleteVolumeRequest *)request;
    g_autoptr(GError) cause = NULL;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    if (!controller_resolve(c, r->volume_id, given, deadline_us, &ref, &cause)) {
        /* An ID that is not ours names no volume of ours: for CSI it is deleted already. */
        if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
            return TRUE;
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_autoptr(BusyHold) hold = busy_take(c->busy, r->volume_id, NULL, error);
    return hold && provision_delete(&ref.at, error);
}
