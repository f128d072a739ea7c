/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job pins its volume while it runs, and stops when the volume closes. Jobs that ended stay for
 * questions until JOBS_MAX_ENDED newer ones have.
 *
 * Jobs.lock guards the list and every job's state; the counters of a walk are atomic.
 */
#include "cache/warm/jobs.h"
#include "cache/warm/warm.h"
#include "common/size.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef enum JobState {
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
} JobState;

static const char *const state_names[] = {WIRE_JOB_RUNNING, WIRE_JOB_DONE, WIRE_JOB_FAILED,
                                          WIRE_JOB_CANCELLED};

typedef struct Job {
    Jobs *jobs;
    uint64_t id;
    char *volume_id, *path, *tag;
    char *name; /* of the volume, for people */
    pid_t pid;  /* who asked first */
    uid_t uid;
    Volume *volume; /* in use while it runs */
    OriginNode *node;
    OriginAttr attr;
    Warm warm;
    atomic_bool cancelled;
    gint64 started_us, started_wall_us; /* of the monotonic clock; since 1970 */
    pthread_t thread;
    /* Jobs.lock: */
    JobState state;
    gint64 ended_us;
    char *error;
    gboolean joined;
} Job;

struct Jobs {
    Volumes *volumes;
    Store *store;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    GPtrArray *list; /* lock; oldest first */
    uint64_t last_id;
    gboolean stopping;
};

static void free_job(Job *job)
{
    warm_clear(&job->warm);
    g_free(job->volume_id);
    g_free(job->name);
    g_free(job->path);
    g_free(job->tag);
    g_free(job->error);
    g_free(job);
}

static gboolean job_should_stop(void *data)
{
    Job *job = data;
    return atomic_load(&job->cancelled) || volume_closing(job->volume);
}

/* Gives back what a job held of its volume. */
static void release_volume(Job *job)
{
    Origin *origin = volume_origin(job->volume);
    origin->ops->put(origin, job->node);
    volumes_done(job->jobs->volumes, job->volume);
    job->volume = NULL;
}

static JobState state_of(WarmResult result)
{
    switch (result) {
    case WARM_DONE:
        return JOB_DONE;
    case WARM_FAILED:
        return JOB_FAILED;
    case WARM_STOPPED:
        break;
    }
    return JOB_CANCELLED;
}

/* Why it failed, or why the first of its files did; "": nothing did. The caller's. */
static char *job_error(Job *job)
{
    g_autofree char *first = job->error ? NULL : warm_first_error(&job->warm);
    const char *text = job->error ? job->error : first;
    return g_utf8_make_valid(text ? text : "", -1);
}

/* Its end, of which its thread alone writes. */
static void log_end(Job *job, JobState state, const char *why)
{
    const gint64 us = MAX(job->ended_us - job->started_us, 1);
    const uint64_t done = atomic_load(&job->warm.bytes_done);
    const uint64_t held = MIN(atomic_load(&job->warm.bytes_held), done);
    const double rate = (double)(done - held) * G_USEC_PER_SEC / (double)us;
    g_autofree char *size = size_format(done), *had = size_format(held);
    g_autofree char *speed = size_format((uint64_t)rate);
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, job->id);
    g_autofree char *bytes = g_strdup_printf("%" G_GUINT64_FORMAT, done);
    g_autofree char *seconds = g_strdup_printf("%.3f", (double)us / G_USEC_PER_SEC);
    g_autofree char *per_sec = g_strdup_printf("%.0f", rate);
    g_autofree char *pid = g_strdup_printf("%d", (int)job->pid);
    g_autofree char *uid = g_strdup_printf("%u", (unsigned)job->uid);
    const gboolean failed = state == JOB_FAILED || atomic_load(&job->warm.files_failed) > 0;
    g_log_structured(G_LOG_DOMAIN, failed ? G_LOG_LEVEL_WARNING : G_LOG_LEVEL_INFO, "volume",
                     job->volume_id, "name", job->name, "job", id, "bytes", bytes, "seconds",
                     seconds, "bytesPerSec", per_sec, "pid", pid, "uid", uid, "MESSAGE",
                     "%s job %s of volume %s %s: %s in %s s (%s held before, %s/s), asked by "
                     "pid %s, uid %s%s%s",
                     job->warm.check ? "check" : "warm", id, job->name, state_names[state], size,
                     seconds, had, speed, pid, uid, why && *why ? ": " : "", why ? why : "");
}

