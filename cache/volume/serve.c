/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a volume is connected to and what serves it. A tree of files (an origin) is served by a
 * session or, when it is a dataset, by the fill layer below what the kernel serves itself. An image
 * is served by a device. Everything else about them is the same.
 */
#include <errno.h>
#include <fcntl.h>
#include "cache/origin/aside.h"
#include "cache/fuse/mount_state.h"
#include "cache/origin/deferred.h"
#include "cache/volume/internal.h"
#include "common/autofd.h"
#include "proto/wire.h"

static Image *connect_image(Volumes *vs, const VolumeSpec *spec, const char **uncached,
                            GError **error)
{
    Image *image = spec_connect_image(spec, vs->incarnation, error);
    *uncached = image && spec->cache ? image->content.uncached : NULL;
    if (*uncached)
        g_warning("volume %s, image %s: nothing of it is cached: %s", spec->volume, spec->location,
                  *uncached);
    if (image && spec->cache)
        return image_cache_open(vs->images, image, spec->quota_bytes);
    if (image)
        image_cache_forget(image);
    return image;
}

/* CephFS keeps the size of a subtree in an attribute of its root; other origins have none. */
int64_t volumes_measure(Origin *origin)
{
    OriginNode *root;
    OriginAttr attr;
    char text[32];
    if (origin->ops->root(origin, &root, &attr) < 0)
        return -1;
    ssize_t n = origin->ops->getxattr(origin, root, "ceph.dir.rbytes", text, sizeof(text) - 1);
    origin->ops->put(origin, root);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    guint64 bytes;
    return g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &bytes, NULL) ? (int64_t)bytes : -1;
}

static void set_content(Volume *v, const VolumeSpec *spec, VolumeContent content)
{
    v->content = content;
    v->cached = spec->cache;
    v->quota_bytes = spec->quota_bytes;
}

static gboolean connect_image_volume(Volumes *vs, Volume *v, const VolumeSpec *spec, GError **error)
{
    const char *uncached;
    Image *image = connect_image(vs, spec, &uncached, error);
    if (!image)
        return FALSE;
    pthread_mutex_lock(&vs->lock);
    v->image = image;
    v->uncached = uncached;
    set_content(v, spec, CONTENT_IMAGE);
    pthread_mutex_unlock(&vs->lock);
    return TRUE;
}

static gboolean connect_tree_volume(Volumes *vs, Volume *v, const VolumeSpec *spec, GError **error)
{
    Origin *origin = offline_connect(vs->offline, spec, vs->incarnation, error);
    if (!origin)
        return FALSE;
    int64_t total = volumes_measure(origin);
    pthread_mutex_lock(&vs->lock);
    v->origin = origin;
    v->bytes_total = total;
    set_content(v, spec, CONTENT_TREE);
    pthread_mutex_unlock(&vs->lock);
    return TRUE;
}

gboolean volumes_connect(Volumes *vs, Volume *v, const VolumeSpec *spec, GError **error)
{
    if (kind_is_image(spec->kind))
        return connect_image_volume(vs, v, spec, error);
    return connect_tree_volume(vs, v, spec, error);
}

gboolean volumes_try(Volumes *vs, const VolumeSpec *spec, GError **error)
{
    if (kind_is_image(spec->kind))
        return spec_try_image(spec, error);
    g_autoptr(Origin) origin = offline_connect(vs->offline, spec, NULL, error);
    return origin != NULL;
}

static void close_origin(void *origin)
{
    origin_close(origin);
}

static void disconnect_tree(Volumes *vs, const VolumeSpec *spec, Origin *origin,
                            const char *claimed)
{
    if (vs->store)
        store_cancel_fills(vs->store, origin);
    if (!claimed)
        origin_close(origin);
    else if (!faith_take(vs->faith, claimed, spec, origin))
        aside_begin(close_origin, origin); /* a claim has nothing to write */
}

