/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves a volume's ID to its location and backend. An ID of ours has all of it. An ID of
 * ceph-csi does not say whether it is of CephFS or RBD: it belongs to the first backend whose
 * cluster has such a volume or has it in ceph-csi's journal, and otherwise to the first that has
 * such a location.
 */
#include <string.h>
#include "driver/service/controller/internal.h"

void controller_ref_clear(VolumeRef *ref)
{
    volume_id_free(ref->id);
    secrets_free(ref->secrets);
    *ref = (VolumeRef){0};
}

static gboolean user_of(const Controller *c, const Backend *b, const char *cluster_id,
                        GHashTable *given, Secrets **secrets, GError **error)
{
    return given ? controller_secrets(b, given, secrets, error)
                 : controller_own_secrets(c, b, cluster_id, secrets, error);
}

/* Whether the backend has the volume itself; FALSE with an error for a failure. */
static gboolean has_volume(const VolumeRef *ref, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    if (provision_look(&ref->at, &record, &volume, &cause))
        return TRUE;
    if (!g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_autofree char *name = NULL;
    return provision_adopted_known(&ref->at, JOURNAL_VOLUME, &name, error) && name;
}

/* Whether the journal has the snapshot; then the ID gets the snapshot's name. FALSE as above. */
static gboolean has_snapshot(const VolumeRef *ref, GError **error)
{
    char *name = NULL;
    if (!provision_adopted_known(&ref->at, JOURNAL_SNAPSHOT, &name, error) || !name)
        return FALSE;
    g_free(ref->id->name);
    ref->id->name = name;
    return TRUE;
}

typedef gboolean (*Has)(const VolumeRef *ref, GError **error);

/* With the time that ref->at has. */
static gboolean resolve_adopted(const Controller *c, const AdoptedId *adopted, Has has_it,
                                GHashTable *given, VolumeRef *ref, GError **error)
{
    for (gsize i = 0; i < c->n_backends; i++) {
        const Backend *b = c->backends[i];
        GError *cause = NULL;
        ref_auto VolumeRef found = {.at = {.backend = b, .deadline_us = ref->at.deadline_us}};
        if (!b->ops->adopt)
            continue;
        if (!user_of(c, b, adopted->cluster_id, given, &found.secrets, error))
            return FALSE;
        found.id = b->ops->adopt(b->impl, adopted, found.secrets, ref->at.deadline_us, &cause);
        found.at.id = found.id;
        found.at.secrets = found.secrets;
        gboolean has = found.id && has_it(&found, &cause);
        if (cause) {
            g_propagate_error(error, cause);
            return FALSE;
        }
        if (found.id && (has || !ref->id)) {
            controller_ref_clear(ref);
            *ref = found;
            found = (VolumeRef){0};
        }
        if (has)
            break;
    }
    if (!ref->id)
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND,
                    "volume %s of ceph-csi: cluster %s has no file system and no pool of number "
                    "%" G_GUINT64_FORMAT,
                    adopted->uuid, adopted->cluster_id, adopted->location);
    return ref->id != NULL;
}

/* Completes a ref that has its ID; without one the error is set already. */
static gboolean resolve_own(const Controller *c, GHashTable *given, VolumeRef *ref, GError **error)
{
    const Backend *b = ref->id ? controller_backend(c, ref->id->type, error) : NULL;
    if (!b || !user_of(c, b, ref->id->cluster_id, given, &ref->secrets, error))
        return FALSE;
    ref->at.backend = b;
    ref->at.id = ref->id;
    ref->at.secrets = ref->secrets;
    return TRUE;
}

gboolean controller_resolve(const Controller *c, const char *text, GHashTable *given,
                            gint64 deadline_us, VolumeRef *ref, GError **error)
{
    g_autoptr(AdoptedId) adopted = adopted_id_decode(text);
    ref->at.deadline_us = deadline_us;
    if (adopted)
        return resolve_adopted(c, adopted, has_volume, given, ref, error);
    ref->id = volume_id_decode(text, error);
    return resolve_own(c, given, ref, error);
}

gboolean controller_resolve_snapshot(const Controller *c, const char *text, GHashTable *given,
                                     gint64 deadline_us, VolumeRef *ref, GError **error)
{
    g_autoptr(AdoptedId) adopted = adopted_id_decode(text);
    ref->at.deadline_us = deadline_us;
    if (adopted)
        return resolve_adopted(c, adopted, has_snapshot, given, ref, error);
    ref->id = snapshot_id_decode(text, error);
    return resolve_own(c, given, ref, error);
}
