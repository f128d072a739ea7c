/* SPDX-License-Identifier: Apache-2.0 */
/* The store as its users see it: look-ups, damage, a disk that fails or vanishes, many threads. */
#include <gio/gio.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "tests/unit/cache/store/fixture.h"

static Fixture f;
#define SIZE 5000

static StoreDisk disk(void)
{
    StoreStats stats;
    store_stats(f.store, &stats);
    return stats.disk;
}

START_TEST(what_is_not_held_is_enoent)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_id(&f, 1, SIZE);
    ck_assert_int_eq(store_open_object(f.store, &id, SIZE), -ENOENT);
    ck_assert(!store_has(f.store, &id));
    fixture_put(&f, 1, SIZE, "t");
    ck_assert(store_has(f.store, &id)); /* though not yet recorded */
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert(store_has(f.store, &id));
    fixture_done(&f);
}
END_TEST

static void damaged(void (*damage)(const char *path), gboolean recorded)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, SIZE, "t");
    if (recorded)
        ck_assert_int_eq(store_flush(f.store), 0);
    g_autofree char *path = fixture_object_path(&f, &id);
    damage(path);
    ck_assert_int_eq(store_open_object(f.store, &id, SIZE), -ENOENT);
    ck_assert(!store_has(f.store, &id));
    /* It is fetched again at once, and counted once. */
    fixture_put(&f, 1, SIZE, "t");
    ck_assert(fixture_serves(&f, 1, SIZE));
    ck_assert(store_has(f.store, &id));
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert(store_has(f.store, &id));
    ck_assert_int_eq(store_verify(f.store, &id, NULL), 0);
    ck_assert_uint_eq(fixture_objects(&f), 1);
    fixture_done(&f);
}

static void truncate_it(const char *path)
{
    ck_assert_int_eq(truncate(path, SIZE - 1), 0);
}

/* As a file system may leave it after a crash: times and all, but not the bytes. */
static void truncate_and_seal_it(const char *path)
{
    struct stat before;
    ck_assert_int_eq(stat(path, &before), 0);
    truncate_it(path);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void extend_it(const char *path)
{
    ck_assert_int_eq(truncate(path, SIZE + 1), 0);
}

static void overwrite_it(const char *path)
{
    hearth_autofd int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "damage", 6, 100), 6);
}

static void replace_it(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
}

START_TEST(a_damaged_object_is_not_served_and_is_fetched_again)
{
    damaged(truncate_it, TRUE);
    damaged(truncate_it, FALSE);
    damaged(truncate_and_seal_it, TRUE);
    damaged(extend_it, TRUE);
    damaged(overwrite_it, TRUE);
    damaged(overwrite_it, FALSE);
}
END_TEST

START_TEST(a_symlink_in_place_of_an_object_is_not_followed)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, SIZE, "t");
    g_autofree char *path = fixture_object_path(&f, &id);
    replace_it(path);
    ck_assert_int_lt(store_open_object(f.store, &id, SIZE), 0);
    fixture_put(&f, 1, SIZE, "t");
    ck_assert(fixture_serves(&f, 1, SIZE));
    fixture_done(&f);
}
END_TEST

START_TEST(verify_finds_what_changed_below_the_file_system)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, 3 * 65536 + 5, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_int_eq(store_verify(f.store, &id, NULL), 0);
    g_autofree char *path = fixture_object_path(&f, &id);
    overwrite_it(path);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = object_id_seal(&id)}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(store_verify(f.store, &id, NULL), -EBADMSG);
    fixture_done(&f);
}
END_TEST

START_TEST(a_reported_object_is_dropped)
{
    fixture_init(&f);
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    store_report_bad(f.store, &id, EIO);
    ck_assert(!fixture_serves(&f, 1, SIZE));
    ck_assert(!store_has(f.store, &id));
    ck_assert_int_eq(disk(), STORE_DISK_SUSPECT);
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_uint_eq(fixture_objects(&f), 0);
    fixture_done(&f);
}
END_TEST

/* The time of the next trial write has come. */
static void try_again(void)
{
    pthread_mutex_lock(&f.store->disk.lock);
    f.store->disk.probe_at_ms = 0;
    pthread_mutex_unlock(&f.store->disk.lock);
    wake_round(&f.store->flusher);
}

static ssize_t failing_pwrite(void *data, int fd, const void *buf, size_t len, off_t off)
{
    Fixture *fixture = data;
    if (atomic_load(&fixture->write_error)) {
        errno = atomic_load(&fixture->write_error);
        return -1;
    }
    return pwrite(fd, buf, len, off);
}

START_TEST(a_sick_disk_is_bypassed_and_tried_again)
{
    fixture_init(&f);
    f.hooks.pwrite = failing_pwrite;
    fixture_open(&f);
    fixture_put(&f, 1, SIZE, "t");
    OriginNode node = fake_file(2, SIZE);
    atomic_store(&f.write_error, EIO);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(fixture_fill(&f, &node, "t"), -EIO);
    ck_assert_int_eq(disk(), STORE_DISK_BYPASS);
    ck_assert(!fixture_serves(&f, 1, SIZE));
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), -ENOSPC);
    try_again();
    ck_assert_int_eq(disk(), STORE_DISK_BYPASS);
    atomic_store(&f.write_error, 0);
    try_again();
    ck_assert_int_eq(disk(), STORE_DISK_OK);
    ck_assert(fixture_serves(&f, 1, SIZE));
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    fixture_done(&f);
}
END_TEST

