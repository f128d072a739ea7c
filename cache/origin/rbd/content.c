/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of an image's content, and whether the content is unchanged. A snapshot never changes.
 * An image with an exclusive lock is written only by a client that has taken the lock. Taking and
 * releasing the lock write to the image's header object, so the version that RADOS has of that
 * object changes with every writer, whatever program it is.
 *
 * We release the lock by a call of our own, not librbd's, because the version of that very
 * operation counts: a moment later another client may have come and gone. librbd, when it closes
 * the image, finds no lock of its own any more and accepts that.
 *
 * An opener for reading takes no lock. It reads the version, checks that the image is not locked,
 * and asks for the version again after each read whose bytes are kept.
 *
 * A writer that comes and goes between our reading of the version and our taking of the lock would
 * be missed. It would have to open the image after we have listed its watchers, write, and close it
 * within RACE_US. (A hearthd that does so leaves another note with the image: block/kept.c.)
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "cache/origin/rbd/internal.h"

#define RACE_US (500 * 1000)
#define FSID_BYTES 37
#define NO_LOCK                                                                                    \
    "the image has no exclusive-lock, so others could write it unseen: add it by `rbd feature "    \
    "enable POOL/IMAGE exclusive-lock` while no pod uses it"
/* Images in a namespace with a longer name are not cached. */
#define NAMESPACE_BYTES 97

static int header_version(RbdImage *r, uint64_t *version)
{
    uint64_t size;
    time_t mtime;
    int result = rados_stat(r->io, r->header, &size, &mtime);
    *version = result == 0 ? rados_get_last_version(r->io) : 0;
    return result;
}

/* Whether no other client has it open: all clients that may write do. */
static gboolean is_alone(RbdImage *r)
{
    rbd_image_watcher_t watchers[2];
    size_t n = G_N_ELEMENTS(watchers);
    int result = rbd_watchers_list(r->image, watchers, &n);
    if (result < 0)
        return FALSE;
    gboolean alone = n == 1 && watchers[0].id == (int64_t)rados_get_instance_id(r->cluster);
    rbd_watchers_list_cleanup(watchers, n);
    return alone;
}

static int created_at(rbd_image_t image, uint64_t snap, struct timespec *at)
{
    return snap ? rbd_snap_get_timestamp(image, snap, at) : rbd_get_create_timestamp(image, at);
}

/*
 * Whether the user may read the data that the image says is its own: capabilities can also select
 * objects by name. Ceph is asked directly, because librbd reads nothing where the object map has
 * nothing. A user without the right is refused also if the object does not exist.
 */
static gboolean may_read(rados_t cluster, rbd_image_t image, const char *namespace)
{
    char prefix[RBD_MAX_BLOCK_NAME_SIZE];
    rados_ioctx_t data;
    uint64_t size;
    time_t mtime;
    if (rbd_get_block_name_prefix(image, prefix, sizeof(prefix)) < 0 ||
        rados_ioctx_create2(cluster, rbd_get_data_pool_id(image), &data) < 0)
        return FALSE;
    rados_ioctx_set_namespace(data, namespace);
    g_autofree char *first = g_strconcat(prefix, ".0000000000000000", NULL);
    int result = rados_stat(data, first, &size, &mtime);
    rados_ioctx_destroy(data);
    return result == 0 || result == -ENOENT;
}

/*
 * An image's ID is its own for ever, and so is a snapshot's number. But a user that may write in a
 * namespace can make images there with any ID, so the namespace is part of the name. No part can be
 * made to look like another: the namespace has its length before it, and the last @ ends the ID.
 */
char *rbd_content_name(rados_t cluster, rados_ioctx_t io, rbd_image_t image, uint64_t snap)
{
    char fsid[FSID_BYTES], id[RBD_MAX_IMAGE_NAME_SIZE], namespace[NAMESPACE_BYTES];
    struct timespec at;
    if (rados_cluster_fsid(cluster, fsid, sizeof(fsid)) < 0)
        return NULL;
    if (rbd_get_id(image, id, sizeof(id)) < 0)
        return NULL;
    if (rados_ioctx_get_namespace(io, namespace, sizeof(namespace)) < 0)
        return NULL;
    if (created_at(image, snap, &at) < 0)
        return NULL;
    if (!may_read(cluster, image, namespace))
        return NULL;
    return g_strdup_printf("%s/%" PRId64 "/%zu:%s/%s@%" PRIu64 ".%lld.%09ld", fsid,
                           rados_ioctx_get_id(io), strlen(namespace), namespace, id, snap,
                           (long long)at.tv_sec, at.tv_nsec);
}

