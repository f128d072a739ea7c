/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of hearthctl bench: finding files, reading them, and the report. */
#ifndef HEARTH_CMD_HEARTHCTL_BENCH_BENCH_H
#define HEARTH_CMD_HEARTHCTL_BENCH_BENCH_H

#include "cmd/hearthctl/report/reading.h"
#include "cmd/hearthctl/report/style.h"
#include "cmd/hearthctl/client/client.h"

typedef struct BenchFiles {
    GPtrArray *paths; /* char *, in the order of the directories */
    uint64_t bytes;
    gboolean more; /* there are more files than were asked for */
} BenchFiles;

/* The options, and the results. */
typedef struct Bench {
    Ctl *ctl;
    const char *path;
    int files_max, threads, seconds;
    gboolean evict, drop_caches, as_json, wide;
    uint64_t need;   /* bytes a second; 0: not asked */
    char *need_text; /* as it was typed */
    char *volume;    /* NULL: not on Hearth */
    BenchFiles files;
    GArray *passes; /* BenchPass */
} Bench;

typedef struct BenchPass {
    const char *state, *order;
    guint threads;
    gboolean complete; /* all files were begun and none was left by the time */
    gint64 ceph_bytes; /* -1: not known */
    Reading reading;
} BenchPass;

/*
 * The regular files beneath `path`, or itself, `max` at most; of one file system, without following
 * links. FALSE with an error when there is none.
 */
gboolean bench_find(const char *path, guint max, BenchFiles *files, GError **error);
void bench_files_clear(BenchFiles *files);

/*
 * Reads the files, each once, in `order` (of as many numbers as there are files), by so many
 * threads that take one after another, for `limit_us` at most. reading->took_us is from the first
 * thread's begin to the last one's end. How many of `order` were begun is returned.
 */
guint bench_read(const BenchFiles *files, const guint *order, guint threads, gint64 limit_us,
                 Reading *reading);

/* Drops the files' pages from the page cache, as far as this may be done to files one can read. */
void bench_drop_pages(const BenchFiles *files);
/* Drops all that the page cache and the caches of names can spare, of the whole machine; FALSE with
 * errno. */
gboolean bench_drop_caches(void);

/* The table and what it means for a job; the caller's. */
char **bench_lines(const Bench *b, const View *view);
/* Prints it all. The exit code: reads that failed are a failure. */
int bench_report(const Bench *b);

#endif
