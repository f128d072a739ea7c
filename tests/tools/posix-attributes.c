/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: modes, owners, times, extended attributes, locks. See posix-check.h. */
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include "posix-check.h"

static const char *extended_attributes(void)
{
    OK(put("a", "x"));
    if (setxattr("a", "user.color", "blue", 4, 0) != 0 && errno == EOPNOTSUPP)
        return SKIP "no extended attributes here";
    OK(setxattr("a", "user.color", "blue", 4, 0));
    char text[4096];
    NEED(getxattr("a", "user.color", text, sizeof(text)) == 4 && memcmp(text, "blue", 4) == 0,
         "get");
    NEED(getxattr("a", "user.color", NULL, 0) == 4, "the length is not told");
    FAILS(getxattr("a", "user.color", text, 2), ERANGE);
    FAILS(setxattr("a", "user.color", "red", 3, XATTR_CREATE), EEXIST);
    FAILS(setxattr("a", "user.size", "9", 1, XATTR_REPLACE), ENODATA);
    OK(setxattr("a", "user.color", "green", 5, XATTR_REPLACE));
    OK(setxattr("a", "user.empty", "", 0, 0));
    ssize_t n = listxattr("a", text, sizeof(text));
    OK(n);
    gboolean color = FALSE, empty = FALSE;
    for (char *name = text; name < text + n; name += strlen(name) + 1) {
        color |= strcmp(name, "user.color") == 0;
        empty |= strcmp(name, "user.empty") == 0;
    }
    NEED(color && empty, "listxattr leaves one out");
    OK(removexattr("a", "user.color"));
    FAILS(getxattr("a", "user.color", text, sizeof(text)), ENODATA);
    FAILS(removexattr("a", "user.color"), ENODATA);
    return NULL;
}

