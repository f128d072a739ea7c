/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/address.h"
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/error.h"
#include "tests/unit/harness.h"

static gboolean connects(const char *host, guint16 port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, host, &address.sin_addr);
    const gboolean good = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return good;
}

START_TEST(loopback_is_listened_on_alone)
{
    const int fd = http_listen("127.0.0.1:0", "--x", NULL);
    ck_assert_int_ge(fd, 0);
    const guint16 port = http_port_of(fd);
    ck_assert_uint_gt(port, 0);
    ck_assert(connects("127.0.0.1", port));
    ck_assert(!connects("127.0.0.2", port));
    close(fd);
}
END_TEST

START_TEST(address_in_use_is_named)
{
    g_autoptr(GError) error = NULL;
    const int fd = http_listen("127.0.0.1:0", "--x", NULL);
    g_autofree char *same = g_strdup_printf("127.0.0.1:%d", http_port_of(fd));
    ck_assert_int_eq(http_listen(same, "--x", &error), -1);
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    ck_assert_ptr_nonnull(strstr(error->message, same));
    ck_assert_ptr_nonnull(strstr(error->message, "--x"));
    close(fd);
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
    static const char *const wrong[] = {
        "",     "9443",        "localhost:9443", ":",       ":65536", ":-1",      ":http",
        "[]:1", "[1.2.3.4]:1", "::1:9443",       "1.2.3:1", "[::1]",  "1.2.3.4:", "https://[::]:1"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_msg(http_listen(wrong[i], "--x", &error) == -1, "%s", wrong[i]);
        ck_assert_msg(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT), "%s",
                      wrong[i]);
    }
}
END_TEST

HARNESS_MAIN("common/http/address", loopback_is_listened_on_alone, address_in_use_is_named,
             what_is_no_address_is_refused)