void volumes_disconnect(Volumes *vs, Volume *v, const char *claimed)
{
    Origin *origin = NULL;
    Image *image = NULL;
    pthread_mutex_lock(&vs->lock); /* a report may be looking at it */
    if (v->content == CONTENT_TREE)
        origin = g_steal_pointer(&v->origin);
    else if (v->content == CONTENT_IMAGE)
        image = g_steal_pointer(&v->image);
    pthread_mutex_unlock(&vs->lock);
    if (origin)
        disconnect_tree(vs, v->spec, origin, claimed);
    if (image)
        image_close(image);
    pthread_mutex_lock(&vs->lock);
    v->content = CONTENT_NONE;
    v->uncached = NULL;
    v->readable = FALSE;
    atomic_store(&v->closing, FALSE);
    atomic_store(&v->ended, FALSE);
    v->bytes_total = v->bytes_counted = -1;
    pthread_mutex_unlock(&vs->lock);
}

/* kubelet gives a stage call two minutes. */
#define SESSION_WAIT_MS 20000
/* hearthd ends after 8.5 s in any case. */
#define LEAVE_MS 4000

static FillLayer *start_layer(Volumes *vs, Volume *v, const VolumeMount *mount,
                              void (*ended)(void *data), GError **error)
{
    g_auto(LayerNote) note = {0};
    hearth_autofd int fd = mount->fuse_fd;
    const FillLayerConfig config = {
        .dataset = dataset_id(v->dataset),
        .origin = v->origin,
        .store = vs->store,
        .manifest = dataset_manifest(v->dataset),
        .timeout_ms = v->spec->read_timeout_sec * 1000,
    };
    if (!mount->note)
        return fill_layer_start(&config, hearth_steal_fd(&fd), ended, v, error);
    if (!layer_note_parse(mount->note, &note, error))
        return NULL;
    return fill_layer_take_over(&config, hearth_steal_fd(&fd), &note, ended, v, error);
}

/* Objects of a volume that is served are evicted after objects that are not in use. */
static void set_in_use(Volumes *vs, Volume *v, gboolean on)
{
    if (on && vs->store && v->content == CONTENT_TREE && v->cached)
        v->in_use = volumes_tag(vs, v->id);
    if (v->in_use)
        store_use(vs->store, v->in_use, on);
    if (!on)
        g_clear_pointer(&v->in_use, g_free);
}

/* A session needs Ceph for every name. */
static gboolean await_origin(Origin *origin, GError **error)
{
    if (!origin_is_deferred(origin))
        return TRUE;
    switch (origin_deferred_wait(origin, SESSION_WAIT_MS, error)) {
    case ORIGIN_DEFERRED_HERE:
        return TRUE;
    case ORIGIN_DEFERRED_REFUSED:
    case ORIGIN_DEFERRED_FAILED:
        return FALSE;
    default:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "Ceph does not answer, and without it only what is mounted natively is read");
        return FALSE;
    }
}

static Session *start_session(Volumes *vs, Volume *v, int fuse_fd, void (*ended)(void *data),
                              GError **error)
{
    hearth_autofd int fd = fuse_fd;
    g_autoptr(GBytes) init = NULL;
    json_auto_t *state = NULL;
    if (v->left_fd >= 0) {
        state = mount_state_read(v->left_fd, MOUNT_STATE_TREE, &init, error);
        if (!state)
            return NULL;
    }
    const SessionConfig config = {
        .state = state,
        .init = init,
        .state_fd = v->left_fd,
        .volume = v->id,
        .origin = v->origin,
        .store = v->cached ? vs->store : NULL,
        .read_only = v->spec->read_only,
        .shared_locks = v->spec->shared_locks,
        .has_group = v->spec->mount_group >= 0,
        .group = (gid_t)v->spec->mount_group,
    };
    if (!await_origin(v->origin, error))
        return NULL;
    return session_start(&config, hearth_steal_fd(&fd), ended, v, error);
}

static Device *start_device(Volume *v, int fuse_fd, void (*ended)(void *data), GError **error)
{
    if (v->left_fd < 0)
        return device_start(v->image, fuse_fd, ended, v, error);
    return device_take_over(v->image, fuse_fd, v->left_fd, ended, v, error);
}

