/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "tests/unit/cache/control/fakes.h"
#include "cache/control/connections.h"
#include "cache/control/server.h"
#include "proto/wire.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>

typedef struct Fixture {
    char *dir, *root, *socket_path;
    Store *store;
    ControlServer *server;
    int client;
} Fixture;

static int connect_client(const Fixture *f)
{
    g_autoptr(GError) error = NULL;
    int fd = wire_connect(f->socket_path, &error);
    ck_assert_msg(fd >= 0, "%s", error ? error->message : "");
    return fd;
}

static Fixture setup_below(const char *dir_root)
{
    Fixture f = {.dir = harness_tmpdir(), .store = fake_store_new()};
    f.root = g_build_filename(f.dir, "root", NULL);
    ck_assert_int_eq(g_mkdir(f.root, 0755), 0);
    f.socket_path = g_build_filename(f.dir, "s.sock", NULL);
    const ControlServerConfig config = {
        .socket_path = f.socket_path, .store = f.store, .cache_dir = f.dir, .dir_root = dir_root};
    g_autoptr(GError) error = NULL;
    f.server = control_server_start(&config, &error);
    ck_assert_msg(f.server != NULL, "%s", error ? error->message : "");
    f.client = connect_client(&f);
    return f;
}

static Fixture setup(void)
{
    return setup_below("/");
}

static void teardown(Fixture *f)
{
    close(f->client);
    ck_assert(control_server_stop(f->server, 10000));
    ck_assert(!g_file_test(f->socket_path, G_FILE_TEST_EXISTS));
    ck_assert_int_eq(fake_sessions, 0);
    fake_store_free(f->store);
    g_free(f->root);
    g_free(f->socket_path);
    harness_remove(f->dir);
}

/* The reply to a request in JSON, with %s for arguments. */
static json_t *ask(int socket, int fd, int *reply_fd, const char *format, ...) G_GNUC_PRINTF(4, 5);
static json_t *ask(int socket, int fd, int *reply_fd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    json_t *request = json_loads(text, 0, NULL);
    ck_assert_msg(request != NULL, "%s", text);
    g_autoptr(GError) error = NULL;
    ck_assert(wire_send(socket, request, fd, &error));
    json_t *reply = wire_receive(socket, reply_fd, 20000, &error);
    ck_assert_msg(reply != NULL, "%s", error ? error->message : "");
    json_decref(request);
    return reply;
}

static void assert_ok(json_t *reply)
{
    const char *why = json_string_value(json_object_get(reply, "error"));
    ck_assert_msg(json_is_true(json_object_get(reply, "ok")), "%s", why ? why : "");
    json_decref(reply);
}

static void assert_refused(json_t *reply, const char *code, const char *part)
{
    const char *why = json_string_value(json_object_get(reply, "error"));
    ck_assert(json_is_false(json_object_get(reply, "ok")));
    ck_assert_str_eq(json_string_value(json_object_get(reply, "code")), code);
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
    json_decref(reply);
}

#define OPEN_DIR                                                                                   \
    "{\"op\":\"open\",\"volume\":\"%s\",\"origin\":{\"type\":\"dir\",\"rootPath\":\"%s\"}}"

static json_t *open_volume(const Fixture *f, const char *id)
{
    return ask(f->client, -1, NULL, OPEN_DIR, id, f->root);
}

static json_t *attach(const Fixture *f, const char *id)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    json_t *reply = ask(f->client, fd, NULL, "{\"op\":\"attach\",\"volume\":\"%s\"}", id);
    close(fd);
    return reply;
}

static gboolean flag(json_t *reply, const char *name)
{
    gboolean value = json_is_true(json_object_get(reply, name));
    json_decref(reply);
    return value;
}

/* A member of the VOLUME, -1 when the volume is not known. */
static int volume_flag(const Fixture *f, const char *id, const char *name)
{
    json_t *reply = ask(f->client, -1, NULL, "{\"op\":\"volume\",\"volume\":\"%s\"}", id);
    const json_t *volume = json_object_get(reply, "volume");
    int value = volume ? json_is_true(json_object_get(volume, name)) : -1;
    json_decref(reply);
    return value;
}

START_TEST(hello_tells_version_and_protocol)
{
    Fixture f = setup();
    json_t *r = ask(f.client, -1, NULL, "{\"op\":\"hello\"}");
    ck_assert_str_eq(json_string_value(json_object_get(r, "version")), HEARTH_VERSION);
    ck_assert_int_eq(json_integer_value(json_object_get(r, "protocol")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(r, "pid")), getpid());
    ck_assert_str_eq(json_string_value(json_object_get(r, "cacheDir")), f.dir);
    assert_ok(r);
    teardown(&f);
}
END_TEST

