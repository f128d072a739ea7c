/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of one image, and whether what a former user of the image has left may be used. The
 * blocks of a snapshot always may. Those of a writable image may be used
 *
 *   - if it was closed in order and no other client has had its lock since: the version says so
 *     (origin/rbd/content.c)
 *   - if hearthd was killed, in this boot, and the lock was still that of the very client that the
 *     head names: the kernel has kept what was written to the files, and invariant 1 of cached.c
 *     held at every moment
 *
 * and in both cases if the note in Ceph is still the one that was left there. Each opening through
 * here leaves another, and a hearthd that opens the image for writing without keeping its blocks
 * removes the note, as does one whose words cannot follow (kept_break).
 *
 * After a crash of the machine none may: the words on the disk can be older than Ceph's bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/block/internal.h"

#define NOTE "cache"
/* Regions are counted for this at least, and for an image of this many times the size it has. */
#define ROOM_TO_GROW_BYTES (256ull << 30)
#define ROOM_TO_GROW 4

static void report_disk(ImageCache *cache, int rc)
{
    if (rc < 0)
        store_report_disk(cache->store, rc);
}

int kept_open_dir(const ImageCache *cache)
{
    if (mkdir(cache->path, 0700) < 0 && errno != EEXIST)
        return -1;
    return open(cache->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The directory was removed: the descriptor keeps its number, because other threads use it. */
static void reopen_dir(ImageCache *cache)
{
    hearth_autofd int fd = kept_open_dir(cache);
    if (fd >= 0)
        dup3(fd, cache->dir_fd, O_CLOEXEC);
}

gboolean kept_is_usable(const Kept *k)
{
    return !atomic_load(&k->broken) && store_disk(k->cache->store) != STORE_DISK_BYPASS;
}

void kept_use(Kept *k, uint64_t off, uint64_t len)
{
    for (uint64_t r = off / REGION_BYTES; r * REGION_BYTES < off + len && r < k->regions; r++)
        if (!atomic_load_explicit(&k->used[r], memory_order_relaxed))
            atomic_store_explicit(&k->used[r], 1, memory_order_relaxed);
}

static void break_locked(Kept *k, int error)
{
    atomic_store(&k->broken, TRUE);
    report_disk(k->cache, error);
    g_warning("image %s: %s: the cache cannot follow what is written to it; it is read from Ceph "
              "until it is attached again",
              k->name, g_strerror(-error));
    pthread_mutex_lock(&k->flights.lock);
    Image *writer = k->writer ? k->writer->beneath : NULL;
    pthread_mutex_unlock(&k->flights.lock);
    int rc = writer ? writer->ops->set_note(writer, NOTE, NULL) : 0;
    if (rc < 0)
        g_warning("image %s: its note stays: %s", k->name, g_strerror(-rc));
    rc = block_file_wipe(k->file);
    if (rc < 0)
        g_warning("image %s: its blocks stay: %s", k->name, g_strerror(-rc));
}

void kept_break(Kept *k, int error)
{
    pthread_mutex_lock(&k->break_lock);
    if (!atomic_load(&k->broken))
        break_locked(k, error);
    pthread_mutex_unlock(&k->break_lock);
}

static void kept_free(Kept *k)
{
    pthread_mutex_destroy(&k->break_lock);
    block_file_close(k->file);
    flights_destroy(&k->flights);
    g_free(k->used);
    g_free(k->name);
    g_free(k);
}

static Kept *kept_new(ImageCache *cache, const ImageContent *content)
{
    BlockFile *file = NULL;
    if (cache->dir_fd < 0)
        return NULL;
    int rc = block_file_open(cache->dir_fd, content->name, &file);
    if (rc == -ENOENT) {
        reopen_dir(cache);
        rc = block_file_open(cache->dir_fd, content->name, &file);
    }
    if (rc < 0) {
        if (rc != -ENAMETOOLONG)
            report_disk(cache, rc);
        return NULL;
    }
    Kept *k = g_new0(Kept, 1);
    k->cache = cache;
    k->name = g_strdup(content->name);
    k->immutable = content->immutable;
    k->guarded = content->guarded;
    k->version = content->version;
    k->file = file;
    pthread_mutex_init(&k->break_lock, NULL);
    flights_init(&k->flights);
    return k;
}

static gboolean is_believed(const Kept *k, const ImageContent *content, const char *note)
{
    const FormatHead *head = block_file_head(k->file);
    if (!head || content->immutable)
        return head != NULL;
    if ((!note[0] && !content->guarded) || strcmp(head->nonce, note) != 0)
        return FALSE;
    if (head->state == FORMAT_IMAGE_CLEAN)
        return content->version != 0 && head->image_version == content->version;
    char client[BLOCK_FILE_ID_BYTES] = "";
    if (content->taken_from)
        block_file_id(content->taken_from, client);
    return head->state == FORMAT_IMAGE_OPEN && client[0] && strcmp(head->client, client) == 0 &&
           strcmp(head->boot_id, store_boot_id(k->cache->store)) == 0;
}

/* Leaves a new note, and names the current client in the head. */
static int leave_note(const Kept *k, Image *beneath, FormatHead *head)
{
    g_autofree char *nonce = g_uuid_string_random();
    g_strlcpy(head->nonce, nonce, sizeof(head->nonce));
    if (beneath->content.client)
        block_file_id(beneath->content.client, head->client);
    g_strlcpy(head->boot_id, store_boot_id(k->cache->store), sizeof(head->boot_id));
    int rc = beneath->ops->set_note(beneath, NOTE, nonce);
    if (rc < 0)
        g_warning("image %s: no note can be left with it, so nothing is kept: %s", k->name,
                  g_strerror(-rc));
    return rc;
}

/* Makes what is kept right, and notes this before anything is written. `beneath` is not
 * asked for anything of a snapshot. */
static int kept_begin(Kept *k, const ImageContent *content, Image *beneath, uint64_t bytes)
{
    char note[64] = "";
    const gboolean writable = !k->immutable && !k->guarded;
    FormatHead head = {.state = writable ? FORMAT_IMAGE_OPEN : FORMAT_IMAGE_CLEAN,
                       .image_version = k->version,
                       .bytes = bytes};
    if (!k->immutable) {
        ssize_t n = beneath->ops->get_note(beneath, NOTE, note, sizeof(note) - 1);
        note[MAX(n, 0)] = '\0';
        memcpy(head.nonce, note, sizeof(head.nonce));
    }
    const gboolean believed = is_believed(k, content, note);
    int rc = 0;
    if (!believed)
        rc = block_file_wipe(k->file);
    else if (!k->immutable)
        rc = block_file_truncate(k->file, block_floor(bytes));
    report_disk(k->cache, rc);
    if (rc == 0 && writable)
        rc = leave_note(k, beneath, &head);
    if (rc == 0 && (!believed || writable)) {
        rc = block_file_mark(k->file, &head);
        report_disk(k->cache, rc);
    }
    k->regions = MAX(bytes * ROOM_TO_GROW, ROOM_TO_GROW_BYTES) / REGION_BYTES;
    k->used = (void *)g_new0(uint8_t, k->regions);
    atomic_store(&k->end, block_floor(bytes));
    atomic_store(&k->bytes, block_file_bytes(k->file));
    if (rc == 0 && believed)
        g_message("image %s: %" G_GUINT64_FORMAT " bytes of it are kept from before", k->name,
                  (guint64)atomic_load(&k->bytes));
    return rc;
}

static gboolean may_share(const Kept *k, const ImageContent *content)
{
    return k->immutable || (k->guarded && content->guarded && k->version == content->version);
}

/* NULL: there is none, or (*taken) it is open and cannot be shared. */
static Kept *join_locked(ImageCache *cache, const ImageContent *content, uint64_t bytes,
                         uint64_t quota_bytes, gboolean *taken)
{
    Kept *k = g_hash_table_lookup(cache->kept, content->name);
    while (k && k->busy) {
        pthread_cond_wait(&cache->changed, &cache->lock);
        k = g_hash_table_lookup(cache->kept, content->name);
    }
    *taken = k && !may_share(k, content);
    if (!k || *taken)
        return NULL;
    k->users++;
    /* A clone may know of less of its parent than another clone. */
    atomic_store(&k->end,
                 MAX(atomic_load(&k->end), MIN(block_floor(bytes), k->regions * REGION_BYTES)));
    k->quota_bytes = quota_bytes && k->quota_bytes ? MAX(quota_bytes, k->quota_bytes) : 0;
    return k;
}

static void not_busy_locked(Kept *k, gboolean stays)
{
    k->busy = FALSE;
    if (!stays)
        g_hash_table_remove(k->cache->kept, k->name);
    pthread_cond_broadcast(&k->cache->changed);
}

/* `beneath` may be NULL of a snapshot. */
Kept *kept_join(ImageCache *cache, const ImageContent *content, Image *beneath, uint64_t bytes,
                uint64_t quota_bytes)
{
    gboolean taken;
    pthread_mutex_lock(&cache->lock);
    Kept *k = join_locked(cache, content, bytes, quota_bytes, &taken);
    gboolean begin = !k && !taken;
    if (begin)
        k = kept_new(cache, content);
    begin = begin && k;
    if (begin) {
        k->busy = TRUE;
        k->users = 1;
        k->quota_bytes = quota_bytes;
        g_hash_table_insert(cache->kept, k->name, k);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!begin)
        return k;
    int rc = kept_begin(k, content, beneath, bytes);
    pthread_mutex_lock(&cache->lock);
    not_busy_locked(k, rc == 0);
    pthread_mutex_unlock(&cache->lock);
    if (rc < 0)
        kept_free(g_steal_pointer(&k));
    return k;
}

/* What all clones of the snapshot have in common on this node; NULL: nothing. */
Kept *kept_join_parent(ImageCache *cache, Image *beneath, uint64_t quota_bytes)
{
    ImageParent *parent = beneath->content.parent;
    if (!parent || beneath->object_bytes % FETCH_UNIT_BYTES != 0)
        return NULL;
    const ImageContent content = {.name = parent->name, .immutable = TRUE};
    return kept_join(cache, &content, NULL, parent->end, quota_bytes);
}

void image_cache_forget(Image *image)
{
    char note[64];
    if (image->read_only || image->ops->get_note(image, NOTE, note, sizeof(note)) <= 0)
        return;
    int rc = image->ops->set_note(image, NOTE, NULL);
    if (rc < 0)
        g_warning("an image's note of what is kept stays: %s", g_strerror(-rc));
}

/* ---- closing ---- */

static void mark_clean(Kept *k, Image *beneath)
{
    FormatHead head = {.state = FORMAT_IMAGE_CLEAN, .bytes = atomic_load(&k->end)};
    const FormatHead *open = block_file_head(k->file);
    uint64_t version;
    if (k->immutable || k->guarded || atomic_load(&k->broken) || !open ||
        beneath->ops->leave(beneath, &version) < 0)
        return;
    head.image_version = version;
    memcpy(head.nonce, open->nonce, sizeof(head.nonce));
    report_disk(k->cache, block_file_mark(k->file, &head));
}

/* TRUE: this was the last user; kept_end() must follow. */
static gboolean give_back(Kept *k)
{
    ImageCache *cache = k->cache;
    pthread_mutex_lock(&cache->lock);
    const gboolean last = --k->users == 0;
    k->busy = last;
    while (last && k->held)
        pthread_cond_wait(&cache->changed, &cache->lock);
    pthread_mutex_unlock(&cache->lock);
    return last;
}

static void kept_end(Kept *k)
{
    ImageCache *cache = k->cache;
    pthread_mutex_lock(&cache->lock);
    not_busy_locked(k, FALSE);
    pthread_mutex_unlock(&cache->lock);
    kept_free(k);
}

void kept_leave(Cached *cached)
{
    ImageCache *cache = cached->kept->cache;
    if (cached->parent && give_back(cached->parent))
        kept_end(cached->parent);
    const gboolean last = give_back(cached->kept);
    if (last && !atomic_load(&cached->watch.lost))
        mark_clean(cached->kept, cached->beneath);
    image_close(cached->beneath);
    if (last)
        kept_end(cached->kept);
    g_free(cached);
    wake_kick(&cache->keeper);
}
