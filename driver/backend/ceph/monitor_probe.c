/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets are non-blocking and polled together, so the time is that of the slowest, not the sum.
 * Names are resolved first and one by one: a cluster is usually given by addresses, for which the
 * resolver sends no request.
 */
#include "driver/backend/ceph/monitor_probe.h"
#include "driver/cluster/config.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_MSGR2 3300
#define PORT_MSGR1 6789
#define GREETING_BYTES 8 /* "ceph v2\n", "ceph v02" */

static void address_clear(void *data)
{
    g_free(((ReachAddress *)data)->host);
}

static void add_address(GArray *out, const char *host, guint16 port, gboolean bare)
{
    ReachAddress address = {.host = g_strdup(host), .port = port, .bare = bare};
    g_array_append_val(out, address);
}

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT", bare V6; "v1:" before and "/NONCE" after are fine. */
static void parse_one(const char *text, GArray *out)
{
    gboolean typed = g_str_has_prefix(text, "v1:") || g_str_has_prefix(text, "v2:");
    if (typed)
        text += 3;
    g_autofree char *whole = g_strndup(text, strcspn(text, "/"));
    char *host = whole, *port_text = NULL, *colon = strrchr(whole, ':');
    if (*whole == '[') {
        char *end = strchr(whole, ']');
        if (!end)
            return;
        if (end[1] == ':')
            port_text = end + 2;
        *end = '\0';
        host = whole + 1;
    } else if (colon && strchr(whole, ':') == colon) {
        *colon = '\0';
        port_text = colon + 1;
    }
    guint64 port = 0;
    if (!*host || (port_text && !g_ascii_string_to_unsigned(port_text, 10, 1, 65535, &port, NULL)))
        return;
    if (port) {
        add_address(out, host, (guint16)port, !typed && port != PORT_MSGR1 && port != PORT_MSGR2);
    } else {
        add_address(out, host, PORT_MSGR2, FALSE);
        add_address(out, host, PORT_MSGR1, FALSE);
    }
}

GArray *reach_parse(const char *monitor)
{
    GArray *out = g_array_new(FALSE, TRUE, sizeof(ReachAddress));
    g_array_set_clear_func(out, address_clear);
    gsize length = strlen(monitor);
    /* A list has brackets around it, and so has an IPv6 address: only a list has a "v1:". */
    gboolean list = g_str_has_prefix(monitor, "[v") && monitor[length - 1] == ']';
    g_autofree char *inner = list ? g_strndup(monitor + 1, length - 2) : g_strdup(monitor);
    g_auto(GStrv) parts = g_strsplit(inner, ",", 16);
    for (char **part = parts; *part; part++)
        parse_one(*part, out);
    return out;
}

/* One connection on its way to a greeting. */
typedef struct Attempt {
    guint group; /* of several addresses of which one must answer */
    gboolean connected;
    int failure; /* an errno */
    gint64 began_us, ended_us;
    gsize length;
    char greeting[GREETING_BYTES];
} Attempt;

/* attempts[i] belongs to polls[i]; answer[group] is 0, '1' or '2'. */
typedef struct Round {
    GArray *polls, *attempts;
    char *answer;
    guint answers;
} Round;

static void begin_attempt(Round *round, const ReachAddress *address, guint group)
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
        Attempt attempt = {.group = group, .began_us = g_get_monotonic_time()};
        if (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
            attempt.failure = errno;
            close(fd);
            fd = -1; /* poll() passes it over */
        }
        struct pollfd poll = {.fd = fd, .events = POLLOUT};
        g_array_append_val(round->polls, poll);
        g_array_append_val(round->attempts, attempt);
    }
    freeaddrinfo(found);
}

/* TRUE when the attempt is over. */
static gboolean advance(Round *round, struct pollfd *p, Attempt *a)
{
    if (!a->connected) {
        int failure = 0;
        socklen_t length = sizeof(failure);
        if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0)
            failure = errno;
        a->failure = failure;
        if (failure != 0)
            return TRUE;
        a->connected = TRUE;
        p->events = POLLIN;
        return FALSE;
    }
    ssize_t n = recv(p->fd, a->greeting + a->length, GREETING_BYTES - a->length, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return FALSE;
    if (n <= 0) {
        a->failure = n < 0 ? errno : ECONNRESET;
        return TRUE;
    }
    a->length += (gsize)n;
    if (a->length < GREETING_BYTES)
        return FALSE;
    a->ended_us = g_get_monotonic_time();
    if (memcmp(a->greeting, "ceph v2\n", GREETING_BYTES) == 0)
        round->answer[a->group] = '2';
    else if (memcmp(a->greeting, "ceph v0", 7) == 0)
        round->answer[a->group] = '1';
    round->answers += round->answer[a->group] != 0;
    return TRUE;
}

static gboolean pending(const Round *round)
{
    for (guint i = 0; i < round->polls->len; i++) {
        if (g_array_index(round->polls, struct pollfd, i).fd >= 0 &&
            !round->answer[g_array_index(round->attempts, Attempt, i).group])
            return TRUE;
    }
    return FALSE;
}

/*
 * Until every group has an answer or none to hope for, or the deadline, which `grace_ms` after the
 * first answer is. Closes all.
 */