START_TEST(unknown_ops_and_fields_are_named)
{
    Fixture f = setup();
    int c = f.client;
    assert_refused(ask(c, -1, NULL, "{\"op\":\"explode\"}"), "UNIMPLEMENTED", "explode");
    assert_refused(ask(c, -1, NULL, "{}"), "INVALID_ARGUMENT", "'op'");
    assert_refused(ask(c, -1, NULL, "{\"op\":7}"), "INVALID_ARGUMENT", "'op'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"status\",\"x\":1}"), "INVALID_ARGUMENT", "'x'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"volume\"}"), "INVALID_ARGUMENT", "'volume'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"volume\",\"volume\":null}"), "INVALID_ARGUMENT",
                   "'volume'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"job\",\"job\":-1}"), "INVALID_ARGUMENT", "'job'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"job\",\"job\":1.5}"), "INVALID_ARGUMENT", "'job'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"warm\",\"volume\":\"v\",\"wait\":\"yes\"}"),
                   "INVALID_ARGUMENT", "'wait'");
    assert_refused(ask(c, -1, NULL, "{\"op\":\"evict\",\"bytes\":\"1G\"}"), "INVALID_ARGUMENT",
                   "'bytes'");
    assert_refused(ask(c, c, NULL, "{\"op\":\"hello\"}"), "INVALID_ARGUMENT", "descriptor");
    teardown(&f);
}
END_TEST

START_TEST(ill_formed_specs_are_refused)
{
    static const struct {
        const char *request, *part;
    } bad[] = {
        {"{\"op\":\"open\"}", "'volume'"},
        {"{\"op\":\"open\",\"volume\":\"v\"}", "'origin'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":[]}", "'origin'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{}}", "'type'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"nfs\"}}", "nfs"},
        {"{\"op\":\"open\",\"volume\":\"\",\"origin\":{\"type\":\"dir\",\"rootPath\":\"/\"}}",
         "'volume'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"dir\",\"rootPath\":\"a\"}}",
         "'rootPath'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"dir\"}}", "'rootPath'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"dir\",\"rootPath\":\"/\","
         "\"userKey\":\"x\"}}",
         "'userKey'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"cache\":\"on\",\"origin\":{\"type\":\"dir\","
         "\"rootPath\":\"/\"}}",
         "'cache'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"cephfs\",\"rootPath\":\"/\","
         "\"monitors\":[],\"userID\":\"u\",\"userKey\":\"k\"}}",
         "'monitors'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"cephfs\",\"rootPath\":\"/\","
         "\"monitors\":[\"\"],\"userID\":\"u\",\"userKey\":\"k\"}}",
         "'monitors'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"cephfs\",\"rootPath\":\"/\","
         "\"monitors\":[\"m\"],\"userID\":\"u\",\"userKey\":\"\"}}",
         "'userKey'"},
        {"{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"cephfs\",\"rootPath\":\"/\","
         "\"monitors\":[\"m\"],\"userID\":\"u\",\"userKey\":\"k\",\"timeoutSec\":9999}}",
         "'timeoutSec'"},
    };
    Fixture f = setup();
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_refused(ask(f.client, -1, NULL, "%s", bad[i].request), "INVALID_ARGUMENT",
                       bad[i].part);
    assert_refused(ask(f.client, -1, NULL, OPEN_DIR, "v", "/nonexistent"), "NOT_FOUND",
                   "/nonexistent");
    ck_assert_int_eq(volume_flag(&f, "v", "attached"), -1);
    teardown(&f);
}
END_TEST

#define OPEN_NAMED                                                                                 \
    "{\"op\":\"open\",\"volume\":\"v\",\"names\":%s,\"origin\":{\"type\":\"dir\",\"rootPath\":"    \
    "\"%s\"}}"

static char *name_of(const Fixture *f)
{
    json_t *reply = ask(f->client, -1, NULL, "{\"op\":\"volume\",\"volume\":\"v\"}");
    const json_t *volume = json_object_get(reply, "volume");
    char *name = g_strdup(json_string_value(json_object_get(volume, "name")));
    json_decref(reply);
    return name;
}

