/* SPDX-License-Identifier: Apache-2.0 */
/* A session on a directory origin and a real store, with the kernel played by the test. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cache/fuse/live/session.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

typedef struct World {
    char *dir, *cache;
    Origin *origin;
    Store *store;
    Session *session;
    Kernel kernel;
    uint32_t flags;
    _Atomic int ended;
} World;

static void put(World *w, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(w->dir, name, NULL);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static void on_end(void *data)
{
    atomic_store(&((World *)data)->ended, 1);
}

/* `replace`: NULL, or changes the origin's operations before anything uses them. */
static void world_up_with(World *w, void (*replace)(OriginOps *ops), OriginOps *ops)
{
    GError *error = NULL;
    *w = (World){.dir = harness_tmpdir(), .cache = harness_tmpdir()};
    put(w, "f", "first version");
    w->origin = origin_dir_open(w->dir, &error);
    ck_assert_msg(w->origin != NULL, "%s", error ? error->message : "");
    if (replace) {
        *ops = *w->origin->ops;
        replace(ops);
        w->origin->ops = ops;
    }
    StoreConfig store = {.dir = w->cache, .max_bytes = 64 << 20};
    w->store = store_open(&store, &error);
    ck_assert_msg(w->store != NULL, "%s", error ? error->message : "");
    SessionConfig config = {.volume = "v", .origin = w->origin, .store = w->store};
    w->session = session_start(&config, kernel_start(&w->kernel), on_end, w, &error);
    ck_assert_msg(w->session != NULL, "%s", error ? error->message : "");
    w->flags = kernel_init(&w->kernel);
}

static void world_up(World *w)
{
    world_up_with(w, NULL, NULL);
}

static void world_down(World *w)
{
    session_stop(w->session);
    store_cancel_fills(w->store, w->origin);
    store_close(w->store);
    origin_close(w->origin);
    if (w->kernel.fd >= 0)
        close(w->kernel.fd);
    harness_remove(w->dir);
    harness_remove(w->cache);
}

static uint64_t lookup(World *w, const char *name)
{
    Reply *r = kernel_lookup(&w->kernel, 1, name);
    ck_assert_int_eq(r->error, 0);
    return r->entry.nodeid;
}

static uint64_t open_file(World *w, uint64_t node, int flags, gboolean *keep)
{
    Reply *r = kernel_open(&w->kernel, node, flags);
    ck_assert_int_eq(r->error, 0);
    if (keep)
        *keep = (r->open.open_flags & FOPEN_KEEP_CACHE) != 0;
    return r->open.fh;
}

static void expect_text(World *w, uint64_t node, uint64_t fh, const char *text)
{
    Reply *r = kernel_read(&w->kernel, node, fh, 0, 4096);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->len, strlen(text));
    ck_assert_mem_eq(r->data, text, r->len);
}

/* Another client of the same origin changes the file; waits for leases as the origin demands. */
static void *write_elsewhere(void *data)
{
    World *w = data;
    const OriginOps *ops = w->origin->ops;
    OriginNode *root, *node;
    OriginAttr attr;
    OriginFile *file;
    ck_assert_int_eq(ops->root(w->origin, &root, &attr), 0);
    ck_assert_int_eq(ops->lookup(w->origin, root, "f", &node, &attr), 0);
    ck_assert_int_eq(ops->open(w->origin, node, O_WRONLY, &file), 0);
    ck_assert_int_eq(ops->write(w->origin, file, "other version", 13, 0), 13);
    ops->close(w->origin, file);
    ops->put(w->origin, node);
    ops->put(w->origin, root);
    return NULL;
}

static FuseStats stats_of(World *w)
{
    FuseStats stats;
    session_stats(w->session, &stats);
    return stats;
}

START_TEST(second_open_is_served_by_the_store)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    FuseStats stats = stats_of(&w);
    ck_assert_uint_eq(stats.misses, 1);
    ck_assert_uint_eq(stats.hits, 1);
    ck_assert_uint_eq(stats.bytes_fill, 13);
    ck_assert_uint_eq(stats.bytes_store, 13);
    ck_assert_uint_eq(stats.bytes_origin, 0);
    world_down(&w);
}
END_TEST

/* Of may_read: what it says, and how often it was asked. */
static _Atomic int may_read_says;
static _Atomic unsigned may_read_asked;

static int count_may_read(Origin *o, OriginNode *node)
{
    (void)o, (void)node;
    atomic_fetch_add(&may_read_asked, 1);
    return atomic_load(&may_read_says);
}

static _Atomic uint64_t session_number = 1;
static uint64_t session_now(Origin *o)
{
    (void)o;
    return atomic_load(&session_number);
}

static void say_who_may_read(OriginOps *ops)
{
    ops->may_read = count_may_read;
    ops->session = session_now;
}

