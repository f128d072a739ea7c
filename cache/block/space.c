/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much is kept: the space that objects leave, and at least half of all (store_image_room).
 * Above that, closed images are removed first, whole, those closed longest ago before others; then
 * regions of open images, by the clock algorithm: the hand goes round and spares a region once that
 * was used since its last visit. The same for an image above its own quota.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cache/block/internal.h"

#define ROUND_MS 5000
/* Eviction goes down to this part of the space. */
#define LOW_PERCENT 90
#define GONE_PREFIX "gone."

static uint64_t low_watermark(uint64_t room)
{
    return room / 100 * LOW_PERCENT;
}

gboolean block_space_take(Kept *k, uint64_t len)
{
    ImageCache *cache = k->cache;
    const uint64_t quota = k->quota_bytes;
    if (atomic_load(&cache->bytes) + len > atomic_load(&cache->room) ||
        (quota && atomic_load(&k->bytes) + len > quota)) {
        wake_kick(&cache->keeper);
        return FALSE;
    }
    /* Blocks that are there already count twice until the next round. */
    atomic_fetch_add(&cache->bytes, len);
    atomic_fetch_add(&k->bytes, len);
    atomic_store(&k->dirty, TRUE);
    return TRUE;
}

/* ---- open images ---- */

static uint64_t evict_region(Kept *k, uint64_t region)
{
    const uint64_t off = region * REGION_BYTES;
    const uint64_t before = block_file_bytes(k->file);
    const uint64_t len = MIN(REGION_BYTES, atomic_load(&k->end) - off);
    pthread_mutex_lock(&k->flights.lock);
    int rc = block_file_forget(k->file, off, len);
    pthread_mutex_unlock(&k->flights.lock);
    if (rc < 0)
        kept_break(k, rc);
    else
        block_file_punch(k->file, off, len);
    const uint64_t after = block_file_bytes(k->file);
    return before > after ? before - after : 0;
}

static uint64_t evict_from(Kept *k, uint64_t wanted)
{
    const uint64_t end = atomic_load(&k->end);
    const uint64_t regions = MIN(k->regions, (end + REGION_BYTES - 1) / REGION_BYTES);
    uint64_t freed = 0;
    for (uint64_t i = 0; i < 2 * regions && freed < wanted; i++) {
        const uint64_t region = k->hand++ % regions;
        if (!atomic_exchange_explicit(&k->used[region], 0, memory_order_relaxed))
            freed += evict_region(k, region);
    }
    return freed;
}

/* ---- closed images ---- */

typedef struct Closed {
    char id[BLOCK_FILE_ID_BYTES];
    uint64_t bytes;
    int64_t closed_at;
} Closed;

static uint64_t bytes_of(int dir_fd, const char *id, const char *name)
{
    struct stat st;
    g_autofree char *path = g_build_filename(id, name, NULL);
    return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* After the rename it cannot be opened. */
static void remove_image(int dir_fd, const char *name)
{
    static const char *const files[] = {FORMAT_HEAD_NAME, FORMAT_HEAD_NEW_NAME, FORMAT_SUMS_NAME,
                                        FORMAT_DATA_NAME};
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(name, files[i], NULL);
        unlinkat(dir_fd, path, 0);
    }
    unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static gboolean is_open(ImageCache *cache, const char *id)
{
    GHashTableIter iter;
    gpointer name;
    char open_id[BLOCK_FILE_ID_BYTES];
    g_hash_table_iter_init(&iter, cache->kept);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        block_file_id(name, open_id);
        if (strcmp(open_id, id) == 0)
            return TRUE;
    }
    return FALSE;
}

/* The bytes of all images; closed images are added to `closed`. */
static uint64_t count_images(ImageCache *cache, GArray *closed)
{
    uint64_t sum = 0;
    int fd = openat(cache->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        struct stat st;
        Closed c = {.bytes = 0};
        if (g_str_has_prefix(e->d_name, GONE_PREFIX)) {
            remove_image(cache->dir_fd, e->d_name);
            continue;
        }
        if (strlen(e->d_name) != BLOCK_FILE_ID_BYTES - 1)
            continue;
        g_strlcpy(c.id, e->d_name, sizeof(c.id));
        c.bytes = bytes_of(cache->dir_fd, c.id, FORMAT_DATA_NAME) +
                  bytes_of(cache->dir_fd, c.id, FORMAT_SUMS_NAME);
        c.closed_at = fstatat(cache->dir_fd, c.id, &st, AT_SYMLINK_NOFOLLOW) == 0
                          ? (int64_t)st.st_mtim.tv_sec
                          : 0;
        sum += c.bytes;
        pthread_mutex_lock(&cache->lock);
        if (!is_open(cache, c.id))
            g_array_append_val(closed, c);
        pthread_mutex_unlock(&cache->lock);
    }
    closedir(dir);
    return sum;
}

