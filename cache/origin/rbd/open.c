/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening an RBD image. The key goes to librados by option, in memory, never by a keyring file or
 * an argument. librados has no time limit that would bound an opening without also failing the
 * reads and writes of an outage that ends, so the whole of it runs on a thread of its own that is
 * left behind when it outstays its time: should it end after all, it closes what it has opened.
 *
 * Each image has a client of its own: when another node takes a lock from us and blocklists us, one
 * volume is lost and not all.
 */
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include "common/monotonic.h"
#include "cache/origin/ceph_options.h"
#include "cache/origin/rbd/io_flusher.h"
#include "cache/origin/rbd/internal.h"
#include "cache/origin/thread_room.h"
#include "common/io_error.h"

#define DEFAULT_TIMEOUT_SEC 25

typedef struct Opening {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    gboolean done, abandoned; /* guarded by lock */
    char *monitors, *user_id, *key, *pool, *rados_namespace, *name, *snapshot, *client,
        *dead_client;
    unsigned timeout_sec;
    gboolean read_only, shared;
    CephClient ceph;
    RbdImage *image; /* the result, or NULL with error */
    GError *error;
} Opening;

static void opening_free(Opening *o)
{
    if (o->image)
        rbd_destroy(&o->image->base);
    g_clear_error(&o->error);
    explicit_bzero(o->key, strlen(o->key));
    g_free(o->monitors);
    g_free(o->user_id);
    g_free(o->key);
    g_free(o->pool);
    g_free(o->rados_namespace);
    g_free(o->name);
    g_free(o->snapshot);
    g_free(o->client);
    g_free(o->dead_client);
    ceph_client_clear(&o->ceph);
    pthread_cond_destroy(&o->finished);
    pthread_mutex_destroy(&o->lock);
    g_free(o);
}

static int set_option(void *cluster, const char *name, const char *value)
{
    return rados_conf_set(cluster, name, value);
}

static gboolean configure(const Opening *o, rados_t cluster, GError **error)
{
    /* Less than all of the time, so that it is this that says what does not answer. */
    g_autofree char *timeout = g_strdup_printf("%u", MAX(1, o->timeout_sec * 3 / 4));
    const CephOption options[] = {
        CEPH_OPTIONS(o->monitors, o->key),
        {"debug_rbd", "0/0"},
        {"debug_rados", "0/0"},
        {"client_mount_timeout", timeout},
        {"rbd_cache", "false"}, /* ops.c says why */
        /* With two, librbd may free an image that is closed while it is opened. */
        {"librados_thread_count", "1"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        int r = rados_conf_set(cluster, options[i].name, options[i].value);
        if (r < 0) {
            return io_fail(error, G_IO_ERROR_INVALID_ARGUMENT, "librados refuses option %s: %s",
                           options[i].name, g_strerror(-r));
        }
    }
    return ceph_client_configure(&o->ceph, set_option, cluster, error);
}

static gboolean set_connect_error(const Opening *o, int r, GError **error)
{
    if (r == -ETIMEDOUT)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "no answer from the monitors at %s within %u s: check the cluster's "
                    "\"monitors\" in config.json and the network",
                    o->monitors, o->timeout_sec);
    else if (r == -EACCES || r == -EPERM)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                    "the cluster at %s refuses user client.%s: check userID and userKey in the "
                    "secret",
                    o->monitors, o->user_id);
    else
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot connect to %s: %s", o->monitors,
                    g_strerror(-r));
    return FALSE;
}

static gboolean set_open_error(const Opening *o, const RbdImage *image, int r, GError **error)
{
    switch (-r) {
    case ENOENT:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "there is no image %s (`rbd ls` lists those that are)", image->spec);
        break;
    case EPERM:
    case EACCES:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                    "user client.%s may not open image %s: it needs the capabilities mon 'profile "
                    "rbd' and osd 'profile rbd pool=%s'",
                    o->user_id, image->spec, o->pool);
        break;
    case ENOSYS:
    case EOPNOTSUPP:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                    "image %s has features that this librbd does not know: `rbd info` lists them, "
                    "`rbd feature disable` takes them away",
                    image->spec);
        break;
    default:
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot open image %s: %s", image->spec,
                    g_strerror(-r));
    }
    return FALSE;
}

