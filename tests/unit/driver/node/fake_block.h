/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A NodeBlock over the world's mount table, with one image in memory. A loop device with AUTOCLEAR
 * goes, as the kernel's does, when no descriptor and no mount of it is left. Steps count with the
 * world's.
 */
#ifndef HEARTH_TESTS_NODE_FAKE_BLOCK_H
#define HEARTH_TESTS_NODE_FAKE_BLOCK_H

#include <sys/sysmacros.h>
#include "driver/node/image/block.h"
#include "tests/unit/driver/node/world.h"

#define FAKE_LOOP 5
#define FAKE_BYTES (1u << 30)

typedef struct FakeBlock {
    NodeBlock base;
    World *world;
    /* The loop device; number -1: free. */
    LoopDevice loop;
    char *tag, *file;
    GArray *holders;   /* the other ends of descriptors that keep it */
    GHashTable *notes; /* path -> tag, of files that devices are bound on */
    /* The image. */
    char *type;                                  /* NULL: none known */
    gboolean blank, unused, damaged, note, half; /* half: make dies in the midst */
    uint64_t fs_bytes;
    gboolean no_growth; /* of what is mounted */
    unsigned made, checked, grown, finds;
    char *mount_options; /* of the last mount, joined by "," */
} FakeBlock;

static inline FakeBlock *fake_of(NodeBlock *b)
{
    return (FakeBlock *)b;
}

static inline gboolean fake_fails(NodeBlock *b, const char *name, GError **error)
{
    World *w = fake_of(b)->world;
    pthread_mutex_lock(&w->lock);
    gboolean fails = world_fails_locked(w, name, error);
    pthread_mutex_unlock(&w->lock);
    return fails;
}

static inline gboolean fake_is_mounted_locked(FakeBlock *f)
{
    for (guint i = 0; i < f->world->mounts->len; i++) {
        const MountEntry *e = f->world->mounts->pdata[i];
        if (e->dev == makedev(7, FAKE_LOOP)) /* a node that is bound keeps no device */
            return TRUE;
    }
    return FALSE;
}

static inline gboolean fake_is_held(FakeBlock *f)
{
    for (guint i = 0; i < f->holders->len; i++) {
        struct pollfd p = {.fd = g_array_index(f->holders, int, i)};
        if (poll(&p, 1, 0) == 0)
            return TRUE;
    }
    return FALSE;
}

static inline void fake_settle(FakeBlock *f)
{
    pthread_mutex_lock(&f->world->lock);
    if (f->loop.number >= 0 && f->loop.autoclear && !fake_is_held(f) && !fake_is_mounted_locked(f))
        f->loop.number = -1;
    pthread_mutex_unlock(&f->world->lock);
}

/* A descriptor that keeps the device, until it is closed. */
static inline int fake_hold_locked(FakeBlock *f)
{
    int fd = world_descriptor_locked(f->world);
    int peer = g_array_index(f->world->peers, int, f->world->peers->len - 1);
    g_array_append_val(f->holders, peer);
    return fd;
}

static inline gboolean fake_loop_find(NodeBlock *b, const char *tag, LoopDevice *device,
                                      GError **error)
{
    FakeBlock *f = fake_of(b);
    *device = (LoopDevice){.number = -1};
    f->finds++;
    if (fake_fails(b, "loop_find", error))
        return FALSE;
    fake_settle(f);
    if (f->loop.number >= 0 && strcmp(tag, f->tag) == 0)
        *device = f->loop;
    return TRUE;
}

static inline int fake_loop_attach(NodeBlock *b, const char *file, const char *tag,
                                   LoopDevice *device, GError **error)
{
    FakeBlock *f = fake_of(b);
    if (fake_fails(b, "loop_attach", error))
        return -1;
    ck_assert_int_lt(f->loop.number, 0);
    g_free(f->tag);
    g_free(f->file);
    f->tag = g_strdup(tag);
    f->file = g_strdup(file);
    device->number = FAKE_LOOP;
    device->bytes = FAKE_BYTES;
    f->loop = *device;
    pthread_mutex_lock(&f->world->lock);
    int fd = fake_hold_locked(f);
    pthread_mutex_unlock(&f->world->lock);
    return fd;
}

static inline int fake_loop_hold(NodeBlock *b, int number, GError **error)
{
    FakeBlock *f = fake_of(b);
    if (fake_fails(b, "loop_hold", error))
        return -1;
    ck_assert_int_eq(number, f->loop.number);
    pthread_mutex_lock(&f->world->lock);
    int fd = fake_hold_locked(f);
    pthread_mutex_unlock(&f->world->lock);
    return fd;
}