START_TEST(what_this_user_may_not_read_does_not_come_from_the_store)
{
    World w;
    static OriginOps ops;
    world_up_with(&w, say_who_may_read, &ops);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    /* The node is of a session that was lost since. */
    atomic_store(&may_read_asked, 0);
    atomic_store(&session_number, 2);
    atomic_store(&may_read_says, -EPERM);
    const FuseStats before = stats_of(&w);
    fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    FuseStats after = stats_of(&w);
    ck_assert_uint_eq(after.bytes_store, before.bytes_store);
    ck_assert_uint_eq(after.bytes_fill, before.bytes_fill);
    ck_assert_uint_eq(after.bytes_origin, before.bytes_origin + 13); /* which would refuse */
    ck_assert_uint_eq(atomic_load(&may_read_asked), 1);
    /* Allowed, it is asked once in a session with the origin. */
    atomic_store(&may_read_says, 0);
    for (unsigned i = 0; i < 6; i++) {
        atomic_store(&session_number, 3 + i / 3);
        fh = open_file(&w, node, O_RDONLY, NULL);
        expect_text(&w, node, fh, "first version");
        kernel_release(&w.kernel, node, fh);
        ck_assert_uint_eq(atomic_load(&may_read_asked), 2 + i / 3);
    }
    ck_assert_uint_eq(stats_of(&w).bytes_store, after.bytes_store + (uint64_t)6 * 13);
    world_down(&w);
}
END_TEST

START_TEST(pages_are_kept_only_for_the_same_version)
{
    World w;
    world_up(&w);
    gboolean keep;
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, &keep);
    ck_assert(!keep);
    /* Nothing of this version can be in the kernel before the first read. */
    kernel_release(&w.kernel, node, open_file(&w, node, O_RDONLY, &keep));
    ck_assert(!keep);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    kernel_release(&w.kernel, node, open_file(&w, node, O_RDONLY, &keep));
    ck_assert(keep);
    write_elsewhere(&w);
    fh = open_file(&w, node, O_RDONLY, &keep);
    ck_assert(!keep);
    expect_text(&w, node, fh, "other version");
    ck_assert_uint_gt(w.kernel.attrs_dropped, 0);
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(writer_elsewhere_waits_until_pages_are_dropped)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    ck_assert_uint_eq(w.kernel.pages_dropped, 0);
    pthread_t writer;
    pthread_create(&writer, NULL, write_elsewhere, &w);
    pthread_join(writer, NULL);
    expect_text(&w, node, fh, "other version");
    ck_assert_uint_gt(w.kernel.pages_dropped, 0);
    ck_assert_uint_eq(w.kernel.dropped_node, node);
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(read_beside_a_writer_leaves_no_pages)
{
    World w;
    world_up(&w);
    const OriginOps *ops = w.origin->ops;
    OriginNode *root, *there;
    OriginAttr attr;
    OriginFile *writer;
    ck_assert_int_eq(ops->root(w.origin, &root, &attr), 0);
    ck_assert_int_eq(ops->lookup(w.origin, root, "f", &there, &attr), 0);
    ck_assert_int_eq(ops->open(w.origin, there, O_WRONLY, &writer), 0);

    uint64_t node = lookup(&w, "f");
    gboolean keep;
    uint64_t fh = open_file(&w, node, O_RDONLY, &keep);
    ck_assert(!keep);
    expect_text(&w, node, fh, "first version");
    ck_assert_int_eq(ops->write(w.origin, writer, "FIRST", 5, 0), 5);
    expect_text(&w, node, fh, "FIRST version");
    while (w.kernel.pages_dropped == 0)
        kernel_receive(&w.kernel, 0, NULL, 10000);
    ck_assert_uint_eq(stats_of(&w).bytes_store, 0);
    ops->close(w.origin, writer);
    ops->put(w.origin, there);
    ops->put(w.origin, root);

    /* A lease that was refused is asked for again a moment later. */
    while (stats_of(&w).bytes_fill == 0)
        expect_text(&w, node, fh, "FIRST version");
    ck_assert_uint_eq(stats_of(&w).bytes_fill, 13);
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(own_writer_ends_the_leases_of_own_readers)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t reader = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, reader, "first version");
    uint64_t writer = open_file(&w, node, O_WRONLY, NULL);
    struct {
        struct fuse_write_in in;
        char text[5 + 1];
    } body = {{.fh = writer, .size = 5}, "FIRST"};
    Reply *r = kernel_call(&w.kernel, FUSE_WRITE, node, &body, sizeof(body.in) + 5);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->write.size, 5);
    expect_text(&w, node, reader, "FIRST version");
    kernel_release(&w.kernel, node, writer);
    kernel_release(&w.kernel, node, reader);
    world_down(&w);
}
END_TEST

static int write_five(World *w, uint64_t node, uint64_t fh, unsigned flags)
{
    struct {
        struct fuse_write_in in;
        char text[5 + 1];
    } body = {{.fh = fh, .size = 5, .write_flags = flags}, "FIRST"};
    return kernel_call(&w->kernel, FUSE_WRITE, node, &body, sizeof(body.in) + 5)->error;
}

static OriginListener heard;

static void hear_listener(Origin *o, const OriginListener *listener)
{
    (void)o;
    heard = listener ? *listener : (OriginListener){0};
}

