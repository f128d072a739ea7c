/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of directories over a real store: made once, found again, given up, bounded. */
#include "cache/dataset/datasets.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/dataset/files.h"
#include "cache/dataset/internal.h"
#include "cache/warm/jobs.h"
#include "cache/volume/volumes.h"
#include "proto/wire.h"
#include "cache/store/hooked.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

static const JobOptions plain = {.list_fd = -1};

typedef struct World {
    char *tree, *cache;
    Store *store;
    Datasets *all;
} World;

/* Of every origin here: lists are counted, and can be held. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static const Origin *gate_closed_to;
static unsigned lists, at_gate;
static const OriginOps *real;

static int counted_opendir(Origin *o, OriginNode *node, OriginDir **dir)
{
    pthread_mutex_lock(&gate_lock);
    lists++;
    at_gate++;
    pthread_cond_broadcast(&gate_changed);
    while (gate_closed_to == o)
        pthread_cond_wait(&gate_changed, &gate_lock);
    at_gate--;
    pthread_mutex_unlock(&gate_lock);
    return real->opendir(o, node, dir);
}

static void close_gate(const Origin *to)
{
    pthread_mutex_lock(&gate_lock);
    gate_closed_to = to;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static void await_lister(void)
{
    pthread_mutex_lock(&gate_lock);
    while (!at_gate)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static Origin *open_origin(const World *w)
{
    static OriginOps ops;
    Origin *origin = origin_dir_open(w->tree, NULL);
    ck_assert_ptr_nonnull(origin);
    real = origin->ops;
    ops = *real;
    ops.opendir = counted_opendir;
    origin->ops = &ops;
    return origin;
}

static void open_store(World *w)
{
    const StoreConfig config = {.dir = w->cache, .max_bytes = 64 << 20};
    const StoreHooks hooks = {.any_filesystem = TRUE};
    g_autoptr(GError) error = NULL;
    w->store = store_open_hooked(&config, &hooks, &error);
    ck_assert_msg(w->store != NULL, "%s", error ? error->message : "");
    w->all = datasets_new(w->store, w->cache, TRUE);
}

static void close_store(World *w)
{
    datasets_free(w->all);
    store_close(w->store);
}

static void put_file(const World *w, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(w->tree, name, NULL);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static void world_up(World *w)
{
    *w = (World){.tree = harness_tmpdir(), .cache = harness_tmpdir()};
    lists = 0;
    put_file(w, "a", "bytes");
    put_file(w, "b", "more bytes");
    open_store(w);
}

static void world_down(World *w)
{
    close_store(w);
    harness_remove(w->tree);
    harness_remove(w->cache);
}

static Dataset *join(const World *w, Origin *origin)
{
    g_autoptr(GError) error = NULL;
    Dataset *d = datasets_join(w->all, origin, TRUE, &error);
    ck_assert_msg(d != NULL, "%s", error ? error->message : "");
    return d;
}

static void await_ready(Dataset *d)
{
    DatasetReport report;
    g_autoptr(GError) error = NULL;
    ck_assert_msg(dataset_wait(d, 60000, &report, &error), "%s", error ? error->message : "");
    ck_assert(report.ready);
    ck_assert_uint_eq(report.files, 2);
    ck_assert_uint_eq(report.bytes, 15);
}

static void leave(Dataset *d, Origin *origin)
{
    ck_assert(dataset_leave(d, origin, 60000));
    origin_close(origin);
}

START_TEST(a_manifest_is_built_once_for_all_volumes)
{
    World w;
    world_up(&w);
    Origin *origins[3];
    Dataset *joined[3];
    for (int i = 0; i < 3; i++) {
        origins[i] = open_origin(&w);
        joined[i] = join(&w, origins[i]);
        ck_assert_ptr_eq(joined[i], joined[0]);
    }
    for (int i = 0; i < 3; i++)
        await_ready(joined[i]);
    ck_assert_uint_eq(lists, 1);
    g_autofree char *path = dataset_path(joined[0]);
    ck_assert(g_str_has_suffix(path, dataset_id(joined[0])));
    ck_assert(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    for (int i = 0; i < 3; i++)
        leave(joined[i], origins[i]);
    ck_assert(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    world_down(&w);
}
END_TEST

START_TEST(a_later_hearthd_finds_it)
{
    World w;
    world_up(&w);
    for (int i = 0; i < 2; i++) {
        Origin *origin = open_origin(&w);
        Dataset *d = join(&w, origin);
        await_ready(d);
        leave(d, origin);
        ck_assert_uint_eq(lists, 1);
        close_store(&w);
        open_store(&w);
    }
    world_down(&w);
}
END_TEST

START_TEST(a_damaged_one_is_made_anew)
{
    World w;
    world_up(&w);
    for (unsigned i = 0; i < 3; i++) {
        Origin *origin = open_origin(&w);
        Dataset *d = join(&w, origin);
        await_ready(d);
        ck_assert_uint_eq(lists, i + 1);
        g_autofree char *path = dataset_path(d);
        leave(d, origin);
        close_store(&w);
        if (i == 0) { /* a byte of the image */
            hearth_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);
            ck_assert_int_eq(pwrite(fd, "x", 1, 2000), 1);
        } else if (i == 1) {
            ck_assert_int_eq(truncate(path, 5000), 0);
        }
        open_store(&w);
    }
    world_down(&w);
}
END_TEST

