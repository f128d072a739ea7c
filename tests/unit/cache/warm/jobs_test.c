/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "tests/unit/cache/control/fakes.h"
#include "cache/warm/jobs.h"
#include "cache/warm/warm.h"
#include "proto/wire.h"
#include <fcntl.h>
#include <sys/mman.h>

static const JobOptions plain = {.list_fd = -1};

typedef struct Fixture {
    char *dir;
    Store *store;
    Volumes *volumes;
    Jobs *jobs;
} Fixture;

static void write_file(const Fixture *f, const char *name, size_t size)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    ck_assert_int_eq(g_mkdir_with_parents(parent, 0755), 0);
    g_autofree char *text = g_malloc0(size + 1);
    ck_assert(g_file_set_contents(path, text, (gssize)size, NULL));
}

static void open_volume(Fixture *f, const char *id, gboolean cache, json_int_t quota)
{
    gboolean attached;
    g_autoptr(GError) error = NULL;
    json_t *request = json_pack("{s:s, s:{s:s, s:s}, s:b, s:I}", "volume", id, "origin", "type",
                                "dir", "rootPath", f->dir, "cache", cache, "cacheQuota", quota);
    VolumeSpec *spec = spec_parse(request, &error);
    ck_assert_msg(spec != NULL, "%s", error ? error->message : "");
    ck_assert_msg(volumes_open(f->volumes, spec, 1, &attached, &error), "%s",
                  error ? error->message : "");
    json_decref(request);
}

static Fixture setup(void)
{
    Fixture f = {.dir = harness_tmpdir(), .store = fake_store_new()};
    f.volumes = volumes_new(&(VolumesCaches){.store = f.store, .datasets = NULL}, NULL);
    f.jobs = jobs_new(f.volumes, f.store);
    return f;
}

static void teardown(Fixture *f)
{
    jobs_free(f->jobs);
    volumes_free(f->volumes);
    fake_store_free(f->store);
    harness_remove(f->dir);
}

static uint64_t start(Fixture *f, const char *path)
{
    uint64_t id;
    g_autoptr(GError) error = NULL;
    ck_assert_msg(jobs_warm(f->jobs, "v", path, &plain, &id, &error), "%s",
                  error ? error->message : "");
    return id;
}

static void assert_refused(Fixture *f, const char *volume, const char *path, WireError code,
                           const char *part)
{
    uint64_t id;
    g_autoptr(GError) error = NULL;
    ck_assert(!jobs_warm(f->jobs, volume, path, &plain, &id, &error));
    ck_assert_msg(g_error_matches(error, WIRE_ERROR, (int)code), "%s", error->message);
    ck_assert_msg(strstr(error->message, part) != NULL, "%s", error->message);
}

static json_t *finish(Fixture *f, uint64_t id)
{
    jobs_wait(f->jobs, id);
    return jobs_report(f->jobs, id, NULL);
}

static void assert_job(json_t *job, const char *state, json_int_t files, json_int_t bytes,
                       json_int_t failed)
{
    ck_assert_str_eq(json_string_value(json_object_get(job, "state")), state);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesDone")), files);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "bytesDone")), bytes);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesFailed")), failed);
}

static const char *job_error(json_t *job)
{
    return json_string_value(json_object_get(job, "error"));
}

