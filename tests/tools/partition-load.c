/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the partition torture: reads 8 files (f0 to f7) over and over, each in several ways,
 * writes some of them, and logs what it did and saw (partition-log.h).
 *
 *   partition-load make LOG DIR
 *     makes the files, synced
 *   partition-load node CLIENT LOG SEED LOCKS WRITES HOLDS DIR
 *     below a mount, until it is killed
 *   partition-load plain CLIENT LOG SEED LOCKS WRITES HOLDS CONF USER KEYRING FS ROOT
 *     by libcephfs, until the session is lost
 *   partition-load fresh LOG CONF USER KEYRING FS ROOT
 *     a new client of libcephfs reads each file once
 *   partition-load rados LOG CONF USER KEYRING POOL DIR
 *     reads the files' objects in RADOS, until it is killed
 *
 * CLIENT is a number from 1 to 15. WRITES names the files to be written ("023"), HOLDS those that
 * are kept open and mapped, read often and written often; the others are used now and then, so that
 * who holds them has them for itself, with writes that are not in Ceph yet. LOCKS is a directory:
 * who writes a file has a lock there for as long as pwrite takes, or for 2 s, so that writes hardly
 * ever overlap. Files 0 to 3 are written every few seconds, so that leases on them are there; the
 * others all the time, those of a node by open(O_TRUNC) too.
 */
#include <cephfs/libcephfs.h>
#include <rados/librados.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "tests/tools/partition-log.h"

typedef struct Job {
    int file;
    unsigned seed;
} Job;

static unsigned client;
static const char *dir, *locks, *files_held = "";
static struct ceph_mount_info *ceph;
static rados_ioctx_t pool;

/* ---- one file system or the other; -errno ---- */

static int open_file(int file, int flags)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/f%d", ceph ? "" : dir, file);
    int fd = ceph ? ceph_open(ceph, path, flags, 0644) : open(path, flags | O_CLOEXEC, 0644);
    return ceph || fd >= 0 ? fd : -errno;
}

static int64_t read_file(int fd, void *to)
{
    ssize_t n = ceph ? ceph_read(ceph, fd, to, FILE_BYTES, 0) : pread(fd, to, FILE_BYTES, 0);
    return ceph || n >= 0 ? n : -errno;
}

static int64_t write_file(int fd, const void *from)
{
    ssize_t n = ceph ? ceph_write(ceph, fd, from, FILE_BYTES, 0) : pwrite(fd, from, FILE_BYTES, 0);
    return ceph || n >= 0 ? n : -errno;
}

static int sync_file(int fd)
{
    int r = ceph ? ceph_fsync(ceph, fd, 0) : fsync(fd);
    return ceph || r == 0 ? r : -errno;
}

static int close_file(int fd)
{
    if (fd < 0)
        return 0;
    int r = ceph ? ceph_close(ceph, fd) : close(fd);
    return ceph || r == 0 ? r : -errno;
}

static void failed(int file, const char *how, uint64_t began, int64_t r)
{
    log_error(file, how, began, (int)-r);
    /* libcephfs never goes on by itself: the next process is another client. */
    if (ceph && (r == -ESHUTDOWN || r == -ENOTCONN || r == -EBADF || r == -ESTALE))
        _exit(3);
}

static void pause_ms(Job *job, unsigned least, unsigned most)
{
    usleep((least + (unsigned)rand_r(&job->seed) % (most - least)) * 1000);
}

static unsigned one_of(Job *job, unsigned n)
{
    return (unsigned)rand_r(&job->seed) % n;
}

/* ---- readers ---- */

static void read_once(int file, int fd, const char *how, uint64_t began, void *to)
{
    int64_t n = fd < 0 ? fd : read_file(fd, to);
    if (n < 0)
        failed(file, how, began, n);
    else
        log_read(file, how, began, to, (size_t)n);
}

static int is_held(const Job *job)
{
    return strchr(files_held, '0' + job->file) != NULL;
}

/* So long, or longer where another client is to have the file for itself. */
static void rest(Job *job, unsigned least, unsigned most)
{
    if (is_held(job))
        pause_ms(job, least, most);
    else
        pause_ms(job, 8000, 25000);
}

static void *fresh_reader(void *data)
{
    Job *job = data;
    void *buffer = aligned_alloc(PAGE, FILE_BYTES);
    for (;;) {
        const int direct = !ceph && one_of(job, 4) == 0;
        const uint64_t began = now_us();
        int fd = open_file(job->file, O_RDONLY | (direct ? O_DIRECT : 0));
        read_once(job->file, fd, direct ? "direct" : "open", began, buffer);
        close_file(fd);
        rest(job, 100, 300);
    }
    return NULL;
}

/* Descriptors and mappings stay, for what is asked of the node while it is cut off is what it
 * keeps. */
enum { USES = 500 };

