/*
 * One lock guards the table and every dataset's state; it is held across no call to an origin and
 * no work on files. A dataset's `using` is the origin its thread works with: always that of a
 * member, which waits in dataset_leave() until the thread is done with it.
 */
#include "cache/control/datasets.h"
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>
#include "cache/autofd.h"
#include "cache/control/datasets_files.h"
#include "cache/control/wire.h"
#include "cache/manifest/build.h"
#include "cache/store/key.h"

#define MANIFESTS_MAX 64
#define MANIFESTS_PERCENT 10 /* of what the cache may hold */
/* What the store holds of a dataset is counted again after this, or COUNT_REST times as long as the
 * count took. */
#define COUNT_SEC 5
#define COUNT_REST 20

typedef enum DatasetState {
    DATASET_IDLE,
    DATASET_MAKING,
    DATASET_READY,
    DATASET_FAILED,
} DatasetState;

struct Dataset {
    Datasets *all;
    char id[DATASET_ID];
    OriginAttr root;
    /* Datasets.lock, all below but `progress`. */
    unsigned references;
    GPtrArray *members; /* Origin: of each volume that has joined */
    DatasetState state;
    Origin *using;
    gboolean has_thread;
    pthread_t thread;
    GError *error; /* of FAILED */
    gboolean told; /* somebody knows of it: who asks again wants another try */
    Manifest *manifest;
    BuildProgress progress;
    /* Of the table: when it was counted last, and what the tag's usage was then. */
    gboolean counted;
    gint64 count_at_us;
    uint64_t files_held, bytes_held, tag_objects, tag_bytes;
};

struct Datasets {
    Store *store;
    char *cache_dir, *objects;
    gboolean any_filesystem;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GHashTable *by_id;   /* lock; those with members */
    GHashTable *checked; /* lock; IDs whose file this process has read and found good */
    gboolean stopping;   /* lock */
    pthread_t counter;
};

static struct timespec after_ms(gint64 ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* ---- making a manifest */

static void prune(Datasets *all)
{
    StoreStats stats = {0};
    store_stats(all->store, &stats);
    g_autoptr(GHashTable) keep = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *dir = g_build_filename(all->cache_dir, "manifests", NULL);
    GHashTableIter iter;
    gpointer id;
    pthread_mutex_lock(&all->lock);
    g_hash_table_iter_init(&iter, all->by_id);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_hash_table_add(keep, g_strdup(id));
    pthread_mutex_unlock(&all->lock);
    store_set_other_bytes(all->store, manifests_prune(dir, keep, MANIFESTS_MAX,
                                                      stats.max_bytes / 100 * MANIFESTS_PERCENT));
}

static Manifest *find_local(Dataset *d, const char *dir)
{
    Datasets *all = d->all;
    pthread_mutex_lock(&all->lock);
    gboolean deep = !g_hash_table_contains(all->checked, d->id);
    pthread_mutex_unlock(&all->lock);
    return manifests_open(dir, d->id, deep, d->using, &d->root);
}

static Manifest *build(Dataset *d, const char *dir, GError **error)
{
    Origin *origin = d->using;
    OriginNode *node;
    OriginAttr attr;
    hearth_autofd int fd = manifests_create(dir, error);
    if (fd < 0)
        return NULL;
    int r = origin->ops->root(origin, &node, &attr);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r), "its root: %s", g_strerror(-r));
        return NULL;
    }
    gboolean built = manifest_build(fd, dir, origin, node, &d->root, 0, &d->progress, error);
    origin->ops->put(origin, node);
    if (!built || !manifests_publish(dir, d->id, fd, error))
        return NULL;
    return manifest_open(fd, FALSE, error);
}

