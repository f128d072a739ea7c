/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node without a kernel and without hearthd: a NodeMounter over a mount table in memory, and a
 * hearthd on a thread that speaks the control protocol and serves nothing. Both count their steps
 * together, so that a test can let the Nth fail, whatever it is.
 *
 * Descriptors of FUSE and of detached mounts are ends of socket pairs. The world keeps the other
 * ends and sees there when the last duplicate is closed.
 */
#ifndef HEARTH_TESTS_NODE_WORLD_H
#define HEARTH_TESTS_NODE_WORLD_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include "common/autofd.h"
#include "proto/wire.h"
#include "driver/node/mount/mount.h"
#include "driver/node/hearthd/spec.h"
#include "tests/unit/harness.h"

#define WORLD_WAIT_MS 10000

typedef enum Fault {
    FAULT_ERROR,      /* the step answers with an error */
    FAULT_HANG_UP,    /* hearthd closes the connection instead of working */
    FAULT_LOST_REPLY, /* hearthd works, then closes the connection */
} Fault;

typedef struct FakeVolume {
    json_t *spec;
    gboolean asked; /* for its manifest, and it was ready */
    gboolean fill;  /* attached as such */
    int fuse_fd;    /* -1: opened only */
    int connection; /* that opened it */
} FakeVolume;

typedef struct World {
    NodeMounter base;
    NodeMounter *kernel; /* for directories, which need no root */
    char *dir, *socket_path;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    pthread_t counted; /* the thread whose steps count */
    unsigned steps, fail_at;
    Fault fault;
    const char *last_step;

    GPtrArray *mounts;    /* MountEntry */
    GHashTable *detached; /* inode of the mount's descriptor -> MountEntry */
    GHashTable *fuse_of;  /* dev -> inode of its FUSE descriptor, or 0 */
    GHashTable *busy;     /* paths in use */
    GArray *peers;        /* the other ends */
    uint64_t next;
    unsigned lazy_unmounts;
    gboolean hold_mount, holding; /* mount_fuse waits while hold_mount */
    gboolean hang;                /* a new mount does not answer */

    GHashTable *volumes; /* id -> FakeVolume */
    unsigned opens, attaches, fetches;
    const char *note;      /* for the next hearthd, of fill layers; NULL: there is none */
    unsigned served_again; /* attached with that note */
    gboolean refuses_note; /* such an attach */
    /* What "manifest" says: the dataset; NULL: there is none. */
    const char *dataset;
    gboolean building, readable;
    const char *refused; /* the volume that "refused" names; NULL: none */
    const char
        *unknown; /* a field, also of the origin, that hearthd does not know; NULL: it knows all */
    int64_t bytes_fill, objects; /* read of what is served, and held, of every volume */
    uint64_t image_bytes;        /* what "resize" answers */
    gboolean serving;
    int listener, stop;
    pthread_t hearthd;
} World;

static inline uint64_t world_inode(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_ino;
}

static inline int world_descriptor_locked(World *w)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    g_array_append_val(w->peers, pair[1]);
    return pair[0];
}

/* Counts a step; TRUE when it is to fail. */
static inline gboolean world_step_locked(World *w, const char *name)
{
    w->last_step = name;
    return ++w->steps == w->fail_at;
}

static inline gboolean world_fails_locked(World *w, const char *name, GError **error)
{
    if (!pthread_equal(pthread_self(), w->counted) || !world_step_locked(w, name))
        return FALSE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL, "injected into %s", name);
    return TRUE;
}

static inline MountEntry *world_entry_copy(const MountEntry *e)
{
    MountEntry *c = g_memdup2(e, sizeof(*e));
    c->root = g_strdup(e->root);
    c->target = g_strdup(e->target);
    c->type = g_strdup(e->type);
    c->source = g_strdup(e->source);
    c->lower = g_strdup(e->lower);
    c->context = g_strdup(e->context);
    return c;
}

