/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/ceph/monitor_probe.h"
#include <errno.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "driver/cluster/config.h"
#include "tests/unit/harness.h"

/* "host port[!]" of each, joined; '!' for bare. */
static char *parsed(const char *monitor)
{
    g_autoptr(GArray) addresses = reach_parse(monitor);
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < addresses->len; i++) {
        const ReachAddress *a = &g_array_index(addresses, ReachAddress, i);
        g_string_append_printf(out, "%s%s %u%s", i ? ", " : "", a->host, a->port,
                               a->bare ? "!" : "");
    }
    return g_string_free(out, FALSE);
}

START_TEST(parses_cephs_addresses)
{
    static const char *const rows[][2] = {
        {"10.0.0.1", "10.0.0.1 3300, 10.0.0.1 6789"},
        {"10.0.0.1:6789", "10.0.0.1 6789"},
        {"10.0.0.1:7000", "10.0.0.1 7000!"},
        {"mon.example:3300", "mon.example 3300"},
        {"v2:10.0.0.1:7000/0", "10.0.0.1 7000"},
        {"[v2:10.0.0.1:3300,v1:10.0.0.1:6789]", "10.0.0.1 3300, 10.0.0.1 6789"},
        {"[fd00::1]:6789", "fd00::1 6789"},
        {"[fd00::1]", "fd00::1 3300, fd00::1 6789"},
        {"fd00::1", "fd00::1 3300, fd00::1 6789"},
        {"[v2:[fd00::1]:3300/0,v1:[fd00::1]:6789/0]", "fd00::1 3300, fd00::1 6789"},
        {"10.0.0.1:0", ""},
        {"10.0.0.1:x", ""},
        {"10.0.0.1:70000", ""},
        {"[fd00::1", ""},
        {":1", ""}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = parsed(rows[i][0]);
        ck_assert_str_eq(text, rows[i][1]);
    }
}
END_TEST

/* Takes one connection and greets it. */
typedef struct Monitor {
    int fd;
    const char *greeting;
    char *address;
    pthread_t thread;
} Monitor;

static void *monitor_thread(void *data)
{
    Monitor *m = data;
    int fd = accept(m->fd, NULL, NULL);
    if (fd >= 0) {
        ck_assert_int_eq(write(fd, m->greeting, strlen(m->greeting)), (int)strlen(m->greeting));
        close(fd);
    }
    return NULL;
}

static void monitor_start(Monitor *m, const char *greeting)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(a);
    m->greeting = greeting;
    m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(m->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(listen(m->fd, 4), 0);
    ck_assert_int_eq(getsockname(m->fd, (struct sockaddr *)&a, &length), 0);
    m->address = g_strdup_printf("127.0.0.1:%u", ntohs(a.sin_port));
    ck_assert_int_eq(pthread_create(&m->thread, NULL, monitor_thread, m), 0);
}

static void monitor_stop(Monitor *m)
{
    shutdown(m->fd, SHUT_RDWR);
    pthread_join(m->thread, NULL);
    close(m->fd);
    g_free(m->address);
}

/* Which of two clusters of one monitor each are reached, as bits. */
static int reach(const char *first, const char *second, gint64 ms)
{
    char *a[] = {(char *)first, NULL}, *b[] = {(char *)second, NULL};
    ClusterConfig one = {.cluster_id = (char *)"c1", .monitors = a};
    ClusterConfig two = {.cluster_id = (char *)"c2", .monitors = b};
    g_autoptr(GPtrArray) clusters = g_ptr_array_new();
    g_ptr_array_add(clusters, &one);
    g_ptr_array_add(clusters, &two);
    gboolean reached[2] = {TRUE, TRUE};
    reach_monitors(clusters, reached, g_get_monotonic_time() + ms * 1000);
    return reached[0] | reached[1] << 1;
}

START_TEST(a_cluster_whose_monitor_greets_is_reached)
{
    Monitor m;
    monitor_start(&m, "ceph v027");
    ck_assert_int_eq(reach("127.0.0.1:1", m.address, 10000), 2);
    monitor_stop(&m);
}
END_TEST

START_TEST(a_port_that_is_not_cephs_does_not_count)
{
    Monitor m;
    monitor_start(&m, "SSH-2.0-x");
    ck_assert_int_eq(reach(m.address, "127.0.0.1:1", 10000), 0);
    monitor_stop(&m);
}
END_TEST