static Manifest *make(Dataset *d, GError **error)
{
    g_autofree char *dir = manifests_dir(d->all->cache_dir, error);
    if (!dir)
        return NULL;
    Manifest *manifest = find_local(d, dir);
    if (manifest)
        return manifest;
    gint64 start = g_get_monotonic_time();
    manifest = build(d, dir, error);
    if (manifest)
        g_message("dataset %s: manifest of %" G_GUINT64_FORMAT " files built in %.1f s", d->id,
                  manifest->footer.files,
                  (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC);
    return manifest;
}

static void *run_make(void *data)
{
    Dataset *d = data;
    Datasets *all = d->all;
    g_autoptr(GError) error = NULL;
    Manifest *manifest = make(d, &error);
    if (manifest)
        prune(all);
    else if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        g_warning("dataset %s: it has no manifest: %s", d->id, error->message);
    pthread_mutex_lock(&all->lock);
    d->manifest = manifest;
    d->error = g_steal_pointer(&error);
    d->state = manifest ? DATASET_READY : DATASET_FAILED;
    d->using = NULL;
    if (manifest)
        g_hash_table_add(all->checked, g_strdup(d->id));
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* Its thread has nothing left to do but to return. */
static void join_thread_locked(Dataset *d)
{
    if (d->has_thread)
        pthread_join(d->thread, NULL);
    d->has_thread = FALSE;
}

static void begin_locked(Dataset *d)
{
    join_thread_locked(d);
    g_clear_error(&d->error);
    atomic_store(&d->progress.files, 0);
    atomic_store(&d->progress.directories, 0);
    atomic_store(&d->progress.bytes, 0);
    atomic_store(&d->progress.cancel, FALSE);
    d->using = d->members->pdata[0];
    d->told = FALSE;
    d->state = DATASET_MAKING;
    int failed = pthread_create(&d->thread, NULL, run_make, d);
    d->has_thread = failed == 0;
    if (failed) {
        d->state = DATASET_FAILED;
        d->using = NULL;
        g_set_error(&d->error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot start a thread: %s",
                    g_strerror(failed));
    }
}

/* ---- joining and leaving */

static void make_id(const Origin *origin, const OriginAttr *root, char id[DATASET_ID])
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

static gboolean refuse(GError **error, const char *why)
{
    g_set_error_literal(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION, why);
    return FALSE;
}

static gboolean can_serve(Datasets *all, GError **error)
{
    StoreStats stats = {0};
    store_stats(all->store, &stats);
    if (stats.disk == STORE_DISK_BYPASS)
        return refuse(error, "the cache disk fails and is not used for now; see hearthd's log");
    g_autoptr(GError) cause = NULL;
    if (!all->any_filesystem && !manifests_layer_works(all->objects, &cause))
        return refuse(error, cause->message);
    return TRUE;
}

Dataset *datasets_join(Datasets *all, Origin *origin, gboolean immutable, GError **error)
{
    OriginNode *node;
    OriginAttr root;
    char id[DATASET_ID];
    int r = origin->ops->root(origin, &node, &root);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r), "the volume's root: %s",
                    g_strerror(-r));
        return NULL;
    }
    origin->ops->put(origin, node);
    if (!root.snapshot && !immutable) {
        refuse(error, "the volume is no snapshot, its files may change");
        return NULL;
    }
    if (!can_serve(all, error))
        return NULL;
    make_id(origin, &root, id);
    pthread_mutex_lock(&all->lock);
    Dataset *d = g_hash_table_lookup(all->by_id, id);
    if (!d) {
        d = g_new0(Dataset, 1);
        d->all = all;
        d->root = root;
        d->members = g_ptr_array_new();
        memcpy(d->id, id, sizeof(d->id));
        g_hash_table_insert(all->by_id, d->id, d);
    }
    d->references++;
    g_ptr_array_add(d->members, origin);
    pthread_mutex_unlock(&all->lock);
    return d;
}

Dataset *dataset_ref(Dataset *d)
{
    pthread_mutex_lock(&d->all->lock);
    d->references++;
    pthread_mutex_unlock(&d->all->lock);
    return d;
}