/* No client at all: also a dead one may have writes under way. */
static gboolean is_unlocked(RbdImage *r)
{
    char tag[256], clients[1024], cookies[1024], addresses[1024];
    size_t sizes[] = {sizeof(tag), sizeof(clients), sizeof(cookies), sizeof(addresses)};
    int exclusive;
    return rados_list_lockers(r->io, r->header, RBD_LOCK_NAME, &exclusive, tag, &sizes[0], clients,
                              &sizes[1], cookies, &sizes[2], addresses, &sizes[3]) == 0;
}

void rbd_content_read(RbdImage *r, const char *snapshot, gboolean shared)
{
    ImageContent *content = &r->base.content;
    char id[RBD_MAX_IMAGE_NAME_SIZE];
    uint64_t features = 0, snap = 0;
    if (rbd_get_id(r->image, id, sizeof(id)) < 0)
        return;
    if (rbd_get_features(r->image, &features) < 0)
        return;
    if (snapshot && rbd_snap_get_id(r->image, snapshot, &snap) < 0)
        return;
    r->header = g_strconcat("rbd_header.", id, NULL);
    content->immutable = snapshot != NULL;
    if (!snapshot) {
        const gboolean lockable = features & RBD_FEATURE_EXCLUSIVE_LOCK;
        if (!lockable && !shared)
            content->uncached = NO_LOCK;
        if (shared || !lockable)
            return;
        content->guarded = r->base.read_only;
        content->asked_ns = image_clock_ns();
        r->looked_us = g_get_monotonic_time();
        if (header_version(r, &content->version) < 0 || (!content->guarded && !is_alone(r)))
            content->version = 0;
        if (content->guarded && (!content->version || !is_unlocked(r)))
            return;
    }
    content->name = rbd_content_name(r->cluster, r->io, r->image, snap);
}

/* The cookie of our lock; NULL: it is not ours, or not known. */
static char *own_cookie(RbdImage *r)
{
    char tag[256], clients[1024], cookies[1024], addresses[1024];
    size_t sizes[] = {sizeof(tag), sizeof(clients), sizeof(cookies), sizeof(addresses)};
    int exclusive;
    g_autofree char *self = g_strdup_printf("client.%" PRIu64, rados_get_instance_id(r->cluster));
    if (rados_list_lockers(r->io, r->header, RBD_LOCK_NAME, &exclusive, tag, &sizes[0], clients,
                           &sizes[1], cookies, &sizes[2], addresses, &sizes[3]) != 1 ||
        strcmp(clients, self) != 0)
        return NULL;
    return g_strdup(cookies);
}

void rbd_content_locked(RbdImage *r)
{
    ImageContent *content = &r->base.content;
    if (!content->name)
        return;
    if (g_get_monotonic_time() - r->looked_us > RACE_US)
        content->version = 0;
    content->asked_ns = image_clock_ns();
    r->cookie = own_cookie(r);
    if (!r->cookie)
        g_clear_pointer(&content->name, g_free);
}

int rbd_content_leave(Image *image, uint64_t *version)
{
    RbdImage *r = (RbdImage *)image;
    char tag[256], clients[1024], cookies[1024], addresses[1024];
    size_t sizes[] = {sizeof(tag), sizeof(clients), sizeof(cookies), sizeof(addresses)};
    int exclusive, owner = 0;
    uint64_t features;
    int result = rbd_get_features(r->image, &features);
    /* Only the holder of the lock closes the journal. */
    if (result == 0 && features & RBD_FEATURE_JOURNALING)
        result = -EOPNOTSUPP;
    if (result == 0)
        result = rbd_is_exclusive_lock_owner(r->image, &owner);
    if (result < 0 || !owner)
        return result < 0 ? result : -ESHUTDOWN;
    ssize_t n = rados_list_lockers(r->io, r->header, RBD_LOCK_NAME, &exclusive, tag, &sizes[0],
                                   clients, &sizes[1], cookies, &sizes[2], addresses, &sizes[3]);
    if (n != 1)
        return n < 0 ? (int)n : -ESHUTDOWN;
    /* Another's lock is not hit: the operation gives back our client's alone. */
    result = rados_unlock(r->io, r->header, RBD_LOCK_NAME, cookies);
    *version = result == 0 ? rados_get_last_version(r->io) : 0;
    return result;
}