static inline gboolean fake_loop_detach(NodeBlock *b, int number, GError **error)
{
    FakeBlock *f = fake_of(b);
    if (fake_fails(b, "loop_detach", error))
        return FALSE;
    f->loop.autoclear = TRUE;
    fake_settle(f);
    if (f->loop.number < 0)
        return TRUE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "/dev/loop%d is in use",
                number);
    return FALSE;
}

static inline gboolean fake_loop_grow(NodeBlock *b, int number, const char *file, gint64 timeout_ms,
                                      uint64_t *bytes, GError **error)
{
    FakeBlock *f = fake_of(b);
    (void)number, (void)timeout_ms;
    if (fake_fails(b, "loop_grow", error))
        return FALSE;
    ck_assert_str_eq(file, f->file);
    *bytes = f->loop.bytes = f->world->image_bytes;
    return TRUE;
}

static inline gboolean fake_loop_set_read_only(NodeBlock *b, int number, gboolean read_only,
                                               GError **error)
{
    (void)number;
    if (fake_fails(b, "loop_set_read_only", error))
        return FALSE;
    fake_of(b)->loop.read_only = read_only;
    return TRUE;
}

static inline gboolean fake_look(NodeBlock *b, int number, gint64 timeout_ms, BlockContent *content,
                                 GError **error)
{
    FakeBlock *f = fake_of(b);
    (void)number, (void)timeout_ms;
    if (fake_fails(b, "look", error))
        return FALSE;
    *content = (BlockContent){
        .type = g_strdup(f->type), .blank = f->blank, .unused = f->unused, .bytes = f->fs_bytes};
    return TRUE;
}

static inline gboolean fake_make(NodeBlock *b, int number, const char *type, const char *options,
                                 gint64 timeout_ms, GError **error)
{
    FakeBlock *f = fake_of(b);
    (void)number, (void)options, (void)timeout_ms;
    gboolean fails = fake_fails(b, "make", error);
    ck_assert_msg(f->note, "formatted without the note");
    f->made++;
    f->blank = FALSE;
    g_clear_pointer(&f->type, g_free);
    if (fails)
        return FALSE;
    if (f->half) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL, "mkfs died");
        return FALSE;
    }
    f->type = g_strdup(type);
    f->unused = TRUE;
    f->damaged = FALSE;
    f->fs_bytes = f->loop.bytes;
    return TRUE;
}

static inline gboolean fake_check(NodeBlock *b, int number, const char *type, gboolean thorough,
                                  gint64 timeout_ms, GError **error)
{
    FakeBlock *f = fake_of(b);
    (void)number, (void)type, (void)timeout_ms, (void)thorough;
    if (fake_fails(b, "check", error))
        return FALSE;
    f->checked++;
    if (f->damaged)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "damaged");
    return !f->damaged;
}

static inline int fake_mount(NodeBlock *b, const BlockMount *mount, gint64 timeout_ms,
                             GError **error)
{
    FakeBlock *f = fake_of(b);
    World *w = f->world;
    (void)timeout_ms;
    if (fake_fails(b, "mount", error))
        return -1;
    ck_assert(!f->note);
    ck_assert_str_eq(f->type, mount->type);
    g_free(f->mount_options);
    f->mount_options = g_strjoinv(",", (char **)mount->options);
    f->unused = FALSE;
    pthread_mutex_lock(&w->lock);
    MountEntry *e = world_new_entry_locked(w, mount->type, "/dev/loop5", "",
                                           makedev(7, (unsigned)mount->number),
                                           (mount->attrs & MOUNT_ATTR_RDONLY) != 0);
    for (char *const *o = mount->options; *o; o++)
        if (g_str_has_prefix(*o, "context="))
            e->context = g_strdup(*o + strlen("context="));
    int fd = world_detached_locked(w, e);
    int peer = g_array_index(w->peers, int, w->peers->len - 1);
    g_array_append_val(f->holders, peer);
    pthread_mutex_unlock(&w->lock);
    return fd;
}

static inline gboolean fake_grow(NodeBlock *b, int number, const char *type, const char *path,
                                 gint64 timeout_ms, GError **error)
{
    FakeBlock *f = fake_of(b);
    (void)number, (void)type, (void)timeout_ms;
    if (fake_fails(b, "grow", error))
        return FALSE;
    if (f->no_growth && path) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "no right to grow");
        return FALSE;
    }
    g_autoptr(MountEntry) entry = path ? world_mounted(f->world, path) : NULL;
    ck_assert(!path || (entry && !entry->read_only));
    f->grown++;
    f->fs_bytes = f->loop.bytes;
    return TRUE;
}

