/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel asked for and did not get: its reply was refused. */
#include <dlfcn.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include "cache/fuse/live/session.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

static _Atomic int losing;

/* The session calls these. A reply is lost as the kernel loses it, which the test has to see. */
#define REPLY(name, args, ...)                                                                     \
    int name args                                                                                  \
    {                                                                                              \
        int(*real) args = (int(*) args)dlsym(RTLD_NEXT, #name);                                    \
        if (!atomic_load(&losing))                                                                 \
            return real(__VA_ARGS__);                                                              \
        fuse_reply_err(req, EINTR);                                                                \
        return -ENOENT;                                                                            \
    }
REPLY(fuse_reply_entry, (fuse_req_t req, const struct fuse_entry_param *e), req, e)
REPLY(fuse_reply_open, (fuse_req_t req, const struct fuse_file_info *fi), req, fi)
REPLY(fuse_reply_create,
      (fuse_req_t req, const struct fuse_entry_param *e, const struct fuse_file_info *fi), req, e,
      fi)
REPLY(fuse_reply_buf, (fuse_req_t req, const char *buf, size_t size), req, buf, size)

typedef struct World {
    char *dir;
    Origin *origin;
    Session *session;
    Kernel kernel;
} World;

static void put(World *w, const char *name)
{
    g_autofree char *path = g_build_filename(w->dir, name, NULL);
    ck_assert(g_file_set_contents(path, "text", -1, NULL));
}

static void world_up(World *w)
{
    *w = (World){.dir = harness_tmpdir()};
    atomic_store(&losing, 0);
    g_autofree char *sub = g_build_filename(w->dir, "d", NULL);
    ck_assert_int_eq(g_mkdir(sub, 0755), 0);
    put(w, "f");
    put(w, "d/one");
    put(w, "d/two");
    w->origin = origin_dir_open(w->dir, NULL);
    SessionConfig config = {.volume = "v", .origin = w->origin};
    w->session = session_start(&config, kernel_start(&w->kernel), NULL, NULL, NULL);
    ck_assert_ptr_nonnull(w->session);
    kernel_init(&w->kernel);
}

static void world_down(World *w)
{
    session_stop(w->session);
    origin_close(w->origin);
    close(w->kernel.fd);
    harness_remove(w->dir);
}

static uint64_t lookup(World *w, const char *name)
{
    Reply *r = kernel_lookup(&w->kernel, 1, name);
    ck_assert_int_eq(r->error, 0);
    return r->entry.nodeid;
}

static void forget(World *w, uint64_t node)
{
    struct fuse_forget_in in = {.nlookup = 1};
    kernel_send(&w->kernel, FUSE_FORGET, node, &in, sizeof(in));
}

static void lost(World *w, uint32_t opcode, uint64_t node, const void *body, size_t len)
{
    atomic_store(&losing, 1);
    ck_assert_int_eq(kernel_call(&w->kernel, opcode, node, body, len)->error, -EINTR);
    atomic_store(&losing, 0);
}

/* Undone and forgotten after the reply, by another thread. */
static void expect_only_the_root(World *w)
{
    FuseStats stats = {0};
    for (int i = 0; i < 1000 && stats.nodes != 1; i++) {
        session_stats(w->session, &stats);
        if (i)
            g_usleep(10000);
    }
    ck_assert_uint_eq(stats.nodes, 1);
}

START_TEST(lookups_are_not_counted)
{
    World w;
    world_up(&w);
    struct {
        struct fuse_mkdir_in in;
        char name[8];
    } mkdir = {{.mode = 0755}, "made"};
    struct {
        struct fuse_mknod_in in;
        char name[8];
    } mknod = {{.mode = S_IFIFO | 0644}, "fifo"};
    for (int i = 0; i < 3; i++)
        lost(&w, FUSE_LOOKUP, 1, "f", 2);
    lost(&w, FUSE_MKDIR, 1, &mkdir, sizeof(mkdir.in) + 5);
    lost(&w, FUSE_MKNOD, 1, &mknod, sizeof(mknod.in) + 5);
    lost(&w, FUSE_SYMLINK, 1, "link\0target", 12);
    uint64_t f = lookup(&w, "f");
    struct {
        struct fuse_link_in in;
        char name[8];
    } link = {{.oldnodeid = f}, "hard"};
    lost(&w, FUSE_LINK, 1, &link, sizeof(link.in) + 5);
    forget(&w, f);
    expect_only_the_root(&w);
    world_down(&w);
}
END_TEST

START_TEST(open_files_are_closed)
{
    World w;
    world_up(&w);
    struct {
        struct fuse_create_in in;
        char name[8];
    } create = {{.flags = O_RDWR, .mode = 0644}, "new"};
    lost(&w, FUSE_CREATE, 1, &create, sizeof(create.in) + 4);
    uint64_t f = lookup(&w, "f");
    struct fuse_open_in in = {.flags = O_RDONLY};
    lost(&w, FUSE_OPEN, f, &in, sizeof(in));
    forget(&w, f);
    expect_only_the_root(&w);
    world_down(&w);
}
END_TEST

START_TEST(listings_are_closed)
{
    World w;
    world_up(&w);
    uint64_t d = lookup(&w, "d");
    lost(&w, FUSE_OPENDIR, d, &(struct fuse_open_in){0}, sizeof(struct fuse_open_in));
    forget(&w, d);
    expect_only_the_root(&w);
    world_down(&w);
}
END_TEST

START_TEST(lookups_of_a_listing_are_not_counted)
{
    World w;
    world_up(&w);
    uint64_t d = lookup(&w, "d");
    Reply *r = kernel_call(&w.kernel, FUSE_OPENDIR, d, &(struct fuse_open_in){0},
                           sizeof(struct fuse_open_in));
    ck_assert_int_eq(r->error, 0);
    uint64_t fh = r->open.fh;
    struct fuse_read_in in = {.fh = fh, .size = 4096};
    lost(&w, FUSE_READDIRPLUS, d, &in, sizeof(in));
    struct fuse_release_in release = {.fh = fh};
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_RELEASEDIR, d, &release, sizeof(release))->error,
                     0);
    forget(&w, d);
    expect_only_the_root(&w);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/lost_reply", lookups_are_not_counted, open_files_are_closed,
             listings_are_closed, lookups_of_a_listing_are_not_counted)
