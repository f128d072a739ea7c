/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk keeps up to IN_FLIGHT fills under way and waits for the oldest when it has more, so the
 * store's threads always have work and memory does not depend on the number of files.
 *
 * It stops with an error when the warmed files and the next one exceed the bound of the store or
 * the quota of the volume: each further file would evict an earlier one.
 */
#include "cache/warm/warm.h"
#include "cache/warm/walk.h"
#include "cache/warm/walk_names.h"
#include "proto/wire.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 8
/* Files are waited for step by step, to show progress and to be stopped. */
#define STEP_BYTES (4u << 20)
#define STOP_MS 200

typedef struct Pending {
    StoreFill *fill;
    OriginNode *node; /* a reference; NULL: of a manifest */
    uint64_t size;
    char *path;
} Pending;

typedef struct Run {
    Warm *warm;
    Pending pending[IN_FLIGHT]; /* a ring */
    unsigned first, count;
    uint64_t bytes_in_flight;
    Ahead *ahead; /* of a manifest */
    gboolean stopped;
    GError *error; /* why the walk cannot go on */
} Run;

char *warm_path(const char *path, GError **error)
{
    GString *clean = g_string_new(NULL);
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (char **part = parts; *part; part++) {
        if (!(*part)[0] || strcmp(*part, ".") == 0)
            continue;
        if (strcmp(*part, "..") == 0) {
            wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "path '%s': must not contain '..'", path);
            g_string_free(clean, TRUE);
            return NULL;
        }
        g_string_append_printf(clean, "%s%s", clean->len ? "/" : "", *part);
    }
    return g_string_free(clean, FALSE);
}

static void set_find_error(GError **error, int result, const char *path, const char *part)
{
    WireError code = WIRE_ERROR_INTERNAL;
    if (result == -ENOENT || result == -ENOTDIR)
        code = WIRE_ERROR_NOT_FOUND;
    else if (result == -EACCES)
        code = WIRE_ERROR_PERMISSION_DENIED;
    else if (result == -ETIMEDOUT)
        code = WIRE_ERROR_DEADLINE_EXCEEDED;
    wire_fail(error, code, "path '%s' in the volume: %s%s%s", path, part, part[0] ? ": " : "",
              g_strerror(-result));
}

gboolean warm_find(Origin *origin, const char *path, OriginNode **node, OriginAttr *attr,
                   GError **error)
{
    OriginNode *at;
    int result = origin->ops->root(origin, &at, attr);
    if (result < 0) {
        set_find_error(error, result, path, "");
        return FALSE;
    }
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (char **part = parts; *part && path[0]; part++) {
        OriginNode *child;
        result = origin->ops->lookup(origin, at, *part, &child, attr);
        origin->ops->put(origin, at);
        if (result < 0) {
            set_find_error(error, result, path, *part);
            return FALSE;
        }
        at = child;
    }
    if (!S_ISDIR(attr->st.st_mode) && !S_ISREG(attr->st.st_mode)) {
        wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                  "path '%s' in the volume is neither a directory nor a regular file%s", path,
                  S_ISLNK(attr->st.st_mode) ? ", but a symbolic link: name its target" : "");
        origin->ops->put(origin, at);
        return FALSE;
    }
    *node = at;
    return TRUE;
}

void warm_init(Warm *warm)
{
    pthread_mutex_init(&warm->lock, NULL);
    atomic_store(&warm->scanning, TRUE);
}

void warm_clear(Warm *warm)
{
    pthread_mutex_destroy(&warm->lock);
    warm_list_free(warm->list);
    store_pace_unref(warm->pace);
    g_free(warm->first_error);
}

char *warm_first_error(Warm *warm)
{
    pthread_mutex_lock(&warm->lock);
    char *text = g_strdup(warm->first_error);
    pthread_mutex_unlock(&warm->lock);
    return text;
}

static void file_failed(Warm *warm, const char *path, const char *why)
{
    atomic_fetch_add(&warm->files_failed, 1);
    pthread_mutex_lock(&warm->lock);
    if (!warm->first_error)
        warm->first_error = g_strdup_printf("%s: %s", path[0] ? path : "/", why);
    pthread_mutex_unlock(&warm->lock);
}

static void file_done(Warm *warm, uint64_t bytes)
{
    atomic_fetch_add(&warm->files_done, 1);
    atomic_fetch_add(&warm->bytes_done, bytes);
}

