/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations on a few files through one or more mounts of one volume, each byte read
 * compared with a model in memory. One thread, so what comes later must see what came before:
 * close-to-open on every mount, and for descriptors held open too.
 *
 *   file-torture SEED SECONDS DIR [DIR...]     HELD=no: no descriptor outlives its operation
 *
 * The same seed gives the same operations, if not the same timing. The first difference ends it:
 * what was read, what was expected, the operations before it, and what each mount shows then.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAMES 10
#define HELD 12
#define SIZE_MAX_FILE (3 << 20)
#define HISTORY 60

typedef struct File {
    unsigned char *bytes;
    size_t size;
    unsigned refs; /* names and held descriptors */
    unsigned number;
} File;

static struct {
    File *file;
    int fd, flags, dir;
} held[HELD];
static File *names[NAMES]; /* NULL: no such name */
static char **dirs;
static int n_dirs;
static unsigned n_files, n_held = HELD;
static int using_held; /* a descriptor that was opened before what it is to see */
static uint64_t state, step, noted, bytes_checked;
static char history[HISTORY][200];
static unsigned char *scratch;

static uint64_t next(void) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}
static size_t below(size_t n)
{
    return n ? (size_t)((next() >> 16) % n) : 0;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list args;
    char *line = history[noted++ % HISTORY];
    int n = snprintf(line, sizeof(history[0]), "%llu: ", (unsigned long long)step);
    va_start(args, format);
    vsnprintf(line + n, sizeof(history[0]) - (size_t)n, format, args);
    va_end(args);
    if (getenv("VERBOSE"))
        fprintf(stderr, "%s\n", line);
}

static const char *path_of(int dir, unsigned name)
{
    static char path[2][4096];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[0]), "%s/f%u", dirs[dir], name);
    return path[turn];
}

__attribute__((noreturn)) static void end(void)
{
    for (uint64_t n = noted < HISTORY ? 0 : noted - HISTORY; n < noted; n++)
        fprintf(stderr, "  %s\n", history[n % HISTORY]);
    exit(1);
}

static void show(int fd, const File *file, size_t at, const char *who)
{
    unsigned char now[16] = {0};
    struct stat st = {0};
    fstat(fd, &st);
    ssize_t n = pread(fd, now, sizeof(now), (off_t)at);
    fprintf(stderr, "  %s: size %lld, %zd bytes at %zu:", who, (long long)st.st_size, n, at);
    for (ssize_t i = 0; i < n; i++)
        fprintf(stderr, " %02x", now[i]);
    fprintf(stderr, "%s\n",
            n > 0 && memcmp(now, file->bytes + at, (size_t)n) == 0 ? " (right)" : "");
}

static void wrong(const File *file, int dir, int fd, size_t at, const char *what)
{
    fprintf(stderr, "file %u through %s: %s at byte %zu\n  expected size %zu:", file->number,
            dirs[dir], what, at, file->size);
    for (size_t i = at; i < at + 16 && i < file->size; i++)
        fprintf(stderr, " %02x", file->bytes[i]);
    fprintf(stderr, "\n");
    show(fd, file, at, "the same descriptor");
    usleep(300000);
    show(fd, file, at, "the same descriptor, 0.3 s later");
    for (unsigned n = 0; n < NAMES; n++)
        for (int d = 0; names[n] == file && d < n_dirs; d++) {
            int again = open(path_of(d, n), O_RDONLY);
            if (again >= 0)
                show(again, file, at, path_of(d, n));
            close(again);
        }
    end();
}