static void *run_job(void *data)
{
    Job *job = data;
    Jobs *jobs = job->jobs;
    g_autoptr(GError) error = NULL;
    WarmResult result = warm_run(&job->warm, job->node, &job->attr, job->path, &error);
    gboolean closing = volume_closing(job->volume);
    if (result == WARM_DONE && !job->path[0])
        volumes_set_counted(jobs->volumes, job->volume, atomic_load(&job->warm.bytes_total));
    release_volume(job);

    pthread_mutex_lock(&jobs->lock);
    job->state = state_of(result);
    if (error)
        job->error = g_strdup(error->message);
    else if (result == WARM_STOPPED && closing)
        job->error = g_strdup("the volume was detached");
    job->ended_us = g_get_monotonic_time();
    g_autofree char *why = job_error(job);
    pthread_cond_broadcast(&jobs->ended);
    pthread_mutex_unlock(&jobs->lock);
    log_end(job, state_of(result), why);
    return NULL;
}

/* Joins the threads of jobs that ended, and forgets the oldest of them. */
static void tidy_locked(Jobs *jobs)
{
    guint ended = 0;
    for (guint i = jobs->list->len; i-- > 0;) {
        Job *job = jobs->list->pdata[i];
        if (job->state == JOB_RUNNING)
            continue;
        if (!job->joined)
            pthread_join(job->thread, NULL); /* it takes no lock any more */
        job->joined = TRUE;
        if (++ended > JOBS_MAX_ENDED) {
            g_ptr_array_remove_index(jobs->list, i);
            free_job(job);
        }
    }
}

static Job *find_locked(Jobs *jobs, uint64_t id)
{
    for (guint i = 0; i < jobs->list->len; i++) {
        Job *job = jobs->list->pdata[i];
        if (job->id == id)
            return job;
    }
    return NULL;
}

static Job *find_or_error_locked(Jobs *jobs, uint64_t id, GError **error)
{
    Job *job = find_locked(jobs, id);
    if (!job)
        wire_fail(error, WIRE_ERROR_NOT_FOUND,
                  "job %" G_GUINT64_FORMAT " is not known; the last %d that ended are kept", id,
                  JOBS_MAX_ENDED);
    return job;
}

/* Another one that asks for the same work may have this job instead. */
static gboolean is_joinable(const Job *job)
{
    return !job->warm.list && !job->warm.check;
}

static Job *find_same_locked(Jobs *jobs, const char *volume, const char *path)
{
    for (guint i = 0; i < jobs->list->len; i++) {
        Job *job = jobs->list->pdata[i];
        if (job->state == JOB_RUNNING && !atomic_load(&job->cancelled) && is_joinable(job) &&
            strcmp(job->volume_id, volume) == 0 && strcmp(job->path, path) == 0)
            return job;
    }
    return NULL;
}

static gboolean may_start_locked(Jobs *jobs, GError **error)
{
    guint running = 0;
    for (guint i = 0; i < jobs->list->len; i++)
        running += ((Job *)jobs->list->pdata[i])->state == JOB_RUNNING;
    if (!jobs->stopping && running < JOBS_MAX_RUNNING)
        return TRUE;
    return wire_fail(error, WIRE_ERROR_UNAVAILABLE,
                     jobs->stopping ? "hearthd is stopping"
                                    : "too many warm jobs are running; wait for one or cancel one");
}