static gboolean open_client(const Opening *o, RbdImage *image, GError **error)
{
    if (!ceph_client_enter_network(&o->ceph, error))
        return FALSE;
    int r = rados_create(&image->cluster, o->user_id);
    if (r < 0) {
        image->cluster = NULL;
        return set_connect_error(o, r, error);
    }
    if (!configure(o, image->cluster, error))
        return FALSE;
    r = rados_connect(image->cluster);
    if (r < 0)
        return set_connect_error(o, r, error);
    r = rados_ioctx_create(image->cluster, o->pool, &image->io);
    if (r < 0) {
        image->io = NULL;
        if (r != -ENOENT)
            return set_open_error(o, image, r, error);
        return io_fail(error, G_IO_ERROR_NOT_FOUND,
                       "there is no pool %s (`ceph osd pool ls` lists those that are)", o->pool);
    }
    rados_ioctx_set_namespace(image->io, o->rados_namespace ? o->rados_namespace : "");
    r = o->read_only ? rbd_open_read_only(image->io, o->name, &image->image, o->snapshot)
                     : rbd_open(image->io, o->name, &image->image, NULL);
    if (r < 0) {
        image->image = NULL;
        return set_open_error(o, image, r, error);
    }
    rbd_image_info_t info;
    r = rbd_stat(image->image, &info, sizeof(info));
    if (r < 0)
        return set_open_error(o, image, r, error);
    image->base.object_bytes = info.obj_size;
    image->base.read_only = o->read_only;
    rbd_content_read(image, o->snapshot, o->shared);
    if (o->read_only)
        rbd_parent_read(image);
    if (o->shared || o->snapshot)
        return TRUE;
    if (o->read_only)
        return rbd_lock_check(image, error);
    if (!rbd_lock_take(image, o->client, o->dead_client, error))
        return FALSE;
    image->base.content.client = g_strdup(o->client);
    rbd_content_locked(image);
    rbd_parent_read(image);
    r = rbd_quiet_watch(image);
    return r == 0 || set_open_error(o, image, r, error);
}

static gboolean open_image(const Opening *o, RbdImage *image, GError **error)
{
    if (!thread_room_take(THREAD_ROOM_RBD, THREAD_ROOM_WAIT_MS, error))
        return FALSE;
    const gboolean opened = open_client(o, image, error);
    thread_room_give(THREAD_ROOM_RBD);
    return opened;
}

/* POOL[/NAMESPACE]/NAME[@SNAPSHOT] */
static char *spec_of(const Opening *o)
{
    GString *spec = g_string_new(o->pool);
    if (o->rados_namespace && o->rados_namespace[0])
        g_string_append_printf(spec, "/%s", o->rados_namespace);
    g_string_append_printf(spec, "/%s", o->name);
    if (o->snapshot)
        g_string_append_printf(spec, "@%s", o->snapshot);
    return g_string_free(spec, FALSE);
}

static void *opening_thread(void *data)
{
    Opening *o = data;
    /* librbd's threads inherit it from here. */
    if (!io_flusher_set())
        g_info("image %s: its threads may wait for the write-back of what they serve", o->name);
    RbdImage *image = g_new0(RbdImage, 1);
    image->base.ops = &rbd_image_ops;
    rbd_quiet_init(image);
    image->spec = spec_of(o);
    GError *error = NULL;
    if (!open_image(o, image, &error)) {
        rbd_destroy(&image->base);
        image = NULL;
    }
    pthread_mutex_lock(&o->lock);
    o->image = image;
    o->error = error;
    o->done = TRUE;
    gboolean abandoned = o->abandoned;
    pthread_cond_signal(&o->finished);
    pthread_mutex_unlock(&o->lock);
    if (abandoned)
        opening_free(o);
    return NULL;
}

static Opening *opening_new(const RbdImageConfig *config)
{
    Opening *o = g_new0(Opening, 1);
    pthread_mutex_init(&o->lock, NULL);
    cond_init_monotonic(&o->finished);
    o->monitors = g_strdup(config->monitors);
    o->user_id = g_strdup(config->user_id);
    o->key = g_strdup(config->key);
    o->pool = g_strdup(config->pool);
    o->rados_namespace = g_strdup(config->rados_namespace);
    o->name = g_strdup(config->image);
    o->snapshot = g_strdup(config->snapshot);
    o->client = g_strdup(config->client);
    o->dead_client = g_strdup(config->dead_client);
    o->timeout_sec = config->timeout_sec ? config->timeout_sec : DEFAULT_TIMEOUT_SEC;
    o->read_only = config->read_only;
    ceph_client_copy(&o->ceph, &config->ceph);
    o->shared = config->shared;
    return o;
}

Image *image_rbd_open(const RbdImageConfig *config, GError **error)
{
    Opening *o = opening_new(config);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += o->timeout_sec;
    pthread_t thread;
    int r = pthread_create(&thread, NULL, opening_thread, o);
    if (r != 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "no thread to open image %s: %s",
                    config->image, g_strerror(r));
        opening_free(o);
        return NULL;
    }
    pthread_detach(thread);
    pthread_mutex_lock(&o->lock);
    while (!o->done && pthread_cond_timedwait(&o->finished, &o->lock, &until) != ETIMEDOUT)
        ;
    o->abandoned = !o->done;
    gboolean done = o->done;
    pthread_mutex_unlock(&o->lock);
    if (!done) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "image %s of pool %s did not open within %u s: check `ceph status`",
                    config->image, config->pool, o->timeout_sec);
        return NULL;
    }
    RbdImage *image = g_steal_pointer(&o->image);
    if (!image)
        g_propagate_error(error, g_steal_pointer(&o->error));
    opening_free(o);
    return image ? &image->base : NULL;
}