static void broken(const char *what, int dir)
{
    int error = errno;
    fprintf(stderr, "%s through %s: %s\n", what, dirs[dir], strerror(error));
    end();
}
#define TRY(call, dir)                                                                             \
    ({                                                                                             \
        __auto_type tried = (call);                                                                \
        if (tried < 0)                                                                             \
            broken(#call, dir);                                                                    \
        tried;                                                                                     \
    })

static File *file_new(void)
{
    File *file = calloc(1, sizeof(*file));
    file->bytes = calloc(1, SIZE_MAX_FILE + 4096);
    file->number = ++n_files;
    file->refs = 1;
    return file;
}

static void file_unref(File *file)
{
    if (!file || --file->refs)
        return;
    free(file->bytes);
    free(file);
}

static void set_size(File *file, size_t size)
{
    if (size < file->size)
        memset(file->bytes + size, 0, file->size - size);
    file->size = size;
}

static void some_bytes(unsigned char *to, size_t len)
{
    uint64_t value = next();
    for (size_t i = 0; i < len; i++, value = value * 6364136223846793005u + 1442695040888963407u)
        to[i] = (unsigned char)(value >> 56) | 1;
}

/* --- reading --- */

/* Times to look, 10 ms apart. Through a descriptor that has no lease, what was read ahead may be
 * older than a write on the other node until it is dropped. */
static int patience(void)
{
    return using_held && n_dirs > 1 ? 20 : 1;
}

/* TRUE: as the model has it. *done: bytes read; *at: the first that is wrong. */
static int as_expected(const File *file, int dir, int fd, size_t off, size_t len, size_t want,
                       size_t *done, size_t *at)
{
    *done = 0;
    while (*done < len) {
        ssize_t n = TRY(pread(fd, scratch + *done, len - *done, (off_t)(off + *done)), dir);
        *done += (size_t)n;
        if (n % 4096 != 0 || n == 0) /* the end; another read may not be aligned for O_DIRECT */
            break;
    }
    for (*at = 0; *at < *done && *at < want; ++*at)
        if (scratch[*at] != file->bytes[off + *at])
            return 0;
    return *done == want;
}

static void check_range(File *file, int dir, int fd, size_t off, size_t len)
{
    size_t want = off >= file->size ? 0 : off + len > file->size ? file->size - off : len;
    size_t done = 0, at = 0;
    /* The kernel may miss a new end for a moment, while pages of an earlier read are dropped. */
    for (int tries = 20; tries; tries--) {
        struct stat st;
        if (fstat(fd, &st) == 0 && (size_t)st.st_size == file->size)
            break;
        usleep(10000);
    }
    for (int tries = patience(); !as_expected(file, dir, fd, off, len, want, &done, &at);
         usleep(10000))
        if (--tries == 0)
            wrong(file, dir, fd, off + at,
                  at < done && at < want ? "wrong byte"
                  : done < want          ? "short"
                                         : "too long");
    bytes_checked += done;
}

static size_t length(void)
{
    static const size_t lengths[] = {16, 1000, 4096, 20000, 70000, 300000, 1 << 20};
    return 1 + below(lengths[below(7)]);
}

static void check_some(File *file, int dir, int fd)
{
    if (below(3) == 0)
        check_range(file, dir, fd, 0, SIZE_MAX_FILE + 4096);
    else
        for (int i = 0; i < 3; i++)
            check_range(file, dir, fd, below(file->size + 5000), length());
}

static void check_mapped(File *file, int dir, int fd)
{
    check_range(file, dir, fd, file->size, 1);
    if (file->size == 0)
        return;
    size_t size = file->size;
    const volatile unsigned char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        broken("mmap", dir);
    for (size_t i = 0; i < size; i += below(6000))
        for (int tries = patience(); map[i] != file->bytes[i]; usleep(10000))
            if (--tries == 0)
                wrong(file, dir, fd, i, "wrong byte in a mapping");
    munmap((void *)(uintptr_t)map, size);
}

/* --- changing --- */

static size_t place(const File *file, size_t len, int grow)
{
    size_t room = grow ? SIZE_MAX_FILE - len : file->size > len ? file->size - len : 0;
    size_t at = below(4) ? below((file->size < room ? file->size : room) + 1) : below(room + 1);
    return below(3) ? at : at & ~(size_t)4095;
}

static void write_file(File *file, int dir, int fd, int flags)
{
    size_t len = length(), off = place(file, len, 1);
    if (flags & O_APPEND) {
        off = file->size;
        if (off + len > SIZE_MAX_FILE)
            return;
    }
    some_bytes(scratch, len);
    note("write %zu at %zu of file %u through %s%s", len, off, file->number, dirs[dir],
         flags & O_APPEND ? ", appended" : "");
    for (size_t done = 0; done < len;)
        done += (size_t)TRY(pwrite(fd, scratch + done, len - done, (off_t)(off + done)), dir);
    memcpy(file->bytes + off, scratch, len);
    if (off + len > file->size)
        file->size = off + len;
}

static void write_mapped(File *file, int dir, int fd)
{
    check_range(file, dir, fd, file->size, 1);
    if (file->size == 0)
        return;
    unsigned char *map = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        broken("mmap", dir);
    size_t len = 1 + below(file->size < 50000 ? file->size : 50000);
    size_t off = below(file->size - len + 1);
    note("write %zu at %zu of file %u, mapped, through %s", len, off, file->number, dirs[dir]);
    for (int tries = patience(); memcmp(map + off, file->bytes + off, len) != 0; usleep(10000))
        if (--tries == 0)
            wrong(file, dir, fd, off, "wrong bytes in a writable mapping");
    some_bytes(map + off, len);
    memcpy(file->bytes + off, map + off, len);
    if (msync(map, file->size, MS_SYNC) < 0)
        broken("msync", dir);
    munmap(map, file->size);
}

static void punch(File *file, int dir, int fd)
{
    size_t len = length(), off = place(file, len, 0);
    note("punch %zu at %zu of file %u through %s", len, off, file->number, dirs[dir]);
    TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len), dir);
    if (off < file->size)
        memset(file->bytes + off, 0, off + len > file->size ? file->size - off : len);
}