static void lose_sessions(OriginOps *ops)
{
    ops->session = session_now;
    ops->listen = hear_listener;
}

START_TEST(what_a_mapping_changed_before_a_loss_is_not_written_after_it)
{
    World w;
    static OriginOps ops;
    atomic_store(&session_number, 1);
    world_up_with(&w, lose_sessions, &ops);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDWR, NULL);
    ck_assert_int_eq(write_five(&w, node, fh, FUSE_WRITE_CACHE), 0);
    atomic_store(&session_number, 2);
    ck_assert_int_eq(write_five(&w, node, fh, FUSE_WRITE_CACHE), -EIO);
    /* Another descriptor changes nothing about the pages; writes of calls are of now. */
    uint64_t other = open_file(&w, node, O_RDWR, NULL);
    ck_assert_int_eq(write_five(&w, node, other, FUSE_WRITE_CACHE), -EIO);
    ck_assert_int_eq(write_five(&w, node, fh, 0), 0);
    ck_assert_int_eq(write_five(&w, node, fh, FUSE_WRITE_CACHE), -EIO);
    /* Behind the drop of all pages those that there are then are read anew. */
    heard.leases_void(heard.data);
    while (write_five(&w, node, fh, FUSE_WRITE_CACHE) != 0)
        ;
    ck_assert_uint_gt(w.kernel.pages_dropped, 0);
    kernel_release(&w.kernel, node, fh);
    kernel_release(&w.kernel, node, other);
    /* The first that is opened for writing begins with no pages. */
    atomic_store(&session_number, 3);
    do {
        fh = open_file(&w, node, O_RDWR, NULL);
        other = (uint64_t)write_five(&w, node, fh, FUSE_WRITE_CACHE);
        kernel_release(&w.kernel, node, fh);
    } while (other); /* those before end behind their answers */
    world_down(&w);
}
END_TEST

START_TEST(name_moved_elsewhere_is_stale_once)
{
    World w;
    world_up(&w);
    g_autofree char *old = g_build_filename(w.dir, "d", NULL);
    g_autofree char *moved = g_build_filename(w.dir, "moved", NULL);
    ck_assert_int_eq(g_mkdir(old, 0755), 0);
    put(&w, "d/inside", "text");
    uint64_t dir = lookup(&w, "d");
    ck_assert_int_eq(g_rename(old, moved), 0);
    ck_assert_int_eq(g_mkdir(old, 0755), 0);
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "inside")->error, -ESTALE);
    /* Who holds the directory open, whatever its name, goes on. */
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "inside")->error, 0);
    ck_assert_uint_ne(lookup(&w, "d"), dir);
    world_down(&w);
}
END_TEST

static Reply *make_dir(World *w, uint64_t parent, const char *name)
{
    char body[sizeof(struct fuse_mkdir_in) + 32] = {0};
    *(struct fuse_mkdir_in *)(void *)body = (struct fuse_mkdir_in){.mode = 0755};
    strcpy(body + sizeof(struct fuse_mkdir_in), name);
    return kernel_call(&w->kernel, FUSE_MKDIR, parent, body,
                       sizeof(struct fuse_mkdir_in) + strlen(name) + 1);
}

/* The kernel does not walk again when the name it looks up is one that it is going to make. */
START_TEST(nothing_below_a_directory_moved_elsewhere_is_not_there)
{
    World w;
    world_up(&w);
    g_autofree char *old = g_build_filename(w.dir, "d", NULL);
    g_autofree char *moved = g_build_filename(w.dir, "moved", NULL);
    ck_assert_int_eq(g_mkdir(old, 0755), 0);
    put(&w, "d/inside", "text");
    uint64_t dir = lookup(&w, "d");
    ck_assert_int_eq(g_rename(old, moved), 0);
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "new")->error, -ENOENT);
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "new")->error, -ENOENT);
    /* Here it does, and asks for each name; who is in the directory goes on. */
    ck_assert_int_eq(make_dir(&w, dir, "new")->error, -ESTALE);
    ck_assert_int_eq(make_dir(&w, dir, "new")->error, 0);
    g_autofree char *made = g_build_filename(moved, "new", NULL);
    ck_assert(g_file_test(made, G_FILE_TEST_IS_DIR));
    world_down(&w);
}
END_TEST

START_TEST(what_there_is_where_the_name_now_leads_is_not_denied)
{
    World w;
    world_up(&w);
    g_autofree char *old = g_build_filename(w.dir, "d", NULL);
    g_autofree char *moved = g_build_filename(w.dir, "moved", NULL);
    ck_assert_int_eq(g_mkdir(old, 0755), 0);
    uint64_t dir = lookup(&w, "d");
    ck_assert_int_eq(g_rename(old, moved), 0);
    ck_assert_int_eq(g_mkdir(old, 0755), 0);
    put(&w, "d/new", "text");
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "missing")->error, -ENOENT);
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "new")->error, -ESTALE);
    world_down(&w);
}
END_TEST

