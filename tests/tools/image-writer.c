/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a device so that each sector tells what it holds, keeps in a file elsewhere what was
 * issued, acknowledged and flushed, and compares what is read with that, while it writes and after
 * whatever has served the device was killed.
 *
 *     image-writer write STATE SEED DEVICE         until a request fails, or SIGTERM; several at
 *                                                  once, some overlapping
 *     image-writer check STATE DEVICE|-            all of it, or what comes on stdin
 *     image-writer after-crash STATE DEVICE        check, after a kill: what was not flushed may be
 *                                                  lost, and what it reads has to stay from then on
 *     image-writer foreign STATE SEED CONF POOL IMAGE   writes through plain librbd
 *     image-writer back STATE OLD-STATE            the image is again as when OLD-STATE was copied
 *     image-writer count STATE                     what was done so far, as JSON
 *
 * Exits with 1 when something read is wrong, with 2 when it could not work.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/fs.h>
#include <pthread.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#define SECTOR 512u
#define MAX_LEN 65536u
#define MAX_READ 131072u
#define CHUNK (1u << 20)
#define WRITERS 5
#define READERS 2
#define CHECKERS 4
#define FOREIGN_WRITES 200
#define HOT_BYTES (8u << 20)
#define HOTTEST_BYTES (256u << 10)
#define HEAD_BYTES 4096
#define STATE_MAGIC 0x6865617274687772u
#define SHOWN 8

/*
 * Versions are the sequence numbers of writes; a write of zeros has one too. What a sector holds is
 * `low` or later, and not later than `issued`. With writes under way that overlap, `low` is the
 * first of them: Ceph may have ordered them in any way.
 */
typedef struct Sector {
    uint64_t pin; /* of what it holds, when it is known exactly; 0: it is not */
    uint32_t issued, low, low_clock;
    uint32_t old, old_clock; /* low before that */
    uint32_t durable;        /* acknowledged before a flush that was */
    uint32_t zeroed, first;  /* the last write of zeros; the first of those under way */
    uint32_t under_way;
} Sector;

/* `clock` counts acknowledgements: what has a clock up to `flushed` is durable. */
typedef struct Head {
    uint64_t magic, sectors;
    uint32_t seq, clock, flushed;
    uint64_t writes, zeroings, flushes, reads, sectors_read, sectors_checked, sectors_compared;
    uint64_t pinned_checked, bounds_checked, unflushed_lost, foreign;
} Head;

static Head *head;
static Sector *sectors;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *source;
static atomic_bool stopping, failed, wrong;
static unsigned shown;
static int device = -1;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "image-writer: %s: %s\n", what, strerror(errno));
    exit(2);
}

static uint64_t next(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}
static uint64_t below(uint64_t *state, uint64_t n)
{
    return (next(state) >> 16) % n;
}

/* --- what a sector holds --- */

static void stamp(void *to, uint64_t sector, uint64_t seq)
{
    uint64_t words[SECTOR / 8] = {STATE_MAGIC, sector, seq};
    uint64_t mix = (sector << 32) ^ seq ^ 0x9e3779b97f4a7c15u;
    for (size_t i = 3; i < SECTOR / 8 - 1; i++)
        words[i] = next(&mix);
    words[SECTOR / 8 - 1] = XXH3_64bits(words, SECTOR - 8);
    memcpy(to, words, SECTOR);
}

static gboolean is_zero(const uint8_t *bytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, SECTOR - 1) == 0;
}

/* Of what it holds, or -1 with the reason. */
static int64_t version_of(const uint8_t *bytes, uint64_t sector, char reason[160])
{
    uint64_t words[SECTOR / 8];
    if (is_zero(bytes))
        return sectors[sector].zeroed;
    memcpy(words, bytes, SECTOR);
    if (words[0] == STATE_MAGIC && words[SECTOR / 8 - 1] == XXH3_64bits(words, SECTOR - 8)) {
        if (words[1] == sector)
            return (int64_t)words[2];
        g_snprintf(reason, 160, "version %" G_GUINT64_FORMAT " of sector %" G_GUINT64_FORMAT,
                   words[2], words[1]);
    } else {
        g_snprintf(reason, 160,
                   "bytes nobody wrote, from %016" G_GINT64_MODIFIER "x %016" G_GINT64_MODIFIER "x",
                   words[0], words[1]);
    }
    return -1;
}

static uint64_t pin_of(const uint8_t *bytes)
{
    return XXH3_64bits(bytes, SECTOR) | 1;
}