static void change(File *file, int dir, int fd, int flags)
{
    switch (below(8)) {
    case 0:
        write_mapped(file, dir, fd);
        break;
    case 1:
        punch(file, dir, fd);
        break;
    case 2: {
        size_t size = below(file->size * 5 / 4 + 20000) % SIZE_MAX_FILE;
        note("truncate file %u to %zu through %s, open", file->number, size, dirs[dir]);
        TRY(ftruncate(fd, (off_t)size), dir);
        set_size(file, size);
        break;
    }
    default:
        for (size_t i = 1 + below(3); i; i--)
            write_file(file, dir, fd, flags);
    }
    if (below(3) == 0)
        TRY(fsync(fd), dir);
    if (below(2) == 0)
        check_range(file, dir, fd, below(file->size + 1), length());
}

static int open_name(unsigned name, int dir, int flags)
{
    int fd = open(path_of(dir, name), flags | O_CLOEXEC, 0644);
    if (fd < 0)
        broken("open", dir);
    return fd;
}

static void change_name(unsigned name, int dir)
{
    File *file = names[name];
    static const int more[] = {0, 0, 0, O_APPEND, O_TRUNC, O_CREAT};
    int flags = O_RDWR | more[below(6)];
    note("open file %u as f%u, flags %x, through %s", file->number, name, (unsigned)flags,
         dirs[dir]);
    int fd = open_name(name, dir, flags);
    if (flags & O_TRUNC)
        set_size(file, 0);
    change(file, dir, fd, flags);
    TRY(close(fd), dir);
}

static void check_name(unsigned name, int dir)
{
    File *file = names[name];
    int direct = below(12) == 0;
    note("check file %u as f%u through %s%s", file->number, name, dirs[dir],
         direct ? ", O_DIRECT" : "");
    int fd = open_name(name, dir, O_RDONLY | (direct ? O_DIRECT : 0));
    if (!direct && below(4) == 0)
        check_mapped(file, dir, fd);
    else if (direct)
        check_range(file, dir, fd, below(file->size / 4096 + 1) * 4096, 4096 * (1 + below(100)));
    else
        check_some(file, dir, fd);
    close(fd);
}

static void rename_name(unsigned name, int dir)
{
    unsigned to = (unsigned)below(NAMES);
    if (to == name)
        return;
    note("rename f%u (file %u) to f%u through %s", name, names[name]->number, to, dirs[dir]);
    TRY(rename(path_of(dir, name), path_of(dir, to)), dir);
    if (names[to] == names[name]) /* two links of one file: rename(2) does nothing */
        return;
    file_unref(names[to]);
    names[to] = names[name];
    names[name] = NULL;
}

