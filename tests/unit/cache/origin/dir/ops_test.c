/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cache/origin/origin.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

typedef struct Fixture {
    char *dir;
    Origin *o;
    OriginNode *root;
    OriginAttr attr;
} Fixture;

static void write_file(const Fixture *f, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static Fixture setup(void)
{
    Fixture f = {.dir = harness_tmpdir()};
    g_autoptr(GError) error = NULL;
    f.o = origin_dir_open(f.dir, &error);
    ck_assert_msg(f.o != NULL, "%s", error ? error->message : "");
    ck_assert_int_eq(f.o->ops->root(f.o, &f.root, &f.attr), 0);
    return f;
}

static void teardown(Fixture *f)
{
    f->o->ops->put(f->o, f->root);
    origin_close(f->o);
    harness_remove(f->dir);
}

static OriginNode *lookup(Fixture *f, const char *name)
{
    OriginNode *node;
    ck_assert_int_eq(f->o->ops->lookup(f->o, f->root, name, &node, &f->attr), 0);
    return node;
}

static int lookup_error(Fixture *f, OriginNode *parent, const char *name)
{
    OriginNode *node;
    OriginAttr attr;
    return f->o->ops->lookup(f->o, parent, name, &node, &attr);
}

START_TEST(missing_root_is_named)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(origin_dir_open("/nonexistent/root", &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND));
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/root"));
    g_clear_error(&error);
    ck_assert_ptr_null(origin_dir_open("/proc/self/stat", &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_DIRECTORY));
}
END_TEST

START_TEST(one_inode_has_one_node)
{
    Fixture f = setup();
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    OriginAttr attr;
    ck_assert_int_eq(f.o->ops->link(f.o, a, f.root, "b", &attr), 0);
    ck_assert_uint_eq(attr.st.st_nlink, 2);
    OriginNode *b = lookup(&f, "b");
    ck_assert_ptr_eq(a, b);
    OriginNode *again;
    ck_assert_int_eq(f.o->ops->resolve(f.o, attr.st.st_ino, 0, &again, &attr), 0);
    ck_assert_ptr_eq(a, again);
    f.o->ops->put(f.o, again);
    ck_assert_int_eq(f.o->ops->resolve(f.o, attr.st.st_ino, 7, &again, &attr), -ESTALE);
    f.o->ops->put(f.o, b);
    f.o->ops->put(f.o, a);
    ck_assert_int_eq(f.o->ops->resolve(f.o, attr.st.st_ino, 0, &again, &attr), -ESTALE);
    teardown(&f);
}
END_TEST

START_TEST(names_never_lead_outside)
{
    Fixture f = setup();
    g_autofree char *link = g_build_filename(f.dir, "out", NULL);
    ck_assert_int_eq(symlink("/etc", link), 0);
    ck_assert_int_eq(lookup_error(&f, f.root, ".."), -EINVAL);
    ck_assert_int_eq(lookup_error(&f, f.root, "."), -EINVAL);
    ck_assert_int_eq(lookup_error(&f, f.root, ""), -EINVAL);
    ck_assert_int_eq(lookup_error(&f, f.root, "out/passwd"), -EINVAL);
    ck_assert_int_eq(lookup_error(&f, f.root, "none"), -ENOENT);
    g_autofree char *name = g_strnfill(256, 'n');
    ck_assert_int_eq(lookup_error(&f, f.root, name), -ENAMETOOLONG);
    OriginNode *out = lookup(&f, "out");
    ck_assert(S_ISLNK(f.attr.st.st_mode));
    ck_assert_int_eq(lookup_error(&f, out, "passwd"), -ENOTDIR);
    char target[64];
    ck_assert_int_eq(f.o->ops->readlink(f.o, out, target, sizeof(target)), 4);
    ck_assert_str_eq(target, "/etc");
    OriginDir *dir;
    ck_assert_int_eq(f.o->ops->opendir(f.o, out, &dir), -ENOTDIR);
    OriginFile *file;
    ck_assert_int_lt(f.o->ops->open(f.o, out, O_RDONLY, &file), 0);
    f.o->ops->put(f.o, out);
    teardown(&f);
}
END_TEST

