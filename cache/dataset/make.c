/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a manifest: it is found in this node's cache directory, or built by a walk. A manifest
 * decides which object belongs to a name, and it is mounted as a file system. So it is only read
 * from a directory to which no process but hearthd writes: tenants may write to the data pools of
 * Ceph.
 */
#include <fcntl.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/dataset/files.h"
#include "cache/dataset/internal.h"

#define MANIFESTS_MAX 64
#define MANIFESTS_PERCENT 10 /* of what the cache may hold */
/* The bound of one manifest is never below this, even in a small cache. */
#define MANIFEST_LEAST_BYTES (64u << 20)
/* After the start mounts of an earlier hearthd are taken over, with the manifests that they have.
 */
#define TAKEN_OVER_SEC 600

void datasets_prune(Datasets *all)
{
    StoreStats stats = {0};
    store_stats(all->store, &stats);
    g_autoptr(GHashTable) keep = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *dir = datasets_manifests_dir(all);
    GHashTableIter iter;
    gpointer id;
    pthread_mutex_lock(&all->lock);
    g_hash_table_iter_init(&iter, all->by_id);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_hash_table_add(keep, g_strdup(id));
    pthread_mutex_unlock(&all->lock);
    /* Without its manifest a pinned dataset cannot be read while Ceph does not answer. */
    g_autoptr(GPtrArray) pins = store_pins(all->store);
    for (guint i = 0; i < pins->len; i++)
        g_hash_table_add(keep, g_strdup(pins->pdata[i]));
    const gboolean early =
        g_get_monotonic_time() - all->started_us < TAKEN_OVER_SEC * G_TIME_SPAN_SECOND;
    const unsigned max_files = early ? G_MAXUINT : MANIFESTS_MAX;
    const uint64_t max_bytes = early ? 0 : stats.max_bytes / 100 * MANIFESTS_PERCENT;
    store_set_other_bytes(all->store, STORE_OTHER_MANIFESTS,
                          manifests_prune(dir, keep, max_files, max_bytes));
}

void datasets_drop(Datasets *all, const char *id)
{
    g_autofree char *path = g_build_filename(all->cache_dir, MANIFESTS_DIR, id, NULL);
    pthread_mutex_lock(&all->lock);
    if (!g_hash_table_contains(all->by_id, id) && unlink(path) == 0)
        g_message("manifest %s is removed: its snapshot is gone", path);
    pthread_mutex_unlock(&all->lock);
}

static Manifest *build_manifest(Dataset *d, const char *dir, GError **error)
{
    Origin *origin = d->using;
    BuildTree tree = {.origin = origin};
    hearth_autofd int fd = manifests_create(dir, error);
    if (fd < 0)
        return NULL;
    int r = origin->ops->root(origin, &tree.root, &tree.attr);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r), "its root: %s", g_strerror(-r));
        return NULL;
    }
    /* The version is the one that was joined; the other attributes may be known only now. */
    tree.attr.version = d->root.version;
    StoreStats stats = {0};
    store_stats(d->all->store, &stats);
    uint64_t max_bytes = MAX(stats.max_bytes / 100 * MANIFESTS_PERCENT, MANIFEST_LEAST_BYTES);
    gboolean built = manifest_build(fd, dir, &tree, max_bytes, &d->progress, error);
    origin->ops->put(origin, tree.root);
    if (!built || !manifests_publish(dir, d->id, fd, error))
        return NULL;
    return manifest_open(fd, FALSE, error);
}

static Manifest *find_or_build(Dataset *d, gboolean *built, GError **error)
{
    g_autofree char *dir = manifests_dir(d->all->cache_dir, error);
    Manifest *manifest = dir ? manifests_open(dir, d->id, d->using, &d->root) : NULL;
    *built = dir && !manifest;
    if (!*built)
        return manifest;
    gint64 start = g_get_monotonic_time();
    manifest = build_manifest(d, dir, error);
    if (manifest)
        g_message("dataset %s: manifest of %" G_GUINT64_FORMAT " files built in %.1f s", d->id,
                  manifest->footer.files,
                  (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC);
    return manifest;
}

void *dataset_run_make(void *data)
{
    Dataset *d = data;
    Datasets *all = d->all;
    g_autoptr(GError) error = NULL;
    gboolean built;
    Manifest *manifest = find_or_build(d, &built, &error);
    if (manifest)
        datasets_prune(all);
    else if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        g_warning("dataset %s: it has no manifest: %s", d->id, error->message);
    pthread_mutex_lock(&all->lock);
    d->manifest = manifest;
    d->error = g_steal_pointer(&error);
    d->state = manifest ? DATASET_READY : DATASET_FAILED;
    if (manifest && built)
        all->trim_at_us = g_get_monotonic_time() + DATASETS_TRIM_SEC * G_TIME_SPAN_SECOND;
    d->using = NULL;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}