START_TEST(directory_renamed_here_is_not_stale)
{
    World w;
    world_up(&w);
    uint64_t dir = make_dir(&w, 1, "d")->entry.nodeid;
    uint64_t below = make_dir(&w, dir, "below")->entry.nodeid;
    char body[sizeof(struct fuse_rename_in) + 8] = {0};
    *(struct fuse_rename_in *)(void *)body = (struct fuse_rename_in){.newdir = 1};
    memcpy(body + sizeof(struct fuse_rename_in), "d\0e", 4);
    ck_assert_int_eq(
        kernel_call(&w.kernel, FUSE_RENAME, 1, body, sizeof(struct fuse_rename_in) + 4)->error, 0);
    ck_assert_int_eq(kernel_lookup(&w.kernel, dir, "new")->error, -ENOENT);
    ck_assert_int_eq(kernel_lookup(&w.kernel, below, "new")->error, -ENOENT);
    ck_assert_int_eq(make_dir(&w, below, "new")->error, 0);
    /* By descriptor: attributes of what was removed here. */
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_RMDIR, below, "new", 4)->error, 0);
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_RMDIR, dir, "below", 6)->error, 0);
    struct fuse_setattr_in set = {.valid = FATTR_MODE, .mode = 0700};
    ck_assert_int_ne(kernel_call(&w.kernel, FUSE_SETATTR, below, &set, sizeof(set))->error,
                     -ESTALE);
    world_down(&w);
}
END_TEST

START_TEST(open_file_moved_elsewhere_is_not_stale)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    Reply *r = kernel_call(&w.kernel, FUSE_OPENDIR, 1, &(struct fuse_open_in){0},
                           sizeof(struct fuse_open_in));
    struct fuse_read_in in = {.fh = r->open.fh, .size = 4096};
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_READDIRPLUS, 1, &in, sizeof(in))->error, 0);
    g_autofree char *old = g_build_filename(w.dir, "f", NULL);
    g_autofree char *moved = g_build_filename(w.dir, "g", NULL);
    ck_assert_int_eq(g_rename(old, moved), 0);
    struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0600};
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_SETATTR, node, &mode, sizeof(mode))->error, 0);
    /* By path: ftruncate() comes with the open file. */
    struct fuse_setattr_in cut = {.valid = FATTR_SIZE};
    ck_assert_int_eq(kernel_call(&w.kernel, FUSE_SETATTR, node, &cut, sizeof(cut))->error, -ESTALE);
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(file_replaced_after_a_listing_is_not_opened)
{
    World w;
    world_up(&w);
    Reply *r = kernel_call(&w.kernel, FUSE_OPENDIR, 1, &(struct fuse_open_in){0},
                           sizeof(struct fuse_open_in));
    struct fuse_read_in in = {.fh = r->open.fh, .size = 4096};
    r = kernel_call(&w.kernel, FUSE_READDIRPLUS, 1, &in, sizeof(in));
    ck_assert_int_eq(r->error, 0);
    uint64_t node = 0;
    for (size_t at = 0; at < r->len;) {
        const struct fuse_direntplus *e = (void *)(r->data + at);
        if (e->dirent.namelen == 1 && e->dirent.name[0] == 'f')
            node = e->entry_out.nodeid;
        at += FUSE_DIRENTPLUS_SIZE(e);
    }
    ck_assert_uint_ne(node, 0);
    put(&w, "new", "second file");
    g_autofree char *from = g_build_filename(w.dir, "new", NULL);
    g_autofree char *to = g_build_filename(w.dir, "f", NULL);
    ck_assert_int_eq(g_rename(from, to), 0);
    ck_assert_int_eq(kernel_open(&w.kernel, node, O_RDONLY)->error, -ESTALE);
    uint64_t now = lookup(&w, "f");
    ck_assert_uint_ne(now, node);
    uint64_t fh = open_file(&w, now, O_RDONLY, NULL);
    expect_text(&w, now, fh, "second file");
    kernel_release(&w.kernel, now, fh);
    world_down(&w);
}
END_TEST

START_TEST(without_a_store_everything_is_read_from_the_origin)
{
    World w;
    world_up(&w);
    session_stop(w.session);
    close(w.kernel.fd);
    SessionConfig config = {.volume = "v", .origin = w.origin};
    w.session = session_start(&config, kernel_start(&w.kernel), on_end, &w, NULL);
    kernel_init(&w.kernel);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    ck_assert_uint_eq(stats_of(&w).bytes_origin, 13);
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(object_lost_from_the_disk_is_read_from_the_origin)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    g_autofree char *objects = g_build_filename(w.cache, "objects", NULL);
    nftw(objects, harness_remove_cb, 16, FTW_DEPTH | FTW_PHYS);
    fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(end_of_the_connection_is_told_once)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    open_file(&w, node, O_RDONLY, NULL);
    shutdown(w.kernel.fd, SHUT_RDWR);
    for (int i = 0; i < 1000 && !atomic_load(&w.ended); i++)
        g_usleep(10000);
    ck_assert_int_eq(w.ended, 1);
    world_down(&w);
}
END_TEST