START_TEST(volumes_have_the_names_of_kubernetes)
{
    Fixture f = setup();
    static const char *const bad[] = {"{\"claim\": \"data\"}", "{\"claim\": \"a/b\\u001b[2J\"}",
                                      "{\"persistentVolume\": \"a b\"}"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_refused(ask(f.client, -1, NULL, OPEN_NAMED, bad[i], f.root), "INVALID_ARGUMENT",
                       "names.");
    assert_ok(ask(f.client, -1, NULL, OPEN_NAMED, "{\"persistentVolume\": \"pvc-1\"}", f.root));
    g_autofree char *pv = name_of(&f);
    ck_assert_str_eq(pv, "pvc-1");
    /* A later node plugin may tell more. */
    assert_ok(ask(f.client, -1, NULL, OPEN_NAMED,
                  "{\"persistentVolume\": \"pvc-1\", \"claim\": \"team/data\", \"pod\": \"x\"}",
                  f.root));
    g_autofree char *claim = name_of(&f);
    ck_assert_str_eq(claim, "team/data");
    static const char *const words[] = {"v", "team/data", "team/d", "pvc-1"};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        json_t *reply = ask(f.client, -1, NULL, "{\"op\":\"resolve\",\"volume\":\"%s\"}", words[i]);
        const char *id = json_string_value(json_object_get(reply, "volume"));
        ck_assert_msg(g_strcmp0(id, "v") == 0, "%s", words[i]);
        json_decref(reply);
    }
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"resolve\",\"volume\":\"other\"}"),
                   "NOT_FOUND", "there are: team/data");
    /* All others take IDs: a name that another volume begins with is nobody. */
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"volume\",\"volume\":\"team/data\"}"),
                   "NOT_FOUND", "team/data");
    teardown(&f);
}
END_TEST

START_TEST(bad_packet_is_answered_and_the_connection_lives)
{
    Fixture f = setup();
    ck_assert_int_eq(send(f.client, "garbage", 7, 0), 7);
    assert_refused(wire_receive(f.client, NULL, 5000, NULL), "INVALID_ARGUMENT", "JSON");
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"hello\"}"));
    teardown(&f);
}
END_TEST

START_TEST(open_is_idempotent_and_refuses_another_spec)
{
    Fixture f = setup();
    ck_assert(!flag(open_volume(&f, "v"), "attached"));
    ck_assert(!flag(open_volume(&f, "v"), "attached"));
    assert_refused(ask(f.client, -1, NULL, OPEN_DIR, "v", f.dir), "ALREADY_EXISTS", "rootPath");
    assert_ok(attach(&f, "v"));
    ck_assert_int_eq(fake_sessions, 1);
    ck_assert(fake_session->cached);
    ck_assert(flag(open_volume(&f, "v"), "attached"));
    assert_refused(ask(f.client, -1, NULL, OPEN_DIR, "v", f.dir), "ALREADY_EXISTS", "rootPath");
    ck_assert_int_eq(volume_flag(&f, "v", "attached"), 1);
    /* What may change while it is served counts at once. */
    ck_assert_int_eq(fake_session->group, -1);
    ck_assert(
        flag(ask(f.client, -1, NULL,
                 "{\"op\":\"open\",\"volume\":\"v\",\"origin\":{\"type\":\"dir\",\"rootPath\":"
                 "\"%s\"},\"mountGroup\":4242,\"cacheQuota\":7}",
                 f.root),
             "attached"));
    ck_assert_int_eq(fake_session->group, 4242);
    ck_assert(flag(open_volume(&f, "v"), "attached"));
    ck_assert_int_eq(fake_session->group, -1);
    teardown(&f);
}
END_TEST

START_TEST(directories_of_the_node_are_served_below_dir_root_alone)
{
    Fixture f = setup_below(NULL);
    assert_refused(open_volume(&f, "v"), "FAILED_PRECONDITION", "--dir-root");
    teardown(&f);
    g_autofree char *top = g_build_filename(g_get_tmp_dir(), "hearth-dir-root-XXXXXX", NULL);
    ck_assert_ptr_nonnull(g_mkdtemp(top));
    g_autofree char *beside = g_strconcat(top, "-beside", NULL);
    g_autofree char *inside = g_build_filename(top, "inside", NULL);
    g_autofree char *out = g_build_filename(top, "out", NULL);
    ck_assert_int_eq(g_mkdir(beside, 0700) | g_mkdir(inside, 0700) | symlink("/etc", out), 0);
    f = setup_below(top);
    const char *const refused[] = {f.root, "/", beside, out};
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
        assert_refused(ask(f.client, -1, NULL, OPEN_DIR, "v", refused[i]), "FAILED_PRECONDITION",
                       "--dir-root");
    g_autofree char *dots = g_strconcat(top, "/../../../../etc", NULL);
    assert_refused(ask(f.client, -1, NULL, OPEN_DIR, "v", dots), "FAILED_PRECONDITION",
                   "--dir-root");
    assert_ok(ask(f.client, -1, NULL, OPEN_DIR, "v", inside));
    assert_ok(ask(f.client, -1, NULL, OPEN_DIR, "w", top));
    teardown(&f);
    ck_assert_int_eq(unlink(out) | rmdir(inside) | rmdir(beside) | rmdir(top), 0);
}
END_TEST

