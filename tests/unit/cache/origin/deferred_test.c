/* SPDX-License-Identifier: Apache-2.0 */
/* An origin that comes later: what is answered until it does, and that another tree never is it. */
#include "cache/origin/deferred.h"
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <string.h>
#include "tests/unit/harness.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* A Ceph that is away, or refuses, or is the directory. */
typedef struct Ceph {
    char *tree;
    gboolean hangs, freed;
    unsigned tries, waiting;
    int refusal; /* a GIOErrorEnum */
    gboolean refuses;
} Ceph;

static Origin *reach(void *data, GError **error)
{
    Ceph *c = data;
    pthread_mutex_lock(&lock);
    c->tries++;
    c->waiting++;
    pthread_cond_broadcast(&changed);
    while (c->hangs)
        pthread_cond_wait(&changed, &lock);
    c->waiting--;
    gboolean refuses = c->refuses;
    pthread_mutex_unlock(&lock);
    if (!refuses)
        return origin_dir_open(c->tree, error);
    g_set_error(error, G_IO_ERROR, c->refusal, "no");
    return NULL;
}

static void freed(gpointer data)
{
    Ceph *c = data;
    pthread_mutex_lock(&lock);
    c->freed = TRUE;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void set_hangs(Ceph *c, gboolean hangs)
{
    pthread_mutex_lock(&lock);
    c->hangs = hangs;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await_freed(Ceph *c)
{
    pthread_mutex_lock(&lock);
    while (!c->freed)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void up(Ceph *c)
{
    *c = (Ceph){.tree = harness_tmpdir()};
    g_autofree char *path = g_build_filename(c->tree, "file", NULL);
    ck_assert(g_file_set_contents(path, "bytes", -1, NULL));
}

/* As its manifest would know it. */
static Origin *later(Ceph *c, uint64_t other_version)
{
    g_autoptr(Origin) real = origin_dir_open(c->tree, NULL);
    OriginNode *node;
    OriginAttr root;
    ck_assert_int_eq(real->ops->root(real, &node, &root), 0);
    real->ops->put(real, node);
    root.version += other_version;
    return origin_deferred_new("dataset", real->space, &root, reach, c, freed);
}

static void down(Ceph *c, Origin *origin)
{
    origin_close(origin);
    await_freed(c);
    harness_remove(c->tree);
}

START_TEST(until_it_comes_the_root_is_known_and_nothing_else)
{
    Ceph c;
    OriginNode *root, *node;
    OriginAttr attr;
    OriginDir *dir;
    up(&c);
    c.hangs = TRUE;
    Origin *o = later(&c, 0);
    ck_assert(origin_is_deferred(o));
    ck_assert_int_eq(origin_deferred_wait(o, 10, NULL), ORIGIN_DEFERRED_AWAY);
    ck_assert_int_eq(o->ops->root(o, &root, &attr), 0);
    ck_assert(S_ISDIR(attr.st.st_mode));
    ck_assert_int_eq(o->ops->lookup(o, root, "file", &node, &attr), -ENOTCONN);
    ck_assert_int_eq(origin_find(o, "file", &node, &attr), -ENOTCONN);
    ck_assert_int_eq(o->ops->opendir(o, root, &dir), -ENOTCONN);
    ck_assert_int_eq((int)o->ops->getxattr(o, root, "user.x", NULL, 0), -ENOTCONN);
    set_hangs(&c, FALSE);
    ck_assert_int_eq(origin_deferred_wait(o, 60000, NULL), ORIGIN_DEFERRED_HERE);
    /* The root that was given out before leads to what came. */
    ck_assert_int_eq(o->ops->lookup(o, root, "file", &node, &attr), 0);
    ck_assert_int_eq(attr.st.st_size, 5);
    OriginFile *file;
    char text[8];
    ck_assert_int_eq(o->ops->open(o, node, O_RDONLY, &file), 0);
    ck_assert_int_eq((int)o->ops->read(o, file, text, sizeof(text), 0), 5);
    ck_assert_int_eq(o->ops->close(o, file), 0);
    ck_assert_int_eq(o->ops->mkdir(o, root, "x", &(OriginNew){.mode = 0700}, &node, &attr), -EROFS);
    o->ops->put(o, node);
    o->ops->put(o, root);
    down(&c, o);
}
END_TEST

START_TEST(another_tree_is_stale_for_ever)
{
    Ceph c;
    OriginNode *root, *node;
    OriginAttr attr;
    up(&c);
    c.hangs = TRUE;
    Origin *o = later(&c, 1);
    ck_assert_int_eq(o->ops->root(o, &root, &attr), 0);
    set_hangs(&c, FALSE);
    ck_assert_int_eq(origin_deferred_wait(o, 60000, NULL), ORIGIN_DEFERRED_OTHER);
    ck_assert_int_eq(o->ops->lookup(o, root, "file", &node, &attr), -ESTALE);
    ck_assert_int_eq(o->ops->root(o, &root, &attr), -ESTALE);
    down(&c, o);
    ck_assert_uint_eq(c.tries, 1);
}
END_TEST

START_TEST(an_answer_is_told_and_silence_is_not_one)
{
    Ceph c;
    g_autoptr(GError) error = NULL;
    up(&c);
    c.refuses = TRUE;
    c.refusal = G_IO_ERROR_NOT_FOUND;
    Origin *o = later(&c, 0);
    ck_assert_int_eq(origin_deferred_wait(o, 60000, &error), ORIGIN_DEFERRED_FAILED);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND));
    down(&c, o);
    up(&c);
    c.refuses = TRUE;
    c.refusal = G_IO_ERROR_TIMED_OUT;
    o = later(&c, 0);
    ck_assert_int_eq(origin_deferred_wait(o, 10, NULL), ORIGIN_DEFERRED_AWAY);
    down(&c, o);
}
END_TEST

START_TEST(a_refusal_is_for_ever_and_silence_before_it_is_not)
{
    Ceph c;
    OriginNode *root, *node;
    OriginAttr attr;
    g_autoptr(GError) error = NULL;
    up(&c);
    c.hangs = TRUE;
    Origin *o = later(&c, 0);
    ck_assert_int_eq(o->ops->root(o, &root, &attr), 0);
    pthread_mutex_lock(&lock);
    c.refuses = TRUE;
    c.refusal = G_IO_ERROR_PERMISSION_DENIED;
    pthread_mutex_unlock(&lock);
    set_hangs(&c, FALSE);
    ck_assert_int_eq(origin_deferred_wait(o, 60000, &error), ORIGIN_DEFERRED_REFUSED);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED));
    ck_assert_int_eq(o->ops->lookup(o, root, "file", &node, &attr), -EACCES);
    ck_assert_int_eq(o->ops->root(o, &root, &attr), -EACCES);
    down(&c, o);
    ck_assert_uint_eq(c.tries, 1);
}
END_TEST

/* The try under way has what it needs, and what it gets is closed. */
START_TEST(closing_waits_for_nobody)
{
    Ceph c;
    up(&c);
    c.hangs = TRUE;
    Origin *o = later(&c, 0);
    pthread_mutex_lock(&lock);
    while (!c.waiting)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    origin_close(o);
    ck_assert(!c.freed);
    set_hangs(&c, FALSE);
    await_freed(&c);
    ck_assert_uint_eq(c.tries, 1);
    harness_remove(c.tree);
}
END_TEST

HARNESS_MAIN("cache/origin/deferred", until_it_comes_the_root_is_known_and_nothing_else,
             another_tree_is_stale_for_ever, an_answer_is_told_and_silence_is_not_one,
             a_refusal_is_for_ever_and_silence_before_it_is_not, closing_waits_for_nobody)
