/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes: writes, truncation, holes, mappings, what is unlinked while open. See posix-check.h. */
#include <linux/falloc.h>
#include <sys/mman.h>
#include "posix-check.h"

static const char *truncate_up_down(void)
{
    OK(put("a", "0123456789"));
    OK(truncate("a", 4));
    NEED(holds("a", "0123"), "after truncating to 4 bytes");
    OK(truncate("a", 8));
    int fd = open("a", O_RDONLY);
    char text[16];
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    NEED(n == 8 && memcmp(text, "0123\0\0\0\0", 8) == 0, "after truncating up to 8: %zd bytes", n);
    OK(truncate("a", 0));
    NEED(size_of("a") == 0, "size %lld", (long long)size_of("a"));
    FAILS(truncate("a", -1), EINVAL);
    return NULL;
}

static const char *open_truncating(void)
{
    OK(put("a", "a long old content"));
    NEED(holds("a", "a long old content"), "setup");
    OK(put("a", "new"));
    NEED(holds("a", "new"), "old bytes survive O_TRUNC");
    return NULL;
}

static const char *append(void)
{
    OK(put("a", "one"));
    int x = open("a", O_WRONLY | O_APPEND), y = open("a", O_WRONLY | O_APPEND);
    OK(x);
    OK(y);
    NEED(write(x, "two", 3) == 3 && write(y, "three", 5) == 5 && write(x, "four", 4) == 4,
         "write: %s", strerror(errno));
    close(x);
    close(y);
    NEED(holds("a", "onetwothreefour"), "appends overwrite each other");
    return NULL;
}

static const char *sparse(void)
{
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    OK(fd);
    off_t far = 100LL << 20;
    NEED(pwrite(fd, "end", 3, far) == 3, "write: %s", strerror(errno));
    char text[4096];
    NEED(pread(fd, text, sizeof(text), 50 << 20) == (ssize_t)sizeof(text), "a hole reads short");
    for (size_t i = 0; i < sizeof(text); i++)
        NEED(text[i] == 0, "a hole holds a byte");
    NEED(pread(fd, text, sizeof(text), far) == 3 && memcmp(text, "end", 3) == 0,
         "the end is not there");
    NEED(size_of("a") == far + 3, "size %lld", (long long)size_of("a"));
    /* And through a fresh open, which may come from the cache. */
    OK(close(fd));
    fd = open("a", O_RDONLY);
    NEED(pread(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) && text[0] == 0,
         "hole, reopened");
    NEED(pread(fd, text, sizeof(text), far) == 3 && memcmp(text, "end", 3) == 0, "end, reopened");
    close(fd);
    return NULL;
}

static const char *read_own_writes(void)
{
    int fd = open("a", O_RDWR | O_CREAT, 0644), other = open("a", O_RDONLY);
    OK(fd);
    OK(other);
    for (int i = 0; i < 200; i++) {
        char text[8], back[8] = "";
        g_snprintf(text, sizeof(text), "%07d", i);
        NEED(pwrite(fd, text, 7, (i * 37) % 9000) == 7, "write: %s", strerror(errno));
        NEED(pread(other, back, 7, (i * 37) % 9000) == 7 && strcmp(text, back) == 0,
             "write %d is not read through another descriptor: \"%s\"", i, back);
    }
    close(fd);
    close(other);
    return NULL;
}

static const char *unaligned_large_write(void)
{
    size_t length = 9 * 1024 * 1024 + 12345;
    g_autofree unsigned char *data = g_malloc(length), *back = g_malloc(length);
    for (size_t i = 0; i < length; i++)
        data[i] = (unsigned char)((i * 2654435761u) >> 13);
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    OK(fd);
    for (size_t at = 0; at < length;) {
        size_t step = MIN(length - at, (size_t)777777);
        ssize_t n = pwrite(fd, data + at, step, (off_t)at);
        NEED(n > 0, "write: %s", strerror(errno));
        at += (size_t)n;
    }
    OK(fsync(fd));
    OK(close(fd));
    fd = open("a", O_RDONLY);
    for (size_t at = 0; at < length;) {
        ssize_t n = pread(fd, back + at, length - at, (off_t)at);
        NEED(n > 0, "read at %zu: %s", at, n ? strerror(errno) : "end of file");
        at += (size_t)n;
    }
    close(fd);
    NEED(memcmp(data, back, length) == 0, "the bytes differ");
    return NULL;
}