static void vanish(const char *sub)
{
    fixture_init(&f);
    char *parent = f.dir;
    f.dir = g_build_filename(parent, "cache", NULL);
    f.config.dir = f.dir;
    fixture_open(&f);
    ObjectId id = fixture_put(&f, 1, SIZE, "t");
    ck_assert_int_eq(store_flush(f.store), 0);
    fixture_put(&f, 2, SIZE, "t");
    hearth_autofd int fd = store_open_object(f.store, &id, SIZE);
    char *victim = sub ? g_build_filename(f.dir, sub, NULL) : g_strdup(f.dir);
    harness_remove(victim);

    /* Nothing is served, nothing crashes, nothing hangs; an open descriptor stays good. */
    OriginNode node = fake_file(3, SIZE);
    if (g_strcmp0(sub, "partial") != 0)
        ck_assert_int_eq(store_open_object(f.store, &id, SIZE), -ENOENT);
    int rc = fixture_fill(&f, &node, "t");
    ck_assert(rc <= 0);
    store_flush(f.store);
    store_evict(f.store, NULL, SIZE);
    char byte;
    ck_assert_int_eq(pread(fd, &byte, 1, 0), 1);
    store_report_bad(f.store, &id, ENOENT);
    store_report_bad(f.store, &id, EIO);
    store_report_bad(f.store, &id, EIO);
    ck_assert_int_eq(disk(), STORE_DISK_BYPASS);

    /* It is made again without a restart. */
    try_again();
    ck_assert_int_eq(disk(), STORE_DISK_OK);
    fixture_put(&f, 1, SIZE, "t");
    fixture_put(&f, 4, SIZE, "t");
    ck_assert(fixture_serves(&f, 1, SIZE));
    ck_assert_int_eq(store_flush(f.store), 0);
    ck_assert_uint_ge(fixture_objects(&f), 2);
    fixture_close(&f);
    fixture_open(&f);
    ck_assert(fixture_serves(&f, 1, SIZE));
    ck_assert(fixture_serves(&f, 4, SIZE));
    fixture_done(&f);
    harness_remove(parent);
}

START_TEST(a_vanished_directory_fails_nothing_and_comes_back)
{
    vanish(NULL);
    vanish("objects");
    vanish("partial");
}
END_TEST

START_TEST(a_limit_on_file_size_is_an_error_of_the_fill_alone)
{
    fixture_init(&f);
    fixture_open(&f);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){20000, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    OriginNode node = fake_file(1, 50000);
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_eq(fixture_fill(&f, &node, "t"), 0);
    ck_assert(fixture_serves(&f, 1, 50000));
    fixture_done(&f);
}
END_TEST

static void assert_open_fails(int code, const char *word)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(store_open_hooked(&f.config, &f.hooks, &error));
    ck_assert_msg(g_error_matches(error, G_IO_ERROR, code), "%d %s", error->code, error->message);
    ck_assert_msg(strstr(error->message, word) != NULL, "%s", error->message);
}

START_TEST(a_second_store_on_the_directory_is_refused)
{
    fixture_init(&f);
    fixture_open(&f);
    assert_open_fails(G_IO_ERROR_BUSY, "another hearthd");
    fixture_put(&f, 1, SIZE, "t");
    ck_assert(fixture_serves(&f, 1, SIZE));
    fixture_done(&f);
}
END_TEST

START_TEST(nonsense_in_the_configuration_is_refused)
{
    fixture_init(&f);
    f.config.low_percent = 95;
    f.config.high_percent = 90;
    assert_open_fails(G_IO_ERROR_INVALID_ARGUMENT, "watermarks");
    f.config.low_percent = 50;
    f.config.high_percent = 101;
    assert_open_fails(G_IO_ERROR_INVALID_ARGUMENT, "watermarks");
    f.config.high_percent = 90;
    f.config.chunk_bytes = 5000;
    assert_open_fails(G_IO_ERROR_INVALID_ARGUMENT, "chunks");
    f.config.chunk_bytes = 0;
    f.config.dir = "";
    assert_open_fails(G_IO_ERROR_INVALID_ARGUMENT, "directory");
    harness_remove(f.dir);
}
END_TEST

START_TEST(works_without_unnamed_temporary_files)
{
    fixture_init(&f);
    f.hooks.named_partials = TRUE;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 10; i++)
        fixture_put(&f, i, 200000, "t");
    for (uint64_t i = 1; i <= 10; i++)
        ck_assert(fixture_serves(&f, i, 200000));
    ck_assert_uint_eq(fixture_count(&f, "partial"), 0);
    fixture_done(&f);
}
END_TEST

