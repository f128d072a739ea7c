/* SPDX-License-Identifier: Apache-2.0 */
/* Names: files, directories, links, renames, listings. See posix-check.h. */
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include "posix-check.h"

static const char *create_and_read(void)
{
    OK(put("a", "hello"));
    NEED(holds("a", "hello"), "the bytes read are not those written");
    struct stat st;
    OK(stat("a", &st));
    NEED(st.st_size == 5 && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0644 && st.st_nlink == 1,
         "size %lld, mode %o, links %d", (long long)st.st_size, st.st_mode, (int)st.st_nlink);
    NEED(st.st_uid == 0 && st.st_gid == 0, "owner %d:%d", st.st_uid, st.st_gid);
    return NULL;
}

static const char *exclusive_create(void)
{
    OK(put("a", "1"));
    FAILS(open("a", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
    int fd = open("b", O_CREAT | O_EXCL | O_WRONLY, 0600);
    OK(fd);
    OK(close(fd));
    return NULL;
}

static const char *open_missing(void)
{
    FAILS(open("nothing", O_RDONLY), ENOENT);
    OK(put("nothing", "now"));
    NEED(holds("nothing", "now"), "a name found missing before is not seen after its creation");
    OK(unlink("nothing"));
    FAILS(open("nothing", O_RDONLY), ENOENT);
    return NULL;
}

static const char *directories(void)
{
    OK(mkdir("d", 0755));
    FAILS(mkdir("d", 0755), EEXIST);
    OK(mkdir("d/e", 0700));
    FAILS(rmdir("d"), ENOTEMPTY);
    FAILS(unlink("d/e"), EISDIR);
    FAILS(rmdir("d/none"), ENOENT);
    OK(put("f", "x"));
    FAILS(rmdir("f"), ENOTDIR);
    FAILS(open("f/below", O_RDONLY), ENOTDIR);
    struct stat st;
    OK(stat("d", &st));
    NEED(S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0755, "mode %o", st.st_mode);
    OK(rmdir("d/e"));
    OK(rmdir("d"));
    NEED(!exists("d"), "a removed directory is still there");
    return NULL;
}

static const char *dot_dot(void)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    struct stat here, up;
    OK(stat(".", &here));
    OK(stat("d/..", &up));
    NEED(here.st_ino == up.st_ino, "d/.. is inode %llu, not %llu", (unsigned long long)up.st_ino,
         (unsigned long long)here.st_ino);
    OK(stat("d/e/../../d/../.", &up));
    NEED(here.st_ino == up.st_ino, "a path with several .. ends elsewhere");
    OK(put("d/e/../f", "x"));
    NEED(holds("d/f", "x"), "d/e/../f is not d/f");
    return NULL;
}

static const char *unlink_file(void)
{
    OK(put("a", "1"));
    OK(unlink("a"));
    FAILS(unlink("a"), ENOENT);
    NEED(!exists("a"), "still there");
    return NULL;
}

static const char *unlinked_while_open(void)
{
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    OK(fd);
    NEED(pwrite(fd, "before", 6, 0) == 6, "write: %s", strerror(errno));
    OK(unlink("a"));
    NEED(pwrite(fd, "AFTER!", 6, 3) == 6, "write after unlink: %s", strerror(errno));
    char text[16] = "";
    ssize_t n = pread(fd, text, sizeof(text), 0);
    NEED(n == 9 && memcmp(text, "befAFTER!", 9) == 0, "read %zd bytes \"%.9s\"", n, text);
    struct stat st;
    OK(fstat(fd, &st));
    NEED(st.st_nlink == 0, "%d links", (int)st.st_nlink);
    OK(ftruncate(fd, 2));
    OK(fstat(fd, &st));
    NEED(st.st_size == 2, "size %lld after ftruncate", (long long)st.st_size);
    OK(close(fd));
    return NULL;
}

static const char *rename_file(void)
{
    OK(put("a", "1"));
    OK(mkdir("d", 0755));
    struct stat before, after;
    OK(stat("a", &before));
    OK(rename("a", "d/b"));
    NEED(!exists("a") && holds("d/b", "1"), "the name did not move");
    OK(stat("d/b", &after));
    NEED(before.st_ino == after.st_ino, "the inode number changed");
    FAILS(rename("a", "c"), ENOENT);
    return NULL;
}

static const char *rename_over(void)
{
    OK(put("a", "new"));
    OK(put("b", "older"));
    NEED(holds("b", "older"), "setup");
    int fd = open("b", O_RDONLY);
    OK(fd);
    OK(rename("a", "b"));
    NEED(holds("b", "new"), "the replaced file's bytes are still read");
    char text[8] = "";
    NEED(read(fd, text, sizeof(text)) == 5 && memcmp(text, "older", 5) == 0,
         "the replaced file cannot be read through its open descriptor");
    close(fd);
    OK(mkdir("d", 0755));
    OK(mkdir("e", 0755));
    OK(rename("d", "e"));
    NEED(!exists("d"), "the directory did not move");
    OK(put("e/x", ""));
    OK(mkdir("d", 0755));
    FAILS(rename("d", "e"), ENOTEMPTY);
    FAILS(rename("e", "e/below"), EINVAL);
    FAILS(rename("b", "e"), EISDIR);
    FAILS(rename("e", "b"), ENOTDIR);
    return NULL;
}

static const char *rename_noreplace(void)
{
    OK(put("a", "1"));
    OK(put("b", "2"));
    if (renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE) == 0)
        return WRONG("replaced a file in spite of RENAME_NOREPLACE");
    if (errno == EINVAL)
        return SKIP "the file system has no RENAME_NOREPLACE";
    NEED(errno == EEXIST, "%s, expected EEXIST", strerror(errno));
    NEED(holds("a", "1") && holds("b", "2"), "a refused rename changed something");
    /* The kernel finds an existing target by itself; the file system is asked only without one. */
    if (renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE) != 0 && errno == EINVAL)
        return SKIP "the file system has no RENAME_NOREPLACE";
    NEED(holds("c", "1"), "not renamed");
    return NULL;
}

