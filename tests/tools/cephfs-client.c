/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second client of the coherence tests: plain libcephfs, no mount, no cache of Hearth's.
 *
 *   cephfs-client CONF USER KEYRING FS ROOT     (USER without "client."; "-" as FS: the default)
 *
 * Reads commands from standard input, one a line, and answers each with "ok", "ok VALUE" or
 * "error ERRNO-NAME", so that a script keeps one session, with the capabilities it holds, over
 * many steps. Paths are below ROOT and hold no blanks; TEXT is the rest of the line.
 *
 *   write PATH TEXT       create or truncate, then write, close
 *   put PATH OFFSET TEXT  write in place
 *   append PATH TEXT      truncate PATH SIZE      rename FROM TO     unlink PATH
 *   mkdir PATH            rmdir PATH              chmod PATH OCTAL   symlink TARGET PATH
 *   cat PATH              size PATH               mtime PATH         list PATH
 *   fill PATH SIZE BYTE   SIZE bytes of one value
 *   touch PATH SEC        set mtime and atime
 *   xattr PATH NAME       owner PATH         uid, gid and mode, octal
 *   open PATH             hold it open for writing; write-open OFFSET TEXT; close
 *   putting PATH TEXT     begin to put it at 0, and answer at once; has-put: how many such are done
 *   set-xattr PATH NAME VALUE
 */
#include <cephfs/libcephfs.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct ceph_mount_info *mount_info;
static int held = -1;
static atomic_uint has_put;

static void answer(int64_t rc)
{
    if (rc < 0)
        printf("error %s\n", strerrorname_np((int)-rc) ? strerrorname_np((int)-rc) : "unknown");
    else
        printf("ok\n");
}

static int64_t write_at(int fd, const char *text, int64_t length, int64_t offset)
{
    while (length > 0) {
        int n = ceph_write(mount_info, fd, text, length, offset);
        if (n < 0)
            return n;
        text += n, length -= n, offset += offset < 0 ? 0 : n;
    }
    return 0;
}

/* offset -1: at the file's position, as O_APPEND wants it. */
static int64_t write_file(const char *path, int flags, const char *text, int64_t offset)
{
    int fd = ceph_open(mount_info, path, flags, 0666);
    if (fd < 0)
        return fd;
    int64_t rc = write_at(fd, text, (int64_t)strlen(text), offset);
    /* Written back before the answer, so that what the script does next is later for everybody. */
    int synced = ceph_fsync(mount_info, fd, 0);
    int closed = ceph_close(mount_info, fd);
    return rc < 0 ? rc : synced < 0 ? synced : closed;
}