/* Of what is served now. */
static void renew_state(Volumes *vs, Volume *v)
{
    g_autoptr(GError) error = NULL;
    const gboolean can = (v->server == SERVER_SESSION && session_can_be_left(v->session)) ||
                         (v->server == SERVER_DEVICE && device_can_be_left(v->device));
    const int fd = can ? mount_state_new(&error) : -1;
    if (error)
        g_warning("volume %s: the next hearthd cannot serve its mount: %s", v->id, error->message);
    pthread_mutex_lock(&vs->lock);
    hearth_close_fd(&v->left_fd);
    hearth_close_fd(&v->state_fd);
    v->state_fd = fd;
    v->state_taken = FALSE;
    pthread_mutex_unlock(&vs->lock);
}

gboolean volumes_serve(Volumes *vs, Volume *v, const VolumeMount *mount, void (*ended)(void *data),
                       GError **error)
{
    VolumeServer kind = SERVER_SESSION;
    void *server;
    if (mount->fill_layer) {
        kind = SERVER_FILL_LAYER;
        server = start_layer(vs, v, mount, ended, error);
    } else if (v->content == CONTENT_IMAGE) {
        kind = SERVER_DEVICE;
        server = start_device(v, mount->fuse_fd, ended, error);
    } else {
        server = start_session(vs, v, mount->fuse_fd, ended, error);
    }
    if (!server)
        return FALSE;
    pthread_mutex_lock(&vs->lock);
    if (kind == SERVER_FILL_LAYER)
        v->layer = server;
    else if (kind == SERVER_DEVICE)
        v->device = server;
    else
        v->session = server;
    v->server = kind;
    pthread_mutex_unlock(&vs->lock);
    renew_state(vs, v);
    set_in_use(vs, v, TRUE);
    return TRUE;
}

static gboolean volumes_are_left(Volumes *vs)
{
    pthread_mutex_lock(&vs->lock);
    const gboolean left = vs->leaving;
    pthread_mutex_unlock(&vs->lock);
    return left;
}

/* Whether the node plugin keeps the mount for the next hearthd. */
static gboolean is_to_be_left(Volumes *vs, const Volume *v)
{
    return v->state_taken && !atomic_load(&v->ended) && volumes_are_left(vs);
}

static void tell_not_left(const Volume *v, const GError *error)
{
    g_warning("volume %s: its mount ends with this hearthd: %s", v->id, error->message);
}

static void stop_session(Volumes *vs, Volume *v, Session *session)
{
    g_autoptr(GError) error = NULL;
    if (!is_to_be_left(vs, v))
        session_stop(session);
    else if (!session_leave(session, v->state_fd, LEAVE_MS, &error))
        tell_not_left(v, error);
}

static gboolean stop_device(Volumes *vs, Volume *v, gint64 timeout_ms)
{
    g_autoptr(GError) error = NULL;
    if (is_to_be_left(vs, v) && !device_leave(v->leaving, v->state_fd, LEAVE_MS, &error))
        tell_not_left(v, error);
    v->state_taken = FALSE; /* once */
    return device_stop(v->leaving, timeout_ms);
}

gboolean volumes_stop_serving(Volumes *vs, Volume *v, gint64 timeout_ms)
{
    Session *session = NULL;
    FillLayer *layer = NULL;
    pthread_mutex_lock(&vs->lock);
    if (v->server == SERVER_SESSION)
        session = v->session;
    else if (v->server == SERVER_FILL_LAYER)
        layer = v->layer;
    else if (v->server == SERVER_DEVICE)
        v->leaving = v->device;
    v->server = SERVER_NONE;
    v->session = NULL;
    pthread_mutex_unlock(&vs->lock);
    set_in_use(vs, v, FALSE);
    if (session)
        stop_session(vs, v, session);
    /* The node plugin keeps the descriptor for the next hearthd. */
    if (volumes_are_left(vs))
        fill_layer_leave(layer);
    else
        fill_layer_stop(layer);
    if (v->leaving && !stop_device(vs, v, timeout_ms))
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
    switch (v->server) {
    case SERVER_SESSION:
        return session_fd(v->session);
    case SERVER_FILL_LAYER:
        return fill_layer_fd(v->layer);
    case SERVER_DEVICE:
        return device_fd(v->device);
    case SERVER_NONE:
        break;
    }
    return -1;
}

static void layer_stats(const Volume *v, FuseStats *stats)
{
    FillLayerStats layer;
    fill_layer_stats(v->layer, &layer);
    stats->bytes_store = layer.bytes_store;
    stats->bytes_fill = layer.bytes_fill;
    stats->bytes_origin = layer.bytes_origin;
    stats->reads = layer.reads;
    stats->read_us = layer.read_us;
}

