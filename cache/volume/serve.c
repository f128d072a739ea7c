/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of volume: a tree of files (an origin), served by a session or, when it is a dataset,
 * by the fill layer beneath what the kernel serves itself; and an image, served by a device.
 * Everything else about them is the same.
 */
#include "common/autofd.h"
#include "cache/volume/offline.h"
#include "cache/volume/internal.h"
#include "cache/origin/aside.h"
#include "cache/origin/deferred.h"

static Image *connect_image(Volumes *vs, const VolumeSpec *spec, const char **uncached,
                            GError **error)
{
    Image *image = spec_connect_image(spec, vs->incarnation, error);
    *uncached = image && spec->cache ? image->content.uncached : NULL;
    if (*uncached)
        g_warning("volume %s, image %s: nothing of it is cached: %s", spec->volume, spec->place,
                  *uncached);
    if (image && spec->cache)
        return image_cache_open(vs->images, image, spec->quota_bytes);
    if (image)
        image_cache_forget(image);
    return image;
}

gboolean volumes_connect(Volumes *vs, Volume *v, const VolumeSpec *spec, GError **error)
{
    Origin *origin = NULL;
    Image *image = NULL;
    const char *uncached = NULL;
    if (spec->is_image)
        image = connect_image(vs, spec, &uncached, error);
    else
        origin = away_connect(vs->datasets, spec, vs->incarnation, error);
    if (!origin && !image)
        return FALSE;
    int64_t total = origin ? volumes_measure(origin) : -1;
    pthread_mutex_lock(&vs->lock);
    v->origin = origin;
    v->image = image;
    v->uncached = uncached;
    v->cached = spec->cache;
    v->quota_bytes = spec->quota_bytes;
    v->bytes_total = total;
    pthread_mutex_unlock(&vs->lock);
    return TRUE;
}

gboolean volumes_try(Volumes *vs, const VolumeSpec *spec, GError **error)
{
    if (spec->is_image)
        return spec_try_image(spec, error);
    g_autoptr(Origin) origin = away_connect(vs->datasets, spec, NULL, error);
    return origin != NULL;
}

static void close_origin(void *origin)
{
    origin_close(origin);
}

void volumes_disconnect(Volumes *vs, Volume *v, const char *claimed)
{
    if (vs->store && v->origin)
        store_cancel_fills(vs->store, v->origin);
    /* A claim has nothing to write. */
    if (!claimed)
        origin_close(v->origin);
    else if (!faith_take(vs->faith, claimed, v->spec, v->origin))
        aside_begin(close_origin, v->origin);
    image_close(v->image);
    pthread_mutex_lock(&vs->lock);
    v->origin = NULL;
    v->image = NULL;
    v->uncached = NULL;
    v->readable = FALSE;
    atomic_store(&v->closing, FALSE);
    atomic_store(&v->ended, FALSE);
    v->bytes_total = v->bytes_counted = -1;
    pthread_mutex_unlock(&vs->lock);
}

/* Kubelet waits for two minutes. */
#define SESSION_WAIT_MS 20000

static FillLayer *start_layer(Volumes *vs, Volume *v, int fuse_fd, void (*ended)(void *data),
                              GError **error)
{
    const FillLayerConfig config = {
        .dataset = dataset_id(v->dataset),
        .origin = v->origin,
        .store = vs->store,
        .manifest = dataset_manifest(v->dataset),
        .threads = vs->fuse_threads,
    };
    return fill_layer_start(&config, fuse_fd, ended, v, error);
}

/* Served, what it has cached is evicted after what nobody uses. */
static void tell_use(Volumes *vs, Volume *v, gboolean on)
{
    if (on && vs->store && v->origin && v->cached)
        v->in_use = volumes_tag(vs, v->id);
    if (v->in_use)
        store_use(vs->store, v->in_use, on);
    if (!on)
        g_clear_pointer(&v->in_use, g_free);
}

/* A session asks Ceph for everything. */
static gboolean await_origin(Origin *origin, GError **error)
{
    if (!origin_is_later(origin))
        return TRUE;
    switch (origin_later_wait(origin, SESSION_WAIT_MS, error)) {
    case ORIGIN_LATER_HERE:
        return TRUE;
    case ORIGIN_LATER_REFUSED:
    case ORIGIN_LATER_FAILED:
        return FALSE;
    default:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "Ceph does not answer, and without it only what is mounted natively is read");
        return FALSE;
    }
}

gboolean volumes_serve(Volumes *vs, Volume *v, gboolean fill_layer, int fuse_fd,
                       void (*ended)(void *data), GError **error)
{
    const SessionConfig config = {
        .volume = v->id,
        .origin = v->origin,
        .store = v->cached ? vs->store : NULL,
        .read_only = v->spec->read_only,
        .has_group = v->spec->mount_group >= 0,
        .group = (gid_t)v->spec->mount_group,
        .threads = vs->fuse_threads,
    };
    hearth_autofd int fd = fuse_fd;
    Session *session = NULL;
    FillLayer *layer = NULL;
    Device *device = NULL;
    if (fill_layer)
        layer = start_layer(vs, v, hearth_steal_fd(&fd), ended, error);
    else if (v->image)
        device = device_start(v->image, hearth_steal_fd(&fd), ended, v, error);
    else if (await_origin(v->origin, error))
        session = session_start(&config, hearth_steal_fd(&fd), ended, v, error);
    pthread_mutex_lock(&vs->lock);
    v->session = session;
    v->layer = layer;
    v->device = device;
    pthread_mutex_unlock(&vs->lock);
    if (!volume_is_served(v))
        return FALSE;
    tell_use(vs, v, TRUE);
    return TRUE;
}

gboolean volumes_stop_serving(Volumes *vs, Volume *v, gint64 timeout_ms)
{
    pthread_mutex_lock(&vs->lock);
    Session *session = g_steal_pointer(&v->session);
    FillLayer *layer = g_steal_pointer(&v->layer);
    if (v->device)
        v->leaving = g_steal_pointer(&v->device);
    pthread_mutex_unlock(&vs->lock);
    tell_use(vs, v, FALSE);
    if (session)
        session_stop(session);
    fill_layer_stop(layer);
    if (v->leaving && !device_stop(v->leaving, timeout_ms))
        return FALSE;
    v->leaving = NULL;
    return TRUE;
}

gboolean volumes_leave_dataset(Volumes *vs, Volume *v, gint64 timeout_ms)
{
    if (!dataset_leave(v->dataset, v->origin, timeout_ms))
        return FALSE;
    pthread_mutex_lock(&vs->lock);
    v->dataset = NULL;
    pthread_mutex_unlock(&vs->lock);
    return TRUE;
}

int volume_fd(const Volume *v)
{
    if (v->layer)
        return fill_layer_fd(v->layer);
    return v->device ? device_fd(v->device) : session_fd(v->session);
}

static void image_stats(const Volume *v, SessionStats *stats)
{
    ImageCacheStats kept;
    device_stats(v->device, stats);
    if (!image_cache_stats(v->image, &kept))
        return;
    stats->bytes_kept = kept.bytes_kept;
    stats->bytes_store = kept.bytes_hit;
    stats->bytes_origin = kept.bytes_fetched;
}

void volume_stats(const Volume *v, SessionStats *stats)
{
    if (v->layer) {
        FillLayerStats layer;
        fill_layer_stats(v->layer, &layer);
        stats->bytes_store = layer.bytes_store;
        stats->bytes_fill = layer.bytes_fill;
        stats->bytes_origin = layer.bytes_origin;
    } else if (v->device)
        image_stats(v, stats);
    else if (v->session)
        session_stats(v->session, stats);
}