START_TEST(version_changes_with_content_and_metadata)
{
    Fixture f = setup();
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    uint64_t version = f.attr.version;
    struct stat st = {.st_mode = 0640};
    g_usleep(20000); /* one tick of the kernel's clock */
    ck_assert_int_eq(f.o->ops->setattr(f.o, a, &st, ORIGIN_SET_MODE, &f.attr), 0);
    ck_assert_uint_eq(f.attr.st.st_mode & 07777, 0640);
    ck_assert_uint_ne(f.attr.version, version);
    version = f.attr.version;
    ck_assert_int_eq(f.o->ops->getattr(f.o, a, &f.attr), 0);
    ck_assert_uint_eq(f.attr.version, version);
    g_usleep(20000);
    OriginFile *file;
    ck_assert_int_eq(f.o->ops->open(f.o, a, O_RDWR | O_APPEND, &file), 0);
    ck_assert_int_eq(f.o->ops->write(f.o, file, "J", 1, 0), 1);
    char buf[16] = "";
    ck_assert_int_eq(f.o->ops->read(f.o, file, buf, sizeof(buf), 0), 5);
    ck_assert_str_eq(buf, "Jello");
    ck_assert_int_eq(f.o->ops->read(f.o, file, buf, sizeof(buf), 5), 0);
    ck_assert_int_eq(f.o->ops->fsync(f.o, file, TRUE), 0);
    ck_assert_int_eq(f.o->ops->sync_node(f.o, a), 0);
    ck_assert_int_eq(f.o->ops->fallocate(f.o, file, 0, 0, 100), 0);
    ck_assert_int_eq(f.o->ops->close(f.o, file), 0);
    ck_assert_int_eq(f.o->ops->getattr(f.o, a, &f.attr), 0);
    ck_assert_uint_ne(f.attr.version, version);
    ck_assert_int_eq(f.attr.st.st_size, 100);
    f.o->ops->put(f.o, a);
    teardown(&f);
}
END_TEST

START_TEST(setattr_applies_what_is_asked_alone)
{
    Fixture f = setup();
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    struct stat before = f.attr.st;
    struct stat st = {.st_size = 2, .st_mtim = {1000, 5}, .st_mode = 0, .st_uid = 77};
    ck_assert_int_eq(f.o->ops->setattr(f.o, a, &st, ORIGIN_SET_SIZE | ORIGIN_SET_MTIME, &f.attr),
                     0);
    ck_assert_int_eq(f.attr.st.st_size, 2);
    ck_assert_int_eq(f.attr.st.st_mtim.tv_sec, 1000);
    ck_assert_int_eq(f.attr.st.st_mtim.tv_nsec, 5);
    ck_assert_uint_eq(f.attr.st.st_mode, before.st_mode);
    ck_assert_uint_eq(f.attr.st.st_uid, before.st_uid);
    ck_assert_int_eq(f.attr.st.st_atim.tv_sec, before.st_atim.tv_sec);
    ck_assert_int_eq(f.o->ops->setattr(f.o, f.root, &st, ORIGIN_SET_SIZE, &f.attr), -EISDIR);
    f.o->ops->put(f.o, a);
    teardown(&f);
}
END_TEST

static int create(Fixture *f, const char *name, mode_t mode, int flags, OriginCreated *created)
{
    const OriginNew new = {.mode = mode, .uid = geteuid(), .gid = getegid()};
    return f->o->ops->create(f->o, f->root, name, &new, flags, created);
}

START_TEST(create_gives_exact_mode_and_opens_an_existing_file)
{
    Fixture f = setup();
    OriginCreated made;
    ck_assert_int_eq(create(&f, "new", S_IFREG | 0666, O_RDWR, &made), 0);
    ck_assert_uint_eq(made.attr.st.st_mode & 07777, 0666);
    ck_assert_int_eq(f.o->ops->write(f.o, made.file, "abc", 3, 0), 3);
    ck_assert_int_eq(f.o->ops->close(f.o, made.file), 0);
    f.o->ops->put(f.o, made.node);
    ck_assert_int_eq(create(&f, "new", S_IFREG | 0600, O_RDWR | O_EXCL, &made), -EEXIST);
    ck_assert_int_eq(create(&f, "new", S_IFREG | 0600, O_RDWR | O_TRUNC, &made), 0);
    ck_assert_int_eq(made.attr.st.st_size, 0);
    ck_assert_uint_eq(made.attr.st.st_mode & 07777, 0666);
    f.o->ops->close(f.o, made.file);
    f.o->ops->put(f.o, made.node);
    ck_assert_int_eq(create(&f, "a/b", 0600, O_RDWR, &made), -EINVAL);
    teardown(&f);
}
END_TEST