static const char *fsync_and_fdatasync(void)
{
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    OK(fd);
    NEED(write(fd, "x", 1) == 1, "write: %s", strerror(errno));
    OK(fdatasync(fd));
    NEED(write(fd, "y", 1) == 1, "write: %s", strerror(errno));
    OK(fsync(fd));
    OK(close(fd));
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    OK(fsync(dir));
    OK(close(dir));
    NEED(holds("a", "xy"), "bytes");
    return NULL;
}

static const char *allocate(void)
{
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    OK(fd);
    if (fallocate(fd, 0, 0, 1 << 20) != 0) {
        close(fd);
        NEED(errno == EOPNOTSUPP || errno == ENOSYS, "fallocate: %s", strerror(errno));
        /* glibc then writes; that has to work. */
        fd = open("a", O_RDWR);
        int rc = posix_fallocate(fd, 0, 65536);
        close(fd);
        NEED(rc == 0, "posix_fallocate: %s", strerror(rc));
        NEED(size_of("a") == 65536, "size %lld", (long long)size_of("a"));
        return SKIP "no fallocate here; posix_fallocate works";
    }
    NEED(size_of("a") == 1 << 20, "size %lld after fallocate", (long long)size_of("a"));
    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20));
    NEED(size_of("a") == 1 << 20, "FALLOC_FL_KEEP_SIZE changed the size");
    close(fd);
    return NULL;
}

static const char *punch_hole(void)
{
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    OK(fd);
    char text[8192];
    memset(text, 'x', sizeof(text));
    NEED(pwrite(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text), "write");
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1000, 4096) != 0) {
        int error = errno;
        close(fd);
        NEED(error == EOPNOTSUPP || error == ENOSYS, "fallocate: %s", strerror(error));
        return SKIP "no hole punching here";
    }
    NEED(pread(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text), "read");
    for (int i = 0; i < (int)sizeof(text); i++)
        NEED(text[i] == (i >= 1000 && i < 5096 ? 0 : 'x'), "byte %d is %d", i, text[i]);
    close(fd);
    return NULL;
}

static const char *mmap_shared_write(void)
{
    OK(put("a", "0123456789"));
    int fd = open("a", O_RDWR);
    OK(fd);
    OK(ftruncate(fd, 20000));
    char *map = mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    NEED(map != MAP_FAILED, "mmap: %s", strerror(errno));
    memcpy(map + 2, "MAP", 3);
    memcpy(map + 19000, "far", 3);
    OK(msync(map, 20000, MS_SYNC));
    OK(munmap(map, 20000));
    OK(close(fd));
    fd = open("a", O_RDONLY);
    char text[10], far[3];
    NEED(pread(fd, text, 10, 0) == 10 && memcmp(text, "01MAP56789", 10) == 0, "first page");
    NEED(pread(fd, far, 3, 19000) == 3 && memcmp(far, "far", 3) == 0, "last page");
    close(fd);
    return NULL;
}

static const char *mmap_sees_write(void)
{
    OK(put("a", "0123456789"));
    int fd = open("a", O_RDWR);
    OK(fd);
    char *map = mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0);
    NEED(map != MAP_FAILED, "mmap: %s", strerror(errno));
    NEED(map[0] == '0', "setup");
    NEED(pwrite(fd, "X", 1, 0) == 1, "write: %s", strerror(errno));
    NEED(map[0] == 'X', "a write through a descriptor is not seen in the mapping");
    munmap(map, 10);
    close(fd);
    return NULL;
}

static const char *direct_io(void)
{
    OK(put("a", "0123456789"));
    int fd = open("a", O_RDWR | O_DIRECT);
    if (fd < 0 && errno == EINVAL)
        return SKIP "no O_DIRECT here";
    OK(fd);
    g_autofree char *raw = g_malloc(8192);
    char *aligned = (char *)(((uintptr_t)raw + 4095) & ~(uintptr_t)4095);
    ssize_t n = pread(fd, aligned, 4096, 0);
    NEED(n == 10 && memcmp(aligned, "0123456789", 10) == 0, "O_DIRECT read gives %zd", n);
    memset(aligned, 'd', 4096);
    NEED(pwrite(fd, aligned, 4096, 0) == 4096, "O_DIRECT write: %s", strerror(errno));
    close(fd);
    char back[4096];
    fd = open("a", O_RDONLY);
    NEED(read(fd, back, sizeof(back)) == 4096 && back[0] == 'd' && back[4095] == 'd',
         "what O_DIRECT wrote is not read");
    close(fd);
    return NULL;
}

