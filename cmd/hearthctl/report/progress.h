/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A warm job as text, from hearthd's answer to the op "job" (proto/wire.h). The strings are the
 * caller's.
 */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_PROGRESS_H
#define HEARTH_CMD_HEARTHCTL_REPORT_PROGRESS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

/*
 * A bar with percent, bytes, rate and the time left, always shorter than `columns`, so that no
 * terminal wraps it. What has no room is left out: files first, then the bar, bytes and the rate.
 */
char *progress_bar(const json_t *job, unsigned columns);
/* The same without a bar, of any length. */
char *progress_text(const json_t *job);
/* Bytes a second that were fetched; what was cached before does not count. 0: not known. */
uint64_t progress_rate(const json_t *job);
/* Seconds until it is done at this rate; 0: not known. */
uint64_t progress_left_sec(const json_t *job);
/* The result of a job that ended, one line. `came` are the bytes that were fetched: those of
 * incomplete files are not in the job any more. */
char *progress_result(const json_t *job, uint64_t came);

#endif