static inline GPtrArray *world_list(NodeMounter *m, GError **error)
{
    World *w = (World *)m;
    GPtrArray *table = NULL;
    pthread_mutex_lock(&w->lock);
    if (!world_fails_locked(w, "list", error)) {
        table = g_ptr_array_new_with_free_func((GDestroyNotify)mount_entry_free);
        for (guint i = 0; i < w->mounts->len; i++)
            g_ptr_array_add(table, world_entry_copy(w->mounts->pdata[i]));
    }
    pthread_mutex_unlock(&w->lock);
    return table;
}

static inline gboolean world_find(NodeMounter *m, const char *path, MountEntry **entry,
                                  GError **error)
{
    World *w = (World *)m;
    *entry = NULL;
    pthread_mutex_lock(&w->lock);
    const gboolean fails = world_fails_locked(w, "find", error);
    const MountEntry *there = fails ? NULL : mount_find(w->mounts, path);
    if (there)
        *entry = world_entry_copy(there);
    pthread_mutex_unlock(&w->lock);
    return !fails;
}

static inline MountEntry *world_new_entry_locked(World *w, const char *type, const char *source,
                                                 const char *target, dev_t dev, gboolean ro)
{
    MountEntry *e = g_new0(MountEntry, 1);
    e->id = w->next++;
    e->dev = dev ? dev : w->next++;
    e->root = g_strdup("/");
    e->target = g_strdup(target);
    e->type = g_strdup(type);
    e->source = g_strdup(source);
    e->read_only = ro;
    return e;
}

static inline int world_detached_locked(World *w, MountEntry *e)
{
    int fd = world_descriptor_locked(w);
    g_hash_table_insert(w->detached, GSIZE_TO_POINTER(world_inode(fd)), e);
    return fd;
}

static inline int world_mount_fuse(NodeMounter *m, const char *volume, const MountOptions *options,
                                   int *fuse_fd, GError **error)
{
    World *w = (World *)m;
    int fd = -1;
    pthread_mutex_lock(&w->lock);
    *fuse_fd = world_fails_locked(w, "open_fuse", error) ? -1 : world_descriptor_locked(w);
    if (w->hold_mount) {
        w->holding = TRUE;
        pthread_cond_broadcast(&w->changed);
        while (w->hold_mount)
            pthread_cond_wait(&w->changed, &w->lock);
        w->holding = FALSE;
    }
    if (*fuse_fd >= 0 && !world_fails_locked(w, "mount_fuse", error)) {
        g_autofree char *source = g_strconcat(MOUNT_SOURCE_PREFIX, volume, NULL);
        MountEntry *e = world_new_entry_locked(w, MOUNT_TYPE, source, "", 0,
                                               (options->attrs & MOUNT_ATTR_RDONLY) != 0);
        e->context = g_strdup(options->context);
        g_hash_table_insert(w->fuse_of, GSIZE_TO_POINTER(e->dev),
                            GSIZE_TO_POINTER(world_inode(*fuse_fd)));
        fd = world_detached_locked(w, e);
    }
    pthread_mutex_unlock(&w->lock);
    return fd;
}

static inline int world_clone(NodeMounter *m, const char *path, dev_t dev, uint64_t attrs,
                              GError **error)
{
    World *w = (World *)m;
    int fd = -1;
    pthread_mutex_lock(&w->lock);
    if (!world_fails_locked(w, "clone", error)) {
        const MountEntry *e = mount_find(w->mounts, path);
        ck_assert_ptr_nonnull(e);
        ck_assert_uint_eq(e->dev, dev);
        MountEntry *bind = world_new_entry_locked(w, e->type, e->source, "", e->dev,
                                                  (attrs & MOUNT_ATTR_RDONLY) != 0);
        bind->lower = g_strdup(e->lower);
        bind->context = g_strdup(e->context);
        fd = world_detached_locked(w, bind);
    }
    pthread_mutex_unlock(&w->lock);
    return fd;
}