/* A listener that accepts and says nothing. */
static int silent_start(char **address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(a);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &length), 0);
    *address = g_strdup_printf("127.0.0.1:%u", ntohs(a.sin_port));
    return fd;
}

START_TEST(silence_ends_at_the_deadline_and_soon_beside_an_answer)
{
    g_autofree char *address = NULL;
    int silent = silent_start(&address);
    gint64 began = g_get_monotonic_time();
    ck_assert_int_eq(reach(address, "127.0.0.1:1", 300), 0);
    gint64 took_ms = (g_get_monotonic_time() - began) / 1000;
    ck_assert_int_ge(took_ms, 290);
    ck_assert_int_lt(took_ms, 10000);

    Monitor m;
    monitor_start(&m, "ceph v2\n");
    began = g_get_monotonic_time();
    ck_assert_int_eq(reach(address, m.address, 30000), 2);
    ck_assert_int_lt((g_get_monotonic_time() - began) / 1000, 15000);
    monitor_stop(&m);
    close(silent);
}
END_TEST

START_TEST(an_address_is_told_its_protocol)
{
    Monitor one, two;
    monitor_start(&one, "ceph v027");
    monitor_start(&two, "ceph v2\n\x10");
    char *monitors[] = {one.address, two.address, (char *)"127.0.0.1:1", (char *)"v1:127.0.0.1:1",
                        NULL};
    g_auto(GStrv) out = reach_explicit(monitors, g_get_monotonic_time() + 5 * G_USEC_PER_SEC);
    g_autofree char *v1 = g_strconcat("v1:", one.address, NULL);
    g_autofree char *v2 = g_strconcat("v2:", two.address, NULL);
    ck_assert_str_eq(out[0], v1);
    ck_assert_str_eq(out[1], v2);
    ck_assert_str_eq(out[2], "127.0.0.1:1");
    ck_assert_str_eq(out[3], "v1:127.0.0.1:1");
    ck_assert_ptr_null(out[4]);
    monitor_stop(&one);
    monitor_stop(&two);
}
END_TEST

START_TEST(each_address_tells_what_it_answered_and_how_fast)
{
    Monitor one, two, other;
    monitor_start(&one, "ceph v027");
    monitor_start(&two, "ceph v2\n\x10");
    monitor_start(&other, "SSH-2.0-x");
    g_autofree char *both = g_strdup_printf("[v2:%s,v1:%s]", two.address, one.address);
    g_autofree char *address = NULL;
    int silent = silent_start(&address);
    char *monitors[] = {both, other.address, (char *)"127.0.0.1:1", address, NULL};
    gint64 began = g_get_monotonic_time();
    g_autoptr(GArray) out = reach_each(monitors, began + G_USEC_PER_SEC);
    gint64 took_us = g_get_monotonic_time() - began;
    static const struct {
        guint monitor;
        char version;
        int error;
    } wanted[] = {{0, '2', 0}, {0, '1', 0}, {1, 0, 0}, {2, 0, ECONNREFUSED}, {3, 0, ETIMEDOUT}};
    ck_assert_uint_eq(out->len, G_N_ELEMENTS(wanted));
    for (guint i = 0; i < out->len; i++) {
        const ReachAnswer *answer = &g_array_index(out, ReachAnswer, i);
        ck_assert_uint_eq(answer->monitor, wanted[i].monitor);
        ck_assert_int_eq(answer->version, wanted[i].version);
        ck_assert_int_eq(answer->error, wanted[i].error);
        ck_assert_str_eq(answer->host, "127.0.0.1");
        if (answer->version) {
            ck_assert_int_gt(answer->latency_us, 0);
            ck_assert_int_le(answer->latency_us, took_us);
        }
    }
    close(silent);
    monitor_stop(&one);
    monitor_stop(&two);
    monitor_stop(&other);
}
END_TEST

HARNESS_MAIN("driver/backend/ceph/monitor_probe", parses_cephs_addresses,
             a_cluster_whose_monitor_greets_is_reached, a_port_that_is_not_cephs_does_not_count,
             silence_ends_at_the_deadline_and_soon_beside_an_answer,
             an_address_is_told_its_protocol, each_address_tells_what_it_answered_and_how_fast)
