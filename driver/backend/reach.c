/*
 * Sockets are non-blocking and polled together, so the time is that of the slowest, not the sum.
 * Names are resolved first and one by one: a cluster is usually given by addresses, for which the
 * resolver asks nobody.
 */
#include "driver/backend/reach.h"
#include "driver/volume/config.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void address_clear(void *data)
{
    g_free(((ReachAddress *)data)->host);
}

static void add(GArray *out, const char *host, guint16 port)
{
    ReachAddress address = {.host = g_strdup(host), .port = port};
    g_array_append_val(out, address);
}

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT", bare V6; "/NONCE" may follow. */
static void parse_one(const char *text, GArray *out)
{
    if (g_str_has_prefix(text, "v1:") || g_str_has_prefix(text, "v2:"))
        text += 3;
    g_autofree char *host = g_strndup(text, strcspn(text, "/"));
    char *port_text = NULL;
    char *colon = strrchr(host, ':');
    if (*host == '[') {
        char *end = strchr(host, ']');
        if (!end)
            return;
        if (end[1] == ':')
            port_text = end + 2;
        *end = '\0';
        memmove(host, host + 1, strlen(host));
    } else if (colon && strchr(host, ':') == colon) {
        *colon = '\0';
        port_text = colon + 1;
    }
    if (!*host)
        return;
    guint64 port = 0;
    if (port_text && !g_ascii_string_to_unsigned(port_text, 10, 1, 65535, &port, NULL))
        return;
    if (port) {
        add(out, host, (guint16)port);
    } else {
        add(out, host, 3300);
        add(out, host, 6789);
    }
}

GArray *reach_parse(const char *monitor)
{
    GArray *out = g_array_new(FALSE, TRUE, sizeof(ReachAddress));
    g_array_set_clear_func(out, address_clear);
    gsize length = strlen(monitor);
    /* A list has brackets around it, and so may a bare IPv6 address: only a list has a "v1:". */
    gboolean list = g_str_has_prefix(monitor, "[v") && monitor[length - 1] == ']';
    g_autofree char *inner = list ? g_strndup(monitor + 1, length - 2) : g_strdup(monitor);
    g_auto(GStrv) parts = g_strsplit(inner, ",", 16);
    for (char **part = parts; *part; part++)
        parse_one(*part, out);
    return out;
}

static void start(const ReachAddress *address, guint cluster, GArray *polls, GArray *attempts,
                  gboolean *reached)
{
    g_autofree char *port = g_strdup_printf("%u", address->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(address->host, port, &hints, &found) != 0)
        return;
    for (struct addrinfo *a = found; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            reached[cluster] = TRUE;
            close(fd);
        } else if (errno == EINPROGRESS) {
            struct pollfd poll = {.fd = fd, .events = POLLOUT};
            g_array_append_val(polls, poll);
            g_array_append_val(attempts, cluster);
        } else {
            close(fd);
        }
    }
    freeaddrinfo(found);
}

/* Takes what connected or failed; its entry is then ignored by poll(). */
static void settle(GArray *polls, const GArray *attempts, gboolean *reached)
{
    for (guint i = 0; i < polls->len; i++) {
        struct pollfd *p = &g_array_index(polls, struct pollfd, i);
        if (p->fd < 0 || !p->revents)
            continue;
        int failure = 0;
        socklen_t length = sizeof(failure);
        if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &failure, &length) == 0 && failure == 0)
            reached[g_array_index(attempts, guint, i)] = TRUE;
        close(p->fd);
        p->fd = -1;
    }
}

static gboolean pending(const GArray *polls, const GArray *attempts, const gboolean *reached)
{
    for (guint i = 0; i < polls->len; i++) {
        if (g_array_index(polls, struct pollfd, i).fd >= 0 &&
            !reached[g_array_index(attempts, guint, i)])
            return TRUE;
    }
    return FALSE;
}

gboolean reach_monitors(const GPtrArray *clusters, gint64 deadline_us, GError **error)
{
    g_autofree gboolean *reached = g_new0(gboolean, clusters->len + 1);
    g_autoptr(GArray) polls = g_array_new(FALSE, TRUE, sizeof(struct pollfd));
    g_autoptr(GArray) attempts = g_array_new(FALSE, TRUE, sizeof(guint));
    for (guint i = 0; i < clusters->len; i++) {
        const ClusterConfig *cluster = clusters->pdata[i];
        for (char **monitor = cluster->monitors; *monitor; monitor++) {
            g_autoptr(GArray) addresses = reach_parse(*monitor);
            for (guint j = 0; j < addresses->len; j++)
                start(&g_array_index(addresses, ReachAddress, j), i, polls, attempts, reached);
        }
    }
    while (pending(polls, attempts, reached)) {
        gint64 left_ms = (deadline_us - g_get_monotonic_time()) / 1000;
        if (left_ms <= 0)
            break;
        int n = poll((struct pollfd *)polls->data, polls->len, (int)MIN(left_ms, 60000));
        if (n > 0)
            settle(polls, attempts, reached);
        else if (n < 0 && errno != EINTR)
            break;
    }
    for (guint i = 0; i < polls->len; i++) {
        int fd = g_array_index(polls, struct pollfd, i).fd;
        if (fd >= 0)
            close(fd);
    }
    g_autoptr(GString) lost = g_string_new(NULL);
    for (guint i = 0; i < clusters->len; i++) {
        const ClusterConfig *cluster = clusters->pdata[i];
        g_autofree char *monitors = g_strjoinv(",", cluster->monitors);
        if (!reached[i])
            g_string_append_printf(lost, "%s%s (%s)", lost->len ? ", " : "", cluster->cluster_id,
                                   monitors);
    }
    if (lost->len)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE,
                    "no monitor can be reached of cluster %s; check the addresses in config.json "
                    "and the network",
                    lost->str);
    return lost->len == 0;
}