START_TEST(warms_every_file_once)
{
    Fixture f = setup();
    for (int i = 0; i < 30; i++) {
        g_autofree char *name = g_strdup_printf("d%d/e/f%d", i % 3, i);
        write_file(&f, name, 100);
    }
    write_file(&f, "empty", 0);
    g_autofree char *link = g_build_filename(f.dir, "link", NULL);
    ck_assert_int_eq(symlink("d0", link), 0);
    open_volume(&f, "v", TRUE, 0);
    json_t *job = finish(&f, start(&f, ""));
    assert_job(job, "done", 31, 3000, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesTotal")), 31);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "bytesTotal")), 3000);
    ck_assert(json_is_false(json_object_get(job, "scanning")));
    ck_assert_str_eq(job_error(job), "");
    json_decref(job);
    ck_assert_uint_eq(f.store->started, 30);
    ck_assert_uint_gt(f.store->most_live, 1);
    ck_assert_uint_le(f.store->most_live, 8);
    ck_assert_uint_eq(f.store->live, 0);
    /* Again: all is held. */
    job = finish(&f, start(&f, "/"));
    assert_job(job, "done", 31, 3000, 0);
    json_decref(job);
    ck_assert_uint_eq(f.store->started, 30);
    /* What was counted is the size of a volume whose origin cannot tell. */
    g_autoptr(VolumeReport) report = volumes_report(f.volumes, "v");
    ck_assert_int_eq(report->bytes_total, 3000);
    ck_assert_uint_eq(report->bytes_cached, 3000);
    teardown(&f);
}
END_TEST

START_TEST(a_check_counts_what_is_held_and_fetches_nothing)
{
    Fixture f = setup();
    write_file(&f, "here/a", 100);
    write_file(&f, "there/b", 30);
    write_file(&f, "there/empty", 0);
    open_volume(&f, "v", TRUE, 0);
    json_decref(finish(&f, start(&f, "here")));
    const unsigned started = f.store->started;
    const JobOptions check = {.list_fd = -1, .check = TRUE};
    uint64_t id;
    ck_assert(jobs_warm(f.jobs, "v", "", &check, &id, NULL));
    json_auto_t *job = finish(&f, id);
    assert_job(job, "done", 2, 100, 0);
    ck_assert(json_is_true(json_object_get(job, "check")));
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesTotal")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "bytesTotal")), 130);
    ck_assert_uint_eq(f.store->started, started);
    teardown(&f);
}
END_TEST

START_TEST(jobs_are_listed_page_by_page)
{
    Fixture f = setup();
    write_file(&f, "a", 10);
    open_volume(&f, "v", TRUE, 0);
    gboolean more = TRUE;
    json_auto_t *none = jobs_list(f.jobs, 0, 1, &more);
    ck_assert(json_array_size(none) == 0 && !more);
    const json_int_t before = g_get_real_time() / 1000;
    for (int i = 0; i < 3; i++)
        jobs_wait(f.jobs, start(&f, ""));
    for (json_int_t n = 1; n <= 3; n++) {
        json_auto_t *page = jobs_list(f.jobs, (uint64_t)n - 1, 1, &more);
        ck_assert_uint_eq(json_array_size(page), 1);
        const json_t *job = json_array_get(page, 0);
        ck_assert_int_eq(json_integer_value(json_object_get(job, "job")), n);
        ck_assert_int_ge(json_integer_value(json_object_get(job, "startedMs")), before);
        ck_assert_int_eq(more, n < 3);
    }
    json_auto_t *all = jobs_list(f.jobs, 1, 100000, &more);
    ck_assert(json_array_size(all) == 2 && !more);
    teardown(&f);
}
END_TEST

START_TEST(path_names_a_part_or_a_file)
{
    Fixture f = setup();
    write_file(&f, "a/b/x", 10);
    write_file(&f, "a/y", 20);
    write_file(&f, "z", 40);
    open_volume(&f, "v", TRUE, 0);
    json_t *job = finish(&f, start(&f, "/a//./b/"));
    assert_job(job, "done", 1, 10, 0);
    ck_assert_str_eq(json_string_value(json_object_get(job, "path")), "a/b");
    json_decref(job);
    job = finish(&f, start(&f, "z"));
    assert_job(job, "done", 1, 40, 0);
    json_decref(job);
    ck_assert_uint_eq(f.store->started, 2);
    g_autoptr(VolumeReport) report = volumes_report(f.volumes, "v");
    ck_assert_int_eq(report->bytes_total, -1);
    teardown(&f);
}
END_TEST

/* A sealed memfd with the text. */
static int list_of(const char *text)
{
    int fd = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
    return fd;
}

static json_t *warm_list(Fixture *f, const char *path, const char *text)
{
    uint64_t id;
    g_autoptr(GError) error = NULL;
    const JobOptions options = {.list_fd = list_of(text)};
    ck_assert_msg(jobs_warm(f->jobs, "v", path, &options, &id, &error), "%s",
                  error ? error->message : "");
    close(options.list_fd);
    return finish(f, id);
}

START_TEST(a_list_names_files)
{
    Fixture f = setup();
    for (int i = 0; i < 30; i++) {
        g_autofree char *name = g_strdup_printf("d/f%d", i);
        write_file(&f, name, 100);
    }
    write_file(&f, "d/odd name", 7);
    write_file(&f, "d/empty", 0);
    open_volume(&f, "v", TRUE, 0);
    json_t *job = warm_list(&f, "", "d/f1\n\n/d//./f2\nd/f1\nd/odd name\nd/empty\nd/f3");
    assert_job(job, "done", 5, 307, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "filesTotal")), 5);
    json_decref(job);
    ck_assert_uint_eq(f.store->started, 4);
    job = warm_list(&f, "d", "f3\nf4\n");
    assert_job(job, "done", 2, 200, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(job, "bytesHeld")), 100);
    json_decref(job);
    ck_assert_uint_eq(f.store->started, 5);
    /* What is not there is told of, and does not end it. */
    job = warm_list(&f, "", "none\nd\nd/f5\n");
    assert_job(job, "done", 1, 100, 2);
    ck_assert_ptr_nonnull(strstr(job_error(job), "none"));
    json_decref(job);
    teardown(&f);
}
END_TEST

