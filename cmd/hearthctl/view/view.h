/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screens of hearthctl, made of hearthd's answers (proto/wire.h) alone: no I/O, no clock. Each
 * function gives lines that are the caller's, and no wider than the view.
 */
#ifndef HEARTH_CMD_HEARTHCTL_VIEW_VIEW_H
#define HEARTH_CMD_HEARTHCTL_VIEW_VIEW_H

#include <jansson.h>
#include "cmd/hearthctl/report/rates.h"
#include "cmd/hearthctl/report/style.h"

/* `before` may be empty: then rates are not shown. `jobs`: NULL when hearthd cannot list them.
 * `lost`: LostMount *, or NULL; `heals`: "UID=COMMAND" of pods that may have them, or NULL. `pods`:
 * Publication *, or NULL. `now_ms` is since 1970. */
typedef struct ViewStatus {
    const RatesLook *before, *now;
    const json_t *jobs;
    const GPtrArray *lost, *pods;
    char *const *heals;
    gint64 now_ms;
} ViewStatus;
char **view_status(const ViewStatus *status, const View *view);

typedef struct ViewTop {
    const RatesLook *now;
    const Rates *rates; /* sorted */
    RatesSort by;
    gint64 interval_us;
    gboolean mark; /* mark the column that rows are sorted by */
} ViewTop;

/* VIEW_TOP_HEAD_LINES lines, an empty one, and the table. */
#define VIEW_TOP_HEAD_LINES 4
char **view_top(const ViewTop *top, const View *view);

/* One line for each sample, for `top --stream`, and their heading; the caller's. Columns from the
 * right are left out where the view is too narrow. */
char *view_stream_heading(const View *view);
char *view_stream(const ViewTop *top, const char *time, const View *view);

/* `datasets`: all pages of the op. */
char **view_datasets(const json_t *datasets, const View *view);
/* `jobs` and `volumes`: all pages of these ops; the latter have the names, and may be NULL. */
char **view_jobs(const json_t *jobs, const json_t *volumes, gint64 now_ms, const View *view);

/* What commands with one result say, of their JSON: evict, pin and unpin, an object that verify
 * found bad, and verify. */
char **view_evicted(const json_t *result, const View *view);
char **view_pinned(const json_t *result, const View *view);
char **view_bad_object(const json_t *bad, const View *view);
char **view_verified(const json_t *result, const View *view);
/* One job; `cancel`: it was just asked to end. */
char **view_job(const json_t *job, gboolean cancel, const View *view);
char **view_version(const json_t *versions, const View *view);

/* Of jobs, those that run. */
guint view_jobs_running(const json_t *jobs);

#endif