static const char *rename_directory_with_files(void)
{
    OK(mkdir("d", 0755));
    OK(mkdir("d/e", 0755));
    OK(put("d/e/f", "deep"));
    OK(rename("d", "moved"));
    NEED(holds("moved/e/f", "deep"), "not found below the new name");
    NEED(!exists("d/e/f"), "still found below the old name");
    return NULL;
}

static int bind_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    g_strlcpy(at.sun_path, path, sizeof(at.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int rc = bind(fd, (struct sockaddr *)&at, sizeof(at)), error = errno;
    close(fd);
    errno = error;
    return rc;
}

static int make_directory(const char *path)
{
    return mkdir(path, 0755);
}

static int make_fifo(const char *path)
{
    return mkfifo(path, 0644);
}

static int make_device(const char *path)
{
    return mknod(path, S_IFCHR | 0644, 0x103);
}

static int make_symbolic_link(const char *path)
{
    return symlink("target", path);
}

static int make_link(const char *path)
{
    return link("file", path);
}

/* Each at once, and first: names are not asked for at each use, and not all of these ask again. */
static const char *making_below_a_renamed_directory(void)
{
    static int (*const make[])(const char *) = {make_directory,     make_fifo, make_device,
                                                make_symbolic_link, make_link, bind_socket};
    OK(put("file", "1"));
    for (size_t i = 0; i < G_N_ELEMENTS(make); i++) {
        OK(mkdir("old", 0755));
        OK(mkdir("old/below", 0755));
        OK(rename("old", "new"));
        NEED(make[i]("new/made") == 0, "call %zu in it: %s", i, strerror(errno));
        OK(rename("new", "newer"));
        NEED(make[i]("newer/below/made") == 0, "call %zu below it: %s", i, strerror(errno));
        char kept[16];
        g_snprintf(kept, sizeof(kept), "kept%zu", i);
        OK(rename("newer", kept));
    }
    return NULL;
}

static const char *change_by_descriptor(int fd)
{
    OK(fchmod(fd, 0700));
    OK(fchown(fd, 1, 1));
    OK(futimens(fd, NULL));
    if (fsetxattr(fd, "user.color", "blue", 4, 0) != 0 && errno != EOPNOTSUPP)
        return WRONG("fsetxattr: %s", strerror(errno));
    return NULL;
}

static int list_here(void)
{
    DIR *dir = opendir(".");
    while (dir && readdir(dir))
        ;
    return dir ? closedir(dir) : -1;
}

static const char *changes_by_descriptor(void)
{
    const char *wrong = NULL;
    for (int how = 0; how < 2; how++) {
        OK(mkdir("d", 0755));
        int fd = open("d", O_RDONLY | O_DIRECTORY);
        OK(fd);
        OK(how ? rename("d", "moved") : rmdir("d"));
        wrong = change_by_descriptor(fd);
        NEED(!wrong, "a directory that was %s: %s", how ? "renamed" : "removed", wrong);
        if (how)
            OK(mkdirat(fd, "below", 0755));
        OK(close(fd));
        OK(put("f", "1"));
        OK(list_here());
        fd = open("f", O_RDWR);
        OK(fd);
        OK(how ? rename("f", "g") : unlink("f"));
        wrong = change_by_descriptor(fd);
        NEED(!wrong, "a file that was %s: %s", how ? "renamed" : "removed", wrong);
        OK(close(fd));
    }
    return NULL;
}

static const char *symlinks(void)
{
    OK(put("target", "1"));
    OK(symlink("target", "l"));
    char text[64] = "";
    NEED(readlink("l", text, sizeof(text)) == 6 && strcmp(text, "target") == 0, "readlink: %s",
         text);
    NEED(holds("l", "1"), "not followed");
    NEED(size_of("l") == 6, "lstat gives size %lld", (long long)size_of("l"));
    FAILS(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
    OK(symlink("/nowhere/at/all", "dangling"));
    FAILS(open("dangling", O_RDONLY), ENOENT);
    FAILS(symlink("x", "l"), EEXIST);
    char target[1001];
    memset(target, 'x', 1000);
    target[1000] = 0;
    OK(symlink(target, "long"));
    char back[2000];
    NEED(readlink("long", back, sizeof(back)) == 1000,
         "a target of 1000 bytes comes back otherwise");
    OK(unlink("l"));
    NEED(exists("target"), "unlink removed the target");
    return NULL;
}

static const char *hard_links(void)
{
    OK(put("a", "1"));
    OK(link("a", "b"));
    struct stat a, b;
    OK(stat("a", &a));
    OK(stat("b", &b));
    NEED(a.st_ino == b.st_ino && a.st_nlink == 2 && b.st_nlink == 2,
         "inodes %llu %llu, links %d %d", (unsigned long long)a.st_ino,
         (unsigned long long)b.st_ino, (int)a.st_nlink, (int)b.st_nlink);
    OK(put("b", "through b"));
    NEED(holds("a", "through b"), "a write through one name is not read through the other");
    OK(unlink("a"));
    OK(stat("b", &b));
    NEED(b.st_nlink == 1 && holds("b", "through b"), "%d links left", (int)b.st_nlink);
    FAILS(link(".", "dirlink"), EPERM);
    return NULL;
}

static int entries(const char *path)
{
    int n = -2; /* . and .. */
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    int rc = fd < 0 ? -1 : fsync(fd);
    return fd < 0 || close(fd) < 0 ? -1 : rc;
}

/* A move over one name of a file: its other names stay, in directories that were listed or not,
 * also once the move is on the disk. */
static const char *rename_over_a_link(void)
{
    for (int i = 0; i < 20; i++) {
        char dir[16], name[32];
        g_snprintf(dir, sizeof(dir), "d%d", i);
        g_snprintf(name, sizeof(name), "d%d/a", i);
        OK(mkdir(dir, 0755));
        OK(put(name, "old"));
        OK(link(name, "b"));
        if (i % 2)
            OK(entries(dir));
        OK(put("c", "new"));
        OK(rename("c", "b"));
        if (i % 4 < 2)
            NEED(exists(name), "%s is missing right behind the move", name);
        OK(sync_directory("."));
        NEED(exists(name) && entries(dir) == 1, "%s is missing", name);
        NEED(holds(name, "old") && holds("b", "new"), "other content");
        OK(unlink("b"));
    }
    return NULL;
}

static const char *special_names(void)
{
    const char *names[] = {"with blank",   "new\nline", "quote\"'`$",  "-dash",
                           "\xff\xfe\x80", "caf\xe9",   "back\\slash", "*?[",
                           "\xe2\x82\xac", "..."};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        OK(put(names[i], names[i]));
        NEED(holds(names[i], names[i]), "name %zu is not read back", i);
    }
    DIR *dir = opendir(".");
    NEED(dir, "opendir: %s", strerror(errno));
    size_t found = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
            found += strcmp(entry->d_name, names[i]) == 0;
    closedir(dir);
    NEED(found == G_N_ELEMENTS(names), "readdir shows %zu of %zu names", found,
         G_N_ELEMENTS(names));
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        OK(unlink(names[i]));
    return NULL;
}

static const char *long_names(void)
{
    char name[300];
    memset(name, 'n', sizeof(name));
    name[255] = 0;
    OK(put(name, "long"));
    NEED(holds(name, "long"), "a name of 255 bytes is not read back");
    OK(rename(name, "short"));
    OK(rename("short", name));
    OK(unlink(name));
    name[255] = 'n', name[256] = 0;
    FAILS(open(name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG);
    FAILS(mkdir(name, 0755), ENAMETOOLONG);
    return NULL;
}

static const char *deep_path(void)
{
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    OK(fd);
    for (int i = 0; i < 60; i++) {
        OK(mkdirat(fd, "level", 0755));
        int next = openat(fd, "level", O_RDONLY | O_DIRECTORY);
        OK(next);
        close(fd);
        fd = next;
    }
    int file = openat(fd, "f", O_CREAT | O_WRONLY, 0644);
    OK(file);
    close(file);
    close(fd);
    return NULL;
}

static const char *five_thousand_entries(void)
{
    enum { N = 5000 };
    for (int i = 0; i < N; i++) {
        char name[32];
        g_snprintf(name, sizeof(name), "entry-%05d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0644);
        OK(fd);
        OK(close(fd));
    }
    for (int round = 0; round < 2; round++) {
        g_autofree char *seen = g_malloc0(N);
        DIR *dir = opendir(".");
        NEED(dir, "opendir: %s", strerror(errno));
        int total = 0, number;
        for (struct dirent *entry; (entry = readdir(dir));) {
            if (sscanf(entry->d_name, "entry-%d", &number) != 1)
                continue;
            if (number < 0 || number >= N || seen[number]++) {
                closedir(dir);
                return WRONG("%s is listed twice", entry->d_name);
            }
            total++;
            if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) {
                closedir(dir);
                return WRONG("%s has type %d", entry->d_name, entry->d_type);
            }
        }
        closedir(dir);
        NEED(total == N, "%d of %d entries listed", total, N);
    }
    /* seekdir to a place told before. */
    DIR *dir = opendir(".");
    for (int i = 0; i < 100; i++)
        readdir(dir);
    long where = telldir(dir);
    g_autofree char *expected = g_strdup(readdir(dir)->d_name);
    for (int i = 0; i < 1000; i++)
        readdir(dir);
    seekdir(dir, where);
    struct dirent *again = readdir(dir);
    gboolean same = again && strcmp(again->d_name, expected) == 0;
    closedir(dir);
    NEED(same, "seekdir did not come back to %s", expected);
    return NULL;
}

static const char *remove_while_listing(void)
{
    for (int i = 0; i < 600; i++) {
        char name[32];
        g_snprintf(name, sizeof(name), "f%d", i);
        OK(put(name, ""));
    }
    DIR *dir = opendir(".");
    NEED(dir, "opendir: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] == 'f')
            OK(unlink(entry->d_name));
    closedir(dir);
    int left = 0;
    dir = opendir(".");
    for (struct dirent *entry; (entry = readdir(dir));)
        left += entry->d_name[0] == 'f';
    closedir(dir);
    NEED(left == 0, "%d entries survive removal while listing", left);
    return NULL;
}

int main(int argc, char **argv)
{
    static const PosixCheck checks[] = {
        ROW(create_and_read),
        ROW(exclusive_create),
        ROW(open_missing),
        ROW(directories),
        ROW(dot_dot),
        ROW(unlink_file),
        ROW(unlinked_while_open),
        ROW(rename_file),
        ROW(rename_over),
        ROW(rename_noreplace),
        ROW(rename_directory_with_files),
        ROW(making_below_a_renamed_directory),
        ROW(changes_by_descriptor),
        ROW(symlinks),
        ROW(hard_links),
        ROW(rename_over_a_link),
        ROW(special_names),
        ROW(long_names),
        ROW(deep_path),
        ROW(five_thousand_entries),
        ROW(remove_while_listing),
    };
    return posix_main(argc, argv, checks, G_N_ELEMENTS(checks));
}