static void tell_wrong(uint64_t n, const uint8_t *bytes, uint32_t low, gboolean pinned)
{
    const Sector *s = &sectors[n];
    char reason[160];
    atomic_store(&wrong, TRUE);
    if (shown++ >= SHOWN)
        return;
    int64_t version = version_of(bytes, n, reason);
    if (version >= 0)
        g_snprintf(reason, sizeof(reason), "version %" G_GINT64_FORMAT "%s", version,
                   is_zero(bytes) ? " (zeros)" : "");
    printf("%s: sector %" G_GUINT64_FORMAT
           " holds %s; acknowledged %u, flushed %u, issued %u%s%s\n",
           source, n, reason, low, s->durable, s->issued,
           pinned ? ", other content was read before" : "", s->under_way ? ", under way" : "");
    fflush(stdout);
}

/* --- what is known; all under the lock --- */

static uint32_t durable_of(const Sector *s)
{
    return s->low_clock <= head->flushed   ? s->low
           : s->old_clock <= head->flushed ? s->old
                                           : s->durable;
}

static void raise_low(Sector *s, uint32_t low, uint32_t clock)
{
    s->durable = durable_of(s);
    s->old = s->low;
    s->old_clock = s->low_clock;
    s->low = low;
    s->low_clock = clock;
}

static uint32_t issue(uint64_t first, uint64_t n, gboolean zeros)
{
    pthread_mutex_lock(&lock);
    uint32_t seq = ++head->seq;
    for (Sector *s = &sectors[first]; s < &sectors[first + n]; s++) {
        if (s->under_way++ == 0)
            s->first = seq;
        s->issued = seq;
        s->pin = 0;
        if (zeros)
            s->zeroed = seq;
    }
    pthread_mutex_unlock(&lock);
    return seq;
}

/* durable: it was acknowledged as such. */
static void acknowledge(uint64_t first, uint64_t n, uint32_t seq, gboolean durable)
{
    pthread_mutex_lock(&lock);
    uint32_t clock = ++head->clock;
    for (Sector *s = &sectors[first]; s < &sectors[first + n]; s++)
        if (--s->under_way == 0)
            raise_low(s, s->first, durable && s->issued == seq && s->first == seq ? 0 : clock);
    pthread_mutex_unlock(&lock);
}

/* What served the device was killed: of what was under way or not flushed, nobody knows. */
static void settle(void)
{
    for (uint64_t n = 0; n < head->sectors; n++) {
        Sector *s = &sectors[n];
        uint32_t durable = durable_of(s);
        if (s->under_way || durable < s->issued)
            s->pin = 0;
        /* `first` keeps what was acknowledged, for the count. */
        s->first = s->low;
        s->durable = s->low = s->old = durable;
        s->under_way = s->low_clock = s->old_clock = 0;
    }
}

/* --- comparing --- */

typedef struct Before {
    uint32_t low, issued;
    uint64_t pin;
    gboolean quiet;
} Before;

static void look(uint64_t first, uint64_t n, Before *before)
{
    pthread_mutex_lock(&lock);
    for (uint64_t i = 0; i < n; i++) {
        const Sector *s = &sectors[first + i];
        before[i] = (Before){s->low, s->issued, s->pin, s->under_way == 0};
    }
    pthread_mutex_unlock(&lock);
}

static void compare(uint64_t first, uint64_t n, const uint8_t *bytes, const Before *before)
{
    char reason[160];
    pthread_mutex_lock(&lock);
    for (uint64_t i = 0; i < n; i++) {
        Sector *s = &sectors[first + i];
        const uint8_t *at = bytes + i * SECTOR;
        const gboolean quiet =
            before[i].quiet && s->under_way == 0 && s->issued == before[i].issued;
        const int64_t version = version_of(at, first + i, reason);
        const gboolean differs = quiet && before[i].pin && pin_of(at) != before[i].pin;
        const gboolean right = version >= before[i].low && version <= s->issued && !differs;
        if (!right)
            tell_wrong(first + i, at, before[i].low, differs);
        head->pinned_checked += quiet && before[i].pin;
        head->bounds_checked += s->issued > 0;
        if (!quiet || !right)
            continue;
        s->pin = pin_of(at);
        if (version > s->low)
            raise_low(s, (uint32_t)version, s->low_clock);
    }
    pthread_mutex_unlock(&lock);
}