/* Looks for the path and makes a job that is not in the list yet. */
static Job *make_job_of_path(Jobs *jobs, const char *volume, const char *path, GError **error)
{
    Volume *used = volumes_use(jobs->volumes, volume, error);
    if (!used)
        return NULL;
    if (!jobs->store || !volume_cached(used)) {
        wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION, "volume %s: %s", volume,
                  jobs->store ? "its cache is off (StorageClass parameter cache)"
                              : "hearthd runs without a cache; see its log and --cache-dir");
        volumes_done(jobs->volumes, used);
        return NULL;
    }
    Job *job = g_new0(Job, 1);
    if (!warm_find(volume_origin(used), path, &job->node, &job->attr, error)) {
        volumes_done(jobs->volumes, used);
        g_free(job);
        return NULL;
    }
    job->jobs = jobs;
    job->volume = used;
    job->volume_id = g_strdup(volume);
    g_autoptr(VolumeReport) report = volumes_report(jobs->volumes, volume);
    job->name = g_strdup(report ? report->name : volume);
    job->path = g_strdup(path);
    job->started_us = g_get_monotonic_time();
    job->started_wall_us = g_get_real_time();
    job->warm.store = jobs->store;
    job->warm.origin = volume_origin(used);
    job->tag = volumes_tag_ahead(jobs->volumes, used);
    job->warm.tag = job->tag;
    job->warm.manifest = volumes_ready_manifest(jobs->volumes, used);
    job->warm.quota_bytes = volume_quota_bytes(used);
    job->warm.stop = job_should_stop;
    job->warm.data = job;
    warm_init(&job->warm);
    return job;
}

static Job *make_job(Jobs *jobs, const char *volume, const char *path, const JobOptions *options,
                     GError **error)
{
    WarmList *list = options->list_fd >= 0 ? warm_list_read(options->list_fd, path, error) : NULL;
    if (!list && options->list_fd >= 0)
        return NULL;
    Job *job = make_job_of_path(jobs, volume, path, error);
    if (!job) {
        warm_list_free(list);
        return NULL;
    }
    job->pid = options->pid;
    job->uid = options->uid;
    job->warm.list = list;
    job->warm.check = options->check;
    job->warm.pace = options->bytes_per_sec ? store_pace_new(options->bytes_per_sec) : NULL;
    return job;
}

static gboolean start_locked(Jobs *jobs, Job *job, GError **error)
{
    if (!may_start_locked(jobs, error))
        return FALSE;
    job->id = ++jobs->last_id;
    int failed = pthread_create(&job->thread, NULL, run_job, job);
    if (failed)
        return wire_fail(error, WIRE_ERROR_UNAVAILABLE, "cannot start a thread: %s",
                         g_strerror(failed));
    g_ptr_array_add(jobs->list, job);
    return TRUE;
}

gboolean jobs_warm(Jobs *jobs, const char *volume, const char *path, const JobOptions *options,
                   uint64_t *id, GError **error)
{
    g_autofree char *clean = warm_path(path, error);
    if (!clean)
        return FALSE;
    Job *job = make_job(jobs, volume, clean, options, error);
    if (!job)
        return FALSE;
    pthread_mutex_lock(&jobs->lock);
    Job *same = is_joinable(job) ? find_same_locked(jobs, volume, clean) : NULL;
    gboolean started = !same && start_locked(jobs, job, error);
    if (same || started)
        *id = same ? same->id : job->id;
    tidy_locked(jobs);
    pthread_mutex_unlock(&jobs->lock);
    if (!started) {
        release_volume(job);
        free_job(job);
    }
    return same || started;
}