static gboolean should_stop(Run *run)
{
    if (!run->stopped && run->warm->stop(run->warm->data))
        run->stopped = TRUE;
    return run->stopped;
}

/*
 * Waits for a fill, counting its bytes as they come. -EINTR: asked to stop. On failure nothing
 * stays counted.
 */
static int wait_fill(Run *run, StoreFill *fill, uint64_t size)
{
    Warm *warm = run->warm;
    uint64_t counted = 0;
    int result = 0;
    for (uint64_t off = 0; result == 0 && off < size; off += STEP_BYTES) {
        /* The last byte of the step: there once the chunk that ends it is. */
        uint64_t step = MIN(size - off, (uint64_t)STEP_BYTES);
        do
            result = should_stop(run) ? -EINTR : store_fill_await(fill, off + step - 1, STOP_MS);
        while (result == -ETIMEDOUT && !run->stopped);
        if (result < 0 || off + step == size)
            break; /* store_fill_wait() returns the reason, or that it is kept */
        counted += step;
        atomic_fetch_add(&warm->bytes_done, step);
    }
    result = run->stopped ? -EINTR : store_fill_wait(fill);
    if (result == 0)
        file_done(warm, size - counted);
    else
        atomic_fetch_sub(&warm->bytes_done, counted);
    return result;
}

/* A fill of a job that was stopped is abandoned. */
static void release_fill(Run *run, StoreFill *fill)
{
    if (run->stopped)
        store_fill_abandon(fill);
    else
        store_fill_unref(fill);
}

static StoreFill *try_fill(Warm *warm, const char *path, OriginNode *node, const ObjectKey *key)
{
    const FillRequest request = {.origin = warm->origin,
                                 .node = node,
                                 .path = path,
                                 .key = key,
                                 .tag = warm->tag,
                                 .pace = warm->pace};
    return store_fill_ahead(warm->store, &request);
}

/* The file changed while it was filled: fills its new version. */
static int fill_again(Run *run, const Pending *p)
{
    Warm *warm = run->warm;
    OriginAttr attr;
    ObjectKey key;
    int result = warm->origin->ops->getattr(warm->origin, p->node, &attr);
    if (result < 0)
        return result;
    object_key_init(&key, warm->origin, &attr);
    StoreFill *fill = try_fill(warm, NULL, p->node, &key);
    if (!fill)
        return -ENOSPC;
    result = wait_fill(run, fill, (uint64_t)attr.st.st_size);
    release_fill(run, fill);
    return result;
}

static void finish_oldest(Run *run)
{
    Warm *warm = run->warm;
    Pending p = run->pending[run->first];
    run->first = (run->first + 1) % IN_FLIGHT;
    run->count--;
    run->bytes_in_flight -= p.size;
    if (!should_stop(run)) {
        int result = wait_fill(run, p.fill, p.size);
        if (result == -ESTALE && p.node)
            result = fill_again(run, &p);
        if (result == -ESTALE)
            file_failed(warm, p.path,
                        p.node ? "it changes while it is read" : "it is another file now");
        else if (result < 0 && !should_stop(run))
            file_failed(warm, p.path, g_strerror(-result));
    }
    release_fill(run, p.fill);
    if (p.node)
        warm->origin->ops->put(warm->origin, p.node);
    g_free(p.path);
}

static void finish_all(Run *run)
{
    while (run->count)
        finish_oldest(run);
}

static void stop_with_error(Run *run, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void stop_with_error(Run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!run->error)
        run->error = g_error_new_valist(WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION, format, args);
    va_end(args);
}

static gboolean check_fits(Run *run, const char *path, uint64_t size)
{
    Warm *warm = run->warm;
    StoreStats stats = {0};
    store_stats(warm->store, &stats);
    uint64_t wanted = atomic_load(&warm->bytes_done) + run->bytes_in_flight + size;
    if (stats.max_bytes && wanted > stats.max_bytes) {
        stop_with_error(
            run,
            "the cache is too small: it holds at most %" G_GUINT64_FORMAT
            " bytes, and '%s' would be past that; warm a part of the volume (--path) or give "
            "hearthd a larger --cache-size",
            stats.max_bytes, path);
        return FALSE;
    }
    if (warm->quota_bytes) {
        uint64_t bytes = 0, objects = 0;
        store_tag_usage(warm->store, warm->tag, &bytes, &objects);
        if (bytes + run->bytes_in_flight + size > warm->quota_bytes) {
            stop_with_error(
                run,
                "the volume's cacheQuota of %" G_GUINT64_FORMAT
                " bytes is reached at '%s'; warm a part of the volume (--path) or raise it",
                warm->quota_bytes, path);
            return FALSE;
        }
    }
    return TRUE;
}

