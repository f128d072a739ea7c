/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fill layer over a manifest of a directory, a real store, and the kernel played by the test. The
 * origin's reads can be held, and Ceph be silent.
 */
#ifndef HEARTH_TESTS_LAYER_WORLD_H
#define HEARTH_TESTS_LAYER_WORLD_H

#include "cache/fuse/layer/fill_layer.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cache/manifest/build.h"
#include "cache/store/disk/key.h"
#include "common/monotonic.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

typedef struct World {
    char *dir, *cache;
    Origin *origin;
    Store *store;
    Manifest *manifest;
    FillLayer *layer;
    Kernel kernel;
    OriginOps ops; /* of the origin, with reads that can be held */
    const OriginOps *real;
} World;

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static gboolean gate_closed;
static unsigned at_gate; /* gate_lock; reads that are held */
static World *gated;
/* Of a file "g" beside "f"; NULL: there is none. */
static const char *second_text;

static inline void set_gate(gboolean closed)
{
    pthread_mutex_lock(&gate_lock);
    gate_closed = closed;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static inline unsigned reads_at_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    const unsigned n = at_gate;
    pthread_mutex_unlock(&gate_lock);
    return n;
}

static ssize_t gated_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    pthread_mutex_lock(&gate_lock);
    at_gate++;
    while (gate_closed)
        pthread_cond_wait(&gate_changed, &gate_lock);
    at_gate--;
    pthread_mutex_unlock(&gate_lock);
    return gated->real->read(o, file, buf, len, off);
}

/* When Ceph was last heard; 0: it answers. */
static _Atomic int64_t silent_since_ms;

static inline void set_silent(gboolean silent)
{
    atomic_store(&silent_since_ms, silent ? monotonic_ms() : 0);
}

static uint64_t fake_silent_ms(Origin *o)
{
    (void)o;
    const int64_t since = atomic_load(&silent_since_ms);
    return since ? (uint64_t)(monotonic_ms() - since) : 0;
}

static inline void build_manifest(World *w)
{
    BuildTree tree = {.origin = w->origin, .threads = 2};
    BuildProgress progress = {0};
    g_autofree char *path = g_build_filename(w->cache, "manifest", NULL);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(w->origin->ops->root(w->origin, &tree.root, &tree.attr), 0);
    ck_assert(manifest_build(fd, w->cache, &tree, UINT64_MAX, &progress, NULL));
    w->origin->ops->put(w->origin, tree.root);
    w->manifest = manifest_open(fd, TRUE, NULL);
    close(fd);
}

static inline void world_up_with(World *w, const char *text, uint64_t max_bytes, unsigned silent_ms,
                                 unsigned timeout_ms)
{
    *w = (World){.dir = harness_tmpdir(), .cache = harness_tmpdir()};
    g_autofree char *file = g_build_filename(w->dir, "f", NULL);
    g_autofree char *store_dir = g_build_filename(w->cache, "store", NULL);
    ck_assert(g_file_set_contents(file, text, -1, NULL));
    if (second_text) {
        g_autofree char *second = g_build_filename(w->dir, "g", NULL);
        ck_assert(g_file_set_contents(second, second_text, -1, NULL));
    }
    w->origin = origin_dir_open(w->dir, NULL);
    gated = w;
    w->real = w->origin->ops;
    w->ops = *w->real;
    w->ops.read = gated_read;
    w->ops.silent_ms = fake_silent_ms;
    w->origin->ops = &w->ops;
    StoreConfig store = {.dir = store_dir, .max_bytes = max_bytes};
    w->store = store_open(&store, NULL);
    build_manifest(w);
    FillLayerConfig config = {.dataset = "d",
                              .origin = w->origin,
                              .store = w->store,
                              .manifest = w->manifest,
                              .silent_ms = silent_ms,
                              .timeout_ms = timeout_ms};
    w->layer = fill_layer_start(&config, kernel_start(&w->kernel), NULL, NULL, NULL);
    ck_assert_ptr_nonnull(w->layer);
    kernel_init(&w->kernel);
}

static inline void world_up(World *w, const char *text)
{
    world_up_with(w, text, 64 << 20, 50, 0);
}

static inline void world_down(World *w)
{
    set_gate(FALSE);
    fill_layer_stop(w->layer);
    store_cancel_fills(w->store, w->origin);
    store_close(w->store);
    manifest_close(w->manifest);
    origin_close(w->origin);
    close(w->kernel.fd);
    harness_remove(w->dir);
    harness_remove(w->cache);
}

/* The name of the object of the one file. */
static inline void name_of(World *w, char hex[OBJECT_ID_HEX + 1])
{
    ObjectKey key;
    ObjectId id;
    ck_assert(manifest_key(w->manifest, 0, &key));
    object_key_id(&key, &id);
    object_id_hex(&id, hex);
}

static inline uint64_t lookup_object(World *w)
{
    char hex[OBJECT_ID_HEX + 1], dir[3] = "";
    name_of(w, hex);
    memcpy(dir, hex, 2);
    uint64_t parent = kernel_lookup(&w->kernel, 1, dir)->entry.nodeid;
    Reply *r = kernel_lookup(&w->kernel, parent, hex);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_ne(r->entry.nodeid, 0);
    return r->entry.nodeid;
}

#endif