/* Whether the fake hearthd holds the FUSE descriptor of a file system. */
static inline gboolean world_is_served_locked(World *w, dev_t dev)
{
    gpointer inode = g_hash_table_lookup(w->fuse_of, GSIZE_TO_POINTER(dev));
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, w->volumes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const FakeVolume *v = value;
        if (v->fuse_fd >= 0 && GSIZE_TO_POINTER(world_inode(v->fuse_fd)) == inode)
            return TRUE;
    }
    return FALSE;
}

static inline gboolean world_probe(NodeMounter *m, int mount_fd, const char *path,
                                   gint64 timeout_ms, GError **error)
{
    World *w = (World *)m;
    (void)timeout_ms;
    gboolean answers = FALSE;
    pthread_mutex_lock(&w->lock);
    if (mount_fd >= 0 && w->hang) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED, "%s hangs", path);
    } else if (!world_fails_locked(w, "probe", error)) {
        const MountEntry *e =
            mount_fd >= 0
                ? g_hash_table_lookup(w->detached, GSIZE_TO_POINTER(world_inode(mount_fd)))
                : mount_find(w->mounts, path);
        ck_assert_ptr_nonnull(e);
        answers = strcmp(e->type, MOUNT_TYPE) != 0 || world_is_served_locked(w, e->dev);
        if (!answers)
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "%s is dead", path);
    }
    pthread_mutex_unlock(&w->lock);
    return answers;
}

static inline gboolean world_place(NodeMounter *m, int mount_fd, const char *path, GError **error)
{
    World *w = (World *)m;
    pthread_mutex_lock(&w->lock);
    gboolean fails = world_fails_locked(w, "place", error);
    if (!fails) {
        gpointer inode = GSIZE_TO_POINTER(world_inode(mount_fd));
        MountEntry *e = g_hash_table_lookup(w->detached, inode);
        ck_assert_ptr_nonnull(e);
        ck_assert_ptr_null(mount_find(w->mounts, path));
        ck_assert(g_file_test(path, G_FILE_TEST_IS_DIR));
        g_hash_table_steal(w->detached, inode);
        g_free(e->target);
        e->target = g_strdup(path);
        g_ptr_array_add(w->mounts, e);
    }
    pthread_mutex_unlock(&w->lock);
    return !fails;
}

static inline gboolean world_unmount(NodeMounter *m, const char *path, gboolean lazy,
                                     gint64 timeout_ms, GError **error)
{
    World *w = (World *)m;
    (void)timeout_ms;
    gboolean done = FALSE;
    pthread_mutex_lock(&w->lock);
    if (world_fails_locked(w, "unmount", error)) {
        ;
    } else if (!lazy && g_hash_table_contains(w->busy, path)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "%s is in use", path);
    } else {
        const MountEntry *e = mount_find(w->mounts, path);
        if (e)
            g_ptr_array_remove(w->mounts, (gpointer)e);
        w->lazy_unmounts += lazy ? 1 : 0;
        done = TRUE;
    }
    pthread_mutex_unlock(&w->lock);
    return done;
}

static inline gboolean world_make_dir(NodeMounter *m, const char *path, gboolean *made,
                                      GError **error)
{
    World *w = (World *)m;
    pthread_mutex_lock(&w->lock);
    gboolean fails = world_fails_locked(w, "make_dir", error);
    pthread_mutex_unlock(&w->lock);
    *made = FALSE;
    return !fails && w->kernel->ops->make_dir(w->kernel, path, made, error);
}

static inline gboolean world_remove_dir(NodeMounter *m, const char *path, GError **error)
{
    World *w = (World *)m;
    pthread_mutex_lock(&w->lock);
    gboolean fails = world_fails_locked(w, "remove_dir", error);
    pthread_mutex_unlock(&w->lock);
    return !fails && w->kernel->ops->remove_dir(w->kernel, path, error);
}

