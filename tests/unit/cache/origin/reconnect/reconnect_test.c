/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are lost, over a directory: what goes on with the next one, and what is lost. */
#include "cache/origin/reconnect/reconnect.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "cache/origin/thread_room.h"
#include "tests/unit/harness.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct Ceph {
    char *tree;
    /* All under the lock. */
    gboolean lost, refuses, freed;
    unsigned connects, after_rest, abandoned, closed, voided, synced;
    int sync_fails;
    char key[16];
} Ceph;

static Ceph ceph;
static _Atomic gboolean silent;                     /* a check tells nothing */
static _Atomic uint64_t no_monitor_ms = UINT64_MAX; /* for how long they are silent */

/* A directory finds no inode by number that it has not seen; an MDS does. */
static int resolve(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node, OriginAttr *attr)
{
    (void)snapshot;
    OriginNode *root;
    int r = o->ops->root(o, &root, attr);
    if (r < 0 || attr->st.st_ino == ino) {
        *node = root;
        return r;
    }
    r = o->ops->lookup(o, root, "f", node, attr);
    o->ops->put(o, root);
    return r;
}

static OriginOps tree_ops, dir_ops;

static void closed(Origin *o)
{
    dir_ops.destroy(o);
    pthread_mutex_lock(&lock);
    ceph.closed++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int sync_all(Origin *o)
{
    (void)o;
    pthread_mutex_lock(&lock);
    const int r = ceph.sync_fails;
    ceph.synced++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return r;
}

static int lock_is_lost(Origin *o, OriginLocks *locks, const struct flock *wanted, uint64_t owner)
{
    (void)o, (void)locks, (void)wanted, (void)owner;
    return -EIO;
}

static Origin *open_tree(void)
{
    Origin *o = origin_dir_open(ceph.tree, NULL);
    ck_assert_ptr_nonnull(o);
    o->ops = &tree_ops;
    return o;
}

static void make_tree_ops(void)
{
    g_autoptr(Origin) o = origin_dir_open(ceph.tree, NULL);
    tree_ops = dir_ops = *o->ops;
    tree_ops.resolve = resolve;
    tree_ops.destroy = closed;
    tree_ops.sync_all = sync_all;
}

static Origin *connect_again(void *data, gboolean after_loss, GError **error)
{
    (void)data;
    pthread_mutex_lock(&lock);
    ceph.after_rest += !after_loss;
    gboolean refuses = ceph.refuses;
    ceph.connects++;
    if (!refuses)
        ceph.lost = FALSE;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!refuses)
        return open_tree();
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "no");
    return NULL;
}

static int check_now(Origin *connection)
{
    (void)connection;
    pthread_mutex_lock(&lock);
    int r = silent ? -EAGAIN : 0;
    if (ceph.lost)
        r = -EIO;
    pthread_mutex_unlock(&lock);
    return r;
}

static gboolean yes(void *data)
{
    (void)data;
    return TRUE;
}

static _Atomic gboolean answers_late; /* what the monitors say is known at the next question */

static uint64_t monitors_silent_ms(void *data)
{
    (void)data;
    if (atomic_exchange(&answers_late, FALSE))
        return UINT64_MAX;
    return atomic_load(&no_monitor_ms);
}