static StoreFill *begin_fill(Run *run, const char *path, OriginNode *node, const ObjectKey *key)
{
    StoreFill *fill = try_fill(run->warm, path, node, key);
    if (fill || run->count == 0)
        return fill;
    /* Fills that are running may hold the space that this one needs. */
    finish_all(run);
    return run->stopped ? NULL : try_fill(run->warm, path, node, key);
}

/* The store has refused a fill: why. */
static void set_refusal(Run *run, const char *path, uint64_t size)
{
    StoreStats stats = {0};
    store_stats(run->warm->store, &stats);
    if (stats.disk == STORE_DISK_BYPASS)
        stop_with_error(
            run, "the cache disk fails and is not used for now (at '%s'); see hearthd's log", path);
    else
        stop_with_error(
            run,
            "the cache has no room for '%s' (%" G_GUINT64_FORMAT
            " bytes), even after eviction; free space on its file system, evict another volume or "
            "take a pin off",
            path, size);
}

/* Whether a file is to be filled. One that is held is counted as done, in a check one that is not
 * as missing. */
static gboolean is_wanted(Run *run, const ObjectKey *key)
{
    ObjectId id;
    object_key_id(key, &id);
    if (key->size > 0 && !store_has(run->warm->store, &id)) {
        if (!run->warm->check)
            return TRUE;
        atomic_fetch_add(&run->warm->files_missing, 1);
        atomic_fetch_add(&run->warm->bytes_missing, key->size);
        return FALSE;
    }
    atomic_fetch_add(&run->warm->bytes_held, key->size);
    file_done(run->warm, key->size);
    return FALSE;
}

/* FALSE: the walk cannot go on. */
static gboolean fill_wanted(Run *run, const char *path, OriginNode *node, const ObjectKey *key)
{
    Warm *warm = run->warm;
    if (!check_fits(run, path, key->size))
        return FALSE;
    if (run->count == IN_FLIGHT)
        finish_oldest(run);
    StoreFill *fill = begin_fill(run, path, node, key);
    if (!fill) {
        if (!run->stopped)
            set_refusal(run, path, key->size);
        return FALSE;
    }
    run->pending[(run->first + run->count++) % IN_FLIGHT] =
        (Pending){.fill = fill,
                  .node = node ? warm->origin->ops->get(warm->origin, node) : NULL,
                  .size = key->size,
                  .path = g_strdup(path)};
    run->bytes_in_flight += key->size;
    return TRUE;
}

static gboolean fill_file(void *data, const char *path, OriginNode *node, const OriginAttr *attr)
{
    Run *run = data;
    ObjectKey key;
    if (should_stop(run))
        return FALSE;
    object_key_init(&key, run->warm->origin, attr);
    return !is_wanted(run, &key) || fill_wanted(run, path, node, &key);
}

static gboolean fill_named(void *data, const NamedFile *file)
{
    Run *run = data;
    if (should_stop(run))
        return FALSE;
    if ((run->warm->list && !warm_list_has(run->warm->list, file->path, TRUE)) ||
        !is_wanted(run, &file->key))
        return TRUE;
    ahead_of(run->ahead, file);
    return fill_wanted(run, file->path, NULL, &file->key);
}

static gboolean count_named(void *data, const NamedFile *file)
{
    Run *run = data;
    if (run->warm->list && !warm_list_has(run->warm->list, file->path, FALSE))
        return !should_stop(run);
    atomic_fetch_add(&run->warm->files_total, 1);
    atomic_fetch_add(&run->warm->bytes_total, file->key.size);
    return !should_stop(run);
}

static void directory_failed(void *data, const char *path, int error)
{
    Run *run = data;
    file_failed(run->warm, path, g_strerror(error));
}

static gboolean count_file(void *data, const char *path, OriginNode *node, const OriginAttr *attr)
{
    (void)path, (void)node;
    Run *run = data;
    atomic_fetch_add(&run->warm->files_total, 1);
    atomic_fetch_add(&run->warm->bytes_total, (uint64_t)attr->st.st_size);
    return !should_stop(run);
}