START_TEST(one_that_rots_between_two_uses_is_made_again)
{
    World w;
    world_up(&w);
    for (unsigned i = 0; i < 2; i++) {
        Origin *origin = open_origin(&w);
        Dataset *d = join(&w, origin);
        await_ready(d);
        ck_assert_uint_eq(lists, i + 1);
        g_autofree char *path = dataset_path(d);
        hearth_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, "x", 1, 2000), 1);
        leave(d, origin);
    }
    world_down(&w);
}
END_TEST

/* As an earlier release has left it here, which may have fetched it from where tenants write. */
START_TEST(one_of_an_earlier_format_is_built_again)
{
    World w;
    world_up(&w);
    for (unsigned i = 0; i < 2; i++) {
        Origin *origin = open_origin(&w);
        Dataset *d = join(&w, origin);
        await_ready(d);
        ck_assert_uint_eq(lists, i + 1);
        g_autofree char *path = dataset_path(d);
        leave(d, origin);
        close_store(&w);
        struct stat st;
        ManifestFooter f;
        hearth_autofd int fd = open(path, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(fstat(fd, &st), 0);
        const off_t at = st.st_size - (off_t)sizeof(f);
        ck_assert_int_eq(pread(fd, &f, sizeof(f), at), sizeof(f));
        ck_assert_uint_eq(le32toh(f.version), 2);
        f.version = htole32(1);
        f.checksum = htole64(XXH3_64bits(&f, offsetof(ManifestFooter, checksum)));
        ck_assert_int_eq(pwrite(fd, &f, sizeof(f), at), sizeof(f));
        open_store(&w);
    }
    world_down(&w);
}
END_TEST

START_TEST(who_leaves_takes_no_build_from_others)
{
    World w;
    world_up(&w);
    Origin *first = open_origin(&w), *second = open_origin(&w);
    Dataset *d = join(&w, first);
    ck_assert_ptr_eq(join(&w, second), d);
    close_gate(first);
    DatasetReport report;
    ck_assert(dataset_wait(d, 0, &report, NULL));
    ck_assert(!report.ready);
    await_lister();
    /* Its origin is in use, and hangs: */
    ck_assert(!dataset_leave(d, first, 10));
    close_gate(NULL);
    leave(d, first);
    await_ready(d);
    leave(d, second);
    world_down(&w);
}
END_TEST

static void *wait_for_it(void *data)
{
    DatasetReport report;
    GError *error = NULL;
    if (dataset_wait(data, 60000, &report, &error))
        ck_assert(report.ready);
    return error;
}

START_TEST(the_last_to_leave_ends_the_build_and_whoever_waits)
{
    World w;
    world_up(&w);
    for (int i = 0; i < 200; i++) {
        g_autofree char *name = g_strdup_printf("dir%d", i);
        g_autofree char *path = g_build_filename(w.tree, name, NULL);
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    Origin *origin = open_origin(&w);
    close_gate(origin);
    Dataset *d = join(&w, origin);
    Dataset *waiter = dataset_ref(d);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_it, waiter);
    await_lister();
    ck_assert(!dataset_leave(d, origin, 10));
    close_gate(NULL);
    g_autofree char *path = dataset_path(d);
    leave(d, origin);
    void *told;
    pthread_join(thread, &told);
    g_autoptr(GError) error = told;
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_UNAVAILABLE));
    dataset_unref(waiter);
    ck_assert(!g_file_test(path, G_FILE_TEST_EXISTS));
    world_down(&w);
}
END_TEST

