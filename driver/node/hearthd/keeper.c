/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/keeper.h"
#include <pthread.h>
#include <unistd.h>
#include "driver/node/hearthd/spec.h"

struct Keeper {
    pthread_mutex_t lock;
    GHashTable *volumes; /* char * -> KeptVolume; guarded by lock */
};

typedef struct KeptVolume {
    json_t *spec; /* no one else holds a reference: it is wiped when freed */
    int fuse_fd;
} KeptVolume;

static void kept_free(void *data)
{
    KeptVolume *kept = data;
    node_spec_free(kept->spec);
    if (kept->fuse_fd >= 0)
        close(kept->fuse_fd);
    g_free(kept);
}

Keeper *keeper_new(void)
{
    Keeper *k = g_new0(Keeper, 1);
    pthread_mutex_init(&k->lock, NULL);
    k->volumes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, kept_free);
    return k;
}

void keeper_free(Keeper *k)
{
    if (!k)
        return;
    g_hash_table_unref(k->volumes);
    pthread_mutex_destroy(&k->lock);
    g_free(k);
}

void keeper_put(Keeper *k, const char *volume, const json_t *spec, int fuse_fd)
{
    KeptVolume *kept = g_new0(KeptVolume, 1);
    kept->spec = json_deep_copy(spec);
    kept->fuse_fd = fuse_fd;
    pthread_mutex_lock(&k->lock);
    g_hash_table_replace(k->volumes, g_strdup(volume), kept);
    pthread_mutex_unlock(&k->lock);
}

void keeper_renew(Keeper *k, const char *volume, const json_t *spec)
{
    pthread_mutex_lock(&k->lock);
    KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    if (kept) {
        node_spec_free(kept->spec);
        kept->spec = json_deep_copy(spec);
    }
    pthread_mutex_unlock(&k->lock);
}

json_t *keeper_spec(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    const KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    json_t *spec = kept ? json_deep_copy(kept->spec) : NULL;
    pthread_mutex_unlock(&k->lock);
    return spec;
}

gboolean keeper_is_complete(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    const KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    gboolean complete = kept && kept->fuse_fd >= 0;
    pthread_mutex_unlock(&k->lock);
    return complete;
}

void keeper_drop(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    g_hash_table_remove(k->volumes, volume);
    pthread_mutex_unlock(&k->lock);
}

static gboolean release_locked(KeptVolume *kept)
{
    if (!kept || kept->fuse_fd < 0)
        return FALSE;
    close(kept->fuse_fd);
    kept->fuse_fd = -1;
    return TRUE;
}

void keeper_release_volume(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    release_locked(g_hash_table_lookup(k->volumes, volume));
    pthread_mutex_unlock(&k->lock);
}

unsigned keeper_release(Keeper *k)
{
    unsigned released = 0;
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&k->lock);
    g_hash_table_iter_init(&iter, k->volumes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (release_locked(value))
            released++;
    }
    pthread_mutex_unlock(&k->lock);
    return released;
}
