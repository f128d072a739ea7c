/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of images as a whole: its directory, its threads, and the opening of an image through
 * it.
 */
#include <errno.h>
#include <unistd.h>
#include "cache/block/internal.h"

#define INSTALLERS 2

ImageCache *image_cache_new(Store *store, const char *dir, uint32_t chunk_bytes)
{
    ImageCache *cache = g_new0(ImageCache, 1);
    cache->store = store;
    cache->chunk_bytes = chunk_bytes ? chunk_bytes : DEFAULT_CHUNK_BYTES;
    cache->path = g_build_filename(dir, FORMAT_IMAGES_NAME, NULL);
    cache->dir_fd = kept_open_dir(cache);
    if (cache->dir_fd < 0)
        g_warning("%s: %s: no blocks of images are kept", cache->path, g_strerror(errno));
    cache->buffers_max = BUFFERS_MAX_BYTES;
    atomic_store(&cache->room, UINT64_MAX);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    pthread_mutex_init(&cache->wanting_lock, NULL);
    g_queue_init(&cache->wanting);
    cache->kept = g_hash_table_new(g_str_hash, g_str_equal);
    cache->installers = workers_new(INSTALLERS, carrier_install, NULL);
    wake_init(&cache->keeper);
    int failed = pthread_create(&cache->keeper_thread, NULL, block_space_keeper, cache);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return cache;
}

void image_cache_free(ImageCache *cache)
{
    if (!cache)
        return;
    wake_stop(&cache->keeper);
    pthread_join(cache->keeper_thread, NULL);
    wake_destroy(&cache->keeper);
    workers_free(cache->installers);
    g_hash_table_unref(cache->kept);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->wanting_lock);
    pthread_mutex_destroy(&cache->lock);
    if (cache->dir_fd >= 0)
        close(cache->dir_fd);
    g_free(cache->path);
    g_free(cache);
}

Image *image_cache_open(ImageCache *cache, Image *beneath, uint64_t quota_bytes)
{
    Kept *k = NULL;
    uint64_t bytes;
    if (cache && beneath->content.name && store_disk(cache->store) != STORE_DISK_BYPASS &&
        beneath->ops->size(beneath, &bytes) == 0)
        k = kept_join(cache, &beneath->content, beneath, bytes, quota_bytes);
    if (!k) {
        image_cache_forget(beneath);
        return beneath;
    }
    wake_kick(&cache->keeper);
    return &cached_new(k, kept_join_parent(cache, beneath, quota_bytes), beneath)->base;
}