/* Through another descriptor, also while the file stays open and was read before. */
static const char *direct_writes_are_read(void)
{
    g_autofree char *raw = g_malloc(8192);
    char *aligned = (char *)(((uintptr_t)raw + 4095) & ~(uintptr_t)4095);
    char back[4096];
    for (int held = 0; held < 2; held++) {
        memset(aligned, 'o', 4096);
        int fd = open("a", O_RDWR | O_CREAT, 0644);
        OK(fd);
        NEED(pwrite(fd, aligned, 4096, 0) == 4096, "write: %s", strerror(errno));
        NEED(pread(fd, back, 4096, 0) == 4096, "read: %s", strerror(errno));
        if (!held)
            OK(close(fd));
        int direct = open("a", O_RDWR | O_DIRECT);
        if (direct < 0 && errno == EINVAL)
            return SKIP "no O_DIRECT here";
        OK(direct);
        memset(aligned, 'n', 4096);
        NEED(pwrite(direct, aligned, 4096, 0) == 4096, "O_DIRECT write: %s", strerror(errno));
        OK(close(direct));
        int reader = open("a", O_RDONLY);
        OK(reader);
        NEED(pread(reader, back, 4096, 0) == 4096 && back[0] == 'n' && back[4095] == 'n',
             "old bytes are read, the file %s", held ? "held open" : "closed before");
        OK(close(reader));
        if (held)
            OK(close(fd));
    }
    return NULL;
}

static const char *write_errors(void)
{
    OK(put("a", "x"));
    int fd = open("a", O_RDONLY);
    FAILS(write(fd, "y", 1), EBADF);
    close(fd);
    FAILS(open(".", O_WRONLY), EISDIR);
    fd = open(".", O_RDONLY);
    char c;
    FAILS(read(fd, &c, 1), EISDIR);
    close(fd);
    return NULL;
}

static const char *seek_to_end(void)
{
    OK(put("a", "12345"));
    int fd = open("a", O_RDWR);
    NEED(lseek(fd, 0, SEEK_END) == 5, "SEEK_END is not 5");
    NEED(write(fd, "6", 1) == 1, "write");
    NEED(lseek(fd, -1, SEEK_END) == 5, "SEEK_END is not moved by a write");
    char text[4];
    NEED(pread(fd, text, 4, 100) == 0, "a read past the end gives bytes");
    close(fd);
    return NULL;
}

static int truncate_and_write_far(void)
{
    for (int i = 0; i < 3; i++) {
        int fd = open("a", O_RDWR | O_CREAT | O_TRUNC, 0666);
        if (fd < 0 || pwrite(fd, "far away", 8, 8 << 20) != 8 || close(fd) < 0)
            return errno;
    }
    return 0;
}

/* In a process of its own, without our output: one that hangs is not to be waited for. */
static const char *far_write_after_truncating_ends(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        _exit(truncate_and_write_far());
    }
    int status = 0, tries = 200;
    while (waitpid(pid, &status, WNOHANG) == 0 && --tries)
        g_usleep(50000);
    NEED(tries, "not ended after 10 s");
    NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", strerror(WEXITSTATUS(status)));
    return NULL;
}

int main(int argc, char **argv)
{
    static const PosixCheck checks[] = {
        ROW(truncate_up_down),
        ROW(open_truncating),
        ROW(append),
        ROW(sparse),
        ROW(read_own_writes),
        ROW(unaligned_large_write),
        ROW(fsync_and_fdatasync),
        ROW(allocate),
        ROW(punch_hole),
        ROW(mmap_shared_write),
        ROW(mmap_sees_write),
        ROW(direct_io),
        ROW(direct_writes_are_read),
        ROW(write_errors),
        ROW(seek_to_end),
        ROW(far_write_after_truncating_ends),
    };
    return posix_main(argc, argv, checks, G_N_ELEMENTS(checks));
}