static void image_stats(const Volume *v, FuseStats *stats)
{
    ImageCacheStats kept;
    device_stats(v->device, stats);
    if (!image_cache_stats(v->image, &kept))
        return;
    stats->bytes_kept = kept.bytes_kept;
    stats->bytes_store = kept.bytes_hit;
    stats->bytes_origin = kept.bytes_fetched;
}

void volume_stats(const Volume *v, FuseStats *stats)
{
    switch (v->server) {
    case SERVER_SESSION:
        session_stats(v->session, stats);
        break;
    case SERVER_FILL_LAYER:
        layer_stats(v, stats);
        break;
    case SERVER_DEVICE:
        image_stats(v, stats);
        break;
    case SERVER_NONE:
        break;
    }
}

/* ---- of a mount that is served ---- */

char *volumes_mount_note(Volumes *vs, const char *id)
{
    Volume *v;
    g_auto(LayerNote) note = {0};
    if (!volumes_reserve(vs, id, FALSE, &v, NULL) || !v)
        return NULL;
    const gboolean noted = v->server == SERVER_FILL_LAYER && fill_layer_note(v->layer, &note);
    volumes_release(vs, v);
    return noted ? layer_note_text(&note) : NULL;
}

int volumes_mount_state(Volumes *vs, const char *id, GError **error)
{
    Volume *v;
    int fd = -1;
    if (!volumes_reserve(vs, id, FALSE, &v, error))
        return -1;
    if (v && v->state_fd >= 0)
        fd = fcntl(v->state_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                  "volume %s: no mount of it that the next hearthd could serve", id);
    if (v) {
        v->state_taken |= fd >= 0;
        volumes_release(vs, v);
    }
    return fd;
}

gboolean volumes_restore(Volumes *vs, const char *id, int left_fd, GError **error)
{
    Volume *v;
    hearth_autofd int fd = left_fd;
    if (!volumes_reserve(vs, id, FALSE, &v, error))
        return FALSE;
    if (!v)
        return wire_fail(error, WIRE_ERROR_NOT_FOUND,
                         "volume %s is not open; open it on this connection first", id);
    const gboolean fits = !volume_is_served(v);
    if (fits) {
        hearth_close_fd(&v->left_fd);
        v->left_fd = hearth_steal_fd(&fd);
    } else {
        wire_fail(error, WIRE_ERROR_ALREADY_EXISTS, "volume %s is served already", id);
    }
    volumes_release(vs, v);
    return fits;
}

json_t *volumes_fetch(Volumes *vs, const char *id, int *fuse_fd, GError **error)
{
    Volume *v;
    json_t *spec = NULL;
    if (!volumes_reserve(vs, id, FALSE, &v, error))
        return NULL;
    if (!v) {
        wire_fail(error, WIRE_ERROR_NOT_FOUND, "volume %s is not open", id);
    } else if (!volume_is_served(v) || atomic_load(&v->ended)) {
        wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                  "volume %s is open, but no mount of it is served", id);
    } else {
        *fuse_fd = fcntl(volume_fd(v), F_DUPFD_CLOEXEC, 0);
        if (*fuse_fd < 0)
            wire_fail(error, WIRE_ERROR_INTERNAL, "volume %s: cannot duplicate its descriptor: %s",
                      id, g_strerror(errno));
        else
            spec = json_deep_copy(v->spec->json);
    }
    if (v)
        volumes_release(vs, v);
    return spec;
}

gboolean volumes_resize(Volumes *vs, const char *id, uint64_t *bytes, GError **error)
{
    Volume *v;
    gboolean done = FALSE;
    if (!volumes_reserve(vs, id, FALSE, &v, error))
        return FALSE;
    if (!v)
        wire_fail(error, WIRE_ERROR_NOT_FOUND, "volume %s is not open", id);
    else if (v->server != SERVER_DEVICE)
        wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                  "volume %s is no image, or no mount of it is served", id);
    else
        done = device_resize(v->device, bytes, error);
    if (v)
        volumes_release(vs, v);
    return done;
}