static inline gboolean world_statvfs(NodeMounter *m, const char *path, dev_t dev, gint64 timeout_ms,
                                     struct statvfs *st, GError **error)
{
    (void)m, (void)path, (void)dev, (void)timeout_ms, (void)error;
    *st = (struct statvfs){.f_frsize = 4096,
                           .f_bsize = 1 << 20,
                           .f_blocks = 1000,
                           .f_bfree = 600,
                           .f_bavail = 500,
                           .f_files = 50,
                           .f_ffree = 40,
                           .f_favail = 40};
    return TRUE;
}

/* The world outlives the service under test. */
static inline void world_mounter_free(NodeMounter *m)
{
    (void)m;
}

static inline void fake_volume_free(void *data)
{
    FakeVolume *v = data;
    json_decref(v->spec);
    if (v->fuse_fd >= 0)
        close(v->fuse_fd);
    g_free(v);
}

static inline json_t *world_refusal(const char *code, const char *text)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "code", code, "error", text);
}

static inline json_t *world_answer_locked(World *w, const json_t *request, int connection, int *fd,
                                          int *reply_fd)
{
    const char *op = json_string_value(json_object_get(request, "op"));
    const char *id = json_string_value(json_object_get(request, "volume"));
    FakeVolume *v = id ? g_hash_table_lookup(w->volumes, id) : NULL;
    if (strcmp(op, "hello") == 0)
        return json_pack("{s:b, s:i}", "ok", 1, "protocol", 1);
    if (strcmp(op, "refused") == 0)
        return w->refused ? json_pack("{s:b, s:[s]}", "ok", 1, "volumes", w->refused)
                          : json_pack("{s:b, s:[]}", "ok", 1, "volumes");
    ck_assert_ptr_nonnull(id);
    if (strcmp(op, "open") == 0) {
        json_t *spec = json_deep_copy(request);
        json_object_del(spec, "op");
        w->opens++;
        if (w->unknown && (json_object_get(json_object_get(spec, "origin"), w->unknown) ||
                           json_object_get(spec, w->unknown))) {
            g_autofree char *text =
                g_strdup_printf("open: unknown field '%s'; the fields are: type", w->unknown);
            json_decref(spec);
            return world_refusal("INVALID_ARGUMENT", text);
        }
        if (v && !node_spec_same_volume(v->spec, spec)) {
            json_decref(spec);
            return world_refusal("ALREADY_EXISTS", "open with another spec");
        }
        if (v) {
            json_decref(v->spec);
            v->spec = json_incref(spec);
        } else {
            v = g_new0(FakeVolume, 1);
            v->fuse_fd = -1;
            v->connection = connection;
            v->spec = json_incref(spec);
            g_hash_table_insert(w->volumes, g_strdup(id), v);
        }
        json_decref(spec);
        return json_pack("{s:b, s:b}", "ok", 1, "attached", v->fuse_fd >= 0);
    }
    if (strcmp(op, "attach") == 0) {
        if (!v || *fd < 0)
            return world_refusal("FAILED_PRECONDITION", "not opened");
        if (v->fuse_fd >= 0)
            return world_refusal("ALREADY_EXISTS", "attached");
        v->fill = json_object_get(request, "layer") != NULL;
        if (v->fill && !v->asked)
            return world_refusal("FAILED_PRECONDITION", "its manifest is not ready");
        const char *note = json_string_value(json_object_get(request, "resume"));
        if (note && (w->refuses_note || g_strcmp0(note, w->note) != 0))
            return world_refusal("INVALID_ARGUMENT", "another note");
        w->attaches++;
        w->served_again += note ? 1 : 0;
        v->fuse_fd = hearth_steal_fd(fd);
        return json_pack("{s:b, s:s*}", "ok", 1, "resume", v->fill ? w->note : NULL);
    }
    if (strcmp(op, "manifest") == 0) {
        if (!v || !w->dataset)
            return world_refusal("FAILED_PRECONDITION", "no snapshot");
        v->asked = !w->building;
        return json_pack("{s:b, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i}", "ok", 1, "state",
                         w->building ? "building" : "ready", "dataset", w->dataset, "path",
                         "/cache/manifest", "objects", "/cache/objects", "readable", w->readable,
                         "files", 1234567, "directories", 3, "bytes", 4096000);
    }
    if (strcmp(op, "detach") == 0) {
        g_hash_table_remove(w->volumes, id);
        return json_pack("{s:b}", "ok", 1);
    }
    if (strcmp(op, "fetch") == 0) {
        if (!v || v->fuse_fd < 0)
            return world_refusal("NOT_FOUND", "no such volume");
        w->fetches++;
        *reply_fd = v->fuse_fd;
        return json_pack("{s:b, s:O, s:s*}", "ok", 1, "spec", v->spec, "resume",
                         v->fill ? w->note : NULL);
    }
    if (strcmp(op, "volume") == 0) {
        if (!v)
            return world_refusal("NOT_FOUND", "no such volume");
        return json_pack("{s:b, s:{s:b, s:I, s:I}}", "ok", 1, "volume", "attached", v->fuse_fd >= 0,
                         "bytesFill", (json_int_t)w->bytes_fill, "objects", (json_int_t)w->objects);
    }
    if (strcmp(op, "resize") == 0)
        return json_pack("{s:b, s:I}", "ok", 1, "bytes", (json_int_t)w->image_bytes);
    return world_refusal("UNIMPLEMENTED", op);
}

