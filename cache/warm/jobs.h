/* SPDX-License-Identifier: Apache-2.0 */
/* Warm jobs: each a thread that warms one path of one volume, and a record of how far it is. */
#ifndef HEARTH_CACHE_WARM_JOBS_H
#define HEARTH_CACHE_WARM_JOBS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include "cache/volume/volumes.h"

#define JOBS_MAX_RUNNING 64
#define JOBS_MAX_ENDED 64

typedef struct Jobs Jobs;

/* Both borrowed; a NULL store refuses every job. */
Jobs *jobs_new(Volumes *volumes, Store *store);
/* Starts no new ones and tells those that run to stop; who waits for one is answered soon. */
void jobs_cancel_all(Jobs *jobs);
/* Cancels what runs and waits for it. No other call may run or follow. */
void jobs_free(Jobs *jobs);

typedef struct JobOptions {
    uint64_t bytes_per_sec; /* 0: as fast as it goes */
    int list_fd;            /* names of files (warm_list.h), -1: all; borrowed */
} JobOptions;

/*
 * Begins a job, or joins the running one of this volume and path, whatever its pace; one of a list
 * is always a new one. Blocks while the origin looks for the path. Errors: NOT_FOUND,
 * INVALID_ARGUMENT, FAILED_PRECONDITION (no cache), UNAVAILABLE.
 */
gboolean jobs_warm(Jobs *jobs, const char *volume, const char *path, const JobOptions *options,
                   uint64_t *id, GError **error);
/* As the protocol's "job"; NULL with NOT_FOUND. */
json_t *jobs_report(Jobs *jobs, uint64_t id, GError **error);
gboolean jobs_cancel(Jobs *jobs, uint64_t id, GError **error);
/* Waits until the job has ended. */
void jobs_wait(Jobs *jobs, uint64_t id);

#endif
