/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, whose background work happens only when a test asks for it. */
#ifndef HEARTH_TESTS_STORE_FIXTURE_H
#define HEARTH_TESTS_STORE_FIXTURE_H

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/hooked.h"
#include "cache/store/objects/internal.h"
#include "cache/store/objects/verify.h"
#include "tests/unit/cache/store/fake_origin.h"
#include "tests/unit/harness.h"

#define NEVER_MS (3600 * 1000)

typedef struct Fixture {
    char *dir;
    StoreConfig config;
    StoreHooks hooks;
    FakeOrigin origin;
    Store *store;
    uint64_t clock_ms; /* what the store takes for the time; advances with each look */
    pthread_mutex_t clock_lock;
    struct statvfs fs;        /* clock_lock: what the store takes for the file system */
    _Atomic(Store *) tracked; /* its objects take room in `fs` */
    atomic_int write_error, sync_error;
} Fixture;

static uint64_t fixture_now(void *data)
{
    Fixture *f = data;
    pthread_mutex_lock(&f->clock_lock);
    uint64_t now = ++f->clock_ms;
    pthread_mutex_unlock(&f->clock_lock);
    return now;
}

static int fixture_statvfs(void *data, int fd, struct statvfs *st)
{
    (void)fd;
    Fixture *f = data;
    pthread_mutex_lock(&f->clock_lock);
    *st = f->fs;
    pthread_mutex_unlock(&f->clock_lock);
    Store *tracked = atomic_load(&f->tracked);
    if (tracked) {
        IndexTotals held = ledger_held(&tracked->ledger);
        st->f_bavail = st->f_bfree -= MIN(st->f_bfree, held.bytes / st->f_frsize);
        st->f_favail = st->f_ffree -= MIN(st->f_ffree, held.objects);
    }
    return 0;
}

static inline void fixture_init(Fixture *f)
{
    memset(f, 0, sizeof(*f));
    fake_init(&f->origin);
    pthread_mutex_init(&f->clock_lock, NULL);
    f->dir = harness_tmpdir();
    f->clock_ms = 1000000;
    /* 1 GiB and 100,000 inodes, a tenth of both in use. */
    f->fs = (struct statvfs){.f_frsize = 4096,
                             .f_bsize = 4096,
                             .f_blocks = 262144,
                             .f_bfree = 235930,
                             .f_bavail = 235930,
                             .f_files = 100000,
                             .f_ffree = 90000,
                             .f_favail = 90000};
    f->config = (StoreConfig){.dir = f->dir, .chunk_bytes = 65536, .fill_threads = 3};
    f->hooks = (StoreHooks){.boot_id = "first",
                            .any_filesystem = TRUE,
                            .flush_ms = NEVER_MS,
                            .check_ms = NEVER_MS,
                            .retry_ms = NEVER_MS,
                            .slack_ms = UINT64_MAX,
                            .stuck_ms = NEVER_MS,
                            .now_ms = fixture_now,
                            .statvfs = fixture_statvfs,
                            .data = f};
}

static inline void fixture_open(Fixture *f)
{
    g_autoptr(GError) error = NULL;
    f->store = store_open_hooked(&f->config, &f->hooks, &error);
    ck_assert_msg(f->store != NULL, "%s", error ? error->message : "no error set");
    /* The flusher's first round, with the scan if one is due. */
    wake_round(&f->store->flusher);
}

static inline void fixture_close(Fixture *f)
{
    store_close(f->store);
    f->store = NULL;
}

static inline void fixture_done(Fixture *f)
{
    if (f->store)
        fixture_close(f);
    harness_remove(f->dir);
}

static inline int fixture_fill(Fixture *f, OriginNode *node, const char *tag)
{
    ObjectKey key;
    fake_key(&f->origin, node, &key, NULL);
    StoreFill *fill = store_fill(f->store, &f->origin.base, node, &key, tag);
    if (!fill)
        return -ENOSPC;
    int rc = store_fill_wait(fill);
    store_fill_unref(fill);
    return rc;
}

/* Fills a file of this number and size; it must succeed. */
static inline ObjectId fixture_put(Fixture *f, uint64_t ino, uint64_t size, const char *tag)
{
    OriginNode made = fake_file(ino, size);
    OriginNode *node = g_memdup2(&made, sizeof(made));
    ObjectKey key;
    ObjectId id;
    fake_key(&f->origin, node, &key, &id);
    ck_assert_int_eq(fixture_fill(f, node, tag), 0);
    fake_put(&f->origin.base, node);
    return id;
}

static inline ObjectId fixture_id(Fixture *f, uint64_t ino, uint64_t size)
{
    OriginNode node = fake_file(ino, size);
    ObjectKey key;
    ObjectId id;
    fake_key(&f->origin, &node, &key, &id);
    return id;
}

/* Whether the object is served, with the right bytes. */
static inline gboolean fixture_serves(Fixture *f, uint64_t ino, uint64_t size)
{
    ObjectId id = fixture_id(f, ino, size);
    hearth_autofd int fd = store_open_object(f->store, &id, size);
    if (fd < 0) {
        ck_assert_int_eq(fd, -ENOENT);
        return FALSE;
    }
    g_autofree uint8_t *buf = g_malloc(size + 1);
    ck_assert_int_eq(pread(fd, buf, size + 1, 0), (ssize_t)size);
    ck_assert(fake_is_right(ino, buf, size, 0));
    return TRUE;
}

static inline char *fixture_object_path(Fixture *f, const ObjectId *id)
{
    char name[LAYOUT_NAME_BYTES];
    layout_name(id, name);
    return g_build_filename(f->dir, "objects", name, NULL);
}

static inline unsigned fixture_count(Fixture *f, const char *sub)
{
    g_autofree char *path = g_build_filename(f->dir, sub, NULL);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    unsigned n = 0;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static inline uint64_t fixture_objects(Fixture *f)
{
    StoreStats stats;
    store_stats(f->store, &stats);
    return stats.objects;
}

/* Runs `work` on the store in a process that dies without closing it. */
static inline void fixture_crash(Fixture *f, void (*work)(Fixture *f))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        fixture_open(f);
        work(f);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

#endif