START_TEST(names_are_made_moved_and_removed)
{
    Fixture f = setup();
    const OriginOps *ops = f.o->ops;
    OriginNew new = {.mode = 0777, .uid = geteuid(), .gid = getegid(), .target = "p"};
    OriginNode *d, *fifo, *link;
    ck_assert_int_eq(ops->mkdir(f.o, f.root, "d", &new, &d, &f.attr), 0);
    ck_assert(S_ISDIR(f.attr.st.st_mode));
    ck_assert_uint_eq(f.attr.st.st_mode & 07777, 0777);
    ck_assert_int_eq(ops->mkdir(f.o, f.root, "d", &new, &link, &f.attr), -EEXIST);
    new.mode = S_IFIFO | 0622;
    ck_assert_int_eq(ops->mknod(f.o, d, "p", &new, &fifo, &f.attr), 0);
    ck_assert(S_ISFIFO(f.attr.st.st_mode));
    ck_assert_uint_eq(f.attr.st.st_mode & 07777, 0622);
    OriginFile *file;
    ck_assert_int_eq(ops->open(f.o, fifo, O_RDONLY, &file), -EINVAL); /* would block for ever */
    ck_assert_int_eq(ops->symlink(f.o, d, "l", &new, &link, &f.attr), 0);
    ck_assert_int_eq(ops->rename(f.o, d, "p", f.root, "q", 0), 0);
    ck_assert_int_eq(ops->rename(f.o, d, "l", f.root, "q", RENAME_NOREPLACE), -EEXIST);
    ck_assert_int_eq(ops->rename(f.o, d, "l", f.root, "q", RENAME_WHITEOUT), -EINVAL);
    ck_assert_int_eq(ops->rename(f.o, d, "..", f.root, "q", 0), -EINVAL);
    ck_assert_int_eq(ops->unlink(f.o, f.root, "d"), -EISDIR);
    ck_assert_int_eq(ops->rmdir(f.o, f.root, "d"), -ENOTEMPTY);
    ck_assert_int_eq(ops->unlink(f.o, d, "l"), 0);
    ck_assert_int_eq(ops->unlink(f.o, f.root, "q"), 0);
    ck_assert_int_eq(ops->rmdir(f.o, f.root, "d"), 0);
    /* A node outlives its name. */
    ck_assert_int_eq(ops->getattr(f.o, fifo, &f.attr), 0);
    ck_assert_uint_eq(f.attr.st.st_nlink, 0);
    ops->put(f.o, link);
    ops->put(f.o, fifo);
    ops->put(f.o, d);
    teardown(&f);
}
END_TEST

START_TEST(readdir_lists_all_and_continues_anywhere)
{
    Fixture f = setup();
    for (int i = 0; i < 50; i++) {
        g_autofree char *name = g_strdup_printf("f%02d", i);
        write_file(&f, name, "x");
    }
    OriginDir *dir;
    ck_assert_int_eq(f.o->ops->opendir(f.o, f.root, &dir), 0);
    g_autoptr(GHashTable) offsets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    OriginEntry e;
    int64_t off = 0;
    int n;
    while ((n = f.o->ops->readdir(f.o, dir, off, TRUE, &e)) == 1) {
        gboolean dot = strcmp(e.name, ".") == 0 || strcmp(e.name, "..") == 0;
        ck_assert((e.node == NULL) == dot);
        if (!dot) {
            ck_assert_int_eq(e.attr.st.st_size, 1);
            ck_assert_uint_eq(e.type, S_IFREG);
            ck_assert_uint_eq(e.ino, e.attr.st.st_ino);
        }
        f.o->ops->put(f.o, e.node);
        int64_t *at = g_new(int64_t, 1);
        *at = off;
        ck_assert(g_hash_table_insert(offsets, g_strdup(e.name), at));
        off = e.next;
    }
    ck_assert_int_eq(n, 0);
    ck_assert_uint_eq(g_hash_table_size(offsets), 52);
    GHashTableIter iter;
    gpointer name, at;
    g_hash_table_iter_init(&iter, offsets);
    while (g_hash_table_iter_next(&iter, &name, &at)) {
        ck_assert_int_eq(f.o->ops->readdir(f.o, dir, *(int64_t *)at, FALSE, &e), 1);
        ck_assert_str_eq(e.name, name);
        ck_assert_ptr_null(e.node);
    }
    ck_assert_int_eq(f.o->ops->closedir(f.o, dir), 0);
    teardown(&f);
}
END_TEST

