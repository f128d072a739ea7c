/* SPDX-License-Identifier: Apache-2.0 */
/* Finds images of ceph-csi by their handle, which has the pool's number and a part of the image's
 * name. */
#include <string.h>
#include "driver/backend/ceph/mon.h"
#include "driver/backend/rbd/internal.h"

/* Whether the image exists; FALSE with an error for a failure. */
static gboolean is_there(RbdLocation *location, const VolumeId *id, gint64 deadline_us,
                         GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(BackendVolume) volume = rbd_volume_look(location, id, deadline_us, &cause);
    if (!volume && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
        g_propagate_error(error, g_steal_pointer(&cause));
    return volume != NULL;
}

/* A class of ceph-csi may have set volumeNamePrefix, which only ceph-csi's journal knows. */
static gboolean find_by_end(RbdLocation *location, VolumeId *id, const char *end,
                            gint64 deadline_us, GError **error)
{
    g_autoptr(GPtrArray) names = rbd_volume_list(location, id, deadline_us, error);
    for (guint i = 0; names && i < names->len; i++) {
        if (!g_str_has_suffix(names->pdata[i], end))
            continue;
        g_free(id->name);
        id->name = g_strdup(names->pdata[i]);
        break;
    }
    return names != NULL;
}

VolumeId *rbd_adopt(CephConn *conn, const char *nspace, const AdoptedId *adopted,
                    gint64 deadline_us, GError **error)
{
    g_autofree char *pool = ceph_mon_pool(conn, "rbd", adopted->location, deadline_us, error);
    if (!pool)
        return NULL;
    g_autoptr(VolumeId) id = g_new0(VolumeId, 1);
    id->type = VOLUME_RBD;
    id->cluster_id = g_strdup(adopted->cluster_id);
    id->pool = g_strdup(pool);
    id->rados_namespace = g_strdup(nspace);
    id->name = adopted_id_volume(adopted);
    id->adopted = TRUE;
    id->handle = adopted_id_encode(adopted);
    RbdLocation location = {conn, pool, id->rados_namespace, 0};
    g_autoptr(GError) cause = NULL;
    if (is_there(&location, id, deadline_us, &cause) ||
        (!cause && find_by_end(&location, id, adopted->uuid, deadline_us, &cause)))
        return g_steal_pointer(&id);
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}
