/* SPDX-License-Identifier: Apache-2.0 */
/* What large calls hold of the process's memory: while their handlers hang, and when they ended. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "csi.pb-c.h"
#include "driver/rpc/client.h"
#include "driver/rpc/server.h"
#include "tests/unit/harness.h"

#define STAGE "/csi.v1.Node/NodeStageVolume"
#define CALLS 60
#define ENTRIES 1000
#define VALUE_BYTES 1000
#define MIB (1024.0 * 1024)
/* Of 60 workers their stacks, and what malloc keeps of pieces that are small. */
#define KEPT_MIB 8
/* A call that hangs has its request once, as it was decoded, and a quarter more. */
#define HELD_MIB (CALLS * 1.25)

static double rss_mib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%ld %ld", &pages, &resident), 2);
    fclose(f);
    return (double)(resident * sysconf(_SC_PAGESIZE)) / MIB;
}

/* ---- a handler that hangs until it is told to go on ---- */

typedef struct Gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean open;
    guint inside, left;
} Gate;

static gboolean stage(RpcCall *call, const ProtobufCMessage *message, ProtobufCMessage *response,
                      void *service, GError **error)
{
    const Csi__V1__NodeStageVolumeRequest *request =
        (const Csi__V1__NodeStageVolumeRequest *)message;
    Gate *gate = service;
    (void)call, (void)response, (void)error;
    pthread_mutex_lock(&gate->lock);
    gate->inside++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    /* It is whole to the end, whoever waits for the answer. */
    ck_assert_uint_eq(request->n_volume_context, ENTRIES);
    for (size_t i = 0; i < request->n_volume_context; i++)
        ck_assert_uint_eq(strlen(request->volume_context[i]->value), VALUE_BYTES);
    gate->inside--;
    gate->left++;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    return TRUE;
}

static const RpcMethod methods[] = {{STAGE, &csi__v1__node_stage_volume_request__descriptor,
                                     &csi__v1__node_stage_volume_response__descriptor, stage},
                                    {NULL, NULL, NULL, NULL}};

static void gate_set(Gate *gate, gboolean open)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = open;
    gate->left = open ? gate->left : 0;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_wait(Gate *gate, const guint *counter)
{
    pthread_mutex_lock(&gate->lock);
    while (*counter < CALLS)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

/* ---- clients, in a process of their own, whose memory does not count ---- */

static const char *socket_path;

static void *call(void *data)
{
    Csi__V1__NodeStageVolumeRequest request = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    Csi__V1__NodeStageVolumeRequest__VolumeContextEntry entries[ENTRIES], *list[ENTRIES];
    g_autofree char *value = g_strnfill(VALUE_BYTES, 'x');
    g_autoptr(RpcClient) client = rpc_client_connect(socket_path, NULL);
    (void)data;
    for (int i = 0; i < ENTRIES; i++) {
        csi__v1__node_stage_volume_request__volume_context_entry__init(&entries[i]);
        entries[i].key = g_strdup_printf("key-%d", i);
        entries[i].value = value;
        list[i] = &entries[i];
    }
    request.volume_id = (char *)"volume";
    request.n_volume_context = ENTRIES;
    request.volume_context = list;
    /* So many at the same instant are more than is received at once. */
    for (GError *error = NULL; client; g_clear_error(&error)) {
        rpc_client_call(client, STAGE, &request.base,
                        &csi__v1__node_stage_volume_response__descriptor, 0, &error);
        if (!g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_RESOURCE_EXHAUSTED))
            break;
        g_usleep(20000);
    }
    return NULL;
}

/* Forked while there are no threads; they begin when `go` is written to. */
static pid_t clients_new(const char *path, int *go)
{
    int ends[2];
    char byte;
    pthread_t threads[CALLS];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    close(ends[pid > 0 ? 0 : 1]);
    *go = ends[1];
    if (pid > 0)
        return pid;
    if (read(ends[0], &byte, 1) != 1)
        _exit(1);
    socket_path = path;
    for (int i = 0; i < CALLS; i++) {
        if (pthread_create(&threads[i], NULL, call, NULL) != 0)
            _exit(1);
    }
    for (int i = 0; i < CALLS; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

/* What came of waiting for it, 10 s at most. */
static double rss_below(double mib)
{
    for (int i = 0; i < 200 && rss_mib() >= mib; i++)
        g_usleep(50000);
    return rss_mib();
}

START_TEST(memory_of_large_calls_that_hang_is_given_back)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* which keep what is freed */
#endif
    Gate gate = {.open = FALSE};
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "csi.sock", NULL);
    const RpcServerConfig config = {.socket_path = path, .workers = CALLS};
    g_autoptr(GError) error = NULL;
    int go[2];
    const pid_t pids[] = {clients_new(path, &go[0]), clients_new(path, &go[1])};
    /* As cmd/hearth-csi/main.c has it. */
    mallopt(M_ARENA_MAX, 2);
    pthread_mutex_init(&gate.lock, NULL);
    pthread_cond_init(&gate.changed, NULL);
    RpcServer *server = rpc_server_new(&config, &error);
    rpc_server_add(server, methods, &gate);
    ck_assert_msg(rpc_server_start(server, &error), "%s", error ? error->message : "");
    double before = rss_mib();
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        int status;
        gate_set(&gate, FALSE);
        ck_assert_int_eq(write(go[cancelled], "", 1), 1);
        gate_wait(&gate, &gate.inside);
        const double held = rss_mib() - before;
        if (cancelled) {
            kill(pids[cancelled], SIGKILL);
            ck_assert_int_eq(waitpid(pids[cancelled], &status, 0), pids[cancelled]);
        }
        gate_set(&gate, TRUE);
        gate_wait(&gate, &gate.left);
        const double kept = rss_below(before + KEPT_MIB) - before;
        if (!cancelled)
            ck_assert_int_eq(waitpid(pids[cancelled], &status, 0), pids[cancelled]);
        printf("%s: %.1f MiB before, %.1f more while they hang, %.1f afterwards\n",
               cancelled ? "cancelled" : "answered", before, held, kept);
        ck_assert_msg(held < HELD_MIB, "%.1f MiB", held);
        ck_assert_msg(kept < KEPT_MIB, "%.1f MiB", kept);
    }
    ck_assert(rpc_server_stop(server, 5000));
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("driver/rpc/memory", memory_of_large_calls_that_hang_is_given_back)