START_TEST(xattrs_and_statfs)
{
    Fixture f = setup();
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    const OriginOps *ops = f.o->ops;
    char buf[64];
    ck_assert_int_lt(ops->getxattr(f.o, a, "user.none", buf, sizeof(buf)), 0);
    int set = ops->setxattr(f.o, a, "user.k", "value", 5, XATTR_CREATE);
    if (set != -EOPNOTSUPP) {
        ck_assert_int_eq(set, 0);
        ck_assert_int_eq(ops->setxattr(f.o, a, "user.k", "v", 1, XATTR_CREATE), -EEXIST);
        ck_assert_int_eq(ops->getxattr(f.o, a, "user.k", NULL, 0), 5);
        ck_assert_int_eq(ops->getxattr(f.o, a, "user.k", buf, sizeof(buf)), 5);
        ck_assert_int_eq(ops->getxattr(f.o, a, "user.k", buf, 2), -ERANGE);
        ck_assert_int_ge(ops->listxattr(f.o, a, buf, sizeof(buf)), 7);
        ck_assert_int_eq(ops->removexattr(f.o, a, "user.k"), 0);
        ck_assert_int_eq(ops->getxattr(f.o, a, "user.k", NULL, 0), -ENODATA);
    }
    struct statvfs st;
    ck_assert_int_eq(ops->statfs(f.o, f.root, &st), 0);
    ck_assert_uint_gt(st.f_blocks, 0);
    ops->put(f.o, a);
    teardown(&f);
}
END_TEST

START_TEST(two_origins_of_one_file_system_share_identity)
{
    Fixture f = setup();
    Fixture g = setup();
    ck_assert_mem_eq(f.o->space, g.o->space, sizeof(f.o->space));
    uint8_t zero[16] = {0};
    ck_assert_mem_ne(f.o->space + 8, zero, 16);
    teardown(&f);
    teardown(&g);
}
END_TEST

/* ---- leases ---- */

typedef struct Holder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned recalls;
} Holder;

static void on_recall(OriginFile *file, void *data)
{
    (void)file;
    Holder *holder = data;
    pthread_mutex_lock(&holder->lock);
    holder->recalls++;
    pthread_cond_broadcast(&holder->changed);
    pthread_mutex_unlock(&holder->lock);
}

static void wait_recalled(Holder *holder)
{
    pthread_mutex_lock(&holder->lock);
    while (!holder->recalls)
        pthread_cond_wait(&holder->changed, &holder->lock);
    pthread_mutex_unlock(&holder->lock);
}

typedef struct Opener {
    Fixture *f;
    OriginNode *node;
    int flags;
    atomic_bool done;
    int result;
    OriginFile *file;
} Opener;

static void *run_opener(void *data)
{
    Opener *opener = data;
    opener->result =
        opener->f->o->ops->open(opener->f->o, opener->node, opener->flags, &opener->file);
    atomic_store(&opener->done, TRUE);
    return NULL;
}

