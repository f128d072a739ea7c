/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "proto/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct Pair {
    int a, b;
} Pair;

static Pair make_pair(void)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    int bytes = 4 * WIRE_MAX_MESSAGE;
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    return (Pair){fds[0], fds[1]};
}

static void close_pair(Pair p)
{
    close(p.a);
    close(p.b);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Sends raw bytes with `count` duplicates of descriptor 0. */
static void send_raw(int socket, const void *bytes, size_t size, unsigned count)
{
    union {
        char space[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec iov = {.iov_base = (void *)bytes, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (count) {
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memset(CMSG_DATA(c), 0, count * sizeof(int));
    }
    ck_assert_int_eq(sendmsg(socket, &msg, MSG_NOSIGNAL), (ssize_t)size);
}

static void assert_receive_fails(int socket, int timeout_ms, int code)
{
    g_autoptr(GError) error = NULL;
    int fd = 99;
    ck_assert_ptr_null(wire_receive(socket, &fd, timeout_ms, &error));
    ck_assert_int_eq(fd, -1);
    ck_assert_msg(g_error_matches(error, G_IO_ERROR, code), "%s", error->message);
}

START_TEST(message_and_descriptor_arrive)
{
    Pair p = make_pair();
    int pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    json_t *sent = json_pack("{s:s, s:I}", "op", "attach", "n", (json_int_t)1 << 60);
    ck_assert(wire_send(p.a, sent, pipe_fds[1], NULL));
    int fd = -1;
    json_t *got = wire_receive(p.b, &fd, 1000, NULL);
    ck_assert(json_equal(sent, got));
    ck_assert_int_ge(fd, 0);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    char c;
    ck_assert_int_eq(read(pipe_fds[0], &c, 1), 1);
    json_decref(sent);
    json_decref(got);
    close(fd);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    close_pair(p);
}
END_TEST

START_TEST(largest_message_arrives_and_a_larger_one_is_refused)
{
    Pair p = make_pair();
    g_autofree char *text = g_malloc(WIRE_MAX_MESSAGE + 1);
    memset(text, 'a', WIRE_MAX_MESSAGE + 1);
    json_t *m = json_object();
    json_object_set_new(m, "k", json_stringn(text, WIRE_MAX_MESSAGE - 8)); /* {"k":""} */
    ck_assert(wire_send(p.a, m, -1, NULL));
    json_t *got = wire_receive(p.b, NULL, 1000, NULL);
    ck_assert(json_equal(m, got));
    json_decref(got);
    json_object_set_new(m, "k", json_stringn(text, WIRE_MAX_MESSAGE - 7));
    g_autoptr(GError) error = NULL;
    ck_assert(!wire_send(p.a, m, -1, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE));
    json_decref(m);
    close_pair(p);
}
END_TEST

START_TEST(oversized_packet_is_refused_whole)
{
    Pair p = make_pair();
    g_autofree char *text = g_malloc(WIRE_MAX_MESSAGE + 64);
    /* Its first WIRE_MAX_MESSAGE bytes would parse. */
    memset(text, ' ', WIRE_MAX_MESSAGE + 64);
    memcpy(text, "{}", 2);
    send_raw(p.a, text, WIRE_MAX_MESSAGE + 64, 0);
    send_raw(p.a, "{\"x\":1}", 7, 0);
    assert_receive_fails(p.b, 1000, G_IO_ERROR_INVALID_DATA);
    json_t *next = wire_receive(p.b, NULL, 1000, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(next, "x")), 1);
    json_decref(next);
    close_pair(p);
}
END_TEST

START_TEST(what_is_no_object_is_refused)
{
    static const char *const bad[] = {"[]",
                                      "1",
                                      "{",
                                      "nonsense",
                                      "{\"a\":1,\"a\":2}",
                                      "{} {}",
                                      "{\"a\":\"\\u0000\"}",
                                      "{\"a\":\"\xff\"}",
                                      "\"text\""};
    Pair p = make_pair();
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        send_raw(p.a, bad[i], strlen(bad[i]), 0);
        assert_receive_fails(p.b, 1000, G_IO_ERROR_INVALID_DATA);
    }
    close_pair(p);
}
END_TEST

START_TEST(refused_message_is_not_quoted)
{
    Pair p = make_pair();
    const char *text = "{\"userKey\": hunter2}";
    send_raw(p.a, text, strlen(text), 0);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(wire_receive(p.b, NULL, 1000, &error));
    ck_assert_ptr_null(strstr(error->message, "hunter2"));
    close_pair(p);
}
END_TEST

START_TEST(two_descriptors_are_refused_and_closed)
{
    Pair p = make_pair();
    unsigned before = open_descriptors();
    send_raw(p.a, "{}", 2, 2);
    assert_receive_fails(p.b, 1000, G_IO_ERROR_INVALID_DATA);
    send_raw(p.a, "{}", 2, 7);
    assert_receive_fails(p.b, 1000, G_IO_ERROR_INVALID_DATA);
    ck_assert_uint_eq(open_descriptors(), before);
    close_pair(p);
}
END_TEST

START_TEST(unwanted_descriptor_is_closed)
{
    Pair p = make_pair();
    unsigned before = open_descriptors();
    send_raw(p.a, "{}", 2, 1);
    json_t *m = wire_receive(p.b, NULL, 1000, NULL);
    ck_assert_ptr_nonnull(m);
    json_decref(m);
    send_raw(p.a, "[]", 2, 1);
    assert_receive_fails(p.b, 1000, G_IO_ERROR_INVALID_DATA);
    ck_assert_uint_eq(open_descriptors(), before);
    close_pair(p);
}
END_TEST

START_TEST(end_of_connection_is_told_from_timeout)
{
    Pair p = make_pair();
    assert_receive_fails(p.b, 20, G_IO_ERROR_TIMED_OUT);
    close(p.a);
    assert_receive_fails(p.b, 1000, G_IO_ERROR_CLOSED);
    g_autoptr(GError) error = NULL;
    json_t *m = json_object();
    ck_assert(!wire_send(p.b, m, -1, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CLOSED));
    json_decref(m);
    close(p.b);
}
END_TEST

typedef struct Answer {
    int socket;
    const char *reply;
} Answer;

static void *answer_once(void *data)
{
    Answer *answer = data;
    json_t *request = wire_receive(answer->socket, NULL, 5000, NULL);
    ck_assert_ptr_nonnull(request);
    json_decref(request);
    send_raw(answer->socket, answer->reply, strlen(answer->reply), 1);
    return NULL;
}

static json_t *call(const char *reply, int *fd, GError **error)
{
    Pair p = make_pair();
    Answer answer = {p.b, reply};
    pthread_t thread;
    pthread_create(&thread, NULL, answer_once, &answer);
    json_t *request = json_pack("{s:s}", "op", "hello");
    json_t *got = wire_call(p.a, request, -1, fd, 5000, error);
    pthread_join(thread, NULL);
    json_decref(request);
    close_pair(p);
    return got;
}

START_TEST(call_gives_reply_and_descriptor)
{
    int fd = -1;
    json_t *got = call("{\"ok\":true,\"pid\":7}", &fd, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(got, "pid")), 7);
    ck_assert_int_ge(fd, 0);
    close(fd);
    json_decref(got);
}
END_TEST

START_TEST(call_gives_code_and_text_of_a_refusal)
{
    unsigned before = open_descriptors();
    g_autoptr(GError) error = NULL;
    int fd = 99;
    ck_assert_ptr_null(call("{\"ok\":false,\"code\":\"ABORTED\",\"error\":\"busy\"}", &fd, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, WIRE_ERROR_ABORTED));
    ck_assert_str_eq(error->message, "busy");
    ck_assert_int_eq(fd, -1);
    g_autoptr(GError) odd = NULL;
    ck_assert_ptr_null(call("{\"code\":\"WHAT\"}", NULL, &odd));
    ck_assert(g_error_matches(odd, WIRE_ERROR, WIRE_ERROR_INTERNAL));
    ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(every_code_survives_the_wire)
{
    for (int code = WIRE_ERROR_INTERNAL; code <= WIRE_ERROR_UNIMPLEMENTED; code++) {
        g_autoptr(GError) sent = g_error_new(WIRE_ERROR, code, "text %d", code);
        json_t *reply = wire_error_reply(sent);
        char *text = json_dumps(reply, 0);
        g_autoptr(GError) got = NULL;
        ck_assert_ptr_null(call(text, NULL, &got));
        ck_assert(g_error_matches(got, WIRE_ERROR, code));
        ck_assert_str_eq(got->message, sent->message);
        free(text);
        json_decref(reply);
    }
}
END_TEST

START_TEST(listen_makes_a_private_socket_and_replaces_a_stale_one)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "run", "s.sock", NULL);
    g_autoptr(GError) error = NULL;
    int listener = wire_listen(path, &error);
    ck_assert_msg(listener >= 0, "%s", error ? error->message : "");
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    int client = wire_connect(path, NULL);
    ck_assert_int_ge(client, 0);
    close(client);

    ck_assert_int_eq(wire_listen(path, &error), -1);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE));
    ck_assert_ptr_nonnull(strstr(error->message, path));
    close(listener);
    listener = wire_listen(path, NULL);
    ck_assert_int_ge(listener, 0);
    close(listener);
    harness_remove(dir);
}
END_TEST