START_TEST(bad_lists_are_refused)
{
    Fixture f = setup();
    write_file(&f, "a", 1);
    open_volume(&f, "v", TRUE, 0);
    static const struct {
        const char *text, *part;
    } bad[] = {{"", "no files"}, {"\n/\n", "no files"}, {"a\nb/../../a\n", "line 2"}};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        uint64_t id;
        g_autoptr(GError) error = NULL;
        const JobOptions options = {.list_fd = list_of(bad[i].text)};
        ck_assert(!jobs_warm(f.jobs, "v", "", &options, &id, &error));
        ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT));
        ck_assert_msg(strstr(error->message, bad[i].part) != NULL, "%s", error->message);
        close(options.list_fd);
    }
    /* One that its sender may still change. */
    uint64_t id;
    g_autoptr(GError) error = NULL;
    const JobOptions options = {.list_fd = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ck_assert(!jobs_warm(f.jobs, "v", "", &options, &id, &error));
    ck_assert_msg(strstr(error->message, "sealed") != NULL, "%s", error->message);
    close(options.list_fd);
    teardown(&f);
}
END_TEST

START_TEST(bad_paths_and_volumes_are_refused)
{
    Fixture f = setup();
    write_file(&f, "a/b", 10);
    g_autofree char *link = g_build_filename(f.dir, "link", NULL);
    ck_assert_int_eq(symlink("/etc", link), 0);
    open_volume(&f, "v", TRUE, 0);
    open_volume(&f, "cold", FALSE, 0);
    assert_refused(&f, "v", "a/../../etc", WIRE_ERROR_INVALID_ARGUMENT, "..");
    assert_refused(&f, "v", "a/none/b", WIRE_ERROR_NOT_FOUND, "none");
    assert_refused(&f, "v", "a/b/c", WIRE_ERROR_NOT_FOUND, "c");
    assert_refused(&f, "v", "link", WIRE_ERROR_INVALID_ARGUMENT, "symbolic link");
    assert_refused(&f, "v", "link/passwd", WIRE_ERROR_NOT_FOUND, "passwd");
    assert_refused(&f, "w", "", WIRE_ERROR_NOT_FOUND, "w");
    assert_refused(&f, "cold", "", WIRE_ERROR_FAILED_PRECONDITION, "cache is off");
    ck_assert_uint_eq(f.store->started, 0);
    teardown(&f);
}
END_TEST

START_TEST(failed_files_are_counted_and_the_first_is_named)
{
    Fixture f = setup();
    write_file(&f, "a", 10);
    write_file(&f, "b", 10);
    f.store->fill_result = -EIO;
    open_volume(&f, "v", TRUE, 0);
    json_t *job = finish(&f, start(&f, ""));
    assert_job(job, "done", 0, 0, 2);
    ck_assert_ptr_nonnull(strstr(job_error(job), "Input/output error"));
    json_decref(job);
    teardown(&f);
}
END_TEST

START_TEST(file_that_changed_is_tried_once_more)
{
    Fixture f = setup();
    write_file(&f, "a", 10);
    write_file(&f, "b", 10);
    f.store->stale_once = 1;
    open_volume(&f, "v", TRUE, 0);
    json_t *job = finish(&f, start(&f, ""));
    assert_job(job, "done", 2, 20, 0);
    json_decref(job);
    ck_assert_uint_eq(f.store->started, 3);
    f.store->fill_result = -ESTALE;
    store_evict(f.store, NULL, UINT64_MAX);
    job = finish(&f, start(&f, "a"));
    assert_job(job, "done", 0, 0, 1);
    ck_assert_ptr_nonnull(strstr(job_error(job), "changes"));
    json_decref(job);
    teardown(&f);
}
END_TEST

START_TEST(full_store_fails_the_job_with_the_reason)
{
    Fixture f = setup();
    write_file(&f, "a", 10);
    f.store->full = TRUE;
    open_volume(&f, "v", TRUE, 0);
    json_t *job = finish(&f, start(&f, ""));
    assert_job(job, "failed", 0, 0, 0);
    ck_assert_ptr_nonnull(strstr(job_error(job), "no room for 'a'"));
    json_decref(job);
    f.store->disk = STORE_DISK_BYPASS;
    job = finish(&f, start(&f, ""));
    assert_job(job, "failed", 0, 0, 0);
    ck_assert_ptr_nonnull(strstr(job_error(job), "disk"));
    json_decref(job);
    teardown(&f);
}
END_TEST