static void unref_locked(Dataset *d)
{
    if (--d->references > 0)
        return;
    join_thread_locked(d);
    g_clear_error(&d->error);
    manifest_close(d->manifest);
    g_ptr_array_unref(d->members);
    g_free(d);
}

void dataset_unref(Dataset *d)
{
    Datasets *all = d->all;
    pthread_mutex_lock(&all->lock);
    unref_locked(d);
    pthread_mutex_unlock(&all->lock);
}

gboolean dataset_leave(Dataset *d, Origin *origin, gint64 timeout_ms)
{
    if (!d)
        return TRUE;
    Datasets *all = d->all;
    const struct timespec deadline = after_ms(timeout_ms);
    pthread_mutex_lock(&all->lock);
    while (d->using == origin) {
        atomic_store(&d->progress.cancel, TRUE);
        if (pthread_cond_timedwait(&all->changed, &all->lock, &deadline) == ETIMEDOUT &&
            d->using == origin) {
            pthread_mutex_unlock(&all->lock);
            return FALSE;
        }
    }
    g_ptr_array_remove(d->members, origin);
    gboolean last = d->members->len == 0;
    if (last)
        g_hash_table_remove(all->by_id, d->id);
    else if (d->state == DATASET_FAILED &&
             g_error_matches(d->error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        begin_locked(d); /* for those who stay */
    pthread_cond_broadcast(&all->changed);
    unref_locked(d);
    pthread_mutex_unlock(&all->lock);
    if (last)
        prune(all);
    return TRUE;
}

/* ---- what is told */

static void report_locked(Dataset *d, DatasetReport *report)
{
    *report = (DatasetReport){.ready = d->state == DATASET_READY};
    memcpy(report->id, d->id, sizeof(report->id));
    if (!report->ready) {
        report->files = atomic_load(&d->progress.files);
        report->directories = atomic_load(&d->progress.directories);
        report->bytes = atomic_load(&d->progress.bytes);
        return;
    }
    const ManifestFooter *f = &d->manifest->footer;
    report->files = f->files;
    report->directories = f->directories;
    report->bytes = f->bytes;
    report->cached_files = d->files_held;
    report->cached_bytes = d->bytes_held;
}

/* As counted, and what was filled or evicted since. */
static uint64_t moved(uint64_t counted, uint64_t tag_then, uint64_t tag_now, uint64_t most)
{
    int64_t sum = (int64_t)counted + (int64_t)tag_now - (int64_t)tag_then;
    return sum < 0 ? 0 : MIN((uint64_t)sum, most);
}

void dataset_report(Dataset *d, DatasetReport *report)
{
    uint64_t bytes = 0, objects = 0;
    store_tag_usage(d->all->store, d->id, &bytes, &objects);
    pthread_mutex_lock(&d->all->lock);
    report_locked(d, report);
    if (report->ready) {
        report->cached_files = moved(d->files_held, d->tag_objects, objects, report->files);
        report->cached_bytes = moved(d->bytes_held, d->tag_bytes, bytes, report->bytes);
    }
    pthread_mutex_unlock(&d->all->lock);
}

/* Who fails because Ceph does not answer may try again; else a session can serve the volume. */
static void set_failure(const Dataset *d, const GError *cause, GError **error)
{
    gboolean later = g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
                     g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) ||
                     g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_CONNECTED);
    g_set_error(error, WIRE_ERROR, later ? WIRE_ERROR_UNAVAILABLE : WIRE_ERROR_FAILED_PRECONDITION,
                "the manifest of dataset %s cannot be made: %s", d->id, cause->message);
}