static int by_age(const void *a, const void *b)
{
    const Closed *x = a, *y = b;
    return x->closed_at < y->closed_at ? -1 : x->closed_at > y->closed_at;
}

static gboolean remove_closed(ImageCache *cache, const Closed *c)
{
    g_autofree char *gone = g_strconcat(GONE_PREFIX, c->id, NULL);
    pthread_mutex_lock(&cache->lock);
    gboolean mine =
        !is_open(cache, c->id) && renameat(cache->dir_fd, c->id, cache->dir_fd, gone) == 0;
    pthread_mutex_unlock(&cache->lock);
    if (mine)
        remove_image(cache->dir_fd, gone);
    return mine;
}

/* ---- the keeper ---- */

static void hold_locked(GPtrArray *list, Kept *k)
{
    if (!k || k->busy || g_ptr_array_find(list, k, NULL))
        return;
    k->held++;
    g_ptr_array_add(list, k);
}

/* Holds all open images, or those of that name with their parents, until release_open(). */
static GPtrArray *hold_open(ImageCache *cache, const char *name)
{
    GPtrArray *list = g_ptr_array_new();
    pthread_mutex_lock(&cache->lock);
    for (GList *l = cache->open.head; l; l = l->next) {
        const Cached *c = l->data;
        if (name && strcmp(c->kept->name, name) != 0)
            continue;
        hold_locked(list, c->kept);
        hold_locked(list, c->parent);
    }
    pthread_mutex_unlock(&cache->lock);
    return list;
}

static void release_open(ImageCache *cache, GPtrArray *list)
{
    pthread_mutex_lock(&cache->lock);
    for (guint i = 0; i < list->len; i++)
        ((Kept *)list->pdata[i])->held--;
    pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
    g_ptr_array_unref(list);
}

static void keep_each(GPtrArray *open)
{
    for (guint i = 0; i < open->len; i++) {
        Kept *k = open->pdata[i];
        uint64_t bytes = block_file_bytes(k->file);
        const uint64_t quota = k->quota_bytes;
        int rc = atomic_exchange(&k->dirty, FALSE) ? block_file_sync(k->file) : 0;
        if (rc < 0)
            kept_break(k, rc);
        if (quota && bytes > low_watermark(quota))
            bytes -= MIN(bytes, evict_from(k, bytes - low_watermark(quota)));
        atomic_store(&k->bytes, bytes);
    }
}

/* Returns the bytes freed. */
static uint64_t evict_images(ImageCache *cache, GPtrArray *open, GArray *closed, uint64_t wanted)
{
    uint64_t freed = 0;
    g_array_sort(closed, by_age);
    for (guint i = 0; i < closed->len && freed < wanted; i++) {
        const Closed *c = &g_array_index(closed, Closed, i);
        freed += remove_closed(cache, c) ? c->bytes : 0;
    }
    for (guint i = 0; i < open->len && freed < wanted; i++) {
        /* Splits the rest evenly. */
        uint64_t share = (wanted - freed) / (open->len - i);
        freed += evict_from(open->pdata[i], MAX(share, REGION_BYTES));
    }
    return freed;
}

uint64_t image_cache_evict(ImageCache *cache, const char *name, uint64_t bytes)
{
    if (!cache || cache->dir_fd < 0 || bytes == 0)
        return 0;
    g_autoptr(GArray) closed = g_array_new(FALSE, FALSE, sizeof(Closed));
    GPtrArray *open = hold_open(cache, name);
    if (!name)
        count_images(cache, closed);
    uint64_t freed = evict_images(cache, open, closed, bytes);
    release_open(cache, open);
    wake_kick(&cache->keeper);
    return freed;
}

static void round_of(ImageCache *cache)
{
    g_autoptr(GArray) closed = g_array_new(FALSE, FALSE, sizeof(Closed));
    GPtrArray *open = hold_open(cache, NULL);
    keep_each(open);
    uint64_t bytes = count_images(cache, closed);
    store_set_other_bytes(cache->store, STORE_OTHER_IMAGES, bytes);
    const uint64_t room = store_image_room(cache->store);
    if (bytes > low_watermark(room)) {
        evict_images(cache, open, closed, bytes - low_watermark(room));
        g_array_set_size(closed, 0);
        bytes = count_images(cache, closed);
        store_set_other_bytes(cache->store, STORE_OTHER_IMAGES, bytes);
    }
    release_open(cache, open);
    atomic_store(&cache->bytes, bytes);
    atomic_store(&cache->room, room);
}

void *block_space_keeper(void *data)
{
    ImageCache *cache = data;
    do {
        if (cache->dir_fd >= 0 && store_disk(cache->store) != STORE_DISK_BYPASS)
            round_of(cache);
    } while (wake_wait(&cache->keeper, ROUND_MS));
    return NULL;
}