/* --- many threads --- */

#define FILES 200
#define THREADS 6

static OriginNode files[FILES];
static atomic_uint served, filled, refused;

static void *stress(void *data)
{
    uint32_t seed = (uint32_t)(uintptr_t)data * 2654435761u;
    uint8_t *buf = g_malloc(300000);
    for (int i = 0; i < 300; i++) {
        seed = seed * 1664525 + 1013904223;
        OriginNode *node = &files[(seed >> 8) % FILES];
        uint64_t ino = node->attr.st.st_ino, size = (uint64_t)node->attr.st.st_size;
        ObjectKey key;
        ObjectId id;
        fake_key(&f.origin, node, &key, &id);
        hearth_autofd int fd = store_open_object(f.store, &id, size);
        if (fd >= 0) {
            ck_assert_int_eq(pread(fd, buf, size, 0), (ssize_t)size);
            ck_assert(fake_is_right(ino, buf, size, 0));
            atomic_fetch_add(&served, 1);
        } else {
            StoreFill *fill = store_fill(f.store, &f.origin.base, node, &key, i % 2 ? "a" : "b");
            if (fill) {
                uint64_t off = size ? seed % size : 0;
                ssize_t n = store_fill_read(fill, buf, size - off, off);
                ck_assert(n == (ssize_t)(size - off) || n == -ECANCELED || n == -ENOSPC);
                if (n > 0)
                    ck_assert(fake_is_right(ino, buf, (size_t)n, off));
                store_fill_unref(fill);
                atomic_fetch_add(&filled, 1);
            } else {
                atomic_fetch_add(&refused, 1);
            }
        }
        uint64_t bytes, objects;
        StoreStats stats;
        switch (seed % 64) {
        case 0:
            store_evict(f.store, "a", 100000);
            break;
        case 1:
            store_report_bad(f.store, &id, EAGAIN);
            break;
        case 2:
            store_cancel_fills(f.store, &f.origin.base);
            break;
        case 3:
            store_tag_usage(f.store, "b", &bytes, &objects);
            break;
        case 4:
            store_stats(f.store, &stats);
            break;
        case 5:
            store_has(f.store, &id);
            break;
        case 6:
            wake_kick(&f.store->flusher);
            break;
        }
    }
    g_free(buf);
    return NULL;
}

START_TEST(many_threads_fill_read_and_evict)
{
    fixture_init(&f);
    f.config.max_bytes = 4000000;
    f.config.fill_threads = 3;
    f.hooks.flush_ms = 5;
    f.hooks.check_ms = 3;
    f.hooks.grace_ms = 1;
    fixture_open(&f);
    for (unsigned i = 0; i < FILES; i++)
        files[i] = fake_file(i + 1, i % 10 == 0 ? 250000 : i * 100);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, stress, (void *)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_gt(atomic_load(&served), 0);
    ck_assert_uint_gt(atomic_load(&filled), 0);
    store_cancel_fills(f.store, NULL);
    wake_round(&f.store->evictor); /* it may be in the middle of a batch */
    ck_assert_int_eq(store_flush(f.store), 0);

    /* What is counted is what is there. */
    uint64_t bytes = 0, objects = 0, bytes_a, objects_a, bytes_b, objects_b;
    for (unsigned i = 0; i < FILES; i++)
        if (fixture_serves(&f, i + 1, (uint64_t)files[i].attr.st.st_size)) {
            objects++;
            bytes += record_charge((uint64_t)files[i].attr.st.st_size);
        }
    StoreStats stats;
    store_stats(f.store, &stats);
    store_tag_usage(f.store, "a", &bytes_a, &objects_a);
    store_tag_usage(f.store, "b", &bytes_b, &objects_b);
    ck_assert_uint_eq(stats.objects, objects);
    ck_assert_uint_eq(stats.bytes, bytes);
    ck_assert_uint_le(stats.bytes, 4000000);
    ck_assert_uint_eq(objects_a + objects_b, objects);
    ck_assert_uint_eq(bytes_a + bytes_b, bytes);
    ck_assert_uint_eq(f.store->ledger.reserved.bytes, 0);
    ck_assert_uint_eq(f.store->ledger.reserved.objects, 0);
    fixture_close(&f);
    for (unsigned i = 0; i < FILES; i++)
        fake_assert_unused(&f.origin, &files[i]);
    fixture_done(&f);
}
END_TEST

HARNESS_MAIN("cache/store/store", what_is_not_held_is_enoent,
             a_damaged_object_is_not_served_and_is_fetched_again,
             a_symlink_in_place_of_an_object_is_not_followed,
             verify_finds_what_changed_below_the_file_system, a_reported_object_is_dropped,
             a_sick_disk_is_bypassed_and_tried_again,
             a_vanished_directory_fails_nothing_and_comes_back,
             a_limit_on_file_size_is_an_error_of_the_fill_alone,
             a_second_store_on_the_directory_is_refused, nonsense_in_the_configuration_is_refused,
             works_without_unnamed_temporary_files, many_threads_fill_read_and_evict)