static void *read_held(Job *job, int drop)
{
    void *buffer = aligned_alloc(PAGE, FILE_BYTES);
    int fd = -1;
    for (;;) {
        if (fd < 0)
            fd = open_file(job->file, O_RDONLY);
        const uint64_t began = now_us();
        if (drop)
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        read_once(job->file, fd, drop ? "drop" : "held", began, buffer);
        pause_ms(job, 100, 300);
        if (one_of(job, USES) == 0) {
            close_file(fd);
            fd = -1;
        }
    }
    return NULL;
}

static void *held_reader(void *data)
{
    return read_held(data, 0);
}

/* The kernel's pages are dropped before each read. */
static void *dropping_reader(void *data)
{
    return read_held(data, 1);
}

/* A page that cannot be read. */
static __thread sigjmp_buf on_bus_error;
static void bus_error(int signal)
{
    (void)signal;
    siglongjmp(on_bus_error, 1);
}

static void copy_mapped(int file, const void *map, void *to)
{
    const uint64_t began = now_us();
    if (sigsetjmp(on_bus_error, 1)) {
        log_error(file, "map", began, EIO);
        return;
    }
    memcpy(to, map, FILE_BYTES);
    log_read(file, "map", began, to, FILE_BYTES);
}

static void *mapped_reader(void *data)
{
    Job *job = data;
    void *buffer = aligned_alloc(PAGE, FILE_BYTES);
    for (;;) {
        int fd = open_file(job->file, O_RDONLY);
        void *map = fd < 0 ? MAP_FAILED : mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        for (int i = 0; i < USES && map != MAP_FAILED; i++) {
            copy_mapped(job->file, map, buffer);
            pause_ms(job, 100, 300);
        }
        if (map != MAP_FAILED)
            munmap(map, FILE_BYTES);
        close_file(fd);
        pause_ms(job, 100, 300);
    }
    return NULL;
}

static void *rados_reader(void *data)
{
    Job *job = data;
    void *buffer = aligned_alloc(PAGE, FILE_BYTES);
    char path[4096], object[64];
    struct stat st;
    snprintf(path, sizeof(path), "%s/f%d", dir, job->file);
    if (stat(path, &st) != 0)
        abort();
    snprintf(object, sizeof(object), "%" PRIx64 ".00000000", (uint64_t)st.st_ino);
    log_line("# f%d is %s\n", job->file, object);
    for (;;) {
        const uint64_t began = now_us();
        int n = rados_read(pool, object, buffer, FILE_BYTES, 0);
        if (n < 0 && n != -ENOENT)
            log_error(job->file, "rados", began, -n);
        else
            log_read(job->file, "rados", began, buffer, (size_t)(n < 0 ? 0 : n));
        pause_ms(job, 200, 500);
    }
    return NULL;
}

/* ---- writers ---- */

static int lock_file(int file)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/f%d", locks, file);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int tries = 200; flock(fd, LOCK_EX | LOCK_NB) != 0 && tries; tries--)
        usleep(10000);
    return fd;
}

/* Opens it empty, now and then; *fd was open, or is -1. */
static int open_to_write(Job *job, int *fd)
{
    const int truncate = !ceph && job->file >= 4 && one_of(job, 5) == 0;
    if (*fd >= 0 && !truncate)
        return 0;
    int r = close_file(*fd);
    const uint64_t began = now_us();
    if (truncate)
        log_line("B %d 0 %" PRIu64 "\n", job->file, began);
    *fd = open_file(job->file, O_RDWR | (truncate ? O_TRUNC : 0));
    if (truncate)
        log_line("W %d 0 %" PRIu64 " %" PRIu64 " 0 %s\n", job->file, began, now_us(),
                 *fd < 0 ? "failed" : "truncated");
    if (*fd < 0)
        failed(job->file, "write-open", began, *fd);
    else if (r < 0)
        log_error(job->file, "write-close", began, -r);
    return *fd < 0 ? *fd : 0;
}

static int write_once(Job *job, int *fd, void *buffer)
{
    int lock = lock_file(job->file);
    if (open_to_write(job, fd) < 0) {
        close(lock);
        return -EIO;
    }
    const uint64_t value = new_value(client), began = now_us();
    fill_pages(buffer, job->file, value);
    log_line("B %d %" PRIu64 " %" PRIu64 "\n", job->file, value, began);
    int64_t r = write_file(*fd, buffer);
    const uint64_t returned = now_us();
    close(lock);
    const char *how = "unsynced";
    uint64_t synced = 0;
    if (r != FILE_BYTES) {
        how = "write";
    } else if (one_of(job, 6)) {
        if (one_of(job, 3) == 0) /* what is lost meanwhile is to be told of */
            pause_ms(job, 500, 5000);
        r = sync_file(*fd);
        synced = r == 0 ? now_us() : 0;
        how = r == 0 ? "synced" : "sync";
    }
    log_line("W %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", job->file, value, began,
             returned, synced, how);
    if (r < 0)
        failed(job->file, how, began, r);
    return r < 0 ? (int)r : 0;
}

