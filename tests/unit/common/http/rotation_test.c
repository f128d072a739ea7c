/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/rotation.h"
#include <sys/resource.h>
#include <unistd.h>
#include "tests/unit/driver/http/certificates.h"

typedef struct World {
    char *dir;
    Pair a, b;
    HttpRotation *rotation;
    guint changes, troubles;
    gint64 expires_s;
    gint64 now_us;
} World;

static void on_change(const GError *error, gint64 expires_s, void *data)
{
    World *w = data;
    if (error)
        w->troubles++;
    else
        w->changes++;
    w->expires_s = expires_s;
}

static void world_new(World *w)
{
    *w = (World){harness_tmpdir(), pair_new("a", 3600), pair_new("b", 7200), .now_us = 1};
    pair_put(w->dir, w->a.certificate, w->a.key);
    w->rotation = http_rotation_new(w->dir, on_change, w, NULL);
    ck_assert_ptr_nonnull(w->rotation);
}

static void world_free(World *w)
{
    http_rotation_free(w->rotation);
    pair_clear(&w->a);
    pair_clear(&w->b);
    harness_remove(w->dir);
}

/* Hours that the one lasts which is shown after `ms`. */
static gint64 shown(World *w, gint64 ms)
{
    w->now_us += ms * 1000;
    g_autoptr(HttpCertificate) c = http_rotation_get(w->rotation, w->now_us);
    return (http_certificate_expires_s(c) - time(NULL) + 1800) / 3600;
}

START_TEST(new_one_is_shown_to_who_comes_later)
{
    World w;
    world_new(&w);
    ck_assert_int_eq(shown(&w, 5000), 1);
    g_autoptr(HttpCertificate) held = http_rotation_get(w.rotation, w.now_us);
    pair_put(w.dir, w.b.certificate, w.b.key);
    ck_assert_int_eq(shown(&w, 999), 1);
    ck_assert_int_eq(shown(&w, 1), 2);
    ck_assert_uint_eq(w.changes, 1);
    ck_assert_int_gt(w.expires_s, time(NULL) + 7000);
    ck_assert_int_lt(http_certificate_expires_s(held), time(NULL) + 3700);
    ck_assert_int_eq(shown(&w, 5000), 2);
    ck_assert_uint_eq(w.changes, 1);
    world_free(&w);
}
END_TEST

START_TEST(half_of_a_pair_is_not_shown)
{
    World w;
    world_new(&w);
    pair_put(w.dir, w.b.certificate, w.a.key);
    ck_assert_int_eq(shown(&w, 5000), 1);
    ck_assert_int_eq(shown(&w, 5000), 1);
    ck_assert_uint_eq(w.troubles, 1);
    pair_put(w.dir, w.b.certificate, w.b.key);
    ck_assert_int_eq(shown(&w, 5000), 2);
    ck_assert_uint_eq(w.troubles, 1);
    ck_assert_uint_eq(w.changes, 1);
    world_free(&w);
}
END_TEST

START_TEST(what_was_removed_is_shown_until_it_is_there_again)
{
    World w;
    world_new(&w);
    pair_put(w.dir, NULL, NULL);
    ck_assert_int_eq(shown(&w, 5000), 1);
    ck_assert_uint_eq(w.troubles, 1);
    /* The very files there were are news too, after trouble. */
    pair_put(w.dir, w.a.certificate, w.a.key);
    ck_assert_int_eq(shown(&w, 5000), 1);
    ck_assert_uint_eq(w.changes, 1);
    world_free(&w);
}
END_TEST

START_TEST(one_that_could_not_be_read_is_read_later)
{
    World w;
    struct rlimit limit, none;
    world_new(&w);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    pair_put(w.dir, w.b.certificate, w.b.key);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(shown(&w, 5000), 1);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(w.troubles, 1);
    ck_assert_int_eq(shown(&w, 5000), 2);
    world_free(&w);
}
END_TEST

START_TEST(secret_as_kubelet_mounts_it_is_followed)
{
    World w;
    world_new(&w);
    http_rotation_free(w.rotation);
    /* tls.crt -> ..data/tls.crt, ..data -> a directory of this version, which is exchanged. */
    const char *const versions[] = {"v1", "v2"};
    for (gsize i = 0; i < 2; i++) {
        g_autofree char *dir = g_build_filename(w.dir, versions[i], NULL);
        ck_assert_int_eq(g_mkdir(dir, 0700), 0);
        pair_put(dir, (i ? &w.b : &w.a)->certificate, (i ? &w.b : &w.a)->key);
    }
    g_autofree char *data = g_build_filename(w.dir, "..data", NULL);
    g_autofree char *next = g_build_filename(w.dir, "..data_tmp", NULL);
    g_autofree char *crt = g_build_filename(w.dir, "tls.crt", NULL);
    g_autofree char *key = g_build_filename(w.dir, "tls.key", NULL);
    g_unlink(crt);
    g_unlink(key);
    ck_assert_int_eq(symlink("..data/tls.crt", crt), 0);
    ck_assert_int_eq(symlink("..data/tls.key", key), 0);
    ck_assert_int_eq(symlink("v1", data), 0);
    w.rotation = http_rotation_new(w.dir, on_change, &w, NULL);
    ck_assert_ptr_nonnull(w.rotation);
    ck_assert_int_eq(shown(&w, 5000), 1);
    ck_assert_int_eq(symlink("v2", next), 0);
    ck_assert_int_eq(g_rename(next, data), 0);
    ck_assert_int_eq(shown(&w, 5000), 2);
    ck_assert_uint_eq(w.troubles, 0);
    world_free(&w);
}
END_TEST

START_TEST(none_at_the_beginning_is_an_error)
{
    World w;
    world_new(&w);
    g_autoptr(GError) error = NULL;
    pair_put(w.dir, NULL, w.a.key);
    ck_assert_ptr_null(http_rotation_new(w.dir, on_change, &w, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "tls.crt"));
    world_free(&w);
}
END_TEST

HARNESS_MAIN("common/http/rotation", new_one_is_shown_to_who_comes_later,
             half_of_a_pair_is_not_shown, what_was_removed_is_shown_until_it_is_there_again,
             one_that_could_not_be_read_is_read_later, secret_as_kubelet_mounts_it_is_followed,
             none_at_the_beginning_is_an_error)