static gboolean read_all(int fd, uint8_t *to, size_t len, uint64_t off)
{
    while (len > 0) {
        ssize_t n = pread(fd, to, len, (off_t)off);
        if (n <= 0) {
            errno = n < 0 ? errno : ENODATA;
            return FALSE;
        }
        to += n, len -= (size_t)n, off += (uint64_t)n;
    }
    return TRUE;
}

/* --- writing --- */

static void io_failed(const char *what, uint64_t off)
{
    int error = errno;
    if (!atomic_exchange(&failed, TRUE))
        printf("%s at %" G_GUINT64_FORMAT ": %s\n", what, off, strerror(error));
    fflush(stdout);
    atomic_store(&stopping, TRUE);
}

static void range(uint64_t *random, uint64_t unit, uint64_t max, uint64_t *off, uint64_t *len)
{
    const uint64_t bytes = head->sectors * SECTOR;
    const uint64_t kind = below(random, 10);
    const uint64_t room = kind == 0 ? HOTTEST_BYTES : kind < 5 ? HOT_BYTES : bytes;
    /* The places move slowly, so that a run goes back to what others wrote. */
    const uint64_t base = room == bytes ? 0 : (head->seq / 20000 * 37 << 20) % (bytes - room);
    *len = unit * (1 + below(random, max / unit));
    *off = base + below(random, (room - *len) / unit + 1) * unit;
}

static gboolean put(uint64_t off, uint64_t len, uint8_t *buf, uint32_t seq, gboolean durable)
{
    for (uint64_t i = 0; i < len / SECTOR; i++)
        stamp(buf + i * SECTOR, off / SECTOR + i, seq);
    const struct iovec vec = {buf, len};
    ssize_t n = pwritev2(device, &vec, 1, (off_t)off, durable ? RWF_DSYNC : 0);
    if (n >= 0 && (uint64_t)n < len)
        errno = EIO;
    return n == (ssize_t)len;
}

static gboolean clear(uint64_t off, uint64_t len, gboolean discard)
{
    const uint64_t two[2] = {off, len};
    return ioctl(device, discard ? BLKDISCARD : BLKZEROOUT, two) == 0;
}

static void one_write(uint64_t *random, uint8_t *buf)
{
    const uint64_t kind = below(random, 100);
    const gboolean zeros = kind<4, durable = kind> 90;
    uint64_t off, len;
    range(random, below(random, 4) ? 4096 : SECTOR, zeros ? 4 * MAX_LEN : MAX_LEN, &off, &len);
    uint32_t seq = issue(off / SECTOR, len / SECTOR, zeros);
    if (!(zeros ? clear(off, len, kind < 2) : put(off, len, buf, seq, durable))) {
        io_failed(zeros ? "zeroing" : "a write", off);
        return;
    }
    acknowledge(off / SECTOR, len / SECTOR, seq, durable);
    pthread_mutex_lock(&lock);
    head->writes += !zeros;
    head->zeroings += zeros;
    pthread_mutex_unlock(&lock);
}

static void one_read(uint64_t *random, uint8_t *buf, Before *before)
{
    uint64_t off, len;
    range(random, SECTOR, MAX_READ, &off, &len);
    look(off / SECTOR, len / SECTOR, before);
    if (!read_all(device, buf, len, off)) {
        io_failed("a read", off);
        return;
    }
    compare(off / SECTOR, len / SECTOR, buf, before);
    pthread_mutex_lock(&lock);
    head->reads++;
    head->sectors_read += len / SECTOR;
    pthread_mutex_unlock(&lock);
    if (atomic_load(&wrong))
        atomic_store(&stopping, TRUE);
}

static void flush(void)
{
    pthread_mutex_lock(&lock);
    uint32_t clock = head->clock;
    pthread_mutex_unlock(&lock);
    if (fdatasync(device) != 0) {
        io_failed("a flush", 0);
        return;
    }
    pthread_mutex_lock(&lock);
    head->flushed = MAX(head->flushed, clock);
    head->flushes++;
    pthread_mutex_unlock(&lock);
}

typedef struct Worker {
    pthread_t thread;
    unsigned number;
    uint64_t random;
} Worker;

static void *work(void *data)
{
    Worker *w = data;
    uint8_t *buf = aligned_alloc(4096, CHUNK);
    Before *before = g_new(Before, CHUNK / SECTOR);
    while (!atomic_load(&stopping)) {
        if (w->number < WRITERS) {
            one_write(&w->random, buf);
        } else if (w->number < WRITERS + READERS) {
            one_read(&w->random, buf, before);
        } else {
            g_usleep(below(&w->random, 30000));
            flush();
        }
    }
    g_free(before);
    free(buf);
    return NULL;
}

