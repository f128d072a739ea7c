/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A NodeLayers over the world's mount table. A stack is made only of layers that are mounted, and
 * its lower layer is told as the kernel tells it. Steps count with the world's.
 */
#ifndef HEARTH_TESTS_NODE_FAKE_LAYERS_H
#define HEARTH_TESTS_NODE_FAKE_LAYERS_H

#include "driver/node/dataset/layers.h"
#include "tests/unit/driver/node/world.h"

typedef struct FakeLayers {
    NodeLayers base;
    World *world;
    gboolean refuse_manifest, refuse_stack, holes; /* the kernel cannot */
    unsigned stacks, manifests;                    /* made so far */
    unsigned refreshed;                            /* under the world's lock */
    dev_t closed;                                  /* last, under the world's lock; 0: none */
} FakeLayers;

static inline gboolean layers_fail_locked(FakeLayers *f, const char *name, gboolean refuse,
                                          GError **error)
{
    if (world_fails_locked(f->world, name, error))
        return TRUE;
    if (refuse)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "%s: refused", name);
    return refuse;
}

static inline int fake_mount_manifest(NodeLayers *l, const char *file, const char *tag,
                                      gint64 timeout_ms, GError **error)
{
    FakeLayers *f = (FakeLayers *)l;
    World *w = f->world;
    int fd = -1;
    (void)tag, (void)timeout_ms;
    pthread_mutex_lock(&w->lock);
    if (!layers_fail_locked(f, "mount_manifest", f->refuse_manifest, error)) {
        fd = world_detached_locked(w, world_new_entry_locked(w, "erofs", file, "", 0, TRUE));
        f->manifests++;
    }
    pthread_mutex_unlock(&w->lock);
    return fd;
}

static inline int fake_mount_stack(NodeLayers *l, const LayerStack *stack, gint64 timeout_ms,
                                   GError **error)
{
    FakeLayers *f = (FakeLayers *)l;
    World *w = f->world;
    int fd = -1;
    (void)timeout_ms;
    pthread_mutex_lock(&w->lock);
    if (!layers_fail_locked(f, "mount_stack", f->refuse_stack, error) &&
        !layers_fail_locked(f, "verify", f->holes, error)) {
        const MountEntry *manifest = mount_find(w->mounts, stack->manifest);
        const MountEntry *fill = mount_find(w->mounts, stack->fill);
        ck_assert(manifest && strcmp(manifest->type, "erofs") == 0);
        ck_assert(fill && world_is_served_locked(w, fill->dev));
        ck_assert_str_eq(stack->objects, "/cache/objects");
        MountEntry *e = world_new_entry_locked(w, MOUNT_STACK_TYPE, stack->source, "", 0, TRUE);
        e->lower = g_strdup(stack->manifest);
        e->context = g_strdup(stack->context);
        fd = world_detached_locked(w, e);
        f->stacks++;
    }
    pthread_mutex_unlock(&w->lock);
    return fd;
}

static inline gboolean fake_refresh(NodeLayers *l, const char *path, dev_t dev, GError **error)
{
    FakeLayers *f = (FakeLayers *)l;
    World *w = f->world;
    (void)error;
    pthread_mutex_lock(&w->lock);
    const MountEntry *e = mount_find(w->mounts, path);
    ck_assert(!e || e->dev == dev);
    f->refreshed++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return TRUE;
}

static inline gboolean fake_close_stack(NodeLayers *l, const char *path, dev_t dev, gboolean closed,
                                        GError **error)
{
    FakeLayers *f = (FakeLayers *)l;
    World *w = f->world;
    (void)error;
    pthread_mutex_lock(&w->lock);
    const MountEntry *e = mount_find(w->mounts, path);
    ck_assert(!e || e->dev == dev);
    if (closed)
        f->closed = dev;
    else if (f->closed == dev)
        f->closed = 0;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return TRUE;
}

static inline void fake_layers_release(NodeLayers *l)
{
    (void)l;
}

static inline FakeLayers *fake_layers_new(World *w)
{
    static const NodeLayersOps ops = {
        .free = fake_layers_release,
        .mount_manifest = fake_mount_manifest,
        .mount_stack = fake_mount_stack,
        .refresh = fake_refresh,
        .close_stack = fake_close_stack,
    };
    FakeLayers *f = g_new0(FakeLayers, 1);
    f->base.ops = &ops;
    f->base.usable = TRUE;
    f->world = w;
    return f;
}

#endif