START_TEST(a_failure_is_told_and_may_be_tried_again)
{
    World w;
    world_up(&w);
    Origin *origin = open_origin(&w);
    Dataset *d = join(&w, origin);
    /* No directory can be made there: */
    g_autofree char *dir = g_build_filename(w.cache, "manifests", NULL);
    ck_assert(g_file_set_contents(dir, "", 0, NULL));
    for (int i = 0; i < 2; i++) {
        DatasetReport report;
        g_autoptr(GError) error = NULL;
        ck_assert(!dataset_wait(d, 60000, &report, &error));
        ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION));
        ck_assert_msg(strstr(error->message, dir) != NULL, "%s", error->message);
    }
    ck_assert_int_eq(unlink(dir), 0);
    await_ready(d);
    leave(d, origin);
    world_down(&w);
}
END_TEST

START_TEST(what_may_change_is_no_dataset)
{
    World w;
    world_up(&w);
    Origin *origin = open_origin(&w);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(datasets_join(w.all, origin, FALSE, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION));
    origin_close(origin);
    world_down(&w);
}
END_TEST

START_TEST(what_the_store_holds_is_counted_whoever_fetched_it)
{
    World w;
    world_up(&w);
    Origin *origin = open_origin(&w);
    OriginNode *node;
    OriginAttr attr;
    ObjectKey key;
    ck_assert_int_eq(origin_find(origin, "b", &node, &attr), 0);
    object_key_init(&key, origin, &attr);
    StoreFill *fill = store_fill(w.store, origin, node, &key, "another");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    origin->ops->put(origin, node);
    Dataset *d = join(&w, origin);
    await_ready(d);
    DatasetReport report;
    do {
        dataset_report(d, &report);
        sched_yield();
    } while (report.cached_files == 0); /* counted by a thread of its own */
    ck_assert_uint_eq(report.cached_files, 1);
    ck_assert_uint_eq(report.cached_bytes, 10);
    store_cancel_fills(w.store, origin);
    leave(d, origin);
    world_down(&w);
}
END_TEST

START_TEST(a_pinned_dataset_takes_over_what_others_fetched)
{
    World w;
    world_up(&w);
    Origin *origin = open_origin(&w);
    Dataset *d = join(&w, origin);
    await_ready(d);
    ObjectKey key;
    for (uint64_t i = 0; i < 2; i++) {
        ck_assert(manifest_key(dataset_manifest(d), i, &key));
        StoreFill *fill =
            store_fill_path(w.store, origin, key.size == 5 ? "a" : "b", &key, "other");
        ck_assert_int_eq(store_fill_wait(fill), 0);
        store_fill_unref(fill);
    }
    ck_assert_int_eq(store_flush(w.store), 0);
    ck_assert_int_eq(store_pin(w.store, dataset_id(d), TRUE), 0);
    uint64_t bytes, objects;
    do {
        g_usleep(10000);
        store_tag_usage(w.store, dataset_id(d), &bytes, &objects);
    } while (objects < 2); /* with the next count */
    ck_assert_uint_eq(store_evict(w.store, NULL, UINT64_MAX), 0);
    leave(d, origin);
    world_down(&w);
}
END_TEST

static unsigned others_left(const char *dir)
{
    unsigned left = 0;
    for (int i = 0; i < 70; i++) {
        g_autofree char *other = g_strdup_printf("%s/%032x", dir, i);
        left += access(other, F_OK) == 0;
    }
    return left;
}

