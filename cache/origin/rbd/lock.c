/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which client may write an image. Three facts about librbd and krbd shape this:
 *   - the exclusive lock is handed over on request: a holder with the default policy gives it to
 * any client that asks, so asking first would let two nodes write in turns. So the holder is
 * checked before, and the policy of our own lock (rbd_lock_acquire) never hands it over;
 *   - a client that has the image open for writing watches its header; when it dies the watch ends
 *     within half a minute (osd_client_watch_timeout). A holder that does not watch is dead;
 *   - taking a dead holder's lock blocklists it first, so that its requests under way cannot arrive
 *     later.
 *
 * A hearthd that was killed would have to wait for its own watch to end. The note "holder" in the
 * image's metadata, "CLIENT ADDRESS", lets the next run know its predecessor for certain, by a
 * client name that no one else has (control/incarnation.h), and take over at once.
 */
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include "cache/origin/rbd/internal.h"
#include "common/io_error.h"

#define NOTE "holder"
#define MAX_NOTE 1024
/* Taking the lock races with others that do the same; each round one of them wins. */
#define ATTEMPTS 3

typedef struct Watchers {
    rbd_image_watcher_t *list;
    size_t n;
} Watchers;

static void watchers_clear(Watchers *w)
{
    if (w->list)
        rbd_watchers_list_cleanup(w->list, w->n);
    g_clear_pointer(&w->list, g_free);
    w->n = 0;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Watchers, watchers_clear)

static int watchers_read(RbdImage *r, Watchers *w)
{
    for (size_t room = 16;; room = w->n) {
        w->list = g_new0(rbd_image_watcher_t, room);
        w->n = room;
        int result = rbd_watchers_list(r->image, w->list, &w->n);
        if (result != -ERANGE) {
            if (result < 0)
                g_clear_pointer(&w->list, g_free);
            return result;
        }
        g_clear_pointer(&w->list, g_free);
    }
}

/*
 * The address of the lock's holder; NULL: none. Caller's. There are two ways, because one needs an
 * image that is open for writing, and the other answers with the state at the opening.
 */
static int holder(RbdImage *r, char **address)
{
    *address = NULL;
    if (r->base.read_only) {
        char tag[256], clients[1024], cookies[1024], addresses[1024];
        size_t sizes[] = {sizeof(tag), sizeof(clients), sizeof(cookies), sizeof(addresses)};
        int exclusive;
        ssize_t n = rbd_list_lockers(r->image, &exclusive, tag, &sizes[0], clients, &sizes[1],
                                     cookies, &sizes[2], addresses, &sizes[3]);
        if (n > 0)
            *address = g_strndup(addresses, sizes[3]);
        return n < 0 && n != -ENOENT ? (int)n : 0;
    }
    rbd_lock_mode_t mode;
    char *owners[4];
    size_t n = G_N_ELEMENTS(owners);
    int result = rbd_lock_get_owners(r->image, &mode, owners, &n);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    if (n > 0)
        *address = g_strdup(owners[0]);
    rbd_lock_get_owners_cleanup(owners, n);
    return 0;
}

static gboolean fail_lock_call(const RbdImage *r, const char *what, int result, GError **error)
{
    const gboolean denied = result == -EPERM || result == -EACCES;
    const char *fix =
        denied ? "; the user needs the capabilities mon 'profile rbd' and osd 'profile rbd'" : "";
    return io_fail(error, denied ? G_IO_ERROR_PERMISSION_DENIED : G_IO_ERROR_FAILED,
                   "image %s: %s: %s%s", r->spec, what, g_strerror(-result), fix);
}

static gboolean fail_in_use(const RbdImage *r, const char *address, GError **error)
{
    return io_fail(
        error, G_IO_ERROR_BUSY,
        "image %s is in use by the client at %s (`rbd status` shows it); unmount it there "
        "first. A client that has died is noticed within 30 s",
        r->spec, address);
}

/* Whether the note says that `address` was our predecessor. */
static gboolean was_ours(RbdImage *r, const char *address, const char *dead_client)
{
    char note[MAX_NOTE];
    if (!dead_client)
        return FALSE;
    ssize_t n = rbd_image_ops.get_note(&r->base, NOTE, note, sizeof(note) - 1);
    if (n <= 0)
        return FALSE;
    note[n] = '\0';
    g_autofree char *expected = g_strconcat(dead_client, " ", address, NULL);
    return strcmp(note, expected) == 0;
}