static void abandon(Origin *connection)
{
    (void)connection;
    pthread_mutex_lock(&lock);
    ceph.abandoned++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void freed(void *data)
{
    ((Ceph *)data)->freed = TRUE;
}

static void reach(void *data, const char *monitors, const char *key, unsigned timeout_sec)
{
    (void)monitors, (void)timeout_sec;
    g_strlcpy(((Ceph *)data)->key, key, sizeof(ceph.key));
}

static ReconnectOps reconnect_ops = {
    .reach = reach,
    .connect = connect_again,
    .check = check_now,
    .answers = yes,
    .monitors_silent_ms = monitors_silent_ms,
    .fence = yes,
    .abandon = abandon,
    .wait_ms = 30000,
    .free_data = freed,
};

static void leases_void(void *data)
{
    (void)data;
    pthread_mutex_lock(&lock);
    ceph.voided++;
    pthread_mutex_unlock(&lock);
}

static Origin *up(void)
{
    ceph = (Ceph){.tree = harness_tmpdir()};
    g_autofree char *path = g_build_filename(ceph.tree, "f", NULL);
    ck_assert(g_file_set_contents(path, "text", -1, NULL));
    make_tree_ops();
    Origin *o = origin_reconnect_new(open_tree(), &reconnect_ops, &ceph);
    const OriginListener listener = {.leases_void = leases_void};
    o->ops->listen(o, &listener);
    return o;
}

static void down(Origin *o)
{
    o->ops->listen(o, NULL);
    origin_close(o);
    ck_assert(ceph.freed);
    reconnect_ops.rest_ms = 0;
    atomic_store(&no_monitor_ms, UINT64_MAX);
    harness_remove(ceph.tree);
}

static void lose(void)
{
    pthread_mutex_lock(&lock);
    ceph.lost = TRUE;
    pthread_mutex_unlock(&lock);
}

static OriginNode *find(Origin *o, const char *name)
{
    OriginNode *root, *node;
    OriginAttr attr;
    ck_assert_int_eq(o->ops->root(o, &root, &attr), 0);
    ck_assert_int_eq(o->ops->lookup(o, root, name, &node, &attr), 0);
    o->ops->put(o, root);
    return node;
}

static OriginFile *open_node(Origin *o, OriginNode *node, int flags)
{
    OriginFile *file;
    ck_assert_int_eq(o->ops->open(o, node, flags, &file), 0);
    return file;
}

static void expect(Origin *o, OriginFile *file, const char *text)
{
    char buf[64];
    ck_assert_int_eq(o->ops->read(o, file, buf, sizeof(buf), 0), (ssize_t)strlen(text));
    ck_assert_mem_eq(buf, text, strlen(text));
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

START_TEST(a_sync_fails_when_the_session_was_lost)
{
    Origin *o = up();
    OriginNode *node = find(o, "f");
    OriginFile *file = open_node(o, node, O_RDWR);
    uint64_t before = o->ops->session(o);
    ck_assert_int_eq(o->ops->write(o, file, "T", 1, 0), 1);
    ck_assert_int_eq(o->ops->fsync(o, file, FALSE), 0);
    ck_assert_uint_eq(o->ops->session(o), before);
    lose();
    ck_assert_int_eq(o->ops->fsync(o, file, FALSE), -EIO);
    ck_assert_uint_eq(o->ops->session(o), before + 1);
    o->ops->close(o, file);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(locks_go_with_their_connection)
{
    static const struct flock all = {.l_type = F_WRLCK}, tail = {.l_type = F_WRLCK, .l_start = 9};
    struct flock asked = all;
    Origin *o = up();
    OriginNode *node = find(o, "f");
    OriginFile *file = open_node(o, node, O_RDWR), *later;
    OriginLocks *locks, *again;
    char c;
    ck_assert_int_eq(o->ops->locks_open(o, node, &locks), 0);
    ck_assert_int_eq(o->ops->lock_set(o, locks, &tail, 1), 0);
    ck_assert_int_eq(o->ops->lock_get(o, locks, &asked, 2), 0);
    ck_assert_int_eq(asked.l_type, F_WRLCK);
    lose();
    ck_assert_int_eq(o->ops->fsync(o, file, FALSE), -EIO);
    ck_assert_int_eq(o->ops->lock_set(o, locks, &all, 1), -EIO);
    ck_assert_int_eq(o->ops->lock_get(o, locks, &asked, 2), -EIO);
    /* What was opened under the lock is not opened again without it. */
    ck_assert_int_eq(o->ops->write(o, file, "T", 1, 0), -EIO);
    ck_assert_int_eq(o->ops->read(o, file, &c, 1, 0), -EIO);
    o->ops->locks_close(o, locks);
    ck_assert_int_eq(o->ops->write(o, file, "T", 1, 0), 1);
    ck_assert_int_eq(o->ops->locks_open(o, node, &again), 0);
    later = open_node(o, node, O_RDONLY);
    ck_assert_int_eq(o->ops->read(o, later, &c, 1, 0), 1);
    o->ops->locks_close(o, again);
    o->ops->close(o, later);
    o->ops->close(o, file);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(a_lost_lock_loses_the_connection)
{
    static const struct flock all = {.l_type = F_WRLCK};
    Origin *o = up();
    OriginNode *node = find(o, "f");
    OriginLocks *locks;
    tree_ops.lock_set = lock_is_lost;
    ck_assert_int_eq(o->ops->locks_open(o, node, &locks), 0);
    const uint64_t before = o->ops->session(o);
    ck_assert_int_eq(o->ops->lock_set(o, locks, &all, 1), -EIO);
    ck_assert_uint_eq(o->ops->session(o), before + 1);
    o->ops->locks_close(o, locks);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(a_sync_of_a_node_fails_too)
{
    Origin *o = up();
    OriginNode *node = find(o, "f");
    ck_assert_int_eq(o->ops->sync_node(o, node), 0);
    lose();
    ck_assert_int_eq(o->ops->sync_node(o, node), -EIO);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(nodes_files_and_listings_go_on_with_the_next_connection)
{
    Origin *o = up();
    OriginNode *node = find(o, "f"), *root;
    OriginFile *reader = open_node(o, node, O_RDONLY), *writer = open_node(o, node, O_RDWR);
    OriginAttr attr;
    OriginDir *dir;
    OriginEntry entry;
    ck_assert_int_eq(o->ops->root(o, &root, &attr), 0);
    ck_assert_int_eq(o->ops->opendir(o, root, &dir), 0);
    ck_assert_int_eq(o->ops->readdir(o, dir, 0, FALSE, &entry), 1);
    lose();
    ck_assert_int_eq(o->ops->fsync(o, writer, FALSE), -EIO);
    expect(o, reader, "text");
    ck_assert_uint_eq(ceph.connects, 1);
    ck_assert_int_eq(o->ops->write(o, writer, "TEXT", 4, 0), 4);
    ck_assert_int_eq(o->ops->fsync(o, writer, FALSE), 0);
    expect(o, reader, "TEXT");
    ck_assert_int_eq(o->ops->getattr(o, node, &attr), 0);
    ck_assert_int_eq(o->ops->readdir(o, dir, entry.next, FALSE, &entry), 1);
    o->ops->closedir(o, dir);
    o->ops->close(o, writer);
    o->ops->close(o, reader);
    o->ops->put(o, root);
    o->ops->put(o, node);
    await_count(&ceph.abandoned, 1);
    down(o);
}
END_TEST

START_TEST(a_read_asks_a_ceph_that_was_not_heard_from)
{
    silent = TRUE;
    Origin *o = up();
    OriginNode *node = find(o, "f");
    OriginFile *file = open_node(o, node, O_RDONLY);
    lose();
    expect(o, file, "text");
    ck_assert_uint_eq(ceph.connects, 1);
    o->ops->close(o, file);
    o->ops->put(o, node);
    silent = FALSE;
    down(o);
}
END_TEST

static gboolean becomes_silent(Origin *o, uint64_t ms)
{
    for (int i = 0; i < 20000 && o->ops->silent_ms(o) < ms; i++)
        g_usleep(1000);
    return o->ops->silent_ms(o) >= ms;
}

static gboolean is_heard(Origin *o)
{
    for (int i = 0; i < 20000 && o->ops->silent_ms(o) > 0; i++)
        g_usleep(1000);
    return o->ops->silent_ms(o) == 0;
}

/* Without calls and leases only a caller that waits has Ceph checked. */
START_TEST(silence_counts_from_the_first_question_and_ends_with_an_answer)
{
    Origin *o = up();
    OriginNode *node = find(o, "f");
    ck_assert_uint_lt(o->ops->silent_ms(o), 1000); /* not since the machine was started */
    ck_assert(is_heard(o));
    ck_assert_int_eq(o->ops->sync_all(o), 0);
    atomic_store(&silent, TRUE);
    ck_assert(becomes_silent(o, 200));
    OriginFile *file = open_node(o, node, O_RDONLY | O_DIRECT);
    expect(o, file, "text"); /* OSDs answer */
    ck_assert_uint_lt(o->ops->silent_ms(o), 200);
    ck_assert(becomes_silent(o, 200));
    atomic_store(&silent, FALSE);
    ck_assert(is_heard(o));
    /* A lost session is not silence. It is silence when this client cannot connect again. */
    pthread_mutex_lock(&lock);
    ceph.lost = ceph.refuses = TRUE;
    pthread_mutex_unlock(&lock);
    o->ops->sync_all(o);
    ck_assert(becomes_silent(o, 200));
    pthread_mutex_lock(&lock);
    ceph.refuses = FALSE;
    pthread_mutex_unlock(&lock);
    ck_assert(is_heard(o));
    o->ops->close(o, file);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(a_ceph_of_which_a_monitor_answers_is_not_silent)
{
    Origin *o = up();
    ck_assert(is_heard(o));
    atomic_store(&silent, TRUE);
    ck_assert(becomes_silent(o, 5100)); /* after 5 s a monitor is asked */
    atomic_store(&no_monitor_ms, 300);
    ck_assert_uint_eq(o->ops->silent_ms(o), 300);
    atomic_store(&silent, FALSE);
    ck_assert(is_heard(o));
    down(o);
}
END_TEST

START_TEST(what_is_gone_is_not_found_again)
{
    Origin *o = up();
    OriginNode *node = find(o, "f");
    OriginFile *file = open_node(o, node, O_RDWR);
    g_autofree char *path = g_build_filename(ceph.tree, "f", NULL);
    char buf[8];
    lose();
    ck_assert_int_eq(o->ops->fsync(o, file, FALSE), -EIO);
    unlink(path);
    ck_assert_int_lt(o->ops->read(o, file, buf, sizeof(buf), 0), 0);
    o->ops->close(o, file);
    o->ops->put(o, node);
    down(o);
}
END_TEST

/* A directory of a snapshot: its number is its name. */
static int look_in_snapshot(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                            OriginAttr *attr)
{
    (void)parent;
    int r = o->ops->root(o, node, attr);
    attr->snapshot = 1;
    attr->st.st_ino = g_ascii_strtoull(name, NULL, 10);
    return r;
}

START_TEST(a_deep_tree_of_a_snapshot_takes_no_deep_stack)
{
    enum { LEVELS = 300000 };
    Origin *o = up();
    tree_ops.lookup = look_in_snapshot;
    OriginNode *node, *parent;
    OriginAttr attr;
    ck_assert_int_eq(o->ops->root(o, &node, &attr), 0);
    for (int i = 1; i <= LEVELS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        parent = node;
        ck_assert_int_eq(o->ops->lookup(o, parent, name, &node, &attr), 0);
        o->ops->put(o, parent);
    }
    lose();
    ck_assert_int_eq(o->ops->sync_node(o, node), -EIO);
    ck_assert_int_eq(o->ops->getattr(o, node, &attr), 0);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(leases_are_void_with_the_session)
{
    Origin *o = up();
    OriginNode *node = find(o, "f");
    OriginFile *file = open_node(o, node, O_RDONLY);
    ck_assert_int_eq(o->ops->lease(o, file, ORIGIN_LEASE_READ, NULL, NULL), 0);
    ck_assert(o->ops->vouches(o));
    pthread_mutex_lock(&lock);
    ceph.lost = ceph.refuses = TRUE;
    pthread_mutex_unlock(&lock);
    ck_assert_int_eq(o->ops->sync_node(o, node), -EIO);
    ck_assert(!o->ops->vouches(o));
    pthread_mutex_lock(&lock);
    while (!ceph.connects)
        pthread_cond_wait(&changed, &lock);
    ck_assert_uint_ge(ceph.voided, 1);
    ceph.refuses = FALSE;
    pthread_mutex_unlock(&lock);
    /* Asked for while there is no connection, none is given. */
    int r = o->ops->lease(o, file, ORIGIN_LEASE_READ, NULL, NULL);
    ck_assert(r == -EAGAIN || r == 0);
    OriginAttr attr;
    ck_assert_int_eq(o->ops->getattr(o, node, &attr), 0);
    ck_assert_int_eq(o->ops->lease(o, file, ORIGIN_LEASE_READ, NULL, NULL), 0);
    ck_assert(o->ops->vouches(o));
    o->ops->close(o, file);
    o->ops->put(o, node);
    down(o);
}
END_TEST

#define READERS 4

typedef struct Load {
    Origin *o;
    OriginNode *node;
    _Atomic int stop, wrong;
    _Atomic unsigned reads[READERS];
    _Atomic unsigned number;
} Load;

/* Assertions talk to another process each time: too slow for this loop. */
static gboolean reads_text(Origin *o, OriginNode *node)
{
    OriginFile *file;
    char buf[8];
    if (o->ops->open(o, node, O_RDONLY, &file) != 0)
        return FALSE;
    ssize_t n = o->ops->read(o, file, buf, sizeof(buf), 0);
    o->ops->close(o, file);
    return n == 4 && memcmp(buf, "text", 4) == 0;
}

static void *read_on(void *data)
{
    Load *l = data;
    const unsigned number = atomic_fetch_add(&l->number, 1);
    while (!l->stop && !l->wrong) {
        if (!reads_text(l->o, l->node))
            l->wrong = TRUE;
        atomic_fetch_add(&l->reads[number], 1);
        sched_yield();
    }
    return NULL;
}

/* So that no read meets two losses: it is repeated once. */
static void await_a_whole_read_of_each(Load *l)
{
    for (int i = 0; i < READERS; i++) {
        const unsigned from = atomic_load(&l->reads[i]);
        while (!l->wrong && atomic_load(&l->reads[i]) - from < 2)
            sched_yield();
    }
}

START_TEST(readers_notice_nothing_of_many_losses)
{
    Load l = {.o = up()};
    l.node = find(l.o, "f");
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, read_on, &l);
    for (int i = 0; i < 20 && !l.wrong; i++) {
        const uint64_t before = l.o->ops->session(l.o);
        await_a_whole_read_of_each(&l); /* on the connection there is now */
        lose();
        while (l.o->ops->session(l.o) == before)
            l.o->ops->sync_node(l.o, l.node);
    }
    await_a_whole_read_of_each(&l);
    l.stop = TRUE;
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert(!l.wrong);
    ck_assert_uint_ge(ceph.connects, 20);
    l.o->ops->put(l.o, l.node);
    down(l.o);
}
END_TEST

START_TEST(connections_to_come_are_told_of_a_newer_key)
{
    Origin *o = up();
    origin_reach(o, "monitors", "newer", 1);
    ck_assert_str_eq(ceph.key, "newer");
    down(o);
}
END_TEST

static _Atomic gboolean next_listens;

static Origin *_Atomic next;

/* The first connection is told of nothing but the end. */
static void listen_of_the_next(Origin *o, const OriginListener *listener)
{
    if (listener)
        atomic_store(&next, o);
    if (o == atomic_load(&next))
        atomic_store(&next_listens, listener && listener->leases_void);
}

static void say_nothing(const char *domain, GLogLevelFlags level, const char *text, void *data)
{
    (void)domain, (void)level, (void)text, (void)data;
}

/* Whoever listened is freed behind that. */
START_TEST(a_connection_to_come_has_no_listener_that_is_gone)
{
    g_log_set_handler(NULL, G_LOG_LEVEL_MESSAGE, say_nothing, NULL);
    for (int i = 0; i < 1000; i++) {
        Origin *o = up();
        tree_ops.listen = listen_of_the_next;
        atomic_store(&next_listens, FALSE);
        atomic_store(&next, NULL);
        lose();
        o->ops->sync_all(o);
        while (i % 2 ? !atomic_load(&next_listens) : !count(&ceph.connects))
            sched_yield();
        o->ops->listen(o, NULL);
        ck_assert_int_eq(o->ops->sync_all(o), 0); /* on that connection */
        ck_assert(!atomic_load(&next_listens));
        down(o);
    }
}
END_TEST

/* ---- rest ---- */

#define REST_MS 100

static Origin *up_to_rest_after(int64_t ms)
{
    reconnect_ops.rest_ms = ms;
    return up();
}

static Origin *up_to_rest(void)
{
    return up_to_rest_after(REST_MS);
}

static void await_rest(Origin *o)
{
    while (!origin_rests(o))
        g_usleep(1000);
}

static void *nothing(void *data)
{
    return data;
}

/* ThreadSanitizer begins one of its own beside the first. */
static unsigned threads(void)
{
    pthread_t first;
    pthread_create(&first, NULL, nothing, NULL);
    pthread_join(first, NULL);
    g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
    unsigned n = 0;
    while (g_dir_read_name(dir))
        n++;
    return n;
}

START_TEST(a_connection_that_nobody_uses_ends_and_the_next_use_makes_another)
{
    const unsigned before = threads();
    Origin *o = up_to_rest();
    OriginNode *node = find(o, "f");
    const uint64_t session = o->ops->session(o);
    for (unsigned i = 1; i <= 3; i++) {
        await_rest(o);
        await_count(&ceph.closed, i);
        ck_assert_uint_ge(count(&ceph.synced), i);
        while (threads() > before) /* none is kept for it */
            g_usleep(1000);
        ck_assert(!origin_vouches(o));
        ck_assert_uint_eq(origin_silent_ms(o), 0);
        OriginFile *file = open_node(o, node, O_RDONLY);
        expect(o, file, "text");
        o->ops->close(o, file);
        ck_assert(!origin_rests(o));
        ck_assert(origin_vouches(o));
    }
    ck_assert_uint_eq(count(&ceph.after_rest), 3);
    ck_assert_uint_eq(o->ops->session(o), session); /* nothing was lost */
    o->ops->put(o, node);
    down(o);
}
END_TEST

/* Three times as long as it takes to rest otherwise: the keeper looks every 2 s. */
static void expect_no_rest(Origin *o)
{
    const unsigned synced = count(&ceph.synced);
    for (int i = 0; i < 70; i++) {
        ck_assert(!origin_rests(o));
        g_usleep(100000);
    }
    ck_assert_uint_eq(count(&ceph.synced), synced);
}

START_TEST(open_files_and_listings_keep_it)
{
    Origin *o = up_to_rest();
    OriginNode *node = find(o, "f"), *root;
    OriginAttr attr;
    OriginDir *dir;
    ck_assert_int_eq(o->ops->root(o, &root, &attr), 0);
    OriginFile *file = open_node(o, node, O_RDWR);
    expect_no_rest(o);
    ck_assert_int_eq(o->ops->opendir(o, root, &dir), 0);
    o->ops->close(o, file);
    expect_no_rest(o);
    o->ops->closedir(o, dir);
    await_rest(o);
    o->ops->put(o, root);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(writes_that_do_not_reach_ceph_keep_it)
{
    Origin *o = up_to_rest();
    pthread_mutex_lock(&lock);
    ceph.sync_fails = -EIO;
    pthread_mutex_unlock(&lock);
    await_count(&ceph.synced, 2);
    ck_assert(!origin_rests(o));
    pthread_mutex_lock(&lock);
    ceph.sync_fails = 0;
    pthread_mutex_unlock(&lock);
    await_rest(o);
    down(o);
}
END_TEST

static void *want_room(void *data)
{
    (void)data;
    ck_assert(!thread_room_take(1000, 20000, NULL));
    return NULL;
}

START_TEST(an_idle_one_rests_at_once_when_another_waits_for_threads)
{
    pthread_t thread;
    Origin *o = up_to_rest_after(3600 * 1000);
    OriginNode *node = find(o, "f");
    OriginFile *file = open_node(o, node, O_RDONLY);
    o->ops->close(o, file);
    expect_no_rest(o);
    thread_room_set_most(200);
    pthread_create(&thread, NULL, want_room, NULL);
    await_rest(o);
    pthread_join(thread, NULL);
    thread_room_set_most(0);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(a_lost_session_does_not_rest)
{
    Origin *o = up_to_rest();
    OriginNode *node = find(o, "f");
    const uint64_t session = o->ops->session(o);
    lose();
    ck_assert_int_eq(o->ops->sync_all(o), -EIO);
    ck_assert_uint_eq(o->ops->session(o), session + 1);
    await_rest(o); /* the next one does */
    ck_assert_uint_eq(count(&ceph.after_rest), 0);
    o->ops->put(o, node);
    down(o);
}
END_TEST

static void *open_and_rest(void *data)
{
    Load *l = data;
    while (!l->stop && !l->wrong) {
        if (!reads_text(l->o, l->node))
            l->wrong = TRUE;
        atomic_fetch_add(&l->reads[0], 1);
        await_rest(l->o);
    }
    return NULL;
}

/* One has it rest again and again, others come at any time. */
START_TEST(readers_notice_nothing_of_rests)
{
    Load l = {.o = up_to_rest()};
    l.node = find(l.o, "f");
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, open_and_rest, &l);
    while (!l.wrong && atomic_load(&l.reads[0]) < 12)
        g_usleep(1000);
    l.stop = TRUE;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert(!l.wrong);
    ck_assert_uint_ge(ceph.after_rest, 3);
    l.o->ops->put(l.o, l.node);
    down(l.o);
}
END_TEST

#define SHORT_WAIT_MS 600

static void refuse(gboolean refuses)
{
    pthread_mutex_lock(&lock);
    ceph.refuses = refuses;
    pthread_mutex_unlock(&lock);
}

static void *accept_later(void *data)
{
    g_usleep(3 * SHORT_WAIT_MS * 1000);
    refuse(FALSE);
    return data;
}

START_TEST(a_use_at_rest_waits_as_long_as_a_monitor_answers)
{
    reconnect_ops.wait_ms = SHORT_WAIT_MS;
    Origin *o = up_to_rest();
    OriginNode *node = find(o, "f");
    OriginAttr attr;
    pthread_t later;
    await_rest(o);
    refuse(TRUE);
    atomic_store(&answers_late, TRUE);
    atomic_store(&no_monitor_ms, 0);
    pthread_create(&later, NULL, accept_later, NULL);
    ck_assert_int_eq(o->ops->getattr(o, node, &attr), 0);
    pthread_join(later, NULL);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(it_rests_again_when_nobody_waits_for_a_ceph_that_is_away)
{
    reconnect_ops.wait_ms = SHORT_WAIT_MS;
    Origin *o = up_to_rest();
    OriginNode *node = find(o, "f");
    OriginAttr attr;
    await_rest(o);
    refuse(TRUE);
    ck_assert_int_eq(o->ops->getattr(o, node, &attr), -EIO);
    await_rest(o);
    ck_assert_uint_eq(origin_silent_ms(o), 0);
    refuse(FALSE);
    ck_assert_int_eq(o->ops->getattr(o, node, &attr), 0);
    o->ops->put(o, node);
    down(o);
}
END_TEST

START_TEST(it_is_closed_at_rest_and_after_it)
{
    for (int i = 0; i < 4; i++) {
        Origin *o = up_to_rest();
        OriginNode *node = find(o, "f");
        await_rest(o);
        OriginAttr attr;
        if (i % 2)
            ck_assert_int_eq(o->ops->getattr(o, node, &attr), 0);
        o->ops->put(o, node);
        down(o);
    }
}
END_TEST

HARNESS_MAIN("cache/origin/reconnect/reconnect", connections_to_come_are_told_of_a_newer_key,
             a_sync_fails_when_the_session_was_lost, a_sync_of_a_node_fails_too,
             locks_go_with_their_connection, a_lost_lock_loses_the_connection,
             nodes_files_and_listings_go_on_with_the_next_connection,
             a_read_asks_a_ceph_that_was_not_heard_from,
             silence_counts_from_the_first_question_and_ends_with_an_answer,
             a_ceph_of_which_a_monitor_answers_is_not_silent, what_is_gone_is_not_found_again,
             a_deep_tree_of_a_snapshot_takes_no_deep_stack, leases_are_void_with_the_session,
             readers_notice_nothing_of_many_losses,
             a_connection_to_come_has_no_listener_that_is_gone,
             a_connection_that_nobody_uses_ends_and_the_next_use_makes_another,
             open_files_and_listings_keep_it, writes_that_do_not_reach_ceph_keep_it,
             an_idle_one_rests_at_once_when_another_waits_for_threads, a_lost_session_does_not_rest,
             a_use_at_rest_waits_as_long_as_a_monitor_answers,
             it_rests_again_when_nobody_waits_for_a_ceph_that_is_away,
             readers_notice_nothing_of_rests, it_is_closed_at_rest_and_after_it)