START_TEST(the_manifest_of_a_pinned_dataset_stays)
{
    World w;
    world_up(&w);
    Origin *origin = open_origin(&w);
    Dataset *d = join(&w, origin);
    await_ready(d);
    g_autofree char *path = dataset_path(d);
    ck_assert_int_eq(store_pin(w.store, dataset_id(d), TRUE), 0);
    leave(d, origin);
    g_autofree char *dir = g_path_get_dirname(path);
    const struct timespec long_ago[2] = {{0, 0}, {1, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    for (int i = 0; i < 70; i++) {
        g_autofree char *other = g_strdup_printf("%s/%032x", dir, i);
        ck_assert(g_file_set_contents(other, "x", 1, NULL));
    }
    close_store(&w);
    open_store(&w);
    ck_assert_uint_eq(others_left(dir), 70); /* they may be of mounts that are not taken over yet */
    w.all->started_us -= 3600 * G_TIME_SPAN_SECOND;
    datasets_prune(w.all);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_uint_lt(others_left(dir), 70);
    world_down(&w);
}
END_TEST

START_TEST(the_least_recently_used_are_removed)
{
    World w;
    world_up(&w);
    g_autofree char *dir = manifests_dir(w.cache, NULL);
    g_autoptr(GHashTable) keep = g_hash_table_new(g_str_hash, g_str_equal);
    char names[4][33];
    for (int i = 0; i < 4; i++) {
        g_snprintf(names[i], sizeof(names[i]), "%032x", i);
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        ck_assert(g_file_set_contents(path, "12345678", 8, NULL));
        const struct timespec times[2] = {{0, 0}, {1000 - i, 0}};
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    g_autofree char *foreign = g_build_filename(dir, "README", NULL);
    ck_assert(g_file_set_contents(foreign, "x", 1, NULL));
    g_hash_table_add(keep, names[3]); /* the oldest */
    ck_assert_uint_eq(manifests_prune(dir, keep, 4, 0), 32);
    ck_assert_uint_eq(manifests_prune(dir, keep, 3, 0), 24);
    ck_assert_uint_eq(manifests_prune(dir, keep, 4, 16), 16);
    const gboolean left[] = {TRUE, FALSE, FALSE, TRUE};
    for (int i = 0; i < 4; i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        ck_assert_int_eq(g_file_test(path, G_FILE_TEST_EXISTS), left[i]);
    }
    ck_assert(g_file_test(foreign, G_FILE_TEST_EXISTS));
    world_down(&w);
}
END_TEST

/* ---- as volumes */

static void open_volume(Volumes *volumes, const World *w, gboolean read_only, gboolean cache)
{
    gboolean attached;
    g_autoptr(GError) error = NULL;
    json_t *request = json_pack("{s:s, s:{s:s, s:s}, s:b, s:b}", "volume", "v", "origin", "type",
                                "dir", "rootPath", w->tree, "readOnly", read_only, "cache", cache);
    VolumeSpec *spec = spec_parse(request, &error);
    ck_assert_msg(volumes_open(volumes, spec, 1, &attached, &error), "%s",
                  error ? error->message : "");
    json_decref(request);
}

static gboolean attach_layer(Volumes *volumes, Kernel *kernel, GError **error)
{
    const VolumeMount mount = {.fuse_fd = kernel_start(kernel), .fill_layer = TRUE};
    return volumes_attach(volumes, "v", &mount, error);
}

START_TEST(a_volume_is_served_by_its_fill_layer)
{
    World w;
    world_up(&w);
    Volumes *volumes = volumes_new(&(VolumesCaches){.store = w.store, .datasets = w.all}, NULL);
    open_volume(volumes, &w, TRUE, TRUE);
    Kernel early, kernel;
    g_autoptr(GError) error = NULL;
    ck_assert(!attach_layer(volumes, &early, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION));
    close(early.fd);
    Dataset *d;
    DatasetReport report;
    ck_assert(volumes_manifest(volumes, "v", 60000, &d, &report, NULL));
    ck_assert(report.ready);
    dataset_unref(d);
    ck_assert(attach_layer(volumes, &kernel, NULL));
    kernel_init(&kernel);
    ck_assert_uint_ne(kernel_lookup(&kernel, 1, "00")->entry.nodeid, 0);
    ck_assert_uint_eq(kernel_lookup(&kernel, 1, "a")->entry.nodeid, 0);
    g_autofree char *tag = volumes_tag(volumes, "v");
    g_autoptr(VolumeReport) told = volumes_report(volumes, "v");
    ck_assert_str_eq(tag, told->dataset);
    ck_assert(told->attached);
    TagId id;
    tag_id(tag, &id);
    ck_assert_int_eq(tags_rank(&w.store->tags, &id), TAG_RANK_USED);
    ck_assert_int_eq(told->files_total, 2);
    ck_assert_int_eq(told->bytes_total, 15);
    int fd = -1;
    json_decref(volumes_fetch(volumes, "v", &fd, NULL));
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert(volumes_detach(volumes, "v", NULL));
    ck_assert_int_eq(tags_rank(&w.store->tags, &id), TAG_RANK_NONE);
    close(kernel.fd);
    volumes_free(volumes);
    world_down(&w);
}
END_TEST

static void warm(Jobs *jobs, const char *path, json_int_t files, json_int_t bytes)
{
    uint64_t id;
    g_autoptr(GError) error = NULL;
    ck_assert_msg(jobs_warm(jobs, "v", path, &plain, &id, &error), "%s",
                  error ? error->message : "");
    jobs_wait(jobs, id);
    json_t *job = jobs_report(jobs, id, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(job, "error")), "");
    ck_assert_str_eq(json_string_value(json_object_get(job, "state")), "done");
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesDone")), files);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "bytesDone")), bytes);
    json_decref(job);
}

START_TEST(a_dataset_is_warmed_by_its_manifest)
{
    World w;
    world_up(&w);
    g_autofree char *sub = g_build_filename(w.tree, "sub", NULL);
    g_autofree char *within = g_build_filename(sub, "b", NULL);
    ck_assert_int_eq(mkdir(sub, 0755), 0);
    ck_assert_int_eq(mkdir(within, 0755), 0);
    put_file(&w, "sub/one", "1");
    put_file(&w, "sub/b/two", "22");
    put_file(&w, "sub/b/empty", "");
    Volumes *volumes = volumes_new(&(VolumesCaches){.store = w.store, .datasets = w.all}, NULL);
    Jobs *jobs = jobs_new(volumes, w.store);
    Kernel kernel;
    Dataset *d;
    DatasetReport report;
    open_volume(volumes, &w, TRUE, TRUE);
    ck_assert(volumes_manifest(volumes, "v", 60000, &d, &report, NULL));
    dataset_unref(d);
    ck_assert(attach_layer(volumes, &kernel, NULL));
    kernel_init(&kernel);
    /* Had it walked the origin, it would have met this one. */
    put_file(&w, "sub/later", "not of the dataset");
    warm(jobs, "sub/b/two", 1, 2);
    warm(jobs, "sub/b", 1, 2);
    warm(jobs, "sub/b/empty", 0, 0);
    static const char names[] = "b/two\nb/empty\nmissing\nlater\n";
    uint64_t id;
    const JobOptions options = {.list_fd = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ck_assert_int_eq(write(options.list_fd, names, strlen(names)), (ssize_t)strlen(names));
    ck_assert_int_eq(fcntl(options.list_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
    ck_assert(jobs_warm(jobs, "v", "sub", &options, &id, NULL));
    close(options.list_fd);
    jobs_wait(jobs, id);
    json_t *job = jobs_report(jobs, id, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesDone")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesFailed")), 1);
    json_decref(job);
    store_evict(w.store, NULL, UINT64_MAX);
    warm(jobs, "sub", 2, 3);
    warm(jobs, "", 4, 18);
    StoreStats stats;
    store_stats(w.store, &stats);
    ck_assert_uint_eq(stats.objects, 4);
    /* The one that the list names beside the manifest, and what was evicted. */
    ck_assert_uint_eq(stats.origin_bytes, 18 + 18 + 2);
    jobs_free(jobs);
    ck_assert(volumes_detach(volumes, "v", NULL));
    close(kernel.fd);
    volumes_free(volumes);
    world_down(&w);
}
END_TEST

START_TEST(a_volume_without_a_manifest_says_why)
{
    static const struct {
        gboolean read_only, cache;
        const char *why;
    } cases[] = {{FALSE, TRUE, "no snapshot"}, {TRUE, FALSE, "cache is off"}};
    World w;
    world_up(&w);
    Volumes *volumes = volumes_new(&(VolumesCaches){.store = w.store, .datasets = w.all}, NULL);
    Dataset *d;
    DatasetReport report;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        open_volume(volumes, &w, cases[i].read_only, cases[i].cache);
        ck_assert(!volumes_manifest(volumes, "v", 60000, &d, &report, &error));
        ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION));
        ck_assert_msg(strstr(error->message, cases[i].why) != NULL, "%s", error->message);
        ck_assert(volumes_detach(volumes, "v", NULL));
    }
    g_autoptr(GError) error = NULL;
    ck_assert(!volumes_manifest(volumes, "v", 0, &d, &report, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_NOT_FOUND));
    volumes_free(volumes);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/dataset/datasets", a_manifest_is_built_once_for_all_volumes,
             a_later_hearthd_finds_it, a_damaged_one_is_made_anew,
             one_that_rots_between_two_uses_is_made_again, one_of_an_earlier_format_is_built_again,
             who_leaves_takes_no_build_from_others,
             the_last_to_leave_ends_the_build_and_whoever_waits,
             a_failure_is_told_and_may_be_tried_again, what_may_change_is_no_dataset,
             what_the_store_holds_is_counted_whoever_fetched_it,
             a_pinned_dataset_takes_over_what_others_fetched,
             the_manifest_of_a_pinned_dataset_stays, the_least_recently_used_are_removed,
             a_volume_is_served_by_its_fill_layer, a_dataset_is_warmed_by_its_manifest,
             a_volume_without_a_manifest_says_why)