static json_t *report_job(Job *job)
{
    Warm *w = &job->warm;
    gboolean running = job->state == JOB_RUNNING;
    gint64 until = running ? g_get_monotonic_time() : job->ended_us;
    g_autofree char *error = job_error(job);
    json_int_t files_done = (json_int_t)atomic_load(&w->files_done);
    json_int_t bytes_done = (json_int_t)atomic_load(&w->bytes_done);
    json_int_t files_total = (json_int_t)atomic_load(&w->files_total);
    json_int_t bytes_total = (json_int_t)atomic_load(&w->bytes_total);
    return json_pack(
        "{s:I, s:s, s:b, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:s}",
        WIRE_KEY_JOB, (json_int_t)job->id, WIRE_KEY_NAME, job->name, WIRE_KEY_CHECK, w->check,
        WIRE_KEY_STARTED_MS, (json_int_t)(job->started_wall_us / 1000), WIRE_KEY_BYTES_HELD,
        (json_int_t)atomic_load(&w->bytes_held), WIRE_KEY_VOLUME, job->volume_id, WIRE_KEY_PATH,
        job->path, WIRE_KEY_STATE, state_names[job->state], WIRE_KEY_FILES_DONE, files_done,
        WIRE_KEY_FILES_TOTAL, MAX(files_total, files_done), WIRE_KEY_BYTES_DONE, bytes_done,
        WIRE_KEY_BYTES_TOTAL, MAX(bytes_total, bytes_done), WIRE_KEY_FILES_FAILED,
        (json_int_t)atomic_load(&w->files_failed), WIRE_KEY_SCANNING,
        running && atomic_load(&w->scanning), WIRE_KEY_ELAPSED_MS,
        (json_int_t)((until - job->started_us) / 1000), WIRE_KEY_ERROR, error);
}

json_t *jobs_report(Jobs *jobs, uint64_t id, GError **error)
{
    pthread_mutex_lock(&jobs->lock);
    Job *job = find_or_error_locked(jobs, id, error);
    json_t *report = job ? report_job(job) : NULL;
    pthread_mutex_unlock(&jobs->lock);
    return report;
}

json_t *jobs_list(Jobs *jobs, uint64_t after, size_t max_bytes, gboolean *more)
{
    json_t *page = json_array();
    size_t bytes = 0;
    *more = FALSE;
    pthread_mutex_lock(&jobs->lock);
    for (guint i = 0; i < jobs->list->len && !*more; i++) {
        Job *job = jobs->list->pdata[i];
        if (job->id <= after)
            continue;
        json_auto_t *report = report_job(job);
        bytes += json_dumpb(report, NULL, 0, JSON_COMPACT) + 1;
        *more = json_array_size(page) > 0 && bytes > max_bytes;
        if (!*more)
            json_array_append(page, report);
    }
    pthread_mutex_unlock(&jobs->lock);
    return page;
}

gboolean jobs_cancel(Jobs *jobs, uint64_t id, GError **error)
{
    pthread_mutex_lock(&jobs->lock);
    Job *job = find_or_error_locked(jobs, id, error);
    if (job)
        atomic_store(&job->cancelled, TRUE);
    pthread_mutex_unlock(&jobs->lock);
    return job != NULL;
}

void jobs_wait(Jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    for (;;) {
        const Job *job = find_locked(jobs, id);
        if (!job || job->state != JOB_RUNNING)
            break;
        pthread_cond_wait(&jobs->ended, &jobs->lock);
    }
    pthread_mutex_unlock(&jobs->lock);
}

Jobs *jobs_new(Volumes *volumes, Store *store)
{
    Jobs *jobs = g_new0(Jobs, 1);
    jobs->volumes = volumes;
    jobs->store = store;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->ended, NULL);
    jobs->list = g_ptr_array_new();
    return jobs;
}

void jobs_cancel_all(Jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->stopping = TRUE;
    for (guint i = 0; i < jobs->list->len; i++)
        atomic_store(&((Job *)jobs->list->pdata[i])->cancelled, TRUE);
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_free(Jobs *jobs)
{
    if (!jobs)
        return;
    jobs_cancel_all(jobs);
    for (guint i = 0; i < jobs->list->len; i++) {
        Job *job = jobs->list->pdata[i];
        if (!job->joined)
            pthread_join(job->thread, NULL);
        free_job(job);
    }
    g_ptr_array_unref(jobs->list);
    pthread_cond_destroy(&jobs->ended);
    pthread_mutex_destroy(&jobs->lock);
    g_free(jobs);
}
