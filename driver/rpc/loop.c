/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers are written to, and freed, only at the end of a turn of the loop: callbacks just mark them,
 * so nothing that a turn still has in hand disappears, and what a turn produces for a peer leaves
 * in one write. A peer that does not take its output is not read from.
 *
 * At the limit of connections new ones wait in the backlog of the socket instead of being cut off:
 * kubelet opens one for every operation, and sidecars exit when theirs drops. Only when a client
 * waits do connections give way: those that never made a call, then those that have had none for
 * IDLE_GRACE_US; a header block that is not complete is no call. Whoever has sent something that
 * was not read yet is passed over, for it may be a call. So idle ones cannot keep everyone out.
 */
#include "driver/rpc/loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/error.h"

#define IN_BYTES (16 * 1024) /* fewer pings than nghttp2 takes for a flood between two flushes */
#define OUT_BYTES (64 * 1024)
#define UNUSED_GRACE_US G_USEC_PER_SEC     /* before a connection without calls may be dropped */
#define IDLE_GRACE_US (5 * G_USEC_PER_SEC) /* since the last call, if it made any */
#define ACCEPT_RETRY_US G_USEC_PER_SEC
#define FLUSH_US G_USEC_PER_SEC /* for last answers when stopping */

typedef struct Peer {
    RpcLoop *loop;
    struct Peer *previous, *next;
    struct Peer *next_marked;
    gboolean marked; /* to be flushed at the end of the turn */
    int fd;
    guint32 events; /* as epoll knows them */
    RpcConnection *connection;
    gint64 active_us; /* when it was accepted, or last had a call */
    gboolean used;    /* made a call */
    gboolean hung_up;
    guint8 *pending; /* output the socket did not take */
    size_t pending_length, pending_sent;
} Peer;

struct RpcLoop {
    const RpcLoopOps *ops;
    void *server;
    int epoll_fd, event_fd;
    RpcListener listener;
    gboolean accepting;
    RpcTimers timers;
    RpcBudget budget;
    Peer *peers;
    guint peer_count;
    Peer *marked;
    RpcTimer accept_timer, stop_timer;
    gboolean stopping, answered_all, ended;
    atomic_bool stop_asked;
    atomic_uint grace_ms;
    guint8 in[IN_BYTES], out[OUT_BYTES];
};

/* ---- Peers */

static void mark(void *owner)
{
    Peer *peer = owner;
    if (peer->marked)
        return;
    peer->marked = TRUE;
    peer->next_marked = peer->loop->marked;
    peer->loop->marked = peer;
}

static gconstpointer peer_find(void *owner, const char *path)
{
    Peer *peer = owner;
    return peer->loop->ops->find(peer->loop->server, path);
}

static void *peer_request(void *owner, RpcStream *stream, RpcRequest *request)
{
    Peer *peer = owner;
    peer->used = TRUE;
    return peer->loop->ops->request(peer->loop->server, stream, request);
}

static void peer_gone(void *owner, void *call)
{
    Peer *peer = owner;
    peer->loop->ops->gone(peer->loop->server, call);
}

static const RpcConnectionOps connection_ops = {
    .find = peer_find, .request = peer_request, .gone = peer_gone, .ready = mark};

