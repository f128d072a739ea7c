/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods, workers, and the way between them and the I/O thread. A call that becomes gone while it
 * queues is freed at once; while it runs it is only marked, and freed when its worker hands it
 * back.
 *
 * Locks: done_lock, and those inside the pools; none is held while another is taken.
 */
#include "driver/rpc/server.h"

#include <gio/gio.h>
#include <pthread.h>

#include "driver/rpc/call.h"
#include "driver/rpc/listen.h"
#include "driver/rpc/loop.h"
#include "driver/rpc/pool.h"

#define RESERVED_WORKERS 2
#define LEFTOVER_MS 1000 /* for handlers to notice that no caller waits */

typedef struct Method {
    const RpcMethod *row;
    void *service;
    RpcPool *pool;
} Method;

struct RpcServer {
    char *socket_path;
    char *reserved_prefix;
    GHashTable *methods; /* path -> Method; unchanging once started */
    RpcPool *pool, *reserved_pool;
    RpcLoop *loop;
    RpcListener listener;
    pthread_t io_thread;
    gboolean started;
    pthread_mutex_t done_lock;
    RpcCall *done, **done_tail; /* under done_lock */
};

/* ---- On a worker */

static void run_job(RpcJob *job)
{
    RpcCall *call = (RpcCall *)job;
    RpcServer *server = call->server;
    rpc_call_run(call);
    pthread_mutex_lock(&server->done_lock);
    gboolean first = server->done == NULL;
    *server->done_tail = call;
    server->done_tail = &call->next;
    pthread_mutex_unlock(&server->done_lock);
    if (first)
        rpc_loop_wake(server->loop);
}

/* ---- On the I/O thread */

static gconstpointer find_method(void *data, const char *path)
{
    RpcServer *server = data;
    return g_hash_table_lookup(server->methods, path);
}

static void *take_request(void *data, RpcStream *stream, RpcRequest *request)
{
    const Method *method = request->method;
    RpcReply refusal = {0};
    if (!method->row->handler) {
        rpc_buffer_clear(&request->message);
        refusal =
            (RpcReply){.code = HEARTH_ERROR_UNIMPLEMENTED,
                       .message = g_strdup_printf("%s is not implemented", method->row->path)};
        rpc_stream_answer(stream, &refusal);
        return NULL;
    }
    RpcCall *call = rpc_call_new(request);
    call->server = data;
    call->pool = method->pool;
    call->method = method->row;
    call->service = method->service;
    call->stream = stream;
    if (!rpc_pool_submit(call->pool, &call->job)) {
        rpc_call_free(call);
        refusal = (RpcReply){.code = HEARTH_ERROR_RESOURCE_EXHAUSTED,
                             .message = g_strdup("every worker is busy and the queue is full; "
                                                 "try again")};
        rpc_stream_answer(stream, &refusal);
        return NULL;
    }
    return call;
}

static void call_gone(void *data, void *gone)
{
    (void)data;
    RpcCall *call = gone;
    call->stream = NULL;
    atomic_store(&call->abandoned, TRUE);
    if (rpc_pool_withdraw(call->pool, &call->job))
        rpc_call_free(call);
}

static void take_done(void *data)
{
    RpcServer *server = data;
    pthread_mutex_lock(&server->done_lock);
    RpcCall *call = g_steal_pointer(&server->done);
    server->done_tail = &server->done;
    pthread_mutex_unlock(&server->done_lock);
    for (RpcCall *next; call; call = next) {
        next = call->next;
        if (call->stream)
            rpc_stream_answer(call->stream, &call->reply);
        rpc_call_free(call);
    }
}

static const RpcLoopOps loop_ops = {
    .find = find_method, .request = take_request, .gone = call_gone, .woken = take_done};

static void *io_thread(void *data)
{
    RpcServer *server = data;
    pthread_setname_np(pthread_self(), "rpc-io");
    rpc_loop_run(server->loop, &server->listener);
    return NULL;
}

/* ---- Public */

RpcServer *rpc_server_new(const RpcServerConfig *config, GError **error)
{
    struct sockaddr_un address;
    if (!rpc_socket_address(&address, config->socket_path, error))
        return NULL;
    RpcServer *server = g_new0(RpcServer, 1);
    server->loop = rpc_loop_new(&loop_ops, server, error);
    if (!server->loop) {
        g_free(server);
        return NULL;
    }
    unsigned max_queued = config->max_queued ? config->max_queued : 1024;
    server->pool =
        rpc_pool_new(&(RpcPoolConfig){.max_threads = config->workers ? config->workers : 16,
                                      .max_queued = max_queued,
                                      .run = run_job});
    server->reserved_pool = rpc_pool_new(&(RpcPoolConfig){
        .max_threads = RESERVED_WORKERS, .max_queued = max_queued, .run = run_job});
    server->socket_path = g_strdup(config->socket_path);
    server->reserved_prefix = g_strdup(config->reserved ? config->reserved : "/csi.v1.Identity/");
    server->methods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    server->listener.fd = -1;
    pthread_mutex_init(&server->done_lock, NULL);
    server->done_tail = &server->done;
    return server;
}

void rpc_server_add(RpcServer *server, const RpcMethod *methods, void *service)
{
    g_assert(!server->started);
    for (const RpcMethod *row = methods; row->path; row++) {
        Method *method = g_new(Method, 1);
        gboolean reserved = g_str_has_prefix(row->path, server->reserved_prefix);
        *method = (Method){.row = row,
                           .service = service,
                           .pool = reserved ? server->reserved_pool : server->pool};
        g_hash_table_insert(server->methods, (gpointer)row->path, method);
    }
}

gboolean rpc_server_start(RpcServer *server, GError **error)
{
    g_assert(!server->started);
    if (!rpc_listen(&server->listener, server->socket_path, error))
        return FALSE;
    int result = pthread_create(&server->io_thread, NULL, io_thread, server);
    if (result != 0) {
        rpc_listener_close(&server->listener);
        return rpc_set_errno(error, result, "start the I/O thread for", server->socket_path);
    }
    server->started = TRUE;
    return TRUE;
}

gboolean rpc_server_stop(RpcServer *server, unsigned grace_ms)
{
    if (!server)
        return TRUE;
    if (server->started) {
        rpc_loop_stop(server->loop, grace_ms);
        pthread_join(server->io_thread, NULL);
    }
    /* Every call is gone now: none queues, and those that run are marked. */
    gboolean idle = rpc_pool_stop(server->reserved_pool, LEFTOVER_MS);
    if (idle)
        server->reserved_pool = NULL;
    if (!rpc_pool_stop(server->pool, LEFTOVER_MS) || !idle)
        return FALSE;
    take_done(server);
    rpc_loop_free(server->loop);
    g_hash_table_unref(server->methods);
    pthread_mutex_destroy(&server->done_lock);
    g_free(server->socket_path);
    g_free(server->reserved_prefix);
    g_free(server);
    return TRUE;
}