START_TEST(files_are_shown_for_the_group)
{
    World w;
    world_up(&w);
    g_autofree char *path = g_build_filename(w.dir, "f", NULL);
    g_autofree char *sub = g_build_filename(w.dir, "d", NULL);
    g_autofree char *link = g_build_filename(w.dir, "l", NULL);
    ck_assert_int_eq(chmod(path, 0400), 0);
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    ck_assert_int_eq(symlink("f", link), 0);
    struct fuse_attr before = kernel_lookup(&w.kernel, 1, "f")->entry.attr;
    session_set_group(w.session, TRUE, 4242);
    struct fuse_attr file = kernel_lookup(&w.kernel, 1, "f")->entry.attr;
    struct fuse_attr dir = kernel_lookup(&w.kernel, 1, "d")->entry.attr;
    struct fuse_attr symbolic = kernel_lookup(&w.kernel, 1, "l")->entry.attr;
    struct fuse_getattr_in in = {0};
    struct fuse_attr root = kernel_call(&w.kernel, FUSE_GETATTR, 1, &in, sizeof(in))->attr.attr;
    ck_assert_uint_eq(file.gid, 4242);
    ck_assert_uint_eq(file.uid, before.uid);
    ck_assert_uint_eq(file.mode & 07777, 0660);
    ck_assert_uint_eq(dir.gid, 4242);
    ck_assert_uint_eq(dir.mode & 07777, 02770);
    ck_assert_uint_eq(root.gid, 4242);
    ck_assert_uint_eq(root.mode & 02770, 02770);
    ck_assert_uint_eq(symbolic.gid, 4242);
    ck_assert_uint_eq(symbolic.mode & 07777, 0777);
    /* Nothing of it is so where the files are. */
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0400);
    session_set_group(w.session, FALSE, 0);
    struct fuse_attr after = kernel_lookup(&w.kernel, 1, "f")->entry.attr;
    ck_assert_uint_eq(after.gid, before.gid);
    ck_assert_uint_eq(after.mode & 07777, 0400);
    world_down(&w);
}
END_TEST

/* An origin whose reads, or questions for leases, hang once that is wanted, until they are let go.
 */
static struct {
    OriginOps real, ops;
    _Atomic gboolean reads, leases, attrs, spoils;
    _Atomic unsigned attrs_asked, closed;
    _Atomic gboolean silent; /* Ceph: leases do not count */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean open; /* lock */
    unsigned hung; /* lock */
} hang = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hang_here(void)
{
    pthread_mutex_lock(&hang.lock);
    hang.hung++;
    pthread_cond_broadcast(&hang.changed);
    while (!hang.open)
        pthread_cond_wait(&hang.changed, &hang.lock);
    pthread_mutex_unlock(&hang.lock);
}

static ssize_t hanging_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    ssize_t n = hang.real.read(o, file, buf, len, off);
    if (atomic_load(&hang.reads))
        hang_here();
    return n;
}

static int hanging_lease(Origin *o, OriginFile *file, OriginLease lease, OriginRecall recall,
                         void *data)
{
    if (lease != ORIGIN_LEASE_NONE && atomic_load(&hang.leases))
        hang_here();
    return hang.real.lease(o, file, lease, recall, data);
}

static int hanging_getattr(Origin *o, OriginNode *node, OriginAttr *attr)
{
    atomic_fetch_add(&hang.attrs_asked, 1);
    if (atomic_load(&hang.attrs))
        hang_here();
    return hang.real.getattr(o, node, attr);
}

static int counted_close(Origin *o, OriginFile *file)
{
    const int r = hang.real.close(o, file);
    atomic_fetch_add(&hang.closed, 1);
    return r;
}

static gboolean vouches_now(Origin *o)
{
    (void)o;
    return !atomic_load(&hang.silent);
}

/* The linker has calls of the store's function come here. */
void __real_store_spoil_fills(Store *s, const Origin *origin, uint64_t ino);
void __wrap_store_spoil_fills(Store *s, const Origin *origin, uint64_t ino);
void __wrap_store_spoil_fills(Store *s, const Origin *origin, uint64_t ino)
{
    if (atomic_exchange(&hang.spoils, FALSE))
        hang_here();
    __real_store_spoil_fills(s, origin, ino);
}

static void may_hang(OriginOps *ops)
{
    hang.real = *ops;
    ops->read = hanging_read;
    ops->lease = hanging_lease;
    ops->getattr = hanging_getattr;
    ops->close = counted_close;
    ops->vouches = vouches_now;
    ops->listen = hear_listener;
}

static void may_hang_and_refuse(OriginOps *ops)
{
    may_hang(ops);
    say_who_may_read(ops);
}

static void world_up_to_hang(World *w)
{
    world_up_with(w, may_hang, &hang.ops);
}

static void await_hung(unsigned reads)
{
    pthread_mutex_lock(&hang.lock);
    while (hang.hung != reads)
        pthread_cond_wait(&hang.changed, &hang.lock);
    pthread_mutex_unlock(&hang.lock);
}