static void on_term(int number)
{
    (void)number;
    atomic_store(&stopping, TRUE);
}

static void write_device(uint64_t seed)
{
    Worker workers[WRITERS + READERS + 1];
    signal(SIGTERM, on_term);
    for (unsigned i = 0; i < G_N_ELEMENTS(workers); i++) {
        workers[i] = (Worker){.number = i, .random = (seed + 1) * 0x9e3779b97f4a7c15u + i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(workers); i++)
        pthread_join(workers[i].thread, NULL);
    if (!atomic_load(&failed))
        flush();
}

/* --- all of it --- */

static atomic_uint_fast64_t next_chunk;

static void *check_chunks(void *data)
{
    uint8_t *buf = aligned_alloc(4096, CHUNK);
    Before *before = g_new(Before, CHUNK / SECTOR);
    const uint64_t bytes = head->sectors * SECTOR;
    uint64_t off;
    (void)data;
    while ((off = atomic_fetch_add(&next_chunk, 1) * CHUNK) < bytes && !atomic_load(&failed)) {
        const uint64_t len = MIN(CHUNK, bytes - off);
        look(off / SECTOR, len / SECTOR, before);
        if (read_all(device, buf, len, off))
            compare(off / SECTOR, len / SECTOR, buf, before);
        else
            io_failed("a read", off);
    }
    g_free(before);
    free(buf);
    return NULL;
}

static void check_device(void)
{
    pthread_t threads[CHECKERS];
    for (unsigned i = 0; i < CHECKERS; i++)
        pthread_create(&threads[i], NULL, check_chunks, NULL);
    for (unsigned i = 0; i < CHECKERS; i++)
        pthread_join(threads[i], NULL);
    head->sectors_checked += atomic_load(&failed) ? 0 : head->sectors;
}

/* What was read last through the device was acknowledged, and nothing is under way. */
static void check_stream(void)
{
    uint8_t *buf = g_malloc(CHUNK);
    Before *before = g_new(Before, CHUNK / SECTOR);
    uint64_t off = 0, bytes = head->sectors * SECTOR;
    for (size_t n; (n = fread(buf, 1, CHUNK, stdin)) > 0; off += n) {
        if (off + n > bytes || n % SECTOR != 0)
            break;
        look(off / SECTOR, n / SECTOR, before);
        compare(off / SECTOR, n / SECTOR, buf, before);
    }
    if (off != bytes) {
        printf("%" G_GUINT64_FORMAT " bytes came, not %" G_GUINT64_FORMAT "\n", off, bytes);
        atomic_store(&failed, TRUE);
    }
    head->sectors_compared += head->sectors;
    g_free(before);
    g_free(buf);
}

static void count_lost(void)
{
    uint64_t lost = 0;
    for (uint64_t n = 0; n < head->sectors; n++)
        lost += sectors[n].low < sectors[n].first;
    head->unflushed_lost += lost;
}

/* --- another client --- */

static int foreign(uint64_t seed, char **args)
{
    rados_t cluster;
    rados_ioctx_t io;
    rbd_image_t image;
    uint64_t random = (seed + 7) * 0x9e3779b97f4a7c15u, off, len;
    uint8_t *buf = g_malloc(MAX_LEN);
    int rc = rados_create(&cluster, "admin");
    if (rc == 0)
        rc = rados_conf_read_file(cluster, args[0]);
    if (rc == 0)
        rc = rados_connect(cluster);
    if (rc == 0)
        rc = rados_ioctx_create(cluster, args[1], &io);
    if (rc == 0)
        rc = rbd_open(io, args[2], &image, NULL);
    if (rc < 0) {
        errno = -rc;
        die(args[2]);
    }
    for (unsigned i = 0; rc >= 0 && i < FOREIGN_WRITES; i++) {
        gboolean zeros = below(&random, 10) == 0;
        range(&random, below(&random, 3) ? 4096 : SECTOR, MAX_LEN, &off, &len);
        uint32_t seq = issue(off / SECTOR, len / SECTOR, zeros);
        for (uint64_t n = 0; n < len / SECTOR; n++)
            stamp(buf + n * SECTOR, off / SECTOR + n, seq);
        rc = zeros ? (int)rbd_write_zeroes(image, off, len, 0, 0)
                   : (int)rbd_write(image, off, len, (const char *)buf);
        if (rc >= 0)
            acknowledge(off / SECTOR, len / SECTOR, seq, TRUE);
        head->foreign += len / SECTOR;
    }
    g_free(buf);
    int closed = rbd_close(image);
    rados_ioctx_destroy(io);
    rados_shutdown(cluster);
    if (rc >= 0 && closed >= 0)
        return 0;
    errno = rc < 0 ? -rc : -closed;
    die("writing the image");
}

/* --- the state --- */

static uint64_t bytes_of(const char *path)
{
    uint64_t bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes) != 0)
        die(path);
    close(fd);
    return bytes;
}