START_TEST(writer_waits_for_the_return_of_a_read_lease)
{
    Fixture f = setup();
    const OriginOps *ops = f.o->ops;
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    Holder holder = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    OriginFile *reader, *other, *third;
    ck_assert_int_eq(ops->open(f.o, a, O_RDONLY, &reader), 0);
    ck_assert_int_eq(ops->lease(f.o, reader, ORIGIN_LEASE_READ, on_recall, &holder), 0);
    /* Other readers disturb nobody. */
    ck_assert_int_eq(ops->open(f.o, a, O_RDONLY, &other), 0);
    ck_assert_int_eq(ops->lease(f.o, other, ORIGIN_LEASE_WRITE, on_recall, &holder), -EAGAIN);
    ck_assert_int_eq(ops->lease(f.o, other, ORIGIN_LEASE_READ, on_recall, &holder), 0);
    ck_assert_int_eq(ops->open(f.o, a, O_RDONLY, &third), 0);
    ck_assert_uint_eq(holder.recalls, 0);

    Opener writer = {.f = &f, .node = a, .flags = O_WRONLY};
    pthread_t thread;
    pthread_create(&thread, NULL, run_opener, &writer);
    wait_recalled(&holder);
    ck_assert(!atomic_load(&writer.done));
    /* No new lease while a writer waits. */
    ck_assert_int_eq(ops->lease(f.o, third, ORIGIN_LEASE_READ, on_recall, &holder), -EAGAIN);
    ck_assert_int_eq(ops->lease(f.o, reader, ORIGIN_LEASE_NONE, NULL, NULL), 0);
    g_usleep(10000); /* lets a writer that were to go on too early, or to recall again, do so */
    ck_assert(!atomic_load(&writer.done));
    ck_assert_int_eq(ops->lease(f.o, other, ORIGIN_LEASE_NONE, NULL, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(writer.result, 0);
    ck_assert_uint_eq(holder.recalls, 2);
    ck_assert_int_eq(ops->lease(f.o, reader, ORIGIN_LEASE_READ, on_recall, &holder), -EAGAIN);
    ops->close(f.o, writer.file);
    ck_assert_int_eq(ops->lease(f.o, reader, ORIGIN_LEASE_READ, on_recall, &holder), 0);
    ops->close(f.o, reader);
    ops->close(f.o, other);
    ops->close(f.o, third);
    ops->put(f.o, a);
    teardown(&f);
}
END_TEST

START_TEST(closing_a_file_returns_its_lease)
{
    Fixture f = setup();
    const OriginOps *ops = f.o->ops;
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    Holder holder = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    OriginFile *file;
    ck_assert_int_eq(ops->open(f.o, a, O_RDWR, &file), 0);
    ck_assert_int_eq(ops->lease(f.o, file, ORIGIN_LEASE_READ, on_recall, &holder), -EAGAIN);
    ck_assert_int_eq(ops->lease(f.o, file, ORIGIN_LEASE_WRITE, on_recall, &holder), 0);
    Opener reader = {.f = &f, .node = a, .flags = O_RDONLY};
    pthread_t thread;
    pthread_create(&thread, NULL, run_opener, &reader);
    wait_recalled(&holder);
    ck_assert(!atomic_load(&reader.done));
    ops->close(f.o, file);
    pthread_join(thread, NULL);
    ck_assert_int_eq(reader.result, 0);
    ops->close(f.o, reader.file);
    ops->put(f.o, a);
    teardown(&f);
}
END_TEST

static void *run_truncate(void *data)
{
    Opener *opener = data;
    struct stat st = {.st_size = 1};
    OriginAttr attr;
    opener->result =
        opener->f->o->ops->setattr(opener->f->o, opener->node, &st, ORIGIN_SET_SIZE, &attr);
    atomic_store(&opener->done, TRUE);
    return NULL;
}

START_TEST(truncation_recalls_a_read_lease)
{
    Fixture f = setup();
    const OriginOps *ops = f.o->ops;
    write_file(&f, "a", "hello");
    OriginNode *a = lookup(&f, "a");
    Holder holder = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    OriginFile *file;
    ck_assert_int_eq(ops->open(f.o, a, O_RDONLY, &file), 0);
    ck_assert_int_eq(ops->lease(f.o, file, ORIGIN_LEASE_READ, on_recall, &holder), 0);
    Opener truncation = {.f = &f, .node = a};
    pthread_t thread;
    pthread_create(&thread, NULL, run_truncate, &truncation);
    wait_recalled(&holder);
    ck_assert_int_eq(ops->getattr(f.o, a, &f.attr), 0);
    ck_assert_int_eq(f.attr.st.st_size, 5);
    ck_assert_int_eq(ops->lease(f.o, file, ORIGIN_LEASE_NONE, NULL, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(truncation.result, 0);
    ck_assert_int_eq(ops->lease(f.o, file, ORIGIN_LEASE_READ, on_recall, &holder), 0);
    ops->close(f.o, file);
    ops->put(f.o, a);
    teardown(&f);
}
END_TEST

HARNESS_MAIN("cache/origin/dir/ops", missing_root_is_named, one_inode_has_one_node,
             names_never_lead_outside, version_changes_with_content_and_metadata,
             setattr_applies_what_is_asked_alone,
             create_gives_exact_mode_and_opens_an_existing_file, names_are_made_moved_and_removed,
             readdir_lists_all_and_continues_anywhere, xattrs_and_statfs,
             two_origins_of_one_file_system_share_identity,
             writer_waits_for_the_return_of_a_read_lease, closing_a_file_returns_its_lease,
             truncation_recalls_a_read_lease)
