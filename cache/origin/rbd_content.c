/*
 * What an image's bytes are called, and whether they are still those of before. A snapshot's never
 * change. Of an image with an exclusive lock nobody writes without having taken the lock, which
 * writes to the image's header object, and so does giving it back: so the version that RADOS has of
 * that object tells of every writer there was, whatever program it is.
 *
 * The lock is given back by a call of our own, not librbd's, for it is the version of that very
 * operation that counts: a moment later somebody else may have come and gone. librbd, closing the
 * image, finds no lock of its own any more, which it does not mind.
 *
 * Who opens an image for reading only takes no lock. It reads the version, sees that nobody has the
 * lock then, and asks for the version again after each read of which something is to be kept.
 *
 * A writer that comes and goes between our reading the version and our taking the lock would be
 * missed. It would have to open the image after we have looked at who watches it, write, and close
 * it within RACE_US. (One that is a hearthd leaves another note with the image: block/images.c.)
 */
#include <errno.h>
#include <inttypes.h>
#include "cache/origin/rbd_internal.h"

#define RACE_US (500 * 1000)
#define FSID_BYTES 37
#define LOCK_NAME "rbd_lock" /* of librbd and krbd */

static int header_version(RbdImage *r, uint64_t *version)
{
    uint64_t size;
    time_t mtime;
    int result = rados_stat(r->io, r->header, &size, &mtime);
    *version = result == 0 ? rados_get_last_version(r->io) : 0;
    return result;
}

/* Whether nobody but us has it open, as all do who may write. */
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

/* An image's ID is its own for ever, a snapshot's number too. */
char *rbd_content_name(RbdImage *r, int64_t pool, const char *id, uint64_t snap)
{
    char fsid[FSID_BYTES];
    if (rados_cluster_fsid(r->cluster, fsid, sizeof(fsid)) < 0)
        return NULL;
    return g_strdup_printf("%s/%" PRId64 "/%s@%" PRIu64, fsid, pool, id, snap);
}

/* Nobody: a dead one as well may write still. */
static gboolean is_unlocked(RbdImage *r)
{
    char tag[256], clients[1024], cookies[1024], addresses[1024];
    size_t sizes[] = {sizeof(tag), sizeof(clients), sizeof(cookies), sizeof(addresses)};
    int exclusive;
    return rados_list_lockers(r->io, r->header, LOCK_NAME, &exclusive, tag, &sizes[0], clients,
                              &sizes[1], cookies, &sizes[2], addresses, &sizes[3]) == 0;
}

void rbd_content_read(RbdImage *r, const char *snapshot, gboolean shared)
{
    ImageContent *content = &r->base.content;
    char id[RBD_MAX_IMAGE_NAME_SIZE];
    uint64_t features = 0, snap = 0;
    if (rbd_get_id(r->image, id, sizeof(id)) < 0 || rbd_get_features(r->image, &features) < 0 ||
        (snapshot && rbd_snap_get_id(r->image, snapshot, &snap) < 0))
        return;
    r->header = g_strconcat("rbd_header.", id, NULL);
    content->immutable = snapshot != NULL;
    if (!snapshot) {
        if (shared || !(features & RBD_FEATURE_EXCLUSIVE_LOCK))
            return;
        content->guarded = r->base.read_only;
        r->looked_us = g_get_monotonic_time();
        if (header_version(r, &content->version) < 0 || (!content->guarded && !is_alone(r)))
            content->version = 0;
        if (content->guarded && (!content->version || !is_unlocked(r)))
            return;
    }
    content->name = rbd_content_name(r, rados_ioctx_get_id(r->io), id, snap);
}

void rbd_content_locked(RbdImage *r)
{
    if (g_get_monotonic_time() - r->looked_us > RACE_US)
        r->base.content.version = 0;
}

int rbd_content_leave(Image *image, uint64_t *version)
{
    RbdImage *r = (RbdImage *)image;
    char tag[256], clients[1024], cookies[1024], addresses[1024];
    size_t sizes[] = {sizeof(tag), sizeof(clients), sizeof(cookies), sizeof(addresses)};
    int exclusive, owner = 0;
    uint64_t features;
    int result = rbd_get_features(r->image, &features);
    /* Closing the journal is for who has the lock. */
    if (result == 0 && features & RBD_FEATURE_JOURNALING)
        result = -EOPNOTSUPP;
    if (result == 0)
        result = rbd_is_exclusive_lock_owner(r->image, &owner);
    if (result < 0 || !owner)
        return result < 0 ? result : -ESHUTDOWN;
    ssize_t n = rados_list_lockers(r->io, r->header, LOCK_NAME, &exclusive, tag, &sizes[0], clients,
                                   &sizes[1], cookies, &sizes[2], addresses, &sizes[3]);
    if (n != 1)
        return n < 0 ? (int)n : -ESHUTDOWN;
    /* Another's lock is not hit: the operation gives back our client's alone. */
    result = rados_unlock(r->io, r->header, LOCK_NAME, cookies);
    *version = result == 0 ? rados_get_last_version(r->io) : 0;
    return result;
}

typedef struct Check {
    const ImageContent *content;
    uint64_t size;
    time_t mtime;
    ImageDone done;
    void *data;
} Check;

static void on_checked(rados_completion_t completion, void *data)
{
    Check *check = data;
    int result = rados_aio_get_return_value(completion);
    if (result == 0 && check->content->guarded &&
        rados_aio_get_version(completion) != check->content->version)
        result = -ESTALE;
    rados_aio_release(completion);
    check->done(check->data, result);
    g_free(check);
}

void rbd_content_check(Image *image, ImageDone done, void *data)
{
    RbdImage *r = (RbdImage *)image;
    Check *check = g_new(Check, 1);
    rados_completion_t completion;
    *check = (Check){.content = &image->content, .done = done, .data = data};
    rados_aio_create_completion2(check, on_checked, &completion);
    int result = rados_aio_stat(r->io, r->header, completion, &check->size, &check->mtime);
    if (result < 0) {
        rados_aio_release(completion);
        done(data, result);
        g_free(check);
    }
}
