/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes whose user may not read the bytes, which the cache may hold because another user had them
 * fetched. A volume that was opened without an answer of Ceph may turn out to be refused, or to be
 * of a snapshot that does not exist any more. The fill layer of a refused volume answers EACCES.
 * hearthd cannot reach the native mount above it, so the node plugin asks for the list of refused
 * volumes (op "refused").
 */
#include "cache/volume/rights.h"
#include "cache/volume/internal.h"
#include "cache/origin/deferred.h"
#include <string.h>

#define REFUSED_MAX 4096

json_t *volumes_refused(Volumes *vs)
{
    json_t *list = json_array();
    GHashTableIter iter;
    gpointer name;
    pthread_mutex_lock(&vs->lock);
    g_hash_table_iter_init(&iter, vs->refused);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        json_array_append_new(list, json_string(name));
    pthread_mutex_unlock(&vs->lock);
    return list;
}

static void refuse_locked(Volumes *vs, Volume *v)
{
    atomic_store(&v->ended, TRUE);
    if (v->server != SERVER_FILL_LAYER)
        return; /* nothing is mounted over it */
    fill_layer_refuse(v->layer);
    if (g_hash_table_size(vs->refused) < REFUSED_MAX &&
        g_hash_table_add(vs->refused, g_strdup(v->id)))
        g_warning("volume %s: Ceph refuses user %s, with whose key it was opened while Ceph was "
                  "away; it is not served any more",
                  v->id, v->spec->user_id);
}

/* All volumes with the same key are refused as well. */
static void refuse_claim(const char *dataset, const VolumeSpec *spec, void *data)
{
    Volumes *vs = data;
    GHashTableIter iter;
    gpointer value;
    offline_refused(vs->offline, spec);
    pthread_mutex_lock(&vs->lock);
    g_hash_table_iter_init(&iter, vs->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Volume *v = value;
        if (v->server == SERVER_FILL_LAYER && strcmp(dataset_id(v->dataset), dataset) == 0 &&
            spec_same_authority(v->spec, spec))
            refuse_locked(vs, v);
    }
    pthread_mutex_unlock(&vs->lock);
}

static void refuse_volume(Volumes *vs, Volume *v)
{
    pthread_mutex_lock(&vs->lock);
    g_autoptr(VolumeSpec) spec = spec_copy(v->spec);
    refuse_locked(vs, v);
    pthread_mutex_unlock(&vs->lock);
    offline_refused(vs->offline, spec);
}

static void end_if_refused(Volumes *vs, Volume *v)
{
    if (!origin_is_deferred(v->origin) || atomic_load(&v->ended))
        return;
    switch (origin_deferred_wait(v->origin, 0, NULL)) {
    case ORIGIN_DEFERRED_OTHER: /* the next open gets the new snapshot */
        atomic_store(&v->ended, TRUE);
        break;
    case ORIGIN_DEFERRED_REFUSED:
        refuse_volume(vs, v);
        break;
    default:
        break;
    }
}

void volumes_end_refused(Volumes *vs)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, NULL);
    for (guint i = 0; i < ids->len; i++) {
        Volume *v = volumes_use(vs, ids->pdata[i], NULL);
        if (!v)
            continue;
        end_if_refused(vs, v);
        volumes_done(vs, v);
    }
    faith_check(vs->faith, refuse_claim, vs);
}

gboolean volumes_check_rights(Volumes *vs, const char *id, Dataset *d, GError **error)
{
    Volume *v = volumes_use(vs, id, error);
    if (!v)
        return FALSE;
    pthread_mutex_lock(&vs->lock);
    const gboolean known = v->readable;
    g_autoptr(VolumeSpec) spec = spec_copy(v->spec);
    pthread_mutex_unlock(&vs->lock);
    g_autoptr(GError) cause = NULL;
    if (!known && (!origin_is_deferred(v->origin) ||
                   origin_deferred_wait(v->origin, 0, NULL) == ORIGIN_DEFERRED_HERE)) {
        const gboolean readable = rights_check(v->origin, spec, dataset_manifest(d), &cause);
        pthread_mutex_lock(&vs->lock);
        v->readable = readable;
        pthread_mutex_unlock(&vs->lock);
    }
    volumes_done(vs, v);
    if (!cause)
        return TRUE;
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        offline_refused(vs->offline, spec);
    g_propagate_prefixed_error(error, g_steal_pointer(&cause), "volume %s: ", id);
    return FALSE;
}
