/* SPDX-License-Identifier: Apache-2.0 */
/* A session that leaves its mount to another one, with the kernel played by the test. */
#include <fcntl.h>
#include "cache/fuse/live/session.h"
#include "cache/fuse/mount_state.h"
#include "proto/wire.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

typedef struct World {
    char *dir, *cache;
    Origin *origin;
    Store *store;
    Session *session;
    OriginNode *root, *file; /* a directory knows its nodes while they are in use */
    Kernel kernel;
    uint64_t init; /* number of the FUSE_INIT */
    int state;
} World;

static Session *start(World *w, const json_t *state, GBytes *init, GError **error)
{
    const SessionConfig config = {.volume = "v",
                                  .origin = w->origin,
                                  .store = w->store,
                                  .shared_locks = TRUE,
                                  .state = state,
                                  .init = init};
    const int fd = kernel_start(&w->kernel);
    if (!state)
        w->init = kernel_send_init(&w->kernel);
    return session_start(&config, fd, NULL, NULL, error);
}

static void world_up(World *w)
{
    *w = (World){.dir = harness_tmpdir(), .cache = harness_tmpdir(), .state = -1};
    g_autofree char *path = g_build_filename(w->dir, "f", NULL);
    ck_assert(g_file_set_contents(path, "first version", -1, NULL));
    w->origin = origin_dir_open(w->dir, NULL);
    const StoreConfig store = {.dir = w->cache, .max_bytes = 64 << 20};
    w->store = store_open(&store, NULL);
    w->session = start(w, NULL, NULL, NULL);
    ck_assert(w->session && session_can_be_left(w->session));
    kernel_await_init(&w->kernel, w->init);
    OriginAttr attr;
    ck_assert_int_eq(w->origin->ops->root(w->origin, &w->root, &attr), 0);
    ck_assert_int_eq(w->origin->ops->lookup(w->origin, w->root, "f", &w->file, &attr), 0);
    w->state = mount_state_new(NULL);
    ck_assert(w->state >= 0 && !wire_state_is_left(w->state));
}

static void leave(World *w)
{
    ck_assert(session_leave(g_steal_pointer(&w->session), w->state, 10000, NULL));
    close(w->kernel.fd);
    ck_assert(wire_state_is_left(w->state));
}

static void go_on(World *w)
{
    g_autoptr(GBytes) init = NULL;
    GError *error = NULL;
    json_auto_t *state = mount_state_read(w->state, MOUNT_STATE_TREE, &init, &error);
    ck_assert_msg(state != NULL, "%s", error ? error->message : "");
    w->session = start(w, state, init, &error);
    ck_assert_msg(w->session != NULL, "%s", error ? error->message : "");
}

static void world_down(World *w)
{
    session_stop(w->session);
    w->origin->ops->put(w->origin, w->file);
    w->origin->ops->put(w->origin, w->root);
    store_cancel_fills(w->store, w->origin);
    store_close(w->store);
    origin_close(w->origin);
    close(w->kernel.fd);
    close(w->state);
    harness_remove(w->dir);
    harness_remove(w->cache);
}

static void expect_read(World *w, uint64_t node, uint64_t fh, const char *text)
{
    const Reply *r = kernel_read(&w->kernel, node, fh, 0, 4096);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->len, strlen(text));
    ck_assert(memcmp(r->data, text, r->len) == 0);
}

static void write_text(World *w, uint64_t node, uint64_t fh, const char *text)
{
    struct {
        struct fuse_write_in in;
        char text[64];
    } body = {.in = {.fh = fh, .size = (uint32_t)strlen(text)}};
    memcpy(body.text, text, strlen(text));
    const Reply *r =
        kernel_call(&w->kernel, FUSE_WRITE, node, &body, sizeof(body.in) + strlen(text));
    ck_assert_int_eq(r->error, 0);
}

static uint64_t look_up(World *w, const char *name)
{
    const Reply *r = kernel_lookup(&w->kernel, 1, name);
    ck_assert_int_eq(r->error, 0);
    return r->entry.nodeid;
}

static uint64_t open_node(World *w, uint64_t node, int flags)
{
    const Reply *r = kernel_open(&w->kernel, node, flags);
    ck_assert_int_eq(r->error, 0);
    return r->open.fh;
}

START_TEST(what_is_open_stays_open)
{
    World w;
    world_up(&w);
    const uint64_t node = look_up(&w, "f");
    const uint64_t reader = open_node(&w, node, O_RDONLY), writer = open_node(&w, node, O_RDWR);
    const uint64_t closed = open_node(&w, node, O_RDONLY);
    kernel_release(&w.kernel, node, closed);
    expect_read(&w, node, reader, "first version");
    leave(&w);
    go_on(&w);
    expect_read(&w, node, reader, "first version");
    write_text(&w, node, writer, "other");
    expect_read(&w, node, reader, "other version");
    ck_assert_int_eq(kernel_read(&w.kernel, node, closed, 0, 10)->error, -EBADF);
    /* A new number is none of the old ones. */
    const uint64_t more = open_node(&w, node, O_RDONLY);
    ck_assert(more != reader && more != writer && more != closed);
    kernel_release(&w.kernel, node, reader);
    kernel_release(&w.kernel, node, writer);
    world_down(&w);
}
END_TEST