static void link_name(unsigned name, int dir)
{
    unsigned to = (unsigned)below(NAMES);
    if (names[to])
        return;
    note("link f%u (file %u) as f%u through %s", name, names[name]->number, to, dirs[dir]);
    TRY(link(path_of(dir, name), path_of(dir, to)), dir);
    names[to] = names[name];
    names[to]->refs++;
}

static void create(unsigned name, int dir)
{
    note("create file %u as f%u through %s", n_files + 1, name, dirs[dir]);
    File *file = names[name] = file_new();
    int fd = open_name(name, dir, O_RDWR | O_CREAT | O_EXCL);
    change(file, dir, fd, 0);
    TRY(close(fd), dir);
}

/* --- descriptors that stay --- */

static void use_held(unsigned slot)
{
    if (!held[slot].file) {
        unsigned name = (unsigned)below(NAMES);
        if (!names[name])
            return;
        static const int flags[] = {O_RDONLY, O_RDONLY, O_RDONLY, O_RDWR, O_RDWR | O_APPEND};
        held[slot].dir = (int)below((size_t)n_dirs);
        held[slot].flags = flags[below(5)];
        note("hold file %u as f%u, flags %x, through %s", names[name]->number, name,
             (unsigned)held[slot].flags, dirs[held[slot].dir]);
        held[slot].fd = open_name(name, held[slot].dir, held[slot].flags);
        held[slot].file = names[name];
        held[slot].file->refs++;
    } else if (below(10) == 0) {
        note("let go of file %u through %s", held[slot].file->number, dirs[held[slot].dir]);
        TRY(close(held[slot].fd), held[slot].dir);
        file_unref(held[slot].file);
        held[slot].file = NULL;
    } else if (held[slot].flags != O_RDONLY && below(3) == 0) {
        change(held[slot].file, held[slot].dir, held[slot].fd, held[slot].flags);
    } else {
        note("check file %u, held (flags %x), through %s", held[slot].file->number,
             (unsigned)held[slot].flags, dirs[held[slot].dir]);
        if (below(5) == 0)
            check_mapped(held[slot].file, held[slot].dir, held[slot].fd);
        else
            check_some(held[slot].file, held[slot].dir, held[slot].fd);
    }
}

static void one_step(void)
{
    unsigned name = (unsigned)below(NAMES);
    int dir = (int)below((size_t)n_dirs);
    size_t kind = below(100);
    using_held = n_held && kind < 30;
    if (using_held)
        use_held((unsigned)below(n_held));
    else if (!names[name])
        create(name, dir);
    else if (kind < 65)
        check_name(name, dir);
    else if (kind < 85)
        change_name(name, dir);
    else if (kind < 90) {
        size_t size = below(names[name]->size * 5 / 4 + 20000) % SIZE_MAX_FILE;
        note("truncate f%u (file %u) to %zu through %s", name, names[name]->number, size,
             dirs[dir]);
        TRY(truncate(path_of(dir, name), (off_t)size), dir);
        set_size(names[name], size);
    } else if (kind < 93)
        rename_name(name, dir);
    else if (kind < 96)
        link_name(name, dir);
    else if (kind < 98) {
        note("unlink f%u (file %u) through %s", name, names[name]->number, dirs[dir]);
        TRY(unlink(path_of(dir, name)), dir);
        file_unref(names[name]);
        names[name] = NULL;
    } else {
        int fd = open_name(name, dir, O_RDONLY);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: file-torture SEED SECONDS DIR [DIR...]\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
    time_t until = time(NULL) + atoi(argv[2]);
    dirs = argv + 3;
    n_dirs = argc - 3;
    const char *no = getenv("HELD");
    if (no && strcmp(no, "no") == 0)
        n_held = 0;
    scratch = aligned_alloc(4096, SIZE_MAX_FILE + (2 << 20));
    for (; time(NULL) < until; step++)
        one_step();
    printf("%llu operations, %llu bytes compared\n", (unsigned long long)step,
           (unsigned long long)bytes_checked);
    return 0;
}