static inline gboolean fake_can_grow_mounted(NodeBlock *b, const char *type)
{
    (void)type;
    return !fake_of(b)->no_growth;
}

static inline gboolean fake_make_file(NodeBlock *b, const char *path, const char *tag,
                                      gboolean *made, GError **error)
{
    *made = FALSE;
    if (fake_fails(b, "make_file", error))
        return FALSE;
    *made = !g_file_test(path, G_FILE_TEST_EXISTS);
    g_hash_table_insert(fake_of(b)->notes, g_strdup(path), g_strdup(tag));
    return g_file_set_contents(path, "", 0, error);
}

static inline char *fake_file_tag(NodeBlock *b, const char *path)
{
    return g_strdup(g_hash_table_lookup(fake_of(b)->notes, path));
}

static inline gboolean fake_loop_is_free(NodeBlock *b, int number)
{
    return number != fake_of(b)->loop.number;
}

static inline gboolean fake_remove_file(NodeBlock *b, const char *path, GError **error)
{
    if (fake_fails(b, "remove_file", error))
        return FALSE;
    if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
        ck_assert_int_eq(unlink(path), 0);
    g_hash_table_remove(fake_of(b)->notes, path);
    return TRUE;
}

static inline gboolean fake_bind(NodeBlock *b, int number, const char *path, GError **error)
{
    World *w = fake_of(b)->world;
    (void)number;
    if (fake_fails(b, "bind", error))
        return FALSE;
    ck_assert(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    pthread_mutex_lock(&w->lock);
    MountEntry *e = world_new_entry_locked(w, "devtmpfs", "udev", path, 0, FALSE);
    g_free(e->root);
    e->root = g_strdup("/loop5");
    g_ptr_array_add(w->mounts, e);
    pthread_mutex_unlock(&w->lock);
    return TRUE;
}

static inline gboolean fake_make_root(NodeBlock *b, const char *path, GError **error)
{
    return !fake_fails(b, "make_root", error) && g_mkdir_with_parents(path, 0700) == 0;
}

static inline gboolean fake_has_note(NodeBlock *b, const char *file, const char *name,
                                     gint64 timeout_ms, gboolean *has, GError **error)
{
    (void)file, (void)name, (void)timeout_ms;
    *has = fake_of(b)->note;
    return !fake_fails(b, "has_note", error);
}

static inline gboolean fake_set_note(NodeBlock *b, const char *file, const char *name,
                                     gboolean present, gint64 timeout_ms, GError **error)
{
    (void)file, (void)name, (void)timeout_ms;
    if (fake_fails(b, "set_note", error))
        return FALSE;
    fake_of(b)->note = present;
    return TRUE;
}

static inline void fake_block_release(NodeBlock *b)
{
    (void)b;
}

static inline FakeBlock *fake_block_new(World *w)
{
    static const NodeBlockOps ops = {
        .free = fake_block_release,
        .loop_find = fake_loop_find,
        .loop_attach = fake_loop_attach,
        .loop_hold = fake_loop_hold,
        .loop_detach = fake_loop_detach,
        .loop_grow = fake_loop_grow,
        .loop_set_read_only = fake_loop_set_read_only,
        .loop_is_free = fake_loop_is_free,
        .look = fake_look,
        .make = fake_make,
        .check = fake_check,
        .mount = fake_mount,
        .grow = fake_grow,
        .can_grow_mounted = fake_can_grow_mounted,
        .make_file = fake_make_file,
        .file_tag = fake_file_tag,
        .remove_file = fake_remove_file,
        .bind = fake_bind,
        .make_root = fake_make_root,
        .has_note = fake_has_note,
        .set_note = fake_set_note,
    };
    FakeBlock *f = g_new0(FakeBlock, 1);
    f->base.ops = &ops;
    f->world = w;
    f->loop.number = -1;
    f->blank = TRUE;
    f->holders = g_array_new(FALSE, FALSE, sizeof(int));
    f->notes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    w->image_bytes = FAKE_BYTES;
    return f;
}

static inline void fake_block_free(FakeBlock *f)
{
    g_array_unref(f->holders);
    g_hash_table_unref(f->notes);
    g_free(f->tag);
    g_free(f->file);
    g_free(f->type);
    g_free(f->mount_options);
    g_free(f);
}

#endif