static void watch(RpcLoop *loop, int fd, guint32 events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void peer_new(RpcLoop *loop, int fd)
{
    Peer *peer = g_new0(Peer, 1);
    peer->loop = loop;
    peer->fd = fd;
    peer->active_us = g_get_monotonic_time();
    peer->events = EPOLLIN;
    peer->next = loop->peers;
    if (peer->next)
        peer->next->previous = peer;
    loop->peers = peer;
    loop->peer_count++;
    watch(loop, fd, peer->events, peer);
    peer->connection = rpc_connection_new(&connection_ops, peer, &loop->timers, &loop->budget);
    mark(peer);
}

static void accept_peers(RpcLoop *loop);

static void peer_free(Peer *peer)
{
    RpcLoop *loop = peer->loop;
    *(peer->previous ? &peer->previous->next : &loop->peers) = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    loop->peer_count--;
    rpc_connection_free(peer->connection);
    close(peer->fd);
    g_free(peer->pending);
    g_free(peer);
}

static void peer_read(Peer *peer)
{
    RpcLoop *loop = peer->loop;
    ssize_t n = recv(peer->fd, loop->in, sizeof(loop->in), 0);
    if (n > 0) {
        rpc_connection_receive(peer->connection, loop->in, n);
        explicit_bzero(loop->in, n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        peer->hung_up = TRUE;
    }
    mark(peer);
}

/* FALSE: the socket takes no more now. */
static gboolean peer_write(Peer *peer, const guint8 *bytes, size_t length, size_t *sent)
{
    *sent = 0;
    while (*sent < length) {
        ssize_t n = send(peer->fd, bytes + *sent, length - *sent, MSG_NOSIGNAL);
        if (n >= 0) {
            *sent += n;
        } else if (errno != EINTR) {
            peer->hung_up |= errno != EAGAIN;
            return FALSE;
        }
    }
    return TRUE;
}

/* Fills `loop->out` with bytes that the connection must send. */
static size_t gather(Peer *peer)
{
    RpcLoop *loop = peer->loop;
    size_t length = 0;
    /* A frame that nghttp2 gives is at most 16 KiB of payload and a header of 9. */
    while (sizeof(loop->out) - length >= 16384 + 9) {
        const guint8 *bytes;
        size_t n = rpc_connection_send(peer->connection, &bytes);
        if (n == 0)
            break;
        g_assert(n <= sizeof(loop->out) - length);
        memcpy(loop->out + length, bytes, n);
        length += n;
    }
    return length;
}

/* Writes as much as the socket takes. FALSE: the peer must be freed. */
static gboolean peer_flush(Peer *peer)
{
    size_t sent;
    if (peer->hung_up)
        return FALSE;
    if (peer->pending) {
        gboolean all = peer_write(peer, peer->pending + peer->pending_sent,
                                  peer->pending_length - peer->pending_sent, &sent);
        peer->pending_sent += sent;
        if (all)
            g_clear_pointer(&peer->pending, g_free);
    }
    if (rpc_connection_calls(peer->connection) > 0)
        peer->active_us = g_get_monotonic_time();
    while (!peer->pending && !peer->hung_up) {
        size_t length = gather(peer);
        if (length == 0)
            break;
        if (!peer_write(peer, peer->loop->out, length, &sent)) {
            peer->pending_length = length - sent;
            peer->pending_sent = 0;
            peer->pending = g_memdup2(peer->loop->out + sent, peer->pending_length);
        }
    }
    if (peer->hung_up || rpc_connection_failed(peer->connection) ||
        (!peer->pending && rpc_connection_finished(peer->connection)))
        return FALSE;
    guint32 events = peer->pending ? EPOLLOUT : EPOLLIN;
    if (events != peer->events) {
        struct epoll_event event = {.events = events, .data.ptr = peer};
        epoll_ctl(peer->loop->epoll_fd, EPOLL_CTL_MOD, peer->fd, &event);
        peer->events = events;
    }
    return TRUE;
}

static void flush_marked(RpcLoop *loop)
{
    /* Freeing a peer can mark none but itself; flushing can mark any. */
    while (loop->marked) {
        Peer *peer = loop->marked;
        loop->marked = peer->next_marked;
        if (peer_flush(peer)) {
            peer->marked = FALSE;
        } else {
            peer_free(peer);
            if (!loop->accepting)
                accept_peers(loop);
        }
    }
}

/* ---- Accepting */

static void set_accepting(RpcLoop *loop, gboolean accepting)
{
    if (accepting == loop->accepting || loop->listener.fd < 0)
        return;
    loop->accepting = accepting;
    struct epoll_event event = {.events = accepting ? EPOLLIN : 0, .data.ptr = &loop->listener};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, loop->listener.fd, &event);
}

static gboolean has_input(const Peer *peer)
{
    int bytes = 0;
    return ioctl(peer->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

static gboolean may_go(const Peer *peer, gint64 now_us)
{
    return rpc_connection_calls(peer->connection) == 0 && !has_input(peer) &&
           now_us - peer->active_us >= (peer->used ? IDLE_GRACE_US : UNUSED_GRACE_US);
}

static gboolean goes_before(const Peer *peer, const Peer *other)
{
    if (!other || peer->used != other->used)
        return !other || !peer->used;
    return peer->active_us <= other->active_us; /* the list is newest first */
}

/* At the limit: an idle connection is closed, if there is one. */
static void make_room(RpcLoop *loop)
{
    const gint64 now_us = g_get_monotonic_time();
    Peer *least = NULL;
    for (Peer *peer = loop->peers; peer; peer = peer->next) {
        if (may_go(peer, now_us) && goes_before(peer, least))
            least = peer;
    }
    if (!least)
        return;
    rpc_connection_shut_down(least->connection);
    /* What is not complete now will not be. */
    if (rpc_connection_streams(least->connection) > 0) {
        least->hung_up = TRUE;
        mark(least);
    }
}

static void accept_peers(RpcLoop *loop)
{
    if (loop->stopping)
        return;
    rpc_timer_clear(&loop->timers, &loop->accept_timer);
    while (loop->peer_count < RPC_CONNECTIONS_MAX) {
        int fd = accept4(loop->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            peer_new(loop, fd);
        } else if (errno == EAGAIN) {
            set_accepting(loop, TRUE);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            break; /* out of descriptors or memory: later */
        }
    }
    set_accepting(loop, FALSE);
    if (loop->peer_count == RPC_CONNECTIONS_MAX)
        make_room(loop);
    rpc_timer_set(&loop->timers, &loop->accept_timer, g_get_monotonic_time() + ACCEPT_RETRY_US);
}

static void accept_again(RpcTimer *timer)
{
    accept_peers((RpcLoop *)((char *)timer - offsetof(RpcLoop, accept_timer)));
}

/* ---- Stopping */

static void stop_timed_out(RpcTimer *timer)
{
    RpcLoop *loop = (RpcLoop *)((char *)timer - offsetof(RpcLoop, stop_timer));
    if (loop->answered_all) {
        loop->ended = TRUE;
        return;
    }
    loop->answered_all = TRUE;
    for (Peer *peer = loop->peers; peer; peer = peer->next)
        rpc_connection_answer_all(peer->connection, HEARTH_ERROR_UNAVAILABLE,
                                  "the server is stopping; try again");
    rpc_timer_set(&loop->timers, timer, g_get_monotonic_time() + FLUSH_US);
}

static void begin_stop(RpcLoop *loop)
{
    if (loop->stopping)
        return;
    loop->stopping = TRUE;
    rpc_timer_clear(&loop->timers, &loop->accept_timer);
    rpc_listener_close(&loop->listener);
    for (Peer *peer = loop->peers; peer; peer = peer->next)
        rpc_connection_shut_down(peer->connection);
    rpc_timer_set(&loop->timers, &loop->stop_timer,
                  g_get_monotonic_time() + (gint64)atomic_load(&loop->grace_ms) * 1000);
}

/* ---- The loop */

RpcLoop *rpc_loop_new(const RpcLoopOps *ops, void *server, GError **error)
{
    RpcLoop *loop = g_new0(RpcLoop, 1);
    loop->ops = ops;
    loop->server = server;
    loop->listener.fd = -1;
    loop->accept_timer.fire = accept_again;
    loop->stop_timer.fire = stop_timed_out;
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->event_fd < 0 || loop->epoll_fd < 0) {
        rpc_set_errno(error, errno, "create", "epoll and eventfd");
        rpc_loop_free(loop);
        return NULL;
    }
    watch(loop, loop->event_fd, EPOLLIN, loop);
    return loop;
}

void rpc_loop_free(RpcLoop *loop)
{
    if (!loop)
        return;
    while (loop->peers)
        peer_free(loop->peers);
    rpc_timers_free(&loop->timers);
    if (loop->event_fd >= 0)
        close(loop->event_fd);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    g_free(loop);
}

/* Rounded up, so that the loop does not spin through the last millisecond. */
static int wait_ms(const RpcLoop *loop)
{
    gint64 next = rpc_timers_next(&loop->timers);
    if (next == G_MAXINT64)
        return -1;
    return CLAMP((next - g_get_monotonic_time() + 999) / 1000, 0, G_MAXINT);
}

void rpc_loop_run(RpcLoop *loop, RpcListener *listener)
{
    loop->listener = *listener;
    *listener = (RpcListener){.fd = -1};
    loop->accepting = TRUE;
    watch(loop, loop->listener.fd, EPOLLIN, &loop->listener);
    while (!loop->ended && !(loop->stopping && loop->peer_count == 0)) {
        struct epoll_event events[64];
        int n = epoll_wait(loop->epoll_fd, events, G_N_ELEMENTS(events), wait_ms(loop));
        for (int i = 0; i < n; i++) {
            void *source = events[i].data.ptr;
            if (source == loop) {
                guint64 count;
                if (read(loop->event_fd, &count, sizeof(count)) == sizeof(count))
                    loop->ops->woken(loop->server);
            } else if (source == &loop->listener) {
                accept_peers(loop);
            } else if (events[i].events & EPOLLOUT) {
                mark(source);
            } else {
                peer_read(source);
            }
        }
        if (atomic_load(&loop->stop_asked))
            begin_stop(loop);
        rpc_timers_run(&loop->timers, g_get_monotonic_time());
        flush_marked(loop);
    }
    while (loop->peers)
        peer_free(loop->peers);
}

void rpc_loop_wake(RpcLoop *loop)
{
    const guint64 one = 1;
    /* It fails only when the count is full, and then the loop is awake. */
    if (write(loop->event_fd, &one, sizeof(one)) < 0)
        g_assert(errno == EAGAIN);
}

void rpc_loop_stop(RpcLoop *loop, unsigned grace_ms)
{
    atomic_store(&loop->grace_ms, grace_ms);
    atomic_store(&loop->stop_asked, TRUE);
    rpc_loop_wake(loop);
}
