/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends numbered records to a file, each acknowledged by fdatasync before its number is noted in
 * a file elsewhere, and now and then replaces a second file by rename, as databases do; finds out
 * afterwards what is there.
 *
 *     image-records append JOURNAL SEED DIR     until a call fails, or SIGTERM
 *     image-records check JOURNAL DIR           every acknowledged record is there, in order and
 *                                               intact; cuts off what comes after; prints a count
 *
 * Exits with 1 when something is missing, with 2 when it could not work.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAX_BODY 4000
#define MAX_LOG (24u << 20)
#define MAGIC 0x68726563u

/* `base` is the number of the log's first record. */
typedef struct Journal {
    uint64_t base, acknowledged, issued, replaced, replacing;
} Journal;

typedef struct Record {
    uint32_t magic, len; /* of the body, which follows */
    uint64_t number, sum;
} Record;

static Journal *journal;
static atomic_bool stopping;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "image-records: %s: %s\n", what, strerror(errno));
    exit(2);
}

__attribute__((noreturn, format(printf, 1, 2))) static void lost(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("; acknowledged: records %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
           ", of %" G_GUINT64_FORMAT " issued; replacement %" G_GUINT64_FORMAT "\n",
           journal->base, journal->acknowledged, journal->issued, journal->replaced);
    exit(1);
}

static uint64_t next(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

/* The sum is of the number too. */
static size_t record_make(uint8_t *to, uint64_t number)
{
    uint64_t mix = number * 0x9e3779b97f4a7c15u + 1;
    Record r = {.magic = MAGIC, .number = number, .len = (uint32_t)((next(&mix) >> 16) % MAX_BODY)};
    for (uint32_t i = 0; i < r.len; i++)
        to[sizeof(r) + i] = (uint8_t)(next(&mix) >> 56);
    r.sum = XXH3_64bits_withSeed(to + sizeof(r), r.len, number);
    memcpy(to, &r, sizeof(r));
    return sizeof(r) + r.len;
}

/* Its length, or 0: the record is not there whole. */
static size_t record_read(const uint8_t *at, size_t left, uint64_t number)
{
    Record r;
    if (left < sizeof(r))
        return 0;
    memcpy(&r, at, sizeof(r));
    if (r.magic != MAGIC || r.number != number || r.len > left - sizeof(r) ||
        r.sum != XXH3_64bits_withSeed(at + sizeof(r), r.len, number))
        return 0;
    return sizeof(r) + r.len;
}

static void open_journal(const char *path, gboolean make)
{
    int fd = open(path, O_RDWR | (make ? O_CREAT : 0) | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(Journal)) != 0)
        die(path);
    journal = mmap(NULL, sizeof(Journal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (journal == MAP_FAILED)
        die(path);
    if (journal->base == 0)
        journal->base = 1;
}

/* --- appending --- */

static gboolean sync_dir(int dir)
{
    return fsync(dir) == 0;
}

static gboolean append(int fd, uint8_t *buf, unsigned n)
{
    size_t len = 0;
    for (unsigned i = 0; i < n; i++)
        len += record_make(buf + len, ++journal->issued);
    for (size_t done = 0; done < len;) {
        ssize_t w = write(fd, buf + done, len - done);
        if (w < 0)
            return FALSE;
        done += (size_t)w;
    }
    if (fdatasync(fd) != 0)
        return FALSE;
    journal->acknowledged = journal->issued;
    return TRUE;
}

static gboolean replace(int dir, uint8_t *buf)
{
    size_t len = record_make(buf, ++journal->replacing);
    int fd = openat(dir, "state.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    gboolean ok = fd >= 0 && write(fd, buf, len) == (ssize_t)len && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    ok = ok && renameat(dir, "state.new", dir, "state") == 0 && sync_dir(dir);
    if (ok)
        journal->replaced = journal->replacing;
    return ok;
}

static void on_term(int number)
{
    (void)number;
    atomic_store(&stopping, TRUE);
}

static void append_records(uint64_t seed, int dir)
{
    uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;
    g_autofree uint8_t *buf = g_malloc(32 * (sizeof(Record) + MAX_BODY));
    signal(SIGTERM, on_term);
    int fd = openat(dir, "log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || !sync_dir(dir))
        die("log");
    gboolean ok = TRUE;
    while (ok && !atomic_load(&stopping))
        ok = next(&random) >> 59 == 0 ? replace(dir, buf)
                                      : append(fd, buf, 1 + (next(&random) >> 60));
    if (!ok)
        printf("%s\n", strerror(errno));
    close(fd);
}

/* --- checking --- */

static uint8_t *contents(int dir, const char *name, size_t *len)
{
    struct stat st;
    *len = 0;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0 || fstat(fd, &st) != 0)
        die(name);
    uint8_t *bytes = g_malloc((size_t)st.st_size + 1);
    for (ssize_t n; *len < (size_t)st.st_size; *len += (size_t)n) {
        n = read(fd, bytes + *len, (size_t)st.st_size - *len);
        if (n <= 0)
            die(name);
    }
    close(fd);
    return bytes;
}

static void check_state(int dir)
{
    size_t len;
    g_autofree uint8_t *bytes = contents(dir, "state", &len);
    uint64_t number = journal->replaced;
    while (number <= journal->replacing && (!bytes || record_read(bytes, len, number) != len))
        number++;
    if (number > journal->replacing && (bytes || journal->replaced > 0))
        lost("the replaced file holds no replacement from %" G_GUINT64_FORMAT " on",
             journal->replaced);
    journal->replaced = journal->replacing = bytes ? number : 0;
}

static void check_log(int dir)
{
    size_t len, off = 0, n;
    g_autofree uint8_t *bytes = contents(dir, "log", &len);
    uint64_t number = journal->base;
    while (number <= journal->issued && (n = record_read(bytes + off, len - off, number)) > 0) {
        off += n;
        number++;
    }
    if (number <= journal->acknowledged)
        lost("record %" G_GUINT64_FORMAT " is not whole at byte %zu of %zu", number, off, len);
    printf("%" G_GUINT64_FORMAT "\n", number - journal->base);
    int fd = openat(dir, "log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    journal->acknowledged = journal->issued = number - 1;
    if (off > MAX_LOG) {
        journal->base = number;
        off = 0;
    }
    if (fd < 0 || ftruncate(fd, (off_t)off) != 0 || fsync(fd) != 0 || !sync_dir(dir))
        die("log");
    close(fd);
}

int main(int argc, char **argv)
{
    gboolean appends = argc == 5 && strcmp(argv[1], "append") == 0;
    if (!appends && (argc != 4 || strcmp(argv[1], "check") != 0)) {
        fprintf(stderr, "image-records append JOURNAL SEED DIR | check JOURNAL DIR\n");
        return 2;
    }
    open_journal(argv[2], appends);
    int dir = open(argv[argc - 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        die(argv[argc - 1]);
    if (appends) {
        append_records(strtoull(argv[3], NULL, 0), dir);
    } else {
        check_state(dir);
        check_log(dir);
    }
    return 0;
}