/* Made for the device, which has to be empty, when there is none. */
static Head *open_state(const char *path, const char *made_for)
{
    struct stat st;
    int fd = open(path, O_RDWR | (made_for ? O_CREAT : 0) | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) != 0)
        die(path);
    uint64_t n = st.st_size == 0 && made_for ? bytes_of(made_for) / SECTOR : 0;
    if (n && ftruncate(fd, (off_t)(HEAD_BYTES + n * sizeof(Sector))) != 0)
        die(path);
    if (fstat(fd, &st) != 0 || st.st_size < HEAD_BYTES)
        die(path);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        die(path);
    Head *h = map;
    if (n)
        *h = (Head){.magic = STATE_MAGIC, .sectors = n};
    errno = EINVAL;
    if (h->magic != STATE_MAGIC || HEAD_BYTES + h->sectors * sizeof(Sector) != (uint64_t)st.st_size)
        die(path);
    return h;
}

static Sector *sectors_of(Head *h)
{
    return (Sector *)((char *)h + HEAD_BYTES);
}

static void go_back(const char *path)
{
    const Sector *then = sectors_of(open_state(path, NULL));
    for (uint64_t n = 0; n < head->sectors; n++)
        head->foreign += then[n].issued != sectors[n].issued;
    memcpy(sectors, then, head->sectors * sizeof(Sector));
}

static void open_device(const char *path, gboolean writable)
{
    source = path;
    device = open(path, (writable ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
    if (device < 0)
        die(path);
}

static void print_counts(void)
{
#define COUNT(name)                                                                                \
    printf("%s\"" #name "\": %" G_GUINT64_FORMAT, first ? "{" : ", ", head->name), first = 0
    int first = 1;
    COUNT(writes);
    COUNT(zeroings);
    COUNT(flushes);
    COUNT(reads);
    COUNT(sectors_read);
    COUNT(sectors_checked);
    COUNT(sectors_compared);
    COUNT(pinned_checked);
    COUNT(bounds_checked);
    COUNT(unflushed_lost);
    COUNT(foreign);
    printf("}\n");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
    } verbs[] = {{"write", 5},   {"check", 4}, {"after-crash", 4},
                 {"foreign", 7}, {"back", 4},  {"count", 3}};
    const char *verb = argc > 2 ? argv[1] : "";
    unsigned v = 0;
    while (v < G_N_ELEMENTS(verbs) && (strcmp(verb, verbs[v].name) != 0 || argc != verbs[v].args))
        v++;
    if (v == G_N_ELEMENTS(verbs)) {
        fprintf(stderr, "image-writer VERB STATE ...: see the top of its source\n");
        return 2;
    }
    head = open_state(argv[2], strcmp(verb, "write") == 0 ? argv[4] : NULL);
    sectors = sectors_of(head);
    source = verb;
    if (strcmp(verb, "write") == 0) {
        open_device(argv[4], TRUE);
        write_device(strtoull(argv[3], NULL, 0));
        return atomic_load(&wrong) ? 1 : 0;
    }
    if (strcmp(verb, "after-crash") == 0)
        settle();
    if (strcmp(verb, "foreign") == 0) {
        return foreign(strtoull(argv[3], NULL, 0), argv + 4);
    } else if (strcmp(verb, "back") == 0) {
        go_back(argv[3]);
    } else if (strcmp(verb, "count") == 0) {
        print_counts();
    } else if (strcmp(argv[3], "-") == 0) {
        source = "Ceph";
        check_stream();
    } else {
        open_device(argv[3], FALSE);
        check_device();
        if (strcmp(verb, "after-crash") == 0 && !atomic_load(&failed))
            count_lost();
    }
    return atomic_load(&wrong) ? 1 : atomic_load(&failed) ? 2 : 0;
}