#define OPEN_READ_ONLY                                                                             \
    "{\"op\":\"open\",\"volume\":\"%s\",\"readOnly\":true,\"origin\":{\"type\":\"dir\","           \
    "\"rootPath\":"                                                                                \
    "\"%s\"}}"

START_TEST(no_volume_takes_a_name_of_hearths_own)
{
    static const char dataset[] = "dataset-00112233445566778899aabbccddeeff";
    static const char *const bad[] = {
        "dataset-",
        "dataset-x",
        "dataset-00112233445566778899AABBCCDDEEFF",
        "dataset-00112233445566778899aabbccddeeff0",
        "dataset-00112233445566778899aabbccddeeff-",
        "dataset-00112233445566778899aabbccddeeff-1x",
    };
    Fixture f = setup();
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_refused(ask(f.client, -1, NULL, OPEN_READ_ONLY, bad[i], f.root), "INVALID_ARGUMENT",
                       "volumeHandle");
    assert_refused(open_volume(&f, dataset), "INVALID_ARGUMENT", "volumeHandle");
    assert_refused(open_volume(&f, "warmup-run"), "INVALID_ARGUMENT", "volumeHandle");
    /* Of that name, but never served as a tree of files. */
    assert_ok(ask(f.client, -1, NULL, OPEN_READ_ONLY, dataset, f.root));
    assert_ok(ask(f.client, -1, NULL, OPEN_READ_ONLY, "warmup-run", f.root));
    assert_refused(attach(&f, dataset), "INVALID_ARGUMENT", "fill layer");
    assert_refused(attach(&f, "warmup-run"), "INVALID_ARGUMENT", "never mounted");
    ck_assert_int_eq(fake_sessions, 0);
    teardown(&f);
}
END_TEST

START_TEST(attach_needs_an_open_volume_and_a_descriptor)
{
    Fixture f = setup();
    assert_refused(attach(&f, "v"), "NOT_FOUND", "v");
    assert_ok(open_volume(&f, "v"));
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"attach\",\"volume\":\"v\"}"),
                   "INVALID_ARGUMENT", "/dev/fuse");
    fake_session_fails = TRUE;
    assert_refused(attach(&f, "v"), "INTERNAL", "refused");
    fake_session_fails = FALSE;
    assert_ok(attach(&f, "v"));
    assert_refused(attach(&f, "v"), "ALREADY_EXISTS", "attached");
    ck_assert_int_eq(fake_sessions, 1);
    teardown(&f);
}
END_TEST

START_TEST(detach_is_fine_when_unknown_and_forgets_the_volume)
{
    Fixture f = setup();
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"detach\",\"volume\":\"v\"}"));
    assert_ok(open_volume(&f, "v"));
    assert_ok(attach(&f, "v"));
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"detach\",\"volume\":\"v\"}"));
    ck_assert_int_eq(fake_sessions, 0);
    ck_assert_ptr_nonnull(f.store->cancelled);
    ck_assert_int_eq(volume_flag(&f, "v", "attached"), -1);
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"detach\",\"volume\":\"v\"}"));
    teardown(&f);
}
END_TEST

START_TEST(unmounted_volume_may_be_opened_anew)
{
    Fixture f = setup();
    assert_ok(open_volume(&f, "v"));
    assert_ok(attach(&f, "v"));
    fake_session->ended(fake_session->data);
    ck_assert_int_eq(volume_flag(&f, "v", "attached"), 0);
    int fd = -1;
    assert_refused(ask(f.client, -1, &fd, "{\"op\":\"fetch\",\"volume\":\"v\"}"),
                   "FAILED_PRECONDITION", "v");
    /* Another root, and a mount of its own. */
    json_t *reply = ask(f.client, -1, NULL, OPEN_DIR, "v", f.dir);
    ck_assert(json_is_true(json_object_get(reply, "ok")));
    ck_assert(!flag(reply, "attached"));
    ck_assert_int_eq(fake_sessions, 0);
    assert_ok(attach(&f, "v"));
    ck_assert_int_eq(volume_flag(&f, "v", "attached"), 1);
    teardown(&f);
}
END_TEST

/* Asks until the volume is gone: closing happens after the connection has ended. */
static void await_closed(const Fixture *f, const char *id)
{
    while (volume_flag(f, id, "attached") != -1)
        g_usleep(1000);
}

START_TEST(volume_that_nobody_attached_closes_with_its_connection)
{
    Fixture f = setup();
    int other = connect_client(&f);
    assert_ok(ask(other, -1, NULL, OPEN_DIR, "left", f.root));
    assert_ok(ask(other, -1, NULL, OPEN_DIR, "taken", f.root));
    assert_ok(ask(other, -1, NULL, OPEN_DIR, "attached", f.root));
    assert_ok(open_volume(&f, "taken"));
    assert_ok(attach(&f, "attached"));
    close(other);
    await_closed(&f, "left");
    ck_assert_int_eq(volume_flag(&f, "taken", "attached"), 0);
    ck_assert_int_eq(volume_flag(&f, "attached", "attached"), 1);
    teardown(&f);
}
END_TEST

