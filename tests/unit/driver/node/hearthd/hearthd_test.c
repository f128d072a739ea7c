/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/watch.h"
#include "tests/unit/driver/node/world.h"

/* A hearthd that gives one connection one answer, whatever it asks, or none. */
typedef struct Oracle {
    char *dir, *path;
    int listener;
    const char *answer; /* NULL: closes; "": never answers */
    pthread_t thread;
} Oracle;

static void *oracle_thread(void *data)
{
    Oracle *o = data;
    hearth_autofd int connection = accept4(o->listener, NULL, NULL, SOCK_CLOEXEC);
    json_t *request = wire_receive(connection, NULL, WORLD_WAIT_MS, NULL);
    json_decref(request);
    if (!o->answer)
        return NULL;
    json_t *reply = json_loads(o->answer, 0, NULL);
    if (reply)
        wire_send(connection, reply, -1, NULL);
    json_decref(reply);
    /* Until the client has gone. */
    request = wire_receive(connection, NULL, WORLD_WAIT_MS, NULL);
    json_decref(request);
    return NULL;
}

static Oracle *oracle_new(const char *answer)
{
    Oracle *o = g_new0(Oracle, 1);
    o->dir = harness_tmpdir();
    o->path = g_build_filename(o->dir, "hearthd.sock", NULL);
    o->answer = answer;
    o->listener = wire_listen(o->path, NULL);
    ck_assert_int_ge(o->listener, 0);
    ck_assert_int_eq(pthread_create(&o->thread, NULL, oracle_thread, o), 0);
    return o;
}

static void oracle_free(Oracle *o)
{
    pthread_join(o->thread, NULL);
    close(o->listener);
    g_free(o->path);
    harness_remove(o->dir);
    g_free(o);
}

static void expect_probe(const char *answer, int code, const char *says)
{
    Oracle *o = oracle_new(answer);
    g_autoptr(GError) error = NULL;
    gint64 limit = answer && !answer[0] ? 20 : WORLD_WAIT_MS;
    gboolean ready = hearthd_probe(o->path, limit, &error);
    if (code == 0) {
        ck_assert_msg(ready, "%s", error ? error->message : "");
    } else {
        ck_assert(!ready);
        ck_assert_msg(g_error_matches(error, HEARTH_ERROR, code), "%d %s", error->code,
                      error->message);
        ck_assert_msg(strstr(error->message, says) != NULL, "%s", error->message);
    }
    oracle_free(o);
}

START_TEST(errors_keep_their_code_and_text)
{
    expect_probe("{\"ok\":true,\"protocol\":1}", 0, NULL);
    expect_probe("{\"ok\":true,\"protocol\":2}", HEARTH_ERROR_FAILED_PRECONDITION, "protocol 2");
    expect_probe("{\"ok\":false,\"code\":\"PERMISSION_DENIED\",\"error\":\"bad key\"}",
                 HEARTH_ERROR_PERMISSION_DENIED, "bad key");
    expect_probe("{\"ok\":false,\"code\":\"NOT_FOUND\",\"error\":\"x\"}", HEARTH_ERROR_NOT_FOUND,
                 "x");
    expect_probe("{\"ok\":false,\"code\":\"UNAVAILABLE\",\"error\":\"x\"}",
                 HEARTH_ERROR_UNAVAILABLE, "x");
    expect_probe("{\"ok\":false,\"code\":\"NEW\",\"error\":\"x\"}", HEARTH_ERROR_INTERNAL, "x");
    expect_probe(NULL, HEARTH_ERROR_UNAVAILABLE, "hearthd.sock");
    expect_probe("", HEARTH_ERROR_DEADLINE_EXCEEDED, "in time");
}
END_TEST

START_TEST(an_absent_hearthd_is_told_from_a_refusing_one)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "none.sock", NULL);
    gboolean absent = FALSE;
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(hearthd_connect(path, &absent, &error));
    ck_assert(absent);
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE));
    ck_assert_ptr_nonnull(strstr(error->message, path));
    /* A socket that nobody listens on any more. */
    int listener = wire_listen(path, NULL);
    close(listener);
    absent = FALSE;
    ck_assert_ptr_null(hearthd_connect(path, &absent, NULL));
    ck_assert(absent);
    /* A path that cannot be a socket says nothing about volumes. */
    g_autofree char *name = g_strnfill(200, 'x');
    g_autofree char *bad = g_build_filename(dir, name, NULL);
    absent = TRUE;
    ck_assert_ptr_null(hearthd_connect(bad, &absent, NULL));
    ck_assert(!absent);
    harness_remove(dir);
}
END_TEST

START_TEST(a_volume_travels_to_hearthd_and_back)
{
    World *w = world_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(HearthdLink) link = hearthd_connect(w->socket_path, NULL, &error);
    ck_assert_ptr_nonnull(link);
    gboolean attached;
    HearthdServing serving = {.attached = TRUE};
    ck_assert(hearthd_serving(link, "v", WORLD_WAIT_MS, &serving, &error));
    ck_assert(!serving.attached);
    json_t *spec = json_pack("{s:s, s:{s:s}}", "volume", "v", "origin", "rootPath", "/v");
    ck_assert(hearthd_open(link, spec, WORLD_WAIT_MS, &attached, &error));
    ck_assert(!attached);
    const MountOptions options = {0};
    int fuse_fd = -1;
    close(w->base.ops->mount_fuse(&w->base, "v", &options, &fuse_fd, &error));
    const HearthdMount mount = {.volume = "v", .fuse_fd = fuse_fd};
    g_autofree char *note = NULL;
    ck_assert(hearthd_attach(link, &mount, &note, WORLD_WAIT_MS, &error));
    ck_assert(hearthd_serving(link, "v", WORLD_WAIT_MS, &serving, &error));
    ck_assert(serving.attached);
    int fetched = -1;
    json_t *back = hearthd_fetch(link, "v", WORLD_WAIT_MS, &fetched, &note, &error);
    ck_assert(json_equal(back, spec));
    ck_assert_uint_eq(world_inode(fetched), world_inode(fuse_fd));
    close(fetched);
    close(fuse_fd);
    node_spec_free(back);
    node_spec_free(spec);
    ck_assert(hearthd_detach(link, "v", WORLD_WAIT_MS, &error));
    ck_assert_ptr_null(hearthd_fetch(link, "v", WORLD_WAIT_MS, &fetched, &note, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND));
    world_expect_all_closed(w);
    world_free(w);
}
END_TEST

HARNESS_MAIN("driver/node/hearthd/hearthd", errors_keep_their_code_and_text,
             an_absent_hearthd_is_told_from_a_refusing_one, a_volume_travels_to_hearthd_and_back)
