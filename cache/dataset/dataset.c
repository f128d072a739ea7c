/* SPDX-License-Identifier: Apache-2.0 */
/* One dataset: its ID, references to it, and what is constant while it is joined. */
#include <endian.h>
#include <string.h>
#include <xxhash.h>
#include "cache/dataset/files.h"
#include "cache/dataset/internal.h"
#include "cache/store/disk/key.h"

void dataset_make_id(const Origin *origin, const OriginAttr *root, char id[DATASET_ID])
{
    uint8_t packed[48];
    const uint64_t numbers[] = {htole64(root->st.st_ino), htole64(root->snapshot),
                                htole64(root->version)};
    XXH128_canonical_t hash;
    ObjectId bytes;
    memcpy(packed, origin->space, 24);
    memcpy(packed + 24, numbers, sizeof(numbers));
    XXH128_canonicalFromHash(&hash, XXH3_128bits(packed, sizeof(packed)));
    memcpy(bytes.bytes, hash.digest, sizeof(bytes.bytes));
    object_id_hex(&bytes, id);
}

int dataset_id_of(Origin *origin, char id[DATASET_ID])
{
    OriginNode *node;
    OriginAttr root;
    int r = origin->ops->root(origin, &node, &root);
    if (r < 0)
        return r;
    origin->ops->put(origin, node);
    dataset_make_id(origin, &root, id);
    return 0;
}

void dataset_join_thread_locked(Dataset *d)
{
    if (d->has_thread)
        pthread_join(d->thread, NULL);
    d->has_thread = FALSE;
}

Dataset *dataset_ref(Dataset *d)
{
    pthread_mutex_lock(&d->all->lock);
    d->references++;
    pthread_mutex_unlock(&d->all->lock);
    return d;
}

void dataset_unref_locked(Dataset *d)
{
    if (--d->references > 0)
        return;
    dataset_join_thread_locked(d);
    g_clear_error(&d->error);
    manifest_close(d->manifest);
    g_ptr_array_unref(d->members);
    g_free(d);
}

void dataset_unref(Dataset *d)
{
    Datasets *all = d->all;
    pthread_mutex_lock(&all->lock);
    dataset_unref_locked(d);
    pthread_mutex_unlock(&all->lock);
}

const char *dataset_id(const Dataset *d)
{
    return d->id;
}

char *dataset_path(const Dataset *d)
{
    return g_build_filename(d->all->cache_dir, MANIFESTS_DIR, d->id, NULL);
}

char *dataset_objects(const Dataset *d)
{
    return g_strdup(d->all->objects);
}

const Manifest *dataset_manifest(Dataset *d)
{
    pthread_mutex_lock(&d->all->lock);
    const Manifest *manifest = d->manifest;
    pthread_mutex_unlock(&d->all->lock);
    return manifest;
}

Store *datasets_store(const Datasets *all)
{
    return all->store;
}

char *datasets_manifests_dir(const Datasets *all)
{
    return g_build_filename(all->cache_dir, MANIFESTS_DIR, NULL);
}