typedef struct Asking {
    int client;
    atomic_bool enough;
} Asking;

static void *ask_on(void *data)
{
    Asking *a = data;
    while (!atomic_load(&a->enough)) {
        json_decref(ask(a->client, -1, NULL, "{\"op\":\"volume\",\"volume\":\"v\"}"));
        assert_ok(ask(a->client, -1, NULL, "{\"op\":\"status\"}"));
    }
    return NULL;
}

START_TEST(reports_are_made_while_volumes_come_and_go)
{
    Fixture f = setup();
    Asking a = {.client = connect_client(&f)};
    pthread_t asking;
    ck_assert_int_eq(pthread_create(&asking, NULL, ask_on, &a), 0);
    for (int i = 0; i < 300; i++) {
        assert_ok(open_volume(&f, "v"));
        assert_ok(ask(f.client, -1, NULL, "{\"op\":\"detach\",\"volume\":\"v\"}"));
    }
    atomic_store(&a.enough, TRUE);
    pthread_join(asking, NULL);
    close(a.client);
    teardown(&f);
}
END_TEST

#define OPEN_CEPH                                                                                  \
    "{\"op\":\"open\",\"volume\":\"%s\",\"readOnly\":true,\"cache\":false,\"origin\":{"            \
    "\"type\":\"cephfs\",\"clusterID\":\"c\",\"monitors\":[\"%s\"],\"fsName\":\"fs\","             \
    "\"rootPath\":\"%s\",\"userID\":\"u\",\"userKey\":\"%s\"}}"

START_TEST(layers_and_manifests_are_asked_for_by_name)
{
    Fixture f = setup();
    assert_ok(open_volume(&f, "v"));
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_refused(ask(f.client, fd, NULL, "{\"op\":\"attach\",\"volume\":\"v\",\"layer\":\"x\"}"),
                   "INVALID_ARGUMENT", "'layer'");
    assert_refused(
        ask(f.client, fd, NULL, "{\"op\":\"attach\",\"volume\":\"v\",\"layer\":\"fill\"}"),
        "FAILED_PRECONDITION", "manifest");
    close(fd);
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"manifest\",\"volume\":\"v\",\"waitMs\":-1}"),
                   "INVALID_ARGUMENT", "'waitMs'");
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"manifest\",\"volume\":\"v\"}"),
                   "FAILED_PRECONDITION", "no snapshot");
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"manifest\",\"volume\":\"w\"}"), "NOT_FOUND",
                   "w");
    teardown(&f);
}
END_TEST

START_TEST(fetch_gives_spec_and_descriptor)
{
    Fixture f = setup();
    int fd = -1;
    assert_refused(ask(f.client, -1, &fd, "{\"op\":\"fetch\",\"volume\":\"v\"}"), "NOT_FOUND", "v");
    assert_ok(ask(f.client, -1, NULL, OPEN_CEPH, "v", "m1", f.root, "secret1"));
    assert_ok(attach(&f, "v"));
    ck_assert(fake_session->read_only);
    ck_assert(!fake_session->cached);
    /* A rotated key and other monitors are the same volume; the newer ones are given back. */
    ck_assert(flag(ask(f.client, -1, NULL, OPEN_CEPH, "v", "m2", f.root, "secret2"), "attached"));
    json_t *reply = ask(f.client, -1, &fd, "{\"op\":\"fetch\",\"volume\":\"v\"}");
    ck_assert_int_ge(fd, 0);
    close(fd);
    const json_t *spec = json_object_get(reply, "spec");
    const json_t *origin = json_object_get(spec, "origin");
    ck_assert_str_eq(json_string_value(json_object_get(spec, "volume")), "v");
    ck_assert_ptr_null(json_object_get(spec, "op"));
    ck_assert_str_eq(json_string_value(json_object_get(origin, "userKey")), "secret2");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(origin, "monitors"), 0)),
                     "m2");
    json_decref(reply);
    teardown(&f);
}
END_TEST