gboolean dataset_wait(Dataset *d, gint64 wait_ms, DatasetReport *report, GError **error)
{
    Datasets *all = d->all;
    gboolean good = TRUE;
    const struct timespec deadline = after_ms(wait_ms);
    pthread_mutex_lock(&all->lock);
    if ((d->state == DATASET_IDLE || (d->state == DATASET_FAILED && d->told)) && d->members->len)
        begin_locked(d);
    while (d->state == DATASET_MAKING && d->members->len &&
           pthread_cond_timedwait(&all->changed, &all->lock, &deadline) != ETIMEDOUT)
        ;
    report_locked(d, report);
    if (!d->members->len) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_UNAVAILABLE, "the volume was closed meanwhile");
        good = FALSE;
    } else if (d->state == DATASET_FAILED) {
        set_failure(d, d->error, error);
        d->told = TRUE;
        good = FALSE;
    }
    pthread_mutex_unlock(&all->lock);
    return good;
}

const char *dataset_id(const Dataset *d)
{
    return d->id;
}

char *dataset_path(const Dataset *d)
{
    return g_build_filename(d->all->cache_dir, "manifests", d->id, NULL);
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

/* ---- counting what the store holds */

static Dataset *next_to_count_locked(Datasets *all)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, all->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Dataset *d = value;
        if (d->state == DATASET_READY &&
            (!d->counted || g_get_monotonic_time() >= d->count_at_us)) {
            d->references++;
            return d;
        }
    }
    return NULL;
}

static gboolean count(Dataset *d, uint64_t *files, uint64_t *bytes)
{
    Datasets *all = d->all;
    const Manifest *m = d->manifest;
    *files = *bytes = 0;
    for (uint64_t i = 0; i < m->footer.records; i++) {
        ObjectKey key;
        ObjectId id;
        if (i % 4096 == 0) {
            pthread_mutex_lock(&all->lock);
            gboolean stop = all->stopping || d->members->len == 0;
            pthread_mutex_unlock(&all->lock);
            if (stop)
                return FALSE;
        }
        if (!manifest_key(m, i, &key))
            continue;
        object_key_id(&key, &id);
        if (store_has(all->store, &id)) {
            *files += 1;
            *bytes += key.size;
        }
    }
    return TRUE;
}

static void *run_counter(void *data)
{
    Datasets *all = data;
    pthread_mutex_lock(&all->lock);
    while (!all->stopping) {
        Dataset *d = next_to_count_locked(all);
        if (!d) {
            const struct timespec soon = after_ms(1000);
            pthread_cond_timedwait(&all->changed, &all->lock, &soon);
            continue;
        }
        pthread_mutex_unlock(&all->lock);
        uint64_t files, bytes, tag_bytes = 0, tag_objects = 0;
        gint64 start = g_get_monotonic_time();
        store_tag_usage(all->store, d->id, &tag_bytes, &tag_objects);
        gboolean complete = count(d, &files, &bytes);
        gint64 now = g_get_monotonic_time();
        pthread_mutex_lock(&all->lock);
        if (complete) {
            d->counted = TRUE;
            d->files_held = files;
            d->bytes_held = bytes;
            d->tag_objects = tag_objects;
            d->tag_bytes = tag_bytes;
            d->count_at_us = now + MAX(COUNT_SEC * G_TIME_SPAN_SECOND, COUNT_REST * (now - start));
            pthread_cond_broadcast(&all->changed);
        }
        unref_locked(d);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- life */

Datasets *datasets_new(Store *store, const char *cache_dir, gboolean any_filesystem)
{
    Datasets *all = g_new0(Datasets, 1);
    all->store = store;
    all->cache_dir = g_strdup(cache_dir);
    all->objects = g_build_filename(cache_dir, "objects", NULL);
    all->any_filesystem = any_filesystem;
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&all->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    all->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    all->checked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    prune(all);
    int failed = pthread_create(&all->counter, NULL, run_counter, all);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return all;
}

void datasets_free(Datasets *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->stopping = TRUE;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->counter, NULL);
    /* What could not be left goes with the process. */
    if (g_hash_table_size(all->by_id))
        return;
    g_hash_table_unref(all->by_id);
    g_hash_table_unref(all->checked);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    g_free(all->cache_dir);
    g_free(all->objects);
    g_free(all);
}
