/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of complete objects, which a session answers through a pipe. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include "cache/fuse/live/session.h"
#include "cache/fuse/object_reply.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

#define SIZE 40000

typedef struct World {
    char *dir, *cache, *bytes;
    Origin *origin;
    Store *store;
    Session *session;
    Kernel kernel;
    uint64_t node, fh; /* of the file, whose object is in the store */
} World;

static uint64_t open_file(World *w)
{
    const Reply *r = kernel_open(&w->kernel, w->node, O_RDONLY);
    ck_assert_int_eq(r->error, 0);
    return r->open.fh;
}

static void expect(World *w, uint64_t off, uint32_t size)
{
    const size_t len = MIN(size, SIZE - off);
    const Reply *r = kernel_read(&w->kernel, w->node, w->fh, off, size);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->len, len);
    ck_assert_mem_eq(r->data, w->bytes + off, len);
}

static FuseStats stats_of(World *w)
{
    FuseStats stats;
    session_stats(w->session, &stats);
    return stats;
}

static void world_up(World *w)
{
    *w = (World){.dir = harness_tmpdir(), .cache = harness_tmpdir(), .bytes = g_malloc(SIZE)};
    for (int i = 0; i < SIZE; i++)
        w->bytes[i] = (char)(i * 7 + i / 251);
    g_autofree char *path = g_build_filename(w->dir, "f", NULL);
    ck_assert(g_file_set_contents(path, w->bytes, SIZE, NULL));
    w->origin = origin_dir_open(w->dir, NULL);
    const StoreConfig store = {.dir = w->cache, .max_bytes = 64 << 20};
    w->store = store_open(&store, NULL);
    ck_assert(w->origin && w->store);
    const SessionConfig config = {.volume = "v", .origin = w->origin, .store = w->store};
    w->session = session_start(&config, kernel_start(&w->kernel), NULL, NULL, NULL);
    ck_assert(w->session != NULL);
    kernel_init(&w->kernel);
    const Reply *r = kernel_lookup(&w->kernel, 1, "f");
    ck_assert_int_eq(r->error, 0);
    w->node = r->entry.nodeid;
    w->fh = open_file(w);
    expect(w, 0, SIZE);
    kernel_release(&w->kernel, w->node, w->fh);
    w->fh = open_file(w);
    ck_assert_uint_eq(stats_of(w).hits, 1);
}

static void world_down(World *w)
{
    kernel_release(&w->kernel, w->node, w->fh);
    session_stop(w->session);
    store_cancel_fills(w->store, w->origin);
    store_close(w->store);
    origin_close(w->origin);
    close(w->kernel.fd);
    harness_remove(w->dir);
    harness_remove(w->cache);
    g_free(w->bytes);
}

static unsigned pipes(void)
{
    unsigned n = 0;
    const struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert(dir != NULL);
    while ((entry = readdir(dir))) {
        char to[64];
        const ssize_t len = readlinkat(dirfd(dir), entry->d_name, to, sizeof(to));
        n += len > 5 && memcmp(to, "pipe:", 5) == 0;
    }
    closedir(dir);
    return n;
}

START_TEST(an_object_arrives_through_a_pipe)
{
    World w;
    world_up(&w);
    const unsigned before = pipes();
    expect(&w, 0, SIZE);
    ck_assert_uint_gt(pipes(), before);
    expect(&w, 4096, 2 * OBJECT_REPLY_MIN);
    expect(&w, 4097, OBJECT_REPLY_MIN); /* as direct reads may be */
    expect(&w, 20480, 1 << 16);         /* up to the end */
    ck_assert_uint_eq(stats_of(&w).bytes_store, SIZE + 3 * OBJECT_REPLY_MIN + SIZE - 20480);
    world_down(&w);
}
END_TEST

START_TEST(a_short_read_takes_no_pipe)
{
    World w;
    world_up(&w);
    const unsigned before = pipes();
    expect(&w, 0, OBJECT_REPLY_MIN - 1);
    ck_assert_uint_eq(pipes(), before);
    world_down(&w);
}
END_TEST

static int cut_short(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    return type == FTW_F && st->st_size == SIZE ? truncate(path, SIZE / 2) : 0;
}

START_TEST(an_object_that_is_cut_short_is_not_sent)
{
    World w;
    world_up(&w);
    g_autofree char *objects = g_build_filename(w.cache, "objects", NULL);
    ck_assert_int_eq(nftw(objects, cut_short, 8, FTW_PHYS), 0);
    expect(&w, 0, SIZE);
    ck_assert_uint_eq(stats_of(&w).bytes_store, 0);
    ck_assert_uint_eq(stats_of(&w).bytes_origin, SIZE);
    /* Nothing of it is left in the pipe. */
    expect(&w, 4096, OBJECT_REPLY_MIN);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/object_reply", an_object_arrives_through_a_pipe,
             a_short_read_takes_no_pipe, an_object_that_is_cut_short_is_not_sent)