static const char *times(void)
{
    OK(put("a", "x"));
    struct timespec set[2] = {{1000000000, 123456789}, {1234567890, 987654321}};
    OK(utimensat(AT_FDCWD, "a", set, 0));
    struct stat st;
    OK(stat("a", &st));
    NEED(st.st_mtim.tv_sec == 1234567890 && st.st_mtim.tv_nsec == 987654321, "mtime %lld.%09ld",
         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    NEED(st.st_atim.tv_sec == 1000000000, "atime %lld", (long long)st.st_atim.tv_sec);
    struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    OK(utimensat(AT_FDCWD, "a", omit, 0));
    OK(stat("a", &st));
    NEED(st.st_atim.tv_sec == 1000000000, "UTIME_OMIT changed atime");
    NEED(llabs((long long)st.st_mtim.tv_sec - time(NULL)) < 100, "UTIME_NOW is not now");
    OK(utimensat(AT_FDCWD, "a", set, 0));
    OK(put("a", "changed"));
    OK(stat("a", &st));
    NEED(st.st_mtim.tv_sec != 1234567890, "a write did not change mtime");
    struct stat before, after;
    OK(mkdir("d", 0755));
    OK(utimensat(AT_FDCWD, "d", set, 0));
    OK(stat("d", &before));
    OK(put("d/f", ""));
    OK(stat("d", &after));
    NEED(before.st_mtim.tv_sec != after.st_mtim.tv_sec, "creating in a directory leaves its mtime");
    return NULL;
}

static const char *modes_and_owners(void)
{
    OK(put("a", "x"));
    struct stat st;
    OK(chmod("a", 04751));
    OK(stat("a", &st));
    NEED((st.st_mode & 07777) == 04751, "mode %o", st.st_mode & 07777);
    OK(chown("a", 1234, 5678));
    OK(stat("a", &st));
    NEED(st.st_uid == 1234 && st.st_gid == 5678, "owner %d:%d", st.st_uid, st.st_gid);
    NEED(!(st.st_mode & 04000), "chown left the setuid bit");
    OK(chown("a", (uid_t)-1, 77));
    OK(stat("a", &st));
    NEED(st.st_uid == 1234 && st.st_gid == 77, "chown of the group alone gives %d:%d", st.st_uid,
         st.st_gid);
    mode_t old = umask(027);
    OK(mkdir("d", 0777));
    umask(old);
    OK(stat("d", &st));
    NEED((st.st_mode & 07777) == 0750, "umask 027 gives mode %o", st.st_mode & 07777);
    return NULL;
}

static int denied_body(void)
{
    int fd = open("secret", O_RDONLY);
    if (fd >= 0 || errno != EACCES)
        return 1;
    if (open("secret", O_WRONLY | O_TRUNC) >= 0 || errno != EACCES)
        return 2;
    if (open("closed/new", O_CREAT | O_WRONLY, 0644) >= 0 || errno != EACCES)
        return 3;
    if (unlink("secret") == 0)
        return 4;
    if (chmod("public", 0777) == 0 || errno != EPERM)
        return 5;
    if (open("public", O_RDONLY) < 0)
        return 6;
    if (opendir("closed"))
        return 7;
    fd = open("open/mine", O_CREAT | O_WRONLY, 0644);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return 8;
    if (st.st_uid != 4321 || st.st_gid != 8765)
        return 9;
    if (mkdir("open/mydir", 0755) != 0 || stat("open/mydir", &st) != 0 || st.st_uid != 4321)
        return 10;
    if (symlink("x", "open/mylink") != 0 || lstat("open/mylink", &st) != 0 || st.st_uid != 4321)
        return 11;
    if (unlink("sticky/theirs") == 0)
        return 12;
    return 0;
}

static const char *another_user(void)
{
    OK(put("secret", "root's"));
    OK(chmod("secret", 0600));
    OK(put("public", "all"));
    OK(chmod("public", 0644));
    OK(mkdir("closed", 0700));
    OK(mkdir("open", 0777));
    OK(chmod("open", 0777));
    OK(mkdir("sticky", 0777));
    OK(chmod("sticky", 01777));
    OK(put("sticky/theirs", "x"));
    static const char *const what[] = {"",
                                       "read a file of mode 0600",
                                       "truncated a file of mode 0600",
                                       "created in a directory of mode 0700",
                                       "unlinked in a directory of another",
                                       "changed the mode of another's file",
                                       "was refused a file of mode 0644",
                                       "listed a directory of mode 0700",
                                       "was refused a directory of mode 0777",
                                       "created a file that belongs to another",
                                       "made a directory that belongs to another",
                                       "made a symlink that belongs to another",
                                       "unlinked another's file in a sticky directory"};
    int rc = as_user(4321, 8765, denied_body);
    NEED(rc == 0, "uid 4321 %s", rc < (int)G_N_ELEMENTS(what) ? what[rc] : "could not be tried");
    return NULL;
}

static int group_body(void)
{
    return open("g", O_WRONLY) >= 0 ? 0 : 1;
}

static const char *group_permission(void)
{
    OK(put("g", "x"));
    OK(chown("g", 0, 555));
    OK(chmod("g", 0660));
    NEED(as_user(4321, 555, group_body) == 0, "a member of the group cannot write a file of 0660");
    NEED(as_user(4321, 556, group_body) == 1, "another group writes a file of 0660");
    return NULL;
}

static int setgid_body(void)
{
    struct stat st;
    if (put("d/f", "x") != 0 || stat("d/f", &st) != 0 || st.st_gid != 555)
        return 1;
    if (mkdir("d/e", 0755) != 0 || stat("d/e", &st) != 0 || st.st_gid != 555)
        return 2;
    return st.st_mode & 02000 ? 0 : 3;
}

static const char *setgid_directory(void)
{
    OK(mkdir("d", 0777));
    OK(chown("d", 0, 555));
    OK(chmod("d", 02777));
    int rc = as_user(4321, 8765, setgid_body);
    static const char *const what[] = {"", "a file does not take the directory's group",
                                       "a directory does not take the directory's group",
                                       "a directory does not take the setgid bit"};
    NEED(rc == 0, "%s", rc < 4 ? what[rc] : "could not be tried");
    return NULL;
}

static int by_writing(void)
{
    int fd = open("s", O_WRONLY);
    return fd >= 0 && write(fd, "y", 1) == 1 ? 0 : 1;
}

static int by_opening(void)
{
    return open("s", O_WRONLY | O_TRUNC) >= 0 ? 0 : 1;
}

static int by_truncating(void)
{
    return truncate("s", 0);
}

static int by_truncating_what_is_open(void)
{
    return ftruncate(open("s", O_WRONLY), 0);
}

static const char *writes_clear_setuid(void)
{
    static const struct {
        const char *name;
        int (*body)(void);
    } ways[] = {
        {"write", by_writing},
        {"open with O_TRUNC", by_opening},
        {"truncate", by_truncating},
        {"ftruncate", by_truncating_what_is_open},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        struct stat st;
        OK(put("s", "x"));
        OK(chmod("s", 06777));
        NEED(as_user(4321, 8765, ways[i].body) == 0, "%s of a file of 0777 fails", ways[i].name);
        OK(stat("s", &st));
        NEED(!(st.st_mode & 06000), "%s by another user leaves %o", ways[i].name, st.st_mode);
        OK(chmod("s", 06777));
        NEED(ways[i].body() == 0, "%s by root fails", ways[i].name);
        OK(stat("s", &st));
        NEED((st.st_mode & 06000) == 06000, "%s by root leaves %o", ways[i].name, st.st_mode);
    }
    return NULL;
}

static const char *special_files(void)
{
    OK(mkfifo("fifo", 0644));
    struct stat st;
    OK(lstat("fifo", &st));
    NEED(S_ISFIFO(st.st_mode), "mode %o", st.st_mode);
    int fd = open("fifo", O_RDWR | O_NONBLOCK);
    OK(fd);
    NEED(write(fd, "x", 1) == 1, "write to a fifo: %s", strerror(errno));
    close(fd);
    return NULL;
}

static const char *file_system_size(void)
{
    struct statvfs st;
    OK(statvfs(".", &st));
    NEED(st.f_blocks > 0 && st.f_bsize > 0 && st.f_bavail <= st.f_blocks, "blocks %llu of %lu",
         (unsigned long long)st.f_blocks, st.f_bsize);
    NEED(st.f_namemax >= 255, "namemax %lu", st.f_namemax);
    return NULL;
}

static int lock_body(void)
{
    int fd = open("a", O_RDWR);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 1;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
    if (fcntl(fd, F_SETLK, &lock) == 0)
        return 2;
    lock.l_start = 100;
    return fcntl(fd, F_SETLK, &lock) == 0 ? 0 : 3;
}

static const char *locks(void)
{
    OK(put("a", "x"));
    OK(chmod("a", 0666));
    int fd = open("a", O_RDWR);
    OK(flock(fd, LOCK_EX | LOCK_NB));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
    OK(fcntl(fd, F_SETLK, &lock));
    int rc = as_user(4321, 8765, lock_body);
    static const char *const what[] = {"", "flock is given twice", "a byte range is locked twice",
                                       "another byte range cannot be locked"};
    NEED(rc == 0, "%s", rc < 4 ? what[rc] : "could not be tried");
    close(fd);
    return NULL;
}

static const char *concurrent_creates(void)
{
    enum { WORKERS = 4, EACH = 100 };
    pid_t pids[WORKERS];
    for (int w = 0; w < WORKERS; w++) {
        pids[w] = fork();
        if (pids[w] == 0) {
            int mine = 0;
            for (int i = 0; i < EACH; i++) {
                char name[32];
                g_snprintf(name, sizeof(name), "race-%d", i);
                int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
                if (fd >= 0)
                    mine++, close(fd);
                else if (errno != EEXIST)
                    _exit(255);
            }
            _exit(mine);
        }
    }
    int total = 0, status;
    for (int w = 0; w < WORKERS; w++) {
        waitpid(pids[w], &status, 0);
        NEED(WIFEXITED(status) && WEXITSTATUS(status) != 255, "a creation failed");
        total += WEXITSTATUS(status);
    }
    NEED(total == EACH, "%d of %d exclusive creations succeeded", total, EACH);
    return NULL;
}

int main(int argc, char **argv)
{
    static const PosixCheck checks[] = {
        ROW(extended_attributes), ROW(times),
        ROW(modes_and_owners),    ROW(another_user),
        ROW(group_permission),    ROW(setgid_directory),
        ROW(writes_clear_setuid), ROW(special_files),
        ROW(file_system_size),    ROW(locks),
        ROW(concurrent_creates),
    };
    return posix_main(argc, argv, checks, G_N_ELEMENTS(checks));
}