START_TEST(failed_open_tells_why_and_never_the_key)
{
    static const struct {
        int error;
        const char *code;
    } failures[] = {
        {G_IO_ERROR_TIMED_OUT, "DEADLINE_EXCEEDED"},
        {G_IO_ERROR_PERMISSION_DENIED, "PERMISSION_DENIED"},
        {G_IO_ERROR_NOT_FOUND, "NOT_FOUND"},
        {G_IO_ERROR_NOT_SUPPORTED, "FAILED_PRECONDITION"},
        {G_IO_ERROR_BUSY, "FAILED_PRECONDITION"},
        {G_IO_ERROR_EXISTS, "INTERNAL"},
    };
    Fixture f = setup();
    for (size_t i = 0; i < G_N_ELEMENTS(failures); i++) {
        fake_ceph_error = failures[i].error;
        json_t *reply = ask(f.client, -1, NULL, OPEN_CEPH, "v", "m1", f.root, "hunter2");
        char *text = json_dumps(reply, 0);
        ck_assert_ptr_null(strstr(text, "hunter2"));
        free(text);
        assert_refused(reply, failures[i].code, "m1");
    }
    fake_ceph_error = 0;
    assert_ok(ask(f.client, -1, NULL, OPEN_CEPH, "v", "m1", f.root, "hunter2"));
    teardown(&f);
}
END_TEST

typedef struct Asker {
    const Fixture *f;
    const char *request;
    json_t *reply;
    pthread_t thread;
} Asker;

static void *run_asker(void *data)
{
    Asker *asker = data;
    int client = connect_client(asker->f);
    asker->reply = ask(client, -1, NULL, "%s", asker->request);
    close(client);
    return NULL;
}

START_TEST(status_answers_while_an_open_waits_for_ceph)
{
    Fixture f = setup();
    g_autofree char *open_request = g_strdup_printf(OPEN_CEPH, "slow", "m1", f.root, "k");
    Asker opener = {.f = &f, .request = open_request};
    fake_ceph_hang(TRUE);
    pthread_create(&opener.thread, NULL, run_asker, &opener);
    fake_ceph_await_caller();
    json_t *status = ask(f.client, -1, NULL, "{\"op\":\"status\"}");
    ck_assert_int_eq(json_integer_value(json_object_get(status, "volumes")), 0);
    assert_ok(status);
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"volumes\"}"));
    assert_ok(open_volume(&f, "fast"));
    assert_ok(attach(&f, "fast"));
    /* The same volume waits its turn: it must not be answered yet. */
    int detacher = connect_client(&f);
    json_t *detach = json_pack("{s:s, s:s}", "op", "detach", "volume", "slow");
    ck_assert(wire_send(detacher, detach, -1, NULL));
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(wire_receive(detacher, NULL, 100, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT));
    fake_ceph_hang(FALSE);
    pthread_join(opener.thread, NULL);
    assert_ok(opener.reply);
    assert_ok(wire_receive(detacher, NULL, 20000, NULL));
    json_decref(detach);
    close(detacher);
    await_closed(&f, "slow");
    teardown(&f);
}
END_TEST

START_TEST(volumes_come_in_pages_by_id)
{
    Fixture f = setup();
    for (int i = 149; i >= 0; i--) {
        g_autofree char *id = g_strdup_printf("volume-%03d", i);
        assert_ok(open_volume(&f, id));
    }
    int seen = 0, pages = 0;
    gboolean more = TRUE;
    g_autofree char *after = g_strdup("");
    while (more) {
        json_t *page = ask(f.client, -1, NULL, "{\"op\":\"volumes\",\"after\":\"%s\"}", after);
        json_t *list = json_object_get(page, "volumes");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *v = json_array_get(list, i);
            g_autofree char *id = g_strdup_printf("volume-%03d", seen++);
            ck_assert_str_eq(json_string_value(json_object_get(v, "volume")), id);
            g_free(after);
            after = g_strdup(id);
        }
        pages++;
        more = flag(page, "more");
    }
    ck_assert_int_eq(seen, 150);
    ck_assert_int_gt(pages, 1);
    teardown(&f);
}
END_TEST

START_TEST(volumes_with_long_paths_fit_into_messages)
{
    Fixture f = setup();
    /* The same directory by a path of 3000 bytes; 64 of them are more than one message holds. */
    GString *root = g_string_new(f.root);
    while (root->len < 3000)
        g_string_append(root, "/.");
    for (int i = 0; i < 60; i++) {
        g_autofree char *id = g_strdup_printf("v%02d", i);
        assert_ok(ask(f.client, -1, NULL, OPEN_DIR, id, root->str));
    }
    json_t *page = ask(f.client, -1, NULL, "{\"op\":\"volumes\"}");
    ck_assert(json_is_true(json_object_get(page, "more")));
    size_t first = json_array_size(json_object_get(page, "volumes"));
    json_decref(page);
    ck_assert_uint_gt(first, 0);
    page = ask(f.client, -1, NULL, "{\"op\":\"volumes\",\"after\":\"v%02zu\"}", first - 1);
    ck_assert_uint_eq(json_array_size(json_object_get(page, "volumes")), 60 - first);
    ck_assert(!flag(page, "more"));
    g_string_free(root, TRUE);
    teardown(&f);
}
END_TEST

