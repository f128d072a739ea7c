/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of reading files: rate, latency percentiles, and what they mean for a job. No I/O. */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_READING_H
#define HEARTH_CMD_HEARTHCTL_REPORT_READING_H

#include <glib.h>
#include <stdint.h>

/* What one thread, or all of a pass, read. */
typedef struct Reading {
    uint64_t files, bytes; /* files that were read to their end; bytes of all */
    uint64_t failed;       /* files that could not be opened or read */
    GArray *latencies_us;  /* guint32 a file: open and first read */
    gint64 took_us;
} Reading;

void reading_init(Reading *reading);
void reading_clear(Reading *reading);
/* Adds the counts and latencies of `from`, not its time. */
void reading_add(Reading *to, const Reading *from);

double reading_bytes_per_s(const Reading *reading);
double reading_files_per_s(const Reading *reading);
/*
 * The latency that `percent` of the files did not exceed (nearest rank), in microseconds; 0 without
 * files. Sorts the latencies.
 */
guint32 reading_percentile(Reading *reading, double percent);

/* How a job that needs `wanted` bytes per second runs on storage that gives `rate`. */
typedef enum ReadingBound {
    READING_FREE,  /* storage gives at least a quarter more than that */
    READING_CLOSE, /* it is just enough: other readers will slow the job down */
    READING_BOUND, /* the job waits for storage */
} ReadingBound;
ReadingBound reading_judge(double rate, double wanted);
const char *reading_bound_text(ReadingBound bound);

/* Puts 0 ... n-1 in an order that the seed alone decides, so that passes can be compared; the
 * caller's. */
guint *reading_shuffle(guint n, guint32 seed);

#endif
