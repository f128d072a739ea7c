/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the partition torture write into files, and what they log of it. A file is 8
 * pages; each page is filled with one value, and the values of two writes are never the same. So a
 * read tells which writes it saw, page by page: each page is a register of its own.
 *
 * Lines of a log, times in us of CLOCK_BOOTTIME (all programs run on one machine):
 *   B FILE VALUE BEGAN
 *     a write begins; logged before it does
 *   W FILE VALUE BEGAN RETURNED SYNCED HOW
 *     pwrite returned, whatever it said; SYNCED: fsync returned 0 (else 0); HOW: what was done last
 *   R FILE HOW BEGAN ENDED VALUE[,VALUE...]
 *     a read and all values in it; 0: no bytes, or zeros
 *   E FILE HOW BEGAN ENDED ERROR
 *     a read or write that failed
 * A truncation is a write of value 0, without a sync.
 */
#ifndef PARTITION_LOG_H
#define PARTITION_LOG_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 8, PAGE = 4096, PAGES = 8, FILE_BYTES = PAGES * PAGE };
#define WRONG_BYTES UINT64_MAX /* neither a value nor zeros */

static int log_fd = -1;

static inline uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* One write(2) a line, so that lines of threads, and of the next process, do not mix. */
__attribute__((format(printf, 1, 2))) static inline void log_line(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (write(log_fd, line, (size_t)length) != length)
        abort();
}

/* Rises from one process of a client to the next; the client is in it. */
static inline uint64_t new_value(unsigned client)
{
    static _Atomic uint64_t last;
    uint64_t before = atomic_load(&last), value;
    do
        value = before >= now_us() ? before + 1 : now_us();
    while (!atomic_compare_exchange_weak(&last, &before, value));
    return value << 4 | client;
}

/* The second word tells a value of this file from other bytes. */
static inline uint64_t check_word(uint64_t value, int file)
{
    return ~value ^ (uint64_t)(file + 1) << 56;
}

static inline void fill_pages(uint64_t *words, int file, uint64_t value)
{
    for (size_t i = 0; i < FILE_BYTES / sizeof(*words); i += 2) {
        words[i] = value;
        words[i + 1] = check_word(value, file);
    }
}

static inline void log_read(int file, const char *how, uint64_t began, const uint64_t *words,
                            size_t bytes)
{
    const uint64_t ended = now_us();
    uint64_t values[PAGES + 2];
    size_t n = 0;
    for (size_t i = 0; i + 1 < bytes / sizeof(*words) && n < PAGES + 1; i += 2) {
        uint64_t value = words[i];
        if (value || words[i + 1])
            value = words[i + 1] == check_word(value, file) ? value : WRONG_BYTES;
        size_t known = 0;
        while (known < n && values[known] != value)
            known++;
        if (known == n)
            values[n++] = value;
    }
    if (bytes < FILE_BYTES)
        values[n++] = 0;
    char text[400];
    int length = 0;
    for (size_t i = 0; i < n; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%" PRIu64, i ? "," : "",
                           values[i]);
    log_line("R %d %s %" PRIu64 " %" PRIu64 " %s\n", file, how, began, ended, text);
}

static inline void log_error(int file, const char *how, uint64_t began, int error)
{
    const char *name = strerrorname_np(error);
    log_line("E %d %s %" PRIu64 " %" PRIu64 " %s\n", file, how, began, now_us(),
             name ? name : "unknown");
}

#endif