START_TEST(warm_job_and_evict_work_over_the_socket)
{
    Fixture f = setup();
    g_autofree char *file = g_build_filename(f.root, "file", NULL);
    ck_assert(g_file_set_contents(file, "hello", -1, NULL));
    assert_ok(open_volume(&f, "v"));
    json_t *r = ask(f.client, -1, NULL, "{\"op\":\"warm\",\"volume\":\"v\",\"wait\":true}");
    json_int_t id = json_integer_value(json_object_get(r, "job"));
    assert_ok(r);
    r = ask(f.client, -1, NULL, "{\"op\":\"job\",\"job\":%" JSON_INTEGER_FORMAT "}", id);
    ck_assert_str_eq(json_string_value(json_object_get(r, "state")), "done");
    ck_assert_str_eq(json_string_value(json_object_get(r, "volume")), "v");
    assert_ok(r);
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"cancel\",\"job\":%" JSON_INTEGER_FORMAT "}", id));
    r = ask(f.client, -1, NULL, "{\"op\":\"warm\",\"volume\":\"v\",\"wait\":true,\"check\":true}");
    ck_assert_int_eq(json_integer_value(json_object_get(r, "job")), id + 1);
    assert_ok(r);
    r = ask(f.client, -1, NULL, "{\"op\":\"jobs\"}");
    ck_assert_uint_eq(json_array_size(json_object_get(r, "jobs")), 2);
    ck_assert(json_is_false(json_object_get(r, "more")));
    assert_ok(r);
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"evict\",\"volume\":\"w\"}"), "NOT_FOUND",
                   "w");
    r = ask(f.client, -1, NULL, "{\"op\":\"evict\",\"volume\":\"v\",\"bytes\":0}");
    ck_assert_int_eq(json_integer_value(json_object_get(r, "freedBytes")), 0);
    assert_ok(r);
    r = ask(f.client, -1, NULL, "{\"op\":\"verify\",\"volume\":\"v\"}");
    ck_assert_int_eq(json_integer_value(json_object_get(r, "objects")), 1);
    ck_assert(json_is_false(json_object_get(r, "more")));
    assert_ok(r);
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"verify\",\"after\":\"x\"}"),
                   "INVALID_ARGUMENT", "after");
    r = ask(f.client, -1, NULL, "{\"op\":\"evict\"}");
    ck_assert_int_eq(json_integer_value(json_object_get(r, "freedBytes")), 5);
    assert_ok(r);
    teardown(&f);
}
END_TEST

static json_int_t number(json_t *reply, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(reply, name));
    assert_ok(reply);
    return n;
}

START_TEST(what_is_pinned_is_told_and_not_evicted_by_the_way)
{
    Fixture f = setup();
    g_autofree char *file = g_build_filename(f.root, "file", NULL);
    ck_assert(g_file_set_contents(file, "hello", -1, NULL));
    assert_ok(open_volume(&f, "v"));
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"pin\",\"volume\":\"w\"}"), "NOT_FOUND", "w");
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"pin\",\"volume\":\"v\"}"));
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"warm\",\"volume\":\"v\",\"wait\":true}"));
    json_t *r = ask(f.client, -1, NULL, "{\"op\":\"volume\",\"volume\":\"v\"}");
    ck_assert(json_is_true(json_object_get(json_object_get(r, "volume"), "pinned")));
    assert_ok(r);
    r = ask(f.client, -1, NULL, "{\"op\":\"status\"}");
    const json_t *pins = json_object_get(json_object_get(r, "cache"), "pins");
    ck_assert_uint_eq(json_array_size(pins), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(pins, 0), "bytes")), 5);
    assert_ok(r);
    r = ask(f.client, -1, NULL, "{\"op\":\"evict\"}");
    ck_assert_int_eq(json_integer_value(json_object_get(r, "freedBytes")), 0);
    ck_assert_int_eq(number(r, "pinnedBytes"), 5);
    assert_refused(ask(f.client, -1, NULL, "{\"op\":\"evict\",\"volume\":\"v\"}"),
                   "FAILED_PRECONDITION", "pinned");
    r = ask(f.client, -1, NULL, "{\"op\":\"evict\",\"volume\":\"v\",\"pinned\":true}");
    ck_assert_int_eq(number(r, "freedBytes"), 5);
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"warm\",\"volume\":\"v\",\"wait\":true}"));
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"pin\",\"volume\":\"v\",\"on\":false}"));
    r = ask(f.client, -1, NULL, "{\"op\":\"evict\"}");
    ck_assert_int_eq(number(r, "freedBytes"), 5);
    teardown(&f);
}
END_TEST

