/* SPDX-License-Identifier: Apache-2.0 */
/* What was opened on faith: a refusal is told once, an answer ends it, silence goes on. */
#include "cache/volume/faith.h"
#include <gio/gio.h>
#include <pthread.h>
#include <string.h>
#include "cache/origin/deferred.h"
#include "tests/unit/harness.h"

#define ID "00112233445566778899aabbccddeeff"

static VolumeSpec *spec(const char *volume, const char *user, const char *key)
{
    json_t *request = json_pack("{s:s, s:b, s:{s:s, s:s, s:[s], s:s, s:s, s:s, s:s}}", "volume",
                                volume, "readOnly", 1, "origin", "type", "cephfs", "clusterID", "c",
                                "monitors", "127.0.0.1:1", "fsName", "f", "rootPath",
                                "/a/.snap/s/x", "userID", user, "userKey", key);
    VolumeSpec *parsed = spec_parse(request, NULL);
    ck_assert_ptr_nonnull(parsed);
    json_decref(request);
    return parsed;
}

/* What Ceph says to whoever connects: a GIOErrorEnum, or -1: the directory. */
typedef struct Ceph {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int answer;
    gboolean hangs;
    char *tree;
} Ceph;

static Origin *reach(void *data, GError **error)
{
    Ceph *c = data;
    pthread_mutex_lock(&c->lock);
    while (c->hangs)
        pthread_cond_wait(&c->changed, &c->lock);
    const int answer = c->answer;
    pthread_mutex_unlock(&c->lock);
    if (answer < 0)
        return origin_dir_open(c->tree, error);
    g_set_error(error, G_IO_ERROR, answer, "no");
    return NULL;
}

static void freed(gpointer data)
{
    (void)data;
}

static void up(Ceph *c, int answer)
{
    *c = (Ceph){.answer = answer, .hangs = TRUE, .tree = harness_tmpdir()};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
}

static Origin *away(Ceph *c)
{
    g_autoptr(Origin) real = origin_dir_open(c->tree, NULL);
    OriginNode *node;
    OriginAttr root;
    ck_assert_int_eq(real->ops->root(real, &node, &root), 0);
    real->ops->put(real, node);
    return origin_deferred_new("dataset", real->space, &root, reach, c, freed);
}

static void come_back(Ceph *c)
{
    pthread_mutex_lock(&c->lock);
    c->hangs = FALSE;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void note(const char *dataset, const VolumeSpec *refused, void *data)
{
    g_string_append_printf(data, "%s %s %s;", dataset, refused->user_id, refused->user_key);
}

START_TEST(a_refusal_is_told_once_of_each_user_and_key)
{
    static Ceph c;
    up(&c, G_IO_ERROR_PERMISSION_DENIED);
    Faith *f = faith_new();
    g_autoptr(VolumeSpec) a = spec("a", "u", "k"), again = spec("b", "u", "k"),
                          other = spec("c", "u", "l");
    Origin *one = away(&c), *two = away(&c), *three = away(&c);
    ck_assert(faith_take(f, ID, a, one));
    ck_assert(!faith_take(f, ID, again, two)); /* one of them will do */
    ck_assert(faith_take(f, ID, other, three));
    g_autoptr(GString) told = g_string_new(NULL);
    faith_check(f, note, told);
    ck_assert_str_eq(told->str, "");
    come_back(&c);
    ck_assert_int_eq(origin_deferred_wait(one, 60000, NULL), ORIGIN_DEFERRED_REFUSED);
    ck_assert_int_eq(origin_deferred_wait(three, 60000, NULL), ORIGIN_DEFERRED_REFUSED);
    faith_check(f, note, told);
    ck_assert_ptr_nonnull(strstr(told->str, ID " u k;"));
    ck_assert_ptr_nonnull(strstr(told->str, ID " u l;"));
    g_string_truncate(told, 0);
    faith_check(f, note, told);
    ck_assert_str_eq(told->str, "");
    origin_close(two);
    faith_free(f);
}
END_TEST

START_TEST(who_is_answered_is_no_more_on_faith)
{
    static Ceph c;
    up(&c, -1);
    Faith *f = faith_new();
    g_autoptr(VolumeSpec) a = spec("a", "u", "k");
    Origin *origin = away(&c), *plain = origin_dir_open(c.tree, NULL);
    ck_assert(!faith_take(f, ID, a, plain));
    ck_assert(faith_take(f, ID, a, origin));
    come_back(&c);
    ck_assert_int_eq(origin_deferred_wait(origin, 60000, NULL), ORIGIN_DEFERRED_HERE);
    g_autoptr(GString) told = g_string_new(NULL);
    faith_check(f, note, told);
    ck_assert_str_eq(told->str, "");
    /* It was let go of, so the next of this key is taken again; answered, there is no need to. */
    Origin *next = away(&c);
    ck_assert_int_eq(origin_deferred_wait(next, 60000, NULL), ORIGIN_DEFERRED_HERE);
    ck_assert(!faith_take(f, ID, a, next));
    origin_close(next);
    origin_close(plain);
    faith_free(f);
    harness_remove(c.tree);
}
END_TEST

HARNESS_MAIN("cache/volume/faith", a_refusal_is_told_once_of_each_user_and_key,
             who_is_answered_is_no_more_on_faith)