static const char *watcher_at(const Watchers *w, const char *address)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].addr, address) == 0)
            return w->list[i].addr;
    return NULL;
}

static void note_holder(RbdImage *r, const char *client, const char *address)
{
    if (!client || !address)
        return;
    g_autofree char *note = g_strconcat(client, " ", address, NULL);
    int result = rbd_image_ops.set_note(&r->base, NOTE, note);
    if (result < 0)
        g_warning("image %s: its metadata: %s; after a crash its lock will have to time out",
                  r->spec, g_strerror(-result));
}

/* An image without the feature: what watches it, but for us, may write it. */
static gboolean take_unlocked(RbdImage *r, const char *client, const char *dead_client,
                              GError **error)
{
    g_auto(Watchers) watchers = {0};
    int result = watchers_read(r, &watchers);
    if (result < 0)
        return fail_lock_call(r, "its watchers", result, error);
    const int64_t self = (int64_t)rados_get_instance_id(r->cluster);
    const char *own = NULL;
    for (size_t i = 0; i < watchers.n; i++) {
        char *address = watchers.list[i].addr;
        if (watchers.list[i].id == self) {
            own = address;
            continue;
        }
        if (!was_ours(r, address, dead_client))
            return fail_in_use(r, address, error);
        result = rados_blocklist_add(r->cluster, address, 0);
        if (result < 0)
            return fail_lock_call(r, "blocklisting the client that died", result, error);
    }
    note_holder(r, client, own);
    return TRUE;
}

static gboolean take_locked(RbdImage *r, const char *client, const char *dead_client,
                            GError **error)
{
    int result = -EROFS;
    for (int i = 0; i < ATTEMPTS && result == -EROFS; i++) {
        g_autofree char *address = NULL;
        g_auto(Watchers) watchers = {0};
        result = holder(r, &address);
        if (result == 0 && address)
            result = watchers_read(r, &watchers);
        if (result < 0)
            return fail_lock_call(r, "the holder of its lock", result, error);
        const gboolean ours = address && was_ours(r, address, dead_client);
        g_free(r->base.content.taken_from);
        r->base.content.taken_from = ours ? g_strdup(dead_client) : NULL;
        if (address && watcher_at(&watchers, address)) {
            if (!ours)
                return fail_in_use(r, address, error);
            result = rbd_lock_break(r->image, RBD_LOCK_MODE_EXCLUSIVE, address);
            if (result < 0 && result != -ENOENT)
                return fail_lock_call(r, "taking the lock of the client that died", result, error);
        }
        result = rbd_lock_acquire(r->image, RBD_LOCK_MODE_EXCLUSIVE);
    }
    g_autofree char *address = NULL;
    if (result == -EROFS && holder(r, &address) == 0 && address)
        return fail_in_use(r, address, error);
    if (result < 0)
        return fail_lock_call(r, "taking its exclusive lock", result, error);
    if (holder(r, &address) == 0)
        note_holder(r, client, address);
    return TRUE;
}

static gboolean has_lock(RbdImage *r, gboolean *has, GError **error)
{
    uint64_t features;
    int result = rbd_get_features(r->image, &features);
    if (result < 0)
        return fail_lock_call(r, "its features", result, error);
    *has = (features & RBD_FEATURE_EXCLUSIVE_LOCK) != 0;
    return TRUE;
}

gboolean rbd_lock_take(RbdImage *r, const char *client, const char *dead_client, GError **error)
{
    gboolean locked = FALSE;
    if (!has_lock(r, &locked, error))
        return FALSE;
    return locked ? take_locked(r, client, dead_client, error)
                  : take_unlocked(r, client, dead_client, error);
}

gboolean rbd_lock_check(RbdImage *r, GError **error)
{
    gboolean locked = FALSE;
    g_autofree char *address = NULL;
    g_auto(Watchers) watchers = {0};
    if (!has_lock(r, &locked, error))
        return FALSE;
    int result = locked ? holder(r, &address) : 0;
    if (result == 0 && address)
        result = watchers_read(r, &watchers);
    if (result < 0)
        return fail_lock_call(r, "the holder of its lock", result, error);
    return !address || !watcher_at(&watchers, address) || fail_in_use(r, address, error);
}