START_TEST(warming_stops_at_the_bounds_rather_than_go_in_circles)
{
    Fixture f = setup();
    for (int i = 0; i < 10; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        write_file(&f, name, 100);
    }
    f.store->max_bytes = 450;
    open_volume(&f, "v", TRUE, 0);
    json_t *job = finish(&f, start(&f, ""));
    assert_job(job, "failed", 4, 400, 0);
    ck_assert_ptr_nonnull(strstr(job_error(job), "too small"));
    json_decref(job);
    ck_assert(volumes_detach(f.volumes, "v", NULL));
    f.store->cancelled = NULL;
    f.store->max_bytes = 0;
    store_evict(f.store, NULL, UINT64_MAX);
    open_volume(&f, "v", TRUE, 250);
    job = finish(&f, start(&f, ""));
    assert_job(job, "failed", 2, 200, 0);
    ck_assert_ptr_nonnull(strstr(job_error(job), "cacheQuota"));
    json_decref(job);
    teardown(&f);
}
END_TEST

START_TEST(same_request_joins_the_running_job)
{
    Fixture f = setup();
    write_file(&f, "a/b", 10);
    f.store->hold_fills = TRUE;
    open_volume(&f, "v", TRUE, 0);
    uint64_t one = start(&f, "a");
    ck_assert_uint_eq(start(&f, "/a/"), one);
    ck_assert_uint_ne(start(&f, ""), one);
    fake_store_release_fills(f.store);
    jobs_wait(f.jobs, one);
    ck_assert_uint_ne(start(&f, "a"), one);
    teardown(&f);
}
END_TEST

START_TEST(cancelled_job_stops_within_a_large_file)
{
    Fixture f = setup();
    write_file(&f, "big", 20 << 20);
    write_file(&f, "other", 10);
    f.store->hold_fills = TRUE;
    open_volume(&f, "v", TRUE, 0);
    uint64_t id = start(&f, "big");
    fake_store_await_waiter(f.store);
    json_t *job = jobs_report(f.jobs, id, NULL);
    assert_job(job, "running", 0, 4 << 20, 0);
    json_decref(job);
    ck_assert(jobs_cancel(f.jobs, id, NULL));
    fake_store_release_fills(f.store);
    job = finish(&f, id);
    assert_job(job, "cancelled", 0, 0, 0);
    json_decref(job);
    g_autoptr(GError) error = NULL;
    ck_assert(!jobs_cancel(f.jobs, 999, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_NOT_FOUND));
    teardown(&f);
}
END_TEST

START_TEST(detach_ends_the_jobs_of_its_volume)
{
    Fixture f = setup();
    write_file(&f, "a", 10);
    f.store->hold_fills = TRUE;
    open_volume(&f, "v", TRUE, 0);
    uint64_t id = start(&f, "");
    fake_store_await_waiter(f.store);
    g_autoptr(GError) error = NULL;
    ck_assert(volumes_detach(f.volumes, "v", &error));
    json_t *job = finish(&f, id);
    ck_assert_str_eq(json_string_value(json_object_get(job, "state")), "cancelled");
    ck_assert_ptr_nonnull(strstr(job_error(job), "detached"));
    json_decref(job);
    ck_assert_ptr_null(volumes_report(f.volumes, "v"));
    f.store->hold_fills = FALSE;
    teardown(&f);
}
END_TEST

START_TEST(only_the_last_ended_jobs_are_kept)
{
    Fixture f = setup();
    write_file(&f, "a", 10);
    open_volume(&f, "v", TRUE, 0);
    uint64_t first = start(&f, ""), last = first;
    jobs_wait(f.jobs, first);
    for (int i = 0; i < JOBS_MAX_ENDED + 1; i++) {
        last = start(&f, "");
        jobs_wait(f.jobs, last);
    }
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(jobs_report(f.jobs, first, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_NOT_FOUND));
    json_t *job = jobs_report(f.jobs, last, NULL);
    ck_assert_ptr_nonnull(job);
    json_decref(job);
    teardown(&f);
}
END_TEST

START_TEST(free_ends_running_jobs)
{
    Fixture f = setup();
    for (int i = 0; i < 20; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        write_file(&f, name, 10);
    }
    open_volume(&f, "v", TRUE, 0);
    for (int i = 0; i < 20; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        start(&f, name);
    }
    teardown(&f);
}
END_TEST

HARNESS_MAIN("cache/warm/jobs", warms_every_file_once,
             a_check_counts_what_is_held_and_fetches_nothing, jobs_are_listed_page_by_page,
             path_names_a_part_or_a_file, a_list_names_files, bad_lists_are_refused,
             bad_paths_and_volumes_are_refused, failed_files_are_counted_and_the_first_is_named,
             file_that_changed_is_tried_once_more, full_store_fails_the_job_with_the_reason,
             warming_stops_at_the_bounds_rather_than_go_in_circles,
             same_request_joins_the_running_job, cancelled_job_stops_within_a_large_file,
             detach_ends_the_jobs_of_its_volume, only_the_last_ended_jobs_are_kept,
             free_ends_running_jobs)
