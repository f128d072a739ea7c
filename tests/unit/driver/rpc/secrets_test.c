/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret of a request is nowhere in the server's memory once the call is answered. A child,
 * forked before there is a server, makes up the secret and calls with it; it tells the secret
 * inverted, so that this process holds it only if the server kept it.
 *
 * With lazy binding the dynamic linker saves vector registers on the stack when it binds a
 * function, and in them up to 64 bytes of what was copied last. That is not the server's to
 * prevent, so the test runs itself again with LD_BIND_NOW.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "csi.pb-c.h"
#include "driver/rpc/client.h"
#include "driver/rpc/server.h"
#include "tests/unit/harness.h"

#define SECRET_BYTES 24
#define CREATE "/csi.v1.Controller/CreateVolume"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* freed memory is kept, and shadow memory takes hours to look through */
#else
#define SANITIZED 0
#endif

static __attribute__((constructor)) void bind_now(int argc, char **argv)
{
    (void)argc;
    if (!SANITIZED && !getenv("LD_BIND_NOW")) {
        setenv("LD_BIND_NOW", "1", 1);
        execv("/proc/self/exe", argv);
    }
}

static gboolean create(RpcCall *call, const ProtobufCMessage *message, ProtobufCMessage *answer,
                       void *service, GError **error)
{
    (void)call, (void)answer, (void)service;
    const Csi__V1__CreateVolumeRequest *request = (const Csi__V1__CreateVolumeRequest *)message;
    if (request->n_secrets == 1 && strlen(request->secrets[0]->value) % SECRET_BYTES == 0)
        return TRUE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, "no secret");
    return FALSE;
}

static const RpcMethod methods[] = {{CREATE, &csi__v1__create_volume_request__descriptor,
                                     &csi__v1__create_volume_response__descriptor, create},
                                    {NULL, NULL, NULL, NULL}};

/* The child. `copies` of the secret in a row make the message large. */
static gboolean call_with_secret(const char *path, const char *secret, guint copies)
{
    GString *value = g_string_new(NULL);
    for (guint i = 0; i < copies; i++)
        g_string_append_len(value, secret, SECRET_BYTES);
    Csi__V1__CreateVolumeRequest__SecretsEntry
        entry = CSI__V1__CREATE_VOLUME_REQUEST__SECRETS_ENTRY__INIT,
        *entries[] = {&entry};
    entry.key = (char *)"userKey";
    entry.value = value->str;
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    request.n_secrets = 1;
    request.secrets = entries;
    RpcClient *client = rpc_client_connect(path, NULL);
    return client && rpc_client_call(client, CREATE, &request.base,
                                     &csi__v1__create_volume_response__descriptor, 10000, NULL);
}

static void child(const char *path, int go, int told)
{
    char secret[SECRET_BYTES], byte;
    guint8 inverted[SECRET_BYTES];
    srandom(getpid() ^ g_get_real_time());
    for (int i = 0; i < SECRET_BYTES; i++) {
        secret[i] = 'A' + random() % 26;
        inverted[i] = ~secret[i];
    }
    /* The smaller ones last, so that little of what was freed is used again. */
    gboolean ok = read(go, &byte, 1) == 1 && call_with_secret(path, secret, 20000) &&
                  call_with_secret(path, secret, 4000) && call_with_secret(path, secret, 400) &&
                  call_with_secret(path, secret, 1) &&
                  write(told, inverted, SECRET_BYTES) == SECRET_BYTES;
    _exit(ok ? 0 : 1);
}

static guint count_in(const guint8 *bytes, size_t length, const guint8 *inverted)
{
    guint found = 0;
    for (size_t i = 0; i + SECRET_BYTES <= length; i++) {
        /* Half of it is too much. */
        size_t same = 0;
        while (same < SECRET_BYTES / 2 && (bytes[i + same] ^ inverted[same]) == 0xff)
            same++;
        found += same == SECRET_BYTES / 2;
    }
    return found;
}

static guint count_in_memory(const guint8 *inverted)
{
    g_autofree char *maps = NULL;
    ck_assert(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    static guint8 bytes[1 << 20];
    guint found = 0;
    for (char **line = lines; *line; line++) {
        uintptr_t from, to;
        char mode[5];
        if (sscanf(*line, "%lx-%lx %4s", &from, &to, mode) != 3 || mode[1] != 'w')
            continue;
        for (uintptr_t at = from; at < to; at += sizeof(bytes) - SECRET_BYTES) {
            memset(bytes, 0, sizeof(bytes));
            /* What it reads of this very buffer is what it read before, or zeros. */
            ssize_t n = pread(memory, bytes, MIN(sizeof(bytes), to - at), at);
            if (n > 0)
                found += count_in(bytes, n, inverted);
        }
    }
    close(memory);
    return found;
}

START_TEST(secrets_are_gone_after_the_call)
{
    if (SANITIZED)
        return;
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "csi.sock", NULL);
    int go[2], told[2], status;
    ck_assert_int_eq(pipe(go) | pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0)
        child(path, go[0], told[1]);

    RpcServerConfig config = {.socket_path = path};
    RpcServer *server = rpc_server_new(&config, NULL);
    rpc_server_add(server, methods, NULL);
    ck_assert(rpc_server_start(server, NULL));
    ck_assert_int_eq(write(go[1], "g", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    guint8 inverted[SECRET_BYTES];
    ck_assert_int_eq(read(told[0], inverted, SECRET_BYTES), SECRET_BYTES);

    ck_assert_uint_eq(count_in_memory(inverted), 0);

    /* The search does find what is there. */
    char *planted = g_malloc(SECRET_BYTES);
    for (int i = 0; i < SECRET_BYTES; i++)
        planted[i] = ~inverted[i];
    ck_assert_uint_ge(count_in_memory(inverted), 1);
    g_free(planted);
    ck_assert(rpc_server_stop(server, 1000));
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("driver/rpc/secrets", secrets_are_gone_after_the_call)
