/* SPDX-License-Identifier: Apache-2.0 */
/* Warm jobs: each a thread that warms one path of one volume, and a record of how far it is. */
#ifndef HEARTH_CACHE_WARM_JOBS_H
#define HEARTH_CACHE_WARM_JOBS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>
#include "cache/volume/volumes.h"

#define JOBS_MAX_RUNNING 64
#define JOBS_MAX_ENDED 64

typedef struct Jobs Jobs;

/* Both borrowed; a NULL store refuses every job. */
Jobs *jobs_new(Volumes *volumes, Store *store);
/* Starts no new jobs and has running ones stop; calls that wait for a job return soon. */
void jobs_cancel_all(Jobs *jobs);
/* Cancels running jobs and waits for them. No other call may run or follow. */
void jobs_free(Jobs *jobs);

typedef struct JobOptions {
    uint64_t bytes_per_sec; /* 0: as fast as it goes */
    int list_fd;            /* names of files (warm_list.h), -1: all; borrowed */
    gboolean check;         /* fetch nothing, only count what is held */
    pid_t pid;              /* who asked, for the log; 0: not known */
    uid_t uid;
} JobOptions;

/*
 * Begins a job, or joins the running job of this volume and path, even if its rate differs. A job
 * with a list, or that checks, is never joined. Blocks while the origin looks up the path. Errors:
 * NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION (no cache), UNAVAILABLE.
 */
gboolean jobs_warm(Jobs *jobs, const char *volume, const char *path, const JobOptions *options,
                   uint64_t *id, GError **error);
/* As the protocol's "job"; NULL with NOT_FOUND. */
json_t *jobs_report(Jobs *jobs, uint64_t id, GError **error);
/* The jobs with a number above `after`, oldest first, as many as `max_bytes` of JSON hold but at
 * least one; the caller's. *more: there are others after them. */
json_t *jobs_list(Jobs *jobs, uint64_t after, size_t max_bytes, gboolean *more);
gboolean jobs_cancel(Jobs *jobs, uint64_t id, GError **error);
/* Waits until the job has ended. */
void jobs_wait(Jobs *jobs, uint64_t id);

#endif
