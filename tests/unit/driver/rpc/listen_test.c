/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rpc/listen.h"

#include <gio/gio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static char *dir, *path;

static void begin(void)
{
    dir = harness_tmpdir();
    path = g_build_filename(dir, "csi.sock", NULL);
}

static void end(void)
{
    g_free(path);
    harness_remove(dir);
}

static void expect_error(int code)
{
    RpcListener listener;
    g_autoptr(GError) error = NULL;
    ck_assert(!rpc_listen(&listener, path, &error));
    ck_assert_msg(g_error_matches(error, G_IO_ERROR, code), "%s", error->message);
    ck_assert_int_eq(listener.fd, -1);
    rpc_listener_close(&listener);
}

START_TEST(socket_is_private_and_goes_with_the_listener)
{
    begin();
    umask(0);
    RpcListener listener;
    ck_assert(rpc_listen(&listener, path, NULL));
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    rpc_listener_close(&listener);
    ck_assert_int_eq(access(path, F_OK), -1);
    rpc_listener_close(&listener);
    end();
}
END_TEST

START_TEST(dead_socket_is_replaced)
{
    begin();
    RpcListener listener;
    ck_assert(rpc_listen(&listener, path, NULL));
    close(listener.fd); /* as a killed process leaves it */
    RpcListener next;
    ck_assert(rpc_listen(&next, path, NULL));
    rpc_listener_close(&next);
    g_free(listener.path);
    end();
}
END_TEST

START_TEST(live_socket_is_left_alone)
{
    begin();
    RpcListener listener;
    ck_assert(rpc_listen(&listener, path, NULL));
    expect_error(G_IO_ERROR_ADDRESS_IN_USE);
    /* Also one whose backlog is full. */
    ck_assert_int_eq(listen(listener.fd, 0), 0);
    struct sockaddr_un address;
    ck_assert(rpc_socket_address(&address, path, NULL));
    int fds[8], n = 0;
    while (n < 8) {
        fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fds[n++], (struct sockaddr *)&address, sizeof(address)) < 0)
            break;
    }
    ck_assert_int_lt(n, 8);
    expect_error(G_IO_ERROR_ADDRESS_IN_USE);
    while (n > 0)
        close(fds[--n]);
    rpc_listener_close(&listener);
    end();
}
END_TEST

START_TEST(other_files_are_left_alone)
{
    begin();
    ck_assert(g_file_set_contents(path, "precious", -1, NULL));
    expect_error(G_IO_ERROR_EXISTS);
    g_autofree char *contents = NULL;
    ck_assert(g_file_get_contents(path, &contents, NULL, NULL));
    ck_assert_str_eq(contents, "precious");
    end();
}
END_TEST

START_TEST(socket_of_a_successor_is_not_removed)
{
    begin();
    RpcListener listener, successor;
    ck_assert(rpc_listen(&listener, path, NULL));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(rpc_listen(&successor, path, NULL));
    rpc_listener_close(&listener);
    ck_assert_int_eq(access(path, F_OK), 0);
    rpc_listener_close(&successor);
    end();
}
END_TEST

START_TEST(bad_paths_are_named)
{
    begin();
    g_free(path);
    path = g_strnfill(108, 'x');
    expect_error(G_IO_ERROR_INVALID_ARGUMENT);
    g_free(path);
    path = g_strdup("");
    expect_error(G_IO_ERROR_INVALID_ARGUMENT);
    g_free(path);
    path = g_build_filename(dir, "none", "csi.sock", NULL);
    expect_error(G_IO_ERROR_NOT_FOUND);
    end();
}
END_TEST

HARNESS_MAIN("driver/rpc/listen", socket_is_private_and_goes_with_the_listener,
             dead_socket_is_replaced, live_socket_is_left_alone, other_files_are_left_alone,
             socket_of_a_successor_is_not_removed, bad_paths_are_named)