static int64_t fill(const char *path, int64_t size, int value)
{
    static char block[1 << 20];
    memset(block, value, sizeof(block));
    int fd = ceph_open(mount_info, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return fd;
    int64_t rc = 0;
    for (int64_t at = 0; at < size && rc >= 0; at += (int64_t)sizeof(block)) {
        int64_t left = size - at;
        rc = write_at(fd, block, left < (int64_t)sizeof(block) ? left : (int64_t)sizeof(block), at);
    }
    int synced = ceph_fsync(mount_info, fd, 0);
    int closed = ceph_close(mount_info, fd);
    return rc < 0 ? rc : synced < 0 ? synced : closed;
}

static void cat(const char *path)
{
    int fd = ceph_open(mount_info, path, O_RDONLY, 0);
    if (fd < 0) {
        answer(fd);
        return;
    }
    char text[4096];
    int n = ceph_read(mount_info, fd, text, sizeof(text), 0);
    ceph_close(mount_info, fd);
    if (n < 0)
        answer(n);
    else
        printf("ok %.*s\n", n, text);
}

static void list(const char *path)
{
    struct ceph_dir_result *dir;
    int rc = ceph_opendir(mount_info, path, &dir);
    if (rc < 0) {
        answer(rc);
        return;
    }
    printf("ok");
    for (struct dirent *entry; (entry = ceph_readdir(mount_info, dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            printf(" %s", entry->d_name);
    printf("\n");
    ceph_closedir(mount_info, dir);
}

static void attribute(const char *path, int want_mtime)
{
    struct ceph_statx stx;
    int rc = ceph_statx(mount_info, path, &stx, CEPH_STATX_SIZE | CEPH_STATX_MTIME, 0);
    if (rc < 0)
        answer(rc);
    else if (want_mtime)
        printf("ok %" PRId64 ".%09ld\n", (int64_t)stx.stx_mtime.tv_sec, stx.stx_mtime.tv_nsec);
    else
        printf("ok %" PRIu64 "\n", (uint64_t)stx.stx_size);
}

static void xattr(const char *path, const char *name)
{
    char value[256];
    int n = ceph_getxattr(mount_info, path, name, value, sizeof(value));
    if (n < 0)
        answer(n);
    else
        printf("ok %.*s\n", n, value);
}

static void owner(const char *path)
{
    struct ceph_statx stx;
    int rc =
        ceph_statx(mount_info, path, &stx, CEPH_STATX_UID | CEPH_STATX_GID | CEPH_STATX_MODE, 0);
    if (rc < 0)
        answer(rc);
    else
        printf("ok %u %u %o\n", stx.stx_uid, stx.stx_gid, stx.stx_mode & 07777u);
}

static int64_t touch(const char *path, int64_t seconds)
{
    struct ceph_statx stx = {0};
    stx.stx_mtime.tv_sec = stx.stx_atime.tv_sec = seconds;
    return ceph_setattrx(mount_info, path, &stx, CEPH_SETATTR_MTIME | CEPH_SETATTR_ATIME, 0);
}

typedef struct Put {
    char *path, *text;
} Put;

/* Who reads the file elsewhere may let this wait for long. */
static void *put_later(void *data)
{
    Put *put = data;
    if (write_file(put->path, O_WRONLY, put->text, 0) == 0)
        atomic_fetch_add(&has_put, 1);
    free(put->path);
    free(put->text);
    free(put);
    return NULL;
}

static int64_t putting(const char *path, const char *text)
{
    pthread_t thread;
    Put *put = malloc(sizeof(*put));
    *put = (Put){strdup(path), strdup(text)};
    int rc = pthread_create(&thread, NULL, put_later, put);
    if (rc == 0)
        pthread_detach(thread);
    return -rc;
}

static void run(const char *verb, const char *a, const char *b, const char *rest)
{
    if (!strcmp(verb, "write"))
        answer(write_file(a, O_WRONLY | O_CREAT | O_TRUNC, rest, 0));
    else if (!strcmp(verb, "append"))
        answer(write_file(a, O_WRONLY | O_APPEND, rest, -1));
    else if (!strcmp(verb, "put"))
        answer(write_file(a, O_WRONLY, strchr(rest, ' ') ? strchr(rest, ' ') + 1 : "", atoll(b)));
    else if (!strcmp(verb, "truncate"))
        answer(ceph_truncate(mount_info, a, atoll(b)));
    else if (!strcmp(verb, "rename"))
        answer(ceph_rename(mount_info, a, b));
    else if (!strcmp(verb, "unlink"))
        answer(ceph_unlink(mount_info, a));
    else if (!strcmp(verb, "mkdir"))
        answer(ceph_mkdir(mount_info, a, 0777));
    else if (!strcmp(verb, "rmdir"))
        answer(ceph_rmdir(mount_info, a));
    else if (!strcmp(verb, "chmod"))
        answer(ceph_chmod(mount_info, a, (mode_t)strtoul(b, NULL, 8)));
    else if (!strcmp(verb, "symlink"))
        answer(ceph_symlink(mount_info, a, b));
    else if (!strcmp(verb, "fill"))
        answer(fill(a, atoll(b), atoi(strchr(rest, ' ') ? strchr(rest, ' ') + 1 : "0")));
    else if (!strcmp(verb, "touch"))
        answer(touch(a, atoll(b)));
    else if (!strcmp(verb, "cat"))
        cat(a);
    else if (!strcmp(verb, "size") || !strcmp(verb, "mtime"))
        attribute(a, verb[0] == 'm');
    else if (!strcmp(verb, "xattr"))
        xattr(a, b);
    else if (!strcmp(verb, "owner"))
        owner(a);
    else if (!strcmp(verb, "list"))
        list(a);
    else if (!strcmp(verb, "set-xattr")) {
        const char *value = strchr(rest, ' ') ? strchr(rest, ' ') + 1 : "";
        answer(ceph_setxattr(mount_info, a, b, value, strlen(value), 0));
    } else if (!strcmp(verb, "putting"))
        answer(putting(a, rest));
    else if (!strcmp(verb, "has-put"))
        printf("ok %u\n", atomic_load(&has_put));
    else if (!strcmp(verb, "open") && held < 0)
        answer(held = ceph_open(mount_info, a, O_RDWR, 0));
    else if (!strcmp(verb, "write-open"))
        answer(write_at(held, rest, (int64_t)strlen(rest), atoll(a)));
    else if (!strcmp(verb, "close")) {
        answer(ceph_close(mount_info, held));
        held = -1;
    } else
        printf("error unknown command %s\n", verb);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: cephfs-client CONF USER KEYRING FS ROOT\n");
        return 2;
    }
    int rc = ceph_create(&mount_info, argv[2]);
    if (rc == 0)
        rc = ceph_conf_read_file(mount_info, argv[1]);
    if (rc == 0)
        rc = ceph_conf_set(mount_info, "keyring", argv[3]);
    if (rc == 0)
        rc = ceph_conf_set(mount_info, "client_mount_timeout", "20");
    if (rc == 0 && strcmp(argv[4], "-") != 0)
        rc = ceph_select_filesystem(mount_info, argv[4]);
    if (rc == 0)
        rc = ceph_mount(mount_info, argv[5]);
    if (rc != 0) {
        fprintf(stderr, "cephfs-client: cannot mount %s: %s\n", argv[5], strerror(-rc));
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ok\n");
    static char line[1 << 16], whole[1 << 16];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        memcpy(whole, line, sizeof(line));
        char *save, *verb = strtok_r(line, " ", &save), *a = strtok_r(NULL, " ", &save);
        if (!verb)
            continue;
        /* What follows the first argument, blanks and all. */
        const char *rest = a ? whole + (a - line) + strlen(a) : "";
        rest += *rest == ' ';
        char *b = strtok_r(NULL, " ", &save);
        run(verb, a ? a : "", b ? b : "", rest);
    }
    if (held >= 0)
        ceph_close(mount_info, held);
    ceph_unmount(mount_info);
    ceph_release(mount_info);
    return 0;
}