/* FALSE: the connection is to be closed. */
static inline gboolean world_serve_one(World *w, int connection)
{
    hearth_autofd int fd = -1;
    json_t *request = wire_receive(connection, &fd, WORLD_WAIT_MS, NULL);
    if (!request)
        return FALSE;
    pthread_mutex_lock(&w->lock);
    const char *op = json_string_value(json_object_get(request, "op"));
    /* The watch's fetches come on their own time: not counted. */
    gboolean fault = strcmp(op, "fetch") != 0 && world_step_locked(w, "hearthd");
    int reply_fd = -1;
    json_t *reply = fault && w->fault == FAULT_ERROR
                        ? world_refusal("UNAVAILABLE", "injected into hearthd")
                    : fault && w->fault == FAULT_HANG_UP
                        ? NULL
                        : world_answer_locked(w, request, connection, &fd, &reply_fd);
    gboolean answer = reply && !(fault && w->fault == FAULT_LOST_REPLY);
    gboolean alive = answer && wire_send(connection, reply, reply_fd, NULL);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    json_decref(reply);
    json_decref(request);
    return alive;
}

static inline gboolean opened_by(gpointer key, gpointer value, gpointer connection)
{
    (void)key;
    const FakeVolume *v = value;
    return v->fuse_fd < 0 && v->connection == GPOINTER_TO_INT(connection);
}

static inline void *world_hearthd(void *data)
{
    World *w = data;
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(struct pollfd));
    struct pollfd first[] = {{.fd = w->stop, .events = POLLIN},
                             {.fd = w->listener, .events = POLLIN}};
    g_array_append_vals(fds, first, 2);
    for (;;) {
        struct pollfd *p = (struct pollfd *)(void *)fds->data;
        if (poll(p, fds->len, -1) < 0)
            continue;
        if (p[0].revents)
            break;
        for (guint i = fds->len; i > 2; i--) {
            p = (struct pollfd *)(void *)fds->data;
            int connection = p[i - 1].fd;
            if (p[i - 1].revents && !world_serve_one(w, connection)) {
                pthread_mutex_lock(&w->lock);
                g_hash_table_foreach_remove(w->volumes, opened_by, GINT_TO_POINTER(connection));
                pthread_cond_broadcast(&w->changed);
                pthread_mutex_unlock(&w->lock);
                close(connection);
                g_array_remove_index(fds, i - 1);
            }
        }
        p = (struct pollfd *)(void *)fds->data;
        if (p[1].revents) {
            struct pollfd one = {.fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC),
                                 .events = POLLIN};
            ck_assert_int_ge(one.fd, 0);
            g_array_append_val(fds, one);
        }
    }
    /* As when the process dies: first nobody listens, then everything is gone. */
    close(w->listener);
    pthread_mutex_lock(&w->lock);
    g_hash_table_remove_all(w->volumes);
    pthread_mutex_unlock(&w->lock);
    for (guint i = 2; i < fds->len; i++)
        close(g_array_index(fds, struct pollfd, i).fd);
    return NULL;
}