START_TEST(connections_past_the_limit_are_told_so)
{
    Fixture f = setup();
    int clients[CONTROL_MAX_CONNECTIONS];
    for (int i = 1; i < CONTROL_MAX_CONNECTIONS; i++) {
        clients[i] = connect_client(&f);
        assert_ok(ask(clients[i], -1, NULL, "{\"op\":\"hello\"}"));
    }
    int extra = connect_client(&f);
    assert_refused(wire_receive(extra, NULL, 5000, NULL), "UNAVAILABLE", "connections");
    close(extra);
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"hello\"}"));
    for (int i = 1; i < CONTROL_MAX_CONNECTIONS; i++)
        close(clients[i]);
    /* There is room again once the server has noticed. */
    gboolean served = FALSE;
    while (!served) {
        int again = connect_client(&f);
        json_t *request = json_pack("{s:s}", "op", "hello");
        json_t *reply = wire_call(again, request, -1, NULL, 5000, NULL);
        served = reply != NULL;
        json_decref(reply);
        json_decref(request);
        close(again);
    }
    teardown(&f);
}
END_TEST

START_TEST(a_thousand_connections_cost_no_thread)
{
    Fixture f = setup();
    int clients[1000];
    const unsigned before = harness_threads();
    for (gsize i = 0; i < G_N_ELEMENTS(clients); i++) {
        clients[i] = connect_client(&f);
        assert_ok(ask(clients[i], -1, NULL, "{\"op\":\"hello\"}"));
    }
    /* Some stay for a while. */
    ck_assert_uint_le(harness_threads(), before + 16);
    assert_ok(ask(clients[0], -1, NULL, "{\"op\":\"status\"}"));
    for (gsize i = 0; i < G_N_ELEMENTS(clients); i++)
        close(clients[i]);
    teardown(&f);
}
END_TEST

START_TEST(what_hangs_at_the_end_keeps_nothing_else)
{
    Fixture f = setup();
    assert_ok(open_volume(&f, "a"));
    assert_ok(attach(&f, "a"));
    fake_session_stuck = fake_session;
    assert_ok(open_volume(&f, "b"));
    assert_ok(attach(&f, "b"));
    ck_assert(!control_server_stop(f.server, 1000));
    ck_assert_int_eq(fake_sessions, 1);
    ck_assert(!g_file_test(f.socket_path, G_FILE_TEST_EXISTS));
    fake_session_stuck = NULL;
    ck_assert(control_server_stop(f.server, 20000));
    ck_assert_int_eq(fake_sessions, 0);
    close(f.client);
    fake_store_free(f.store);
    g_free(f.root);
    g_free(f.socket_path);
    harness_remove(f.dir);
}
END_TEST

START_TEST(stop_ends_what_is_under_way)
{
    Fixture f = setup();
    g_autofree char *file = g_build_filename(f.root, "file", NULL);
    g_autofree char *text = g_strnfill(12 << 20, 'x');
    ck_assert(g_file_set_contents(file, text, -1, NULL));
    f.store->hold_fills = TRUE;
    assert_ok(open_volume(&f, "v"));
    assert_ok(attach(&f, "v"));
    assert_ok(ask(f.client, -1, NULL, "{\"op\":\"warm\",\"volume\":\"v\"}"));
    fake_store_await_waiter(f.store);
    fake_store_release_fills(f.store);
    teardown(&f);
}
END_TEST

HARNESS_MAIN("cache/control/server", hello_tells_version_and_protocol,
             unknown_ops_and_fields_are_named, volumes_have_the_names_of_kubernetes,
             ill_formed_specs_are_refused, bad_packet_is_answered_and_the_connection_lives,
             open_is_idempotent_and_refuses_another_spec, no_volume_takes_a_name_of_hearths_own,
             directories_of_the_node_are_served_below_dir_root_alone,
             attach_needs_an_open_volume_and_a_descriptor,
             detach_is_fine_when_unknown_and_forgets_the_volume,
             unmounted_volume_may_be_opened_anew,
             volume_that_nobody_attached_closes_with_its_connection,
             reports_are_made_while_volumes_come_and_go, fetch_gives_spec_and_descriptor,
             layers_and_manifests_are_asked_for_by_name, failed_open_tells_why_and_never_the_key,
             status_answers_while_an_open_waits_for_ceph, volumes_come_in_pages_by_id,
             volumes_with_long_paths_fit_into_messages, warm_job_and_evict_work_over_the_socket,
             what_is_pinned_is_told_and_not_evicted_by_the_way,
             connections_past_the_limit_are_told_so, a_thousand_connections_cost_no_thread,
             what_hangs_at_the_end_keeps_nothing_else, stop_ends_what_is_under_way)