static void let_reads_go(void)
{
    pthread_mutex_lock(&hang.lock);
    hang.open = TRUE;
    pthread_cond_broadcast(&hang.changed);
    pthread_mutex_unlock(&hang.lock);
}

static uint64_t begin_read(World *w, uint64_t node, uint64_t fh)
{
    struct fuse_read_in in = {.fh = fh, .offset = 0, .size = 4096};
    return kernel_send(&w->kernel, FUSE_READ, node, &in, sizeof(in));
}

/* One page is read, and hangs: what is behind it is dropped, before the read goes on. */
static void expect_drop_around(World *w, uint64_t unique)
{
    static Reply reply;
    await_hung(1);
    write_elsewhere(w);
    while (w->kernel.dropped_off != 4096)
        kernel_receive(&w->kernel, unique, &reply, 10000);
    let_reads_go();
    while (!kernel_receive(&w->kernel, unique, &reply, 10000))
        ;
}

START_TEST(a_lease_goes_back_around_a_read_that_waits)
{
    World w;
    world_up_to_hang(&w);
    atomic_store(&hang.reads, TRUE);
    static Reply reply;
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    struct fuse_read_in in = {.fh = fh, .offset = 0, .size = 4096};
    uint64_t unique = kernel_send(&w.kernel, FUSE_READ, node, &in, sizeof(in));
    await_hung(1);
    write_elsewhere(&w);
    while (w.kernel.pages_dropped == 0)
        kernel_receive(&w.kernel, unique, &reply, 10000);
    ck_assert_int_eq(w.kernel.dropped_off, 4096);
    ck_assert_int_eq(w.kernel.dropped_len, 0);
    let_reads_go();
    while (!kernel_receive(&w.kernel, unique, &reply, 10000))
        ;
    /* What it brought goes as soon as it is there. */
    while (w.kernel.dropped_off != 0 || w.kernel.dropped_len != 4096)
        kernel_receive(&w.kernel, unique, &reply, 10000);
    expect_text(&w, node, fh, "other version");
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(a_lease_goes_back_around_a_read_that_asks_for_one)
{
    World w;
    world_up_to_hang(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t leased = open_file(&w, node, O_RDONLY, NULL);
    uint64_t asking = open_file(&w, node, O_RDONLY, NULL);
    write_elsewhere(&w);
    /* Until it is read under a lease again. */
    uint64_t from_origin;
    do {
        from_origin = stats_of(&w).bytes_origin;
        expect_text(&w, node, leased, "other version");
    } while (stats_of(&w).bytes_origin != from_origin);
    atomic_store(&hang.leases, TRUE);
    expect_drop_around(&w, begin_read(&w, node, asking));
    kernel_release(&w.kernel, node, asking);
    kernel_release(&w.kernel, node, leased);
    world_down(&w);
}
END_TEST

START_TEST(a_lease_goes_back_around_a_read_that_looks_again)
{
    World w;
    atomic_store(&may_read_says, -EPERM);
    world_up_with(&w, may_hang_and_refuse, &hang.ops);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    write_elsewhere(&w);
    /* Until a read takes a lease that does not know yet whether it may read. */
    unsigned asked;
    do {
        asked = atomic_load(&hang.attrs_asked);
        atomic_fetch_add(&session_number, 1);
        expect_text(&w, node, fh, "other version");
    } while (atomic_load(&hang.attrs_asked) == asked);
    atomic_store(&hang.attrs, TRUE);
    expect_drop_around(&w, begin_read(&w, node, fh));
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

/* ---- a file of three blocks, the first of which is written here ---- */

#define BLOCK 8192u

static uint64_t lookup_blocks(World *w)
{
    g_autofree char *text = g_strnfill(3 * BLOCK, 'b');
    put(w, "blocks", text);
    return lookup(w, "blocks");
}

/* Of the last block. */
static void read_last_block(World *w, uint64_t node, uint64_t fh)
{
    Reply *r = kernel_read(&w->kernel, node, fh, 2 * BLOCK, BLOCK);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->len, BLOCK);
    ck_assert_int_eq(r->data[0], 'b');
}

START_TEST(a_file_is_dirty_before_a_write_of_it_counts_as_begun)
{
    World w;
    static Reply reply;
    world_up_to_hang(&w);
    uint64_t node = lookup_blocks(&w);
    uint64_t fh = open_file(&w, node, O_RDWR, NULL);
    struct {
        struct fuse_write_in in;
        char text[5 + 1];
    } body = {{.fh = fh, .size = 5}, "FIRST"};
    atomic_store(&hang.spoils, TRUE);
    uint64_t unique = kernel_send(&w.kernel, FUSE_WRITE, node, &body, sizeof(body.in) + 5);
    await_hung(1);
    read_last_block(&w, node, fh);
    ck_assert_uint_eq(stats_of(&w).bytes_fill, 0);
    ck_assert_uint_eq(stats_of(&w).bytes_origin, BLOCK);
    let_reads_go();
    while (!kernel_receive(&w.kernel, unique, &reply, 10000))
        ;
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

/* The last block is read from the store beside a write, the file is closed, with `meanwhile` while
 * that asks the origin, and opened again. How much is then read from the origin. */
static uint64_t origin_bytes_behind_a_close(void (*meanwhile)(void))
{
    World w;
    world_up_to_hang(&w);
    uint64_t node = lookup_blocks(&w), fh;
    do {
        fh = open_file(&w, node, O_RDONLY, NULL);
        read_last_block(&w, node, fh);
        kernel_release(&w.kernel, node, fh);
    } while (stats_of(&w).bytes_store == 0);
    fh = open_file(&w, node, O_RDWR, NULL);
    read_last_block(&w, node, fh);
    ck_assert_int_eq(write_five(&w, node, fh, 0), 0);
    const uint64_t before = stats_of(&w).bytes_store;
    while (stats_of(&w).bytes_store == before)
        read_last_block(&w, node, fh);
    const unsigned closed = atomic_load(&hang.closed);
    atomic_store(&hang.attrs, TRUE);
    kernel_release(&w.kernel, node, fh);
    await_hung(1);
    atomic_store(&hang.attrs, FALSE);
    meanwhile();
    let_reads_go();
    while (atomic_load(&hang.closed) == closed)
        g_usleep(1000);
    atomic_store(&hang.silent, FALSE);
    const uint64_t origin = stats_of(&w).bytes_origin;
    fh = open_file(&w, node, O_RDWR, NULL);
    read_last_block(&w, node, fh);
    const uint64_t bytes = stats_of(&w).bytes_origin - origin;
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
    return bytes;
}

static void nothing_happens(void)
{
}

static void leases_end(void)
{
    heard.leases_void(heard.data);
}

static void ceph_is_silent(void)
{
    atomic_store(&hang.silent, TRUE);
}

START_TEST(what_is_read_of_a_written_file_is_kept_over_a_close)
{
    ck_assert_uint_eq(origin_bytes_behind_a_close(nothing_happens), 0);
}
END_TEST

START_TEST(nothing_is_kept_when_leases_end_during_a_close)
{
    ck_assert_uint_eq(origin_bytes_behind_a_close(leases_end), BLOCK);
}
END_TEST

START_TEST(nothing_is_kept_when_leases_do_not_count)
{
    ck_assert_uint_eq(origin_bytes_behind_a_close(ceph_is_silent), BLOCK);
}
END_TEST

static int cut_short(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    return type == FTW_F && st->st_size == 13 ? truncate(path, 0) : 0;
}

START_TEST(a_lease_goes_back_around_a_read_of_a_bad_object_that_waits)
{
    World w;
    world_up_to_hang(&w);
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    expect_text(&w, node, fh, "first version");
    kernel_release(&w.kernel, node, fh);
    fh = open_file(&w, node, O_RDONLY, NULL);
    ck_assert_uint_eq(stats_of(&w).hits, 1);
    g_autofree char *objects = g_build_filename(w.cache, "objects", NULL);
    ck_assert_int_eq(nftw(objects, cut_short, 8, FTW_PHYS), 0);
    atomic_store(&hang.reads, TRUE);
    expect_drop_around(&w, begin_read(&w, node, fh));
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(a_direct_read_that_waits_keeps_no_pages)
{
    World w;
    world_up_to_hang(&w);
    atomic_store(&hang.reads, TRUE);
    static Reply reply;
    uint64_t node = lookup(&w, "f");
    uint64_t fh = open_file(&w, node, O_RDONLY, NULL);
    struct fuse_read_in in = {.fh = fh, .offset = 0, .size = 4096, .flags = O_DIRECT};
    uint64_t unique = kernel_send(&w.kernel, FUSE_READ, node, &in, sizeof(in));
    await_hung(1);
    write_elsewhere(&w);
    while (w.kernel.pages_dropped == 0)
        kernel_receive(&w.kernel, unique, &reply, 10000);
    ck_assert_int_eq(w.kernel.dropped_off, 0);
    ck_assert_int_eq(w.kernel.dropped_len, 0);
    let_reads_go();
    while (!kernel_receive(&w.kernel, unique, &reply, 10000))
        ;
    kernel_release(&w.kernel, node, fh);
    world_down(&w);
}
END_TEST

START_TEST(a_fill_beside_a_write_here_is_not_kept)
{
    World w;
    world_up_to_hang(&w);
    static Reply reply;
    uint64_t node = lookup(&w, "f");
    atomic_store(&hang.reads, TRUE);
    uint64_t reader = open_file(&w, node, O_RDONLY, NULL);
    struct fuse_read_in in = {.fh = reader, .offset = 0, .size = 4096};
    uint64_t unique = kernel_send(&w.kernel, FUSE_READ, node, &in, sizeof(in));
    await_hung(1);
    /* A write that is under way has not changed the version yet. */
    struct fuse_open_in open = {.flags = O_WRONLY};
    Reply *opened = kernel_call(&w.kernel, FUSE_OPEN, node, &open, sizeof(open));
    ck_assert_int_eq(opened->error, 0);
    uint64_t writer = opened->open.fh;
    struct {
        struct fuse_write_in in;
        char text[5 + 1];
    } body = {{.fh = writer, .size = 5}, "FIRST"};
    Reply *wrote = kernel_call(&w.kernel, FUSE_WRITE, node, &body, sizeof(body.in) + 5);
    ck_assert_int_eq(wrote->error, 0);
    let_reads_go();
    while (!kernel_receive(&w.kernel, unique, &reply, 10000))
        ;
    ck_assert_int_eq(reply.error, 0);
    ck_assert_uint_eq(reply.len, 13);
    kernel_release(&w.kernel, node, reader);
    kernel_release(&w.kernel, node, writer);
    store_cancel_fills(w.store, w.origin);
    StoreStats held;
    store_stats(w.store, &held);
    ck_assert_uint_eq(held.objects, 0);
    ck_assert_uint_eq(stats_of(&w).misses, 1);
    /* The writer's end comes behind its answer; until then the cache is not asked. */
    do {
        reader = open_file(&w, node, O_RDONLY, NULL);
        kernel_release(&w.kernel, node, reader);
    } while (stats_of(&w).misses + stats_of(&w).hits == 1);
    ck_assert_uint_eq(stats_of(&w).hits, 0);
    world_down(&w);
}
END_TEST

/* It alone knows who may keep them; we can truncate at an open (O_TRUNC). */
START_TEST(setuid_is_left_to_the_kernel_but_at_an_open)
{
    World w;
    world_up(&w);
    ck_assert_uint_eq(w.flags & FUSE_HANDLE_KILLPRIV, 0);
    ck_assert_uint_ne(w.flags & FUSE_ATOMIC_O_TRUNC, 0);
    world_down(&w);
}
END_TEST

START_TEST(unknown_node_is_stale_not_fatal)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(kernel_lookup(&w.kernel, 999999999, "x")->error, -ESTALE);
    ck_assert_int_eq(kernel_open(&w.kernel, 999999999, O_RDONLY)->error, -ESTALE);
    world_down(&w);
}
END_TEST

START_TEST(a_number_that_is_not_open_is_refused)
{
    World w;
    world_up(&w);
    uint64_t node = lookup(&w, "f");
    const uint64_t fh = open_file(&w, node, O_RDONLY, NULL) + 1;
    ck_assert_int_eq(kernel_read(&w.kernel, node, fh, 0, 4096)->error, -EBADF);
    ck_assert_int_eq(write_five(&w, node, fh, 0), -EBADF);
    const uint32_t calls[] = {FUSE_FLUSH,   FUSE_FSYNC,    FUSE_FALLOCATE, FUSE_RELEASE,
                              FUSE_READDIR, FUSE_FSYNCDIR, FUSE_RELEASEDIR};
    struct fuse_read_in body = {.fh = fh, .size = 4096}; /* fh is the first in all of them */
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++)
        ck_assert_int_eq(kernel_call(&w.kernel, calls[i], node, &body, sizeof(body))->error,
                         -EBADF);
    world_down(&w);
}
END_TEST

HARNESS_MAIN(
    "cache/fuse/live/session", second_open_is_served_by_the_store,
    what_this_user_may_not_read_does_not_come_from_the_store,
    pages_are_kept_only_for_the_same_version, writer_elsewhere_waits_until_pages_are_dropped,
    read_beside_a_writer_leaves_no_pages, own_writer_ends_the_leases_of_own_readers,
    what_a_mapping_changed_before_a_loss_is_not_written_after_it,
    name_moved_elsewhere_is_stale_once, nothing_below_a_directory_moved_elsewhere_is_not_there,
    what_there_is_where_the_name_now_leads_is_not_denied, directory_renamed_here_is_not_stale,
    open_file_moved_elsewhere_is_not_stale, file_replaced_after_a_listing_is_not_opened,
    without_a_store_everything_is_read_from_the_origin,
    object_lost_from_the_disk_is_read_from_the_origin, end_of_the_connection_is_told_once,
    files_are_shown_for_the_group, a_lease_goes_back_around_a_read_that_waits,
    a_lease_goes_back_around_a_read_that_asks_for_one,
    a_lease_goes_back_around_a_read_that_looks_again,
    a_file_is_dirty_before_a_write_of_it_counts_as_begun,
    what_is_read_of_a_written_file_is_kept_over_a_close,
    nothing_is_kept_when_leases_end_during_a_close, nothing_is_kept_when_leases_do_not_count,
    a_lease_goes_back_around_a_read_of_a_bad_object_that_waits,
    a_direct_read_that_waits_keeps_no_pages, a_fill_beside_a_write_here_is_not_kept,
    setuid_is_left_to_the_kernel_but_at_an_open, unknown_node_is_stale_not_fatal,
    a_number_that_is_not_open_is_refused)