static inline void world_start_hearthd(World *w)
{
    g_autoptr(GError) error = NULL;
    w->listener = wire_listen(w->socket_path, &error);
    ck_assert_msg(w->listener >= 0, "%s", error ? error->message : "");
    w->stop = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(pthread_create(&w->hearthd, NULL, world_hearthd, w), 0);
    w->serving = TRUE;
}

static inline void world_kill_hearthd(World *w)
{
    eventfd_write(w->stop, 1);
    pthread_join(w->hearthd, NULL);
    close(w->stop);
    w->serving = FALSE;
}

/* GLib's own writer calls localtime(), which the thread sanitizer cannot follow into it. */
static inline GLogWriterOutput world_drop_log(GLogLevelFlags level, const GLogField *fields,
                                              gsize n, gpointer data)
{
    (void)level, (void)fields, (void)n, (void)data;
    return G_LOG_WRITER_HANDLED;
}

/* What the node plugin does with its descriptor tells the same. */
static gboolean world_abort_fuse(NodeMounter *m, dev_t dev, GError **error)
{
    (void)m;
    (void)dev;
    (void)error;
    return TRUE;
}

static inline World *world_new(void)
{
    static gboolean quiet;
    if (!quiet)
        g_log_set_writer_func(world_drop_log, NULL, NULL);
    quiet = TRUE;
    static const NodeMounterOps ops = {
        .free = world_mounter_free,
        .list = world_list,
        .find = world_find,
        .mount_fuse = world_mount_fuse,
        .clone = world_clone,
        .probe = world_probe,
        .place = world_place,
        .unmount = world_unmount,
        .make_dir = world_make_dir,
        .remove_dir = world_remove_dir,
        .statvfs = world_statvfs,
        .abort_fuse = world_abort_fuse,
    };
    World *w = g_new0(World, 1);
    w->base.ops = &ops;
    w->base.selinux = TRUE;
    w->kernel = node_mounter_new();
    g_autofree char *made = harness_tmpdir();
    w->dir = mount_canonical_path(made, "tmp", NULL);
    ck_assert_ptr_nonnull(w->dir);
    w->socket_path = g_build_filename(w->dir, "hearthd.sock", NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->counted = pthread_self();
    w->next = 100;
    w->mounts = g_ptr_array_new_with_free_func((GDestroyNotify)mount_entry_free);
    w->detached = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)(void *)mount_entry_free);
    w->fuse_of = g_hash_table_new(NULL, NULL);
    w->busy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    w->peers = g_array_new(FALSE, FALSE, sizeof(int));
    w->volumes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, fake_volume_free);
    world_start_hearthd(w);
    return w;
}

static inline void world_free(World *w)
{
    if (w->serving)
        world_kill_hearthd(w);
    node_mounter_free(w->kernel);
    for (guint i = 0; i < w->peers->len; i++)
        close(g_array_index(w->peers, int, i));
    g_array_unref(w->peers);
    g_ptr_array_unref(w->mounts);
    g_hash_table_unref(w->detached);
    g_hash_table_unref(w->fuse_of);
    g_hash_table_unref(w->busy);
    g_hash_table_unref(w->volumes);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    g_free(w->socket_path);
    harness_remove(w->dir);
    g_free(w);
}

static inline char *world_path(World *w, const char *name)
{
    return g_build_filename(w->dir, name, NULL);
}