static void *writer(void *data)
{
    Job *job = data;
    void *buffer = aligned_alloc(PAGE, FILE_BYTES);
    const int holds = job->file >= 6 && !ceph; /* a descriptor over many writes */
    int fd = -1;
    for (;;) {
        int r = write_once(job, &fd, buffer);
        if (r < 0 || !holds || one_of(job, 20) == 0) {
            close_file(fd);
            fd = -1;
        }
        if (job->file < 4)
            rest(job, 3000, 12000);
        else
            rest(job, 300, 1500);
    }
    return NULL;
}

/* ---- */

static void must(const char *what, int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "partition-load: %s: %s\n", what, strerror(-r));
    exit(1);
}

static void connect_cephfs(char **argv) /* CONF USER KEYRING FS ROOT */
{
    must("create", ceph_create(&ceph, argv[1]));
    must(argv[0], ceph_conf_read_file(ceph, argv[0]));
    must("keyring", ceph_conf_set(ceph, "keyring", argv[2]));
    must("client_mount_timeout", ceph_conf_set(ceph, "client_mount_timeout", "60"));
    /* It keeps nothing, so what it says of a write and what it reads are Ceph's own. */
    must("client_oc", ceph_conf_set(ceph, "client_oc", "false"));
    must("client_reconnect_stale", ceph_conf_set(ceph, "client_reconnect_stale", "false"));
    must(argv[3], ceph_select_filesystem(ceph, argv[3]));
    must(argv[4], ceph_mount(ceph, argv[4]));
}

static void connect_rados(char **argv) /* CONF USER KEYRING POOL */
{
    rados_t cluster;
    must("rados_create", rados_create(&cluster, argv[1]));
    must(argv[0], rados_conf_read_file(cluster, argv[0]));
    must("keyring", rados_conf_set(cluster, "keyring", argv[2]));
    must("rados_connect", rados_connect(cluster));
    must(argv[3], rados_ioctx_create(cluster, argv[3], &pool));
}

static void begin(void *(*run)(void *), int file, unsigned seed)
{
    Job *job = malloc(sizeof(*job));
    *job = (Job){file, seed * 64 + (unsigned)file * 4 + client};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, job) != 0)
        abort();
}

static void make_files(void)
{
    static uint64_t words[FILE_BYTES / 8];
    for (int file = 0; file < FILES; file++) {
        const uint64_t value = new_value(0), began = now_us();
        int fd = open_file(file, O_CREAT | O_EXCL | O_WRONLY);
        must("create", fd);
        log_line("B %d %" PRIu64 " %" PRIu64 "\n", file, value, began);
        fill_pages(words, file, value);
        must("write", (int)write_file(fd, words));
        const uint64_t returned = now_us();
        must("sync", sync_file(fd));
        log_line("W %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " made\n", file, value, began,
                 returned, now_us());
        must("close", close_file(fd));
    }
}

static void read_all_once(void)
{
    void *buffer = aligned_alloc(PAGE, FILE_BYTES);
    for (int file = 0; file < FILES; file++) {
        const uint64_t began = now_us();
        int fd = open_file(file, O_RDONLY);
        read_once(file, fd, "ceph", began, buffer);
        close_file(fd);
    }
    must("unmount", ceph_unmount(ceph));
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    const int loads = !strcmp(mode, "node") || !strcmp(mode, "plain");
    char **rest = argv + (loads ? 8 : 3);
    if ((!strcmp(mode, "make") && argc != 4) || (!strcmp(mode, "node") && argc != 9) ||
        (!strcmp(mode, "plain") && argc != 13) || (!strcmp(mode, "fresh") && argc != 8) ||
        (!strcmp(mode, "rados") && argc != 8) || argc < 4) {
        fprintf(stderr, "usage: partition-load make|node|plain|fresh|rados ..., see its source\n");
        return 2;
    }
    client = loads ? (unsigned)atoi(argv[2]) : 0;
    log_fd = open(argv[loads ? 3 : 2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    must("log", log_fd < 0 ? -errno : 0);
    signal(SIGBUS, bus_error);
    if (!strcmp(mode, "plain") || !strcmp(mode, "fresh"))
        connect_cephfs(rest);
    else
        dir = argv[argc - 1];
    if (!strcmp(mode, "make")) {
        make_files();
        return 0;
    }
    if (!strcmp(mode, "fresh")) {
        read_all_once();
        return 0;
    }
    if (!strcmp(mode, "rados"))
        connect_rados(rest);
    const unsigned seed = loads ? (unsigned)atoi(argv[4]) : 0;
    if (loads) {
        locks = argv[5];
        files_held = argv[7];
    }
    for (int file = 0; file < FILES; file++) {
        if (!loads) {
            begin(rados_reader, file, seed);
            continue;
        }
        begin(fresh_reader, file, seed);
        if (strchr(argv[6], '0' + file))
            begin(writer, file, seed + 1);
        if (!strchr(files_held, '0' + file))
            continue;
        begin(held_reader, file, seed + 2);
        if (!ceph) /* mapped pages are not dropped */
            begin(file % 2 ? dropping_reader : mapped_reader, file, seed + 3);
    }
    for (;;)
        pause();
}