/* A path of a list that no manifest has: a file of another type, a missing one, or any path when
 * there is no manifest. `report`: whether a failure counts. */
static gboolean visit_named(Run *run, const char *path,
                            gboolean (*visit)(void *data, const char *path, OriginNode *node,
                                              const OriginAttr *attr),
                            gboolean report)
{
    OriginNode *node;
    OriginAttr attr;
    g_autoptr(GError) error = NULL;
    if (!warm_find(run->warm->origin, path, &node, &attr, &error)) {
        if (report)
            file_failed(run->warm, path, error->message);
        return !should_stop(run);
    }
    gboolean go_on = !should_stop(run);
    if (S_ISREG(attr.st.st_mode))
        go_on = visit(run, path, node, &attr);
    else if (report)
        file_failed(run->warm, path, "it is a directory; name it by --path");
    run->warm->origin->ops->put(run->warm->origin, node);
    return go_on;
}

static gboolean count_rest(void *data, const char *path)
{
    return visit_named(data, path, count_file, FALSE);
}

static gboolean fill_rest(void *data, const char *path)
{
    return visit_named(data, path, fill_file, TRUE);
}

static gboolean ask_number(Warm *warm, OriginNode *node, const char *name, guint64 *number)
{
    char text[32];
    ssize_t n = warm->origin->ops->getxattr(warm->origin, node, name, text, sizeof(text) - 1);
    if (n <= 0)
        return FALSE;
    text[n] = '\0';
    return g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, number, NULL);
}

/* Totals: CephFS keeps them (a little late) in the directory; elsewhere a first walk counts. */
static void find_totals(Run *run, OriginNode *node, const OriginAttr *attr, const char *path)
{
    Warm *warm = run->warm;
    guint64 files, bytes;
    if (warm->manifest) {
        walk_names(warm->manifest, path, count_named, run);
    } else if (warm->list) {
        warm_list_rest(warm->list, count_rest, run);
    } else if (S_ISDIR(attr->st.st_mode) && ask_number(warm, node, "ceph.dir.rfiles", &files) &&
               ask_number(warm, node, "ceph.dir.rbytes", &bytes)) {
        atomic_store(&warm->files_total, files);
        atomic_store(&warm->bytes_total, bytes);
    } else {
        const WalkVisitor counter = {.file = count_file, .data = run};
        walk(warm->origin, node, attr, path, &counter);
    }
    atomic_store(&warm->scanning, FALSE);
}

WarmResult warm_run(Warm *warm, OriginNode *node, const OriginAttr *attr, const char *path,
                    GError **error)
{
    Run run = {.warm = warm};
    const WalkVisitor filler = {.file = fill_file, .failed = directory_failed, .data = &run};
    find_totals(&run, node, attr, path);
    gboolean complete = !run.stopped;
    if (complete && warm->manifest) {
        run.ahead = ahead_new(warm->origin);
        complete = walk_names(warm->manifest, path, fill_named, &run);
    } else if (complete && !warm->list) {
        complete = walk(warm->origin, node, attr, path, &filler);
    }
    if (complete && warm->list)
        complete = warm_list_rest(warm->list, fill_rest, &run);
    finish_all(&run);
    ahead_free(run.ahead);
    if (warm->manifest && atomic_load(&warm->manifest->unreadable) && !run.error) {
        complete = FALSE;
        run.error = g_error_new(WIRE_ERROR, WIRE_ERROR_UNAVAILABLE,
                                "the dataset's manifest cannot be read from the cache disk; it is "
                                "built again when the dataset is next staged");
    }
    if (complete && !run.stopped) {
        /* The totals before the walk were an estimate. */
        atomic_store(&warm->files_total, atomic_load(&warm->files_done) +
                                             atomic_load(&warm->files_failed) +
                                             atomic_load(&warm->files_missing));
        if (!atomic_load(&warm->files_failed))
            atomic_store(&warm->bytes_total,
                         atomic_load(&warm->bytes_done) + atomic_load(&warm->bytes_missing));
        return WARM_DONE;
    }
    if (run.error) {
        g_propagate_error(error, run.error);
        return WARM_FAILED;
    }
    return WARM_STOPPED;
}