/* Mounts something, as someone else would. */
static inline void world_mount(World *w, const char *type, const char *source, const char *target)
{
    pthread_mutex_lock(&w->lock);
    g_ptr_array_add(w->mounts, world_new_entry_locked(w, type, source, target, 0, FALSE));
    pthread_mutex_unlock(&w->lock);
}

/* The path is from now on the mount of this directory of its file system. */
static inline void world_set_root(World *w, const char *path, const char *root)
{
    pthread_mutex_lock(&w->lock);
    MountEntry *e = (MountEntry *)mount_find(w->mounts, path);
    g_free(e->root);
    e->root = g_strdup(root);
    pthread_mutex_unlock(&w->lock);
}

/* Binds what is mounted at one path at another, as someone else would. */
static inline void world_bind(World *w, const char *from, const char *to)
{
    pthread_mutex_lock(&w->lock);
    MountEntry *e = world_entry_copy(mount_find(w->mounts, from));
    g_free(e->target);
    e->target = g_strdup(to);
    g_ptr_array_add(w->mounts, e);
    pthread_mutex_unlock(&w->lock);
}

static inline unsigned world_mounts(World *w)
{
    pthread_mutex_lock(&w->lock);
    unsigned n = w->mounts->len;
    pthread_mutex_unlock(&w->lock);
    return n;
}

/* A copy of what is mounted at a path, or NULL. */
static inline MountEntry *world_mounted(World *w, const char *path)
{
    pthread_mutex_lock(&w->lock);
    const MountEntry *e = mount_find(w->mounts, path);
    MountEntry *copy = e ? world_entry_copy(e) : NULL;
    pthread_mutex_unlock(&w->lock);
    return copy;
}

/* From now on the Nth step fails; 0: none. */
static inline void world_fail_at(World *w, unsigned n, Fault fault)
{
    pthread_mutex_lock(&w->lock);
    w->steps = 0;
    w->fail_at = n;
    w->fault = fault;
    pthread_mutex_unlock(&w->lock);
}

static inline gboolean world_failed(World *w)
{
    pthread_mutex_lock(&w->lock);
    gboolean failed = w->steps >= w->fail_at;
    pthread_mutex_unlock(&w->lock);
    return failed;
}

/* Waits until hearthd has this many volumes; a connection's end is seen a little later. */
static inline void world_expect_volumes(World *w, unsigned n)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WORLD_WAIT_MS / 1000;
    pthread_mutex_lock(&w->lock);
    while (g_hash_table_size(w->volumes) != n)
        ck_assert_int_eq(pthread_cond_timedwait(&w->changed, &w->lock, &deadline), 0);
    pthread_mutex_unlock(&w->lock);
}

/* Waits until the volumes were asked for this often by "fetch". */
static inline void world_expect_fetches(World *w, unsigned n)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WORLD_WAIT_MS / 1000;
    pthread_mutex_lock(&w->lock);
    while (w->fetches < n)
        ck_assert_int_eq(pthread_cond_timedwait(&w->changed, &w->lock, &deadline), 0);
    pthread_mutex_unlock(&w->lock);
}

static inline gboolean world_attached(World *w, const char *volume)
{
    pthread_mutex_lock(&w->lock);
    const FakeVolume *v = g_hash_table_lookup(w->volumes, volume);
    gboolean attached = v && v->fuse_fd >= 0;
    pthread_mutex_unlock(&w->lock);
    return attached;
}

/* Every descriptor the world gave out is closed, and so are its duplicates. */
static inline void world_expect_all_closed(World *w)
{
    pthread_mutex_lock(&w->lock);
    g_autoptr(GArray) peers = g_array_copy(w->peers);
    pthread_mutex_unlock(&w->lock);
    for (guint i = 0; i < peers->len; i++) {
        struct pollfd p = {.fd = g_array_index(peers, int, i)};
        ck_assert_int_eq(poll(&p, 1, WORLD_WAIT_MS), 1);
        ck_assert(p.revents & POLLHUP);
    }
}

#endif