static void finish(Round *round, gint64 deadline_us, gint64 grace_ms)
{
    gboolean answered = FALSE;
    while (pending(round)) {
        if (!answered && round->answers > 0) {
            answered = TRUE;
            deadline_us = MIN(deadline_us, g_get_monotonic_time() + grace_ms * 1000);
        }
        gint64 left_ms = (deadline_us - g_get_monotonic_time()) / 1000;
        int n = left_ms > 0 ? poll((struct pollfd *)round->polls->data, round->polls->len,
                                   (int)MIN(left_ms, 60000))
                            : 0;
        if (left_ms <= 0 || (n < 0 && errno != EINTR))
            break;
        for (guint i = 0; n > 0 && i < round->polls->len; i++) {
            struct pollfd *p = &g_array_index(round->polls, struct pollfd, i);
            if (p->fd >= 0 && p->revents &&
                advance(round, p, &g_array_index(round->attempts, Attempt, i))) {
                close(p->fd);
                p->fd = -1; /* poll() passes it over */
            }
        }
    }
    for (guint i = 0; i < round->polls->len; i++) {
        int fd = g_array_index(round->polls, struct pollfd, i).fd;
        if (fd >= 0)
            close(fd);
    }
}

static void round_init(Round *round, guint groups)
{
    round->polls = g_array_new(FALSE, TRUE, sizeof(struct pollfd));
    round->attempts = g_array_new(FALSE, TRUE, sizeof(Attempt));
    round->answer = g_malloc0(groups + 1);
    round->answers = 0;
}

static void round_clear(Round *round)
{
    g_array_unref(round->polls);
    g_array_unref(round->attempts);
    g_free(round->answer);
}

void reach_monitors(const GPtrArray *clusters, gboolean *reached, gint64 deadline_us)
{
    Round round;
    round_init(&round, clusters->len);
    for (guint i = 0; i < clusters->len; i++) {
        const ClusterConfig *cluster = clusters->pdata[i];
        for (char **monitor = cluster->monitors; *monitor; monitor++) {
            g_autoptr(GArray) addresses = reach_parse(*monitor);
            for (guint j = 0; j < addresses->len; j++)
                begin_attempt(&round, &g_array_index(addresses, ReachAddress, j), i);
        }
    }
    finish(&round, deadline_us, REACH_GRACE_MS);
    for (guint i = 0; i < clusters->len; i++)
        reached[i] = round.answer[i] != 0;
    round_clear(&round);
}

char **reach_explicit(char *const *monitors, gint64 deadline_us)
{
    guint n = g_strv_length((char **)monitors);
    Round round;
    round_init(&round, n);
    for (guint i = 0; i < n; i++) {
        g_autoptr(GArray) addresses = reach_parse(monitors[i]);
        if (addresses->len == 1 && g_array_index(addresses, ReachAddress, 0).bare)
            begin_attempt(&round, &g_array_index(addresses, ReachAddress, 0), i);
    }
    finish(&round, deadline_us, G_MAXINT32);
    char **out = g_new0(char *, n + 1);
    for (guint i = 0; i < n; i++)
        out[i] = round.answer[i] ? g_strdup_printf("v%c:%s", round.answer[i], monitors[i])
                                 : g_strdup(monitors[i]);
    round_clear(&round);
    return out;
}

static void answer_clear(void *data)
{
    g_free(((ReachAnswer *)data)->host);
}

/* Of the IP addresses of a name, the fastest answer counts, or else the first failure. */
static void pick_answer(const Round *round, guint group, ReachAnswer *answer)
{
    answer->error = EHOSTUNREACH; /* the name has no address */
    for (guint i = 0, seen = 0; i < round->attempts->len; i++) {
        const Attempt *a = &g_array_index(round->attempts, Attempt, i);
        if (a->group != group)
            continue;
        const gint64 took_us = a->ended_us - a->began_us;
        const gboolean whole = a->ended_us != 0;
        if (whole && round->answer[group] && (!answer->version || took_us < answer->latency_us)) {
            answer->version = round->answer[group];
            answer->latency_us = took_us;
        }
        if (seen++ == 0 && !whole)
            answer->error = a->failure ? a->failure : ETIMEDOUT;
        else if (seen == 1)
            answer->error = 0;
    }
    if (answer->version)
        answer->error = 0;
}

GArray *reach_each(char *const *monitors, gint64 deadline_us)
{
    GArray *out = g_array_new(FALSE, TRUE, sizeof(ReachAnswer));
    g_array_set_clear_func(out, answer_clear);
    g_autoptr(GPtrArray) parsed = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (guint i = 0; monitors[i]; i++) {
        GArray *addresses = reach_parse(monitors[i]);
        g_ptr_array_add(parsed, addresses);
        for (guint j = 0; j < addresses->len; j++) {
            const ReachAddress *address = &g_array_index(addresses, ReachAddress, j);
            const ReachAnswer answer = {
                .monitor = i, .host = g_strdup(address->host), .port = address->port};
            g_array_append_val(out, answer);
        }
    }
    Round round;
    round_init(&round, out->len);
    for (guint i = 0, group = 0; i < parsed->len; i++) {
        const GArray *addresses = parsed->pdata[i];
        for (guint j = 0; j < addresses->len; j++)
            begin_attempt(&round, &g_array_index(addresses, ReachAddress, j), group++);
    }
    finish(&round, deadline_us, G_MAXINT32);
    for (guint i = 0; i < out->len; i++)
        pick_answer(&round, i, &g_array_index(out, ReachAnswer, i));
    round_clear(&round);
    return out;
}