START_TEST(listen_leaves_a_file_that_is_no_socket)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "precious", NULL);
    ck_assert(g_file_set_contents(path, "data", -1, NULL));
    g_autoptr(GError) error = NULL;
    ck_assert_int_eq(wire_listen(path, &error), -1);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_EXISTS));
    ck_assert(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    harness_remove(dir);
}
END_TEST

START_TEST(connect_names_the_path)
{
    g_autoptr(GError) error = NULL;
    ck_assert_int_eq(wire_connect("/nonexistent/s.sock", &error), -1);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND));
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/s.sock"));
    g_clear_error(&error);
    g_autofree char *path = g_strnfill(200, 'x');
    ck_assert_int_eq(wire_connect(path, &error), -1);
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_FILENAME_TOO_LONG));
}
END_TEST

HARNESS_MAIN("proto/wire", message_and_descriptor_arrive,
             largest_message_arrives_and_a_larger_one_is_refused, oversized_packet_is_refused_whole,
             what_is_no_object_is_refused, refused_message_is_not_quoted,
             two_descriptors_are_refused_and_closed, unwanted_descriptor_is_closed,
             end_of_connection_is_told_from_timeout, call_gives_reply_and_descriptor,
             call_gives_code_and_text_of_a_refusal, every_code_survives_the_wire,
             listen_makes_a_private_socket_and_replaces_a_stale_one,
             listen_leaves_a_file_that_is_no_socket, connect_names_the_path)
