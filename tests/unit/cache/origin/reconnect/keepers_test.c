/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait on a connection that was lost, over a directory whose reads wait. */
#include "cache/origin/reconnect/reconnect.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include "tests/unit/cache/fuse/no_threads.h"
#include "tests/unit/harness.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct Ceph {
    char *tree;
    /* All under the lock. */
    gboolean hangs, lost, may_not;
    unsigned connects, asked, reading, closed, abandoned;
} Ceph;

static Ceph ceph;
static OriginOps tree_ops, dir_ops;

static void set(gboolean *what, gboolean value)
{
    pthread_mutex_lock(&lock);
    *what = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void add_one(unsigned *n)
{
    pthread_mutex_lock(&lock);
    (*n)++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static unsigned count(const unsigned *n)
{
    pthread_mutex_lock(&lock);
    const unsigned now = *n;
    pthread_mutex_unlock(&lock);
    return now;
}

static void await_count(const unsigned *n, unsigned wanted)
{
    pthread_mutex_lock(&lock);
    while (*n < wanted)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static ssize_t read_or_hang(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    gboolean hung = FALSE;
    pthread_mutex_lock(&lock);
    ceph.reading++;
    pthread_cond_broadcast(&changed);
    for (; ceph.hangs; hung = TRUE)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return hung ? -ESHUTDOWN : dir_ops.read(o, file, buf, len, off);
}

static int close_file(Origin *o, OriginFile *file)
{
    add_one(&ceph.closed);
    return dir_ops.close(o, file);
}

static int resolve(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node, OriginAttr *attr)
{
    (void)ino, (void)snapshot;
    OriginNode *root;
    ck_assert_int_eq(o->ops->root(o, &root, attr), 0);
    const int r = o->ops->lookup(o, root, "f", node, attr);
    o->ops->put(o, root);
    return r;
}

static Origin *open_tree(void)
{
    Origin *o = origin_dir_open(ceph.tree, NULL);
    ck_assert_ptr_nonnull(o);
    tree_ops = dir_ops = *o->ops;
    tree_ops.read = read_or_hang;
    tree_ops.close = close_file;
    tree_ops.resolve = resolve;
    o->ops = &tree_ops;
    return o;
}

static Origin *connect_again(void *data, gboolean after_loss, GError **error)
{
    (void)data, (void)after_loss, (void)error;
    Origin *o = origin_dir_open(ceph.tree, NULL);
    o->ops = &tree_ops;
    set(&ceph.lost, FALSE);
    add_one(&ceph.connects);
    return o;
}

static int check_now(Origin *connection)
{
    (void)connection;
    pthread_mutex_lock(&lock);
    const int r = ceph.lost ? -EIO : 0;
    pthread_mutex_unlock(&lock);
    return r;
}

static gboolean yes(void *data)
{
    (void)data;
    return TRUE;
}

static gboolean end_calls(void *data, Origin *connection)
{
    (void)data, (void)connection;
    pthread_mutex_lock(&lock);
    const gboolean may = !ceph.may_not;
    pthread_mutex_unlock(&lock);
    add_one(&ceph.asked);
    if (may)
        set(&ceph.hangs, FALSE);
    return may;
}

static void abandon(Origin *connection)
{
    (void)connection;
    add_one(&ceph.abandoned);
}

static void freed(void *data)
{
    (void)data;
}

static Origin *up(OriginNode **node)
{
    static const ReconnectOps ops = {
        .connect = connect_again,
        .check = check_now,
        .answers = yes,
        .fence = yes,
        .end_calls = end_calls,
        .abandon = abandon,
        .wait_ms = 30000,
        .free_data = freed,
    };
    OriginAttr attr;
    ceph = (Ceph){.tree = harness_tmpdir()};
    g_autofree char *path = g_build_filename(ceph.tree, "f", NULL);
    ck_assert(g_file_set_contents(path, "text", -1, NULL));
    Origin *o = origin_reconnect_new(open_tree(), &ops, &ceph);
    ck_assert_int_eq(resolve(o, 0, 0, node, &attr), 0);
    return o;
}

static void down(Origin *o, OriginNode *node)
{
    o->ops->put(o, node);
    origin_close(o);
    harness_remove(ceph.tree);
}

typedef struct Reader {
    Origin *o;
    OriginFile *file;
    ssize_t n;
    pthread_t thread;
} Reader;

static void *read_text(void *data)
{
    Reader *r = data;
    char buf[8];
    r->n = r->o->ops->read(r->o, r->file, buf, sizeof(buf), 0);
    return NULL;
}

/* A read that hangs, of a connection that is lost then. */
static void lose_with_a_read(Reader *r, Origin *o, OriginNode *node)
{
    *r = (Reader){.o = o};
    ck_assert_int_eq(o->ops->open(o, node, O_RDWR, &r->file), 0);
    set(&ceph.hangs, TRUE);
    pthread_create(&r->thread, NULL, read_text, r);
    await_count(&ceph.reading, 1);
    set(&ceph.lost, TRUE);
    ck_assert_int_eq(o->ops->sync_node(o, node), -EIO);
}

START_TEST(calls_that_wait_on_a_lost_connection_are_ended_and_reads_made_again)
{
    Reader r;
    OriginNode *node;
    Origin *o = up(&node);
    lose_with_a_read(&r, o, node);
    pthread_join(r.thread, NULL);
    ck_assert_int_eq(r.n, 4);
    ck_assert_uint_eq(count(&ceph.asked), 1);
    ck_assert_uint_eq(count(&ceph.connects), 1);
    o->ops->close(o, r.file);
    await_count(&ceph.abandoned, 1);
    down(o, node);
}
END_TEST

START_TEST(nothing_is_ended_on_a_lost_connection_that_no_call_waits_on)
{
    OriginNode *node;
    Origin *o = up(&node);
    set(&ceph.lost, TRUE);
    ck_assert_int_eq(o->ops->sync_node(o, node), -EIO);
    await_count(&ceph.abandoned, 1);
    ck_assert_uint_eq(count(&ceph.asked), 0);
    down(o, node);
}
END_TEST

START_TEST(a_file_of_a_lost_connection_is_closed_when_that_has_ended)
{
    Reader r;
    OriginNode *node;
    OriginFile *other;
    Origin *o = up(&node);
    ck_assert_int_eq(o->ops->open(o, node, O_RDWR, &other), 0);
    set(&ceph.may_not, TRUE);
    lose_with_a_read(&r, o, node);
    ck_assert_int_eq(o->ops->close(o, other), -ENOTCONN);
    await_count(&ceph.asked, 1);
    ck_assert_uint_eq(count(&ceph.closed), 0);
    set(&ceph.hangs, FALSE);
    pthread_join(r.thread, NULL);
    await_count(&ceph.abandoned, 1);
    await_count(&ceph.closed, 1);
    o->ops->close(o, r.file);
    down(o, node);
    ck_assert_uint_eq(count(&ceph.closed), 3); /* and the one of the next connection */
}
END_TEST

START_TEST(a_sync_asks_by_itself_when_no_thread_can_be_made)
{
    OriginNode *node;
    Origin *o = up(&node);
    allow_threads(FALSE);
    ck_assert_int_eq(o->ops->sync_node(o, node), 0);
    set(&ceph.lost, TRUE);
    ck_assert_int_eq(o->ops->sync_node(o, node), -EIO);
    allow_threads(TRUE);
    down(o, node);
}
END_TEST

HARNESS_MAIN("cache/origin/reconnect/keepers", a_sync_asks_by_itself_when_no_thread_can_be_made,
             calls_that_wait_on_a_lost_connection_are_ended_and_reads_made_again,
             nothing_is_ended_on_a_lost_connection_that_no_call_waits_on,
             a_file_of_a_lost_connection_is_closed_when_that_has_ended)