/* Also what nobody has used between them. */
START_TEST(it_is_left_again)
{
    World w;
    world_up(&w);
    const uint64_t node = look_up(&w, "f");
    const uint64_t fh = open_node(&w, node, O_RDONLY);
    for (int i = 0; i < 3; i++) {
        leave(&w);
        go_on(&w);
        close(w.state);
        w.state = mount_state_new(NULL);
    }
    expect_read(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(a_release_needs_no_open)
{
    World w;
    world_up(&w);
    const uint64_t node = look_up(&w, "f");
    const uint64_t fh = open_node(&w, node, O_RDONLY);
    leave(&w);
    go_on(&w);
    FuseStats before, after;
    session_stats(w.session, &before);
    kernel_release(&w.kernel, node, fh);
    session_stats(w.session, &after);
    ck_assert_uint_eq(after.nodes, before.nodes);
    ck_assert_int_eq(kernel_read(&w.kernel, node, fh, 0, 10)->error, -EBADF);
    world_down(&w);
}
END_TEST

/* The kernel sends them to the next process. */
START_TEST(requests_are_not_answered_any_more)
{
    World w;
    world_up(&w);
    const uint64_t node = look_up(&w, "f");
    const uint64_t fh = open_node(&w, node, O_RDONLY);
    struct fuse_read_in in = {.fh = fh, .size = 100};
    struct fuse_getattr_in ask = {0};
    /* Whether they are read before or after the session begins to leave, each is answered once or
     * not at all, and the session ends. */
    kernel_send(&w.kernel, FUSE_READ, node, &in, sizeof(in));
    kernel_send(&w.kernel, FUSE_GETATTR, node, &ask, sizeof(ask));
    leave(&w);
    go_on(&w);
    expect_read(&w, node, fh, "first version");
    world_down(&w);
}
END_TEST

static int set_lock(World *w, uint64_t node, uint64_t fh, uint32_t type)
{
    struct fuse_lk_in in = {.fh = fh, .owner = 7, .lk = {.end = 10, .type = type, .pid = 1}};
    return kernel_call(&w->kernel, FUSE_SETLK, node, &in, sizeof(in))->error;
}

/* Another node may have had it meanwhile. */
START_TEST(a_lock_is_lost)
{
    World w;
    world_up(&w);
    const uint64_t node = look_up(&w, "f");
    const uint64_t fh = open_node(&w, node, O_RDWR);
    ck_assert_int_eq(set_lock(&w, node, fh, F_WRLCK), 0);
    leave(&w);
    go_on(&w);
    ck_assert_int_eq(kernel_read(&w.kernel, node, fh, 0, 10)->error, -EIO);
    ck_assert_int_eq(set_lock(&w, node, fh, F_WRLCK), -EIO);
    /* Until its owner has given it up. */
    ck_assert_int_eq(set_lock(&w, node, fh, F_UNLCK), 0);
    expect_read(&w, node, fh, "first version");
    ck_assert_int_eq(set_lock(&w, node, fh, F_WRLCK), 0);
    world_down(&w);
}
END_TEST

static int lose_syncs(Origin *origin, OriginNode *node)
{
    (void)origin, (void)node;
    return -EIO;
}

/* What could not be synced is said by the next fsync, once. */
START_TEST(a_lost_write_is_reported)
{
    World w;
    OriginOps ops;
    struct fuse_fsync_in in = {0};
    world_up(&w);
    const uint64_t node = look_up(&w, "f");
    in.fh = open_node(&w, node, O_RDWR);
    write_text(&w, node, in.fh, "lost");
    ops = *w.origin->ops;
    const OriginOps *whole = w.origin->ops;
    ops.sync_node = lose_syncs;
    w.origin->ops = &ops;
    leave(&w);
    w.origin->ops = whole;
    go_on(&w);
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_FSYNC, node, &in, sizeof(in))->error, -EIO);
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_FSYNC, node, &in, sizeof(in))->error, 0);
    world_down(&w);
}
END_TEST

/* ---- the state ---- */

static int memory_with(const char *text, size_t len)
{
    const int fd = mount_state_new(NULL);
    ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
    return fd;
}

START_TEST(a_state_that_is_not_one_is_refused)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{}",
                                        "{\"version\":1}",
                                        "{\"version\":1,\"kind\":\"tree\",\"init\":\"AAAA\"}"};
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GBytes) init = NULL;
        g_autoptr(GError) error = NULL;
        const int fd = memory_with(texts[i], strlen(texts[i]));
        ck_assert_ptr_null(mount_state_read(fd, MOUNT_STATE_TREE, &init, &error));
        ck_assert(error != NULL);
        close(fd);
    }
}
END_TEST

START_TEST(a_state_without_members_is_refused)
{
    World w;
    world_up(&w);
    leave(&w);
    g_autoptr(GBytes) init = NULL, none = NULL;
    ck_assert_ptr_null(mount_state_read(w.state, MOUNT_STATE_IMAGE, &none, NULL));
    json_auto_t *state = mount_state_read(w.state, MOUNT_STATE_TREE, &init, NULL);
    json_object_del(state, "files");
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(start(&w, state, init, &error));
    ck_assert_str_eq(error->message, "the state that was left of the mount is not whole");
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/live/resume", what_is_open_stays_open, it_is_left_again,
             a_release_needs_no_open, requests_are_not_answered_any_more, a_lock_is_lost,
             a_lost_write_is_reported, a_state_that_is_not_one_is_refused,
             a_state_without_members_is_refused)
