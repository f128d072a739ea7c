/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerModifyVolume: what may change of a volume while it is there (volume/mutable.h). */
#include "driver/service/controller/internal.h"

CONTROLLER_HANDLER(controller_modify_volume)
{
    (void)response;
    Controller *c = service;
    const Csi__V1__ControllerModifyVolumeRequest *r =
        (const Csi__V1__ControllerModifyVolumeRequest *)request;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(GHashTable) wanted = CONTEXT_TABLE(r->mutable_parameters, r->n_mutable_parameters);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    if (*r->volume_id && r->n_mutable_parameters == 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "mutable_parameters is empty; name what is to change");
        return FALSE;
    }
    if (!controller_resolve(c, r->volume_id, given, deadline_us, &ref, error))
        return FALSE;
    json_auto json_t *changes = mutable_parse(wanted, ref.id->type, error);
    g_autoptr(BusyHold) hold = changes ? busy_take(c->busy, r->volume_id, NULL, error) : NULL;
    return hold && provision_modify(ref.backend, ref.id, changes, ref.secrets, deadline_us, error);
}
