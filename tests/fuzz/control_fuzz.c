/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of the control protocol: each line of the input is one packet as a client may send
 * it, received, dispatched and answered, against a store and sessions that are fakes. rootPath is
 * replaced by a small directory, so that no request walks this machine.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/harness.h"
#include "tests/unit/cache/control/fakes.h"
#include "cache/control/ops.h"
#include "proto/wire.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define MAX_PACKETS 64

static char *make_root(void)
{
    char *root = g_dir_make_tmp("hearth-fuzz-XXXXXX", NULL);
    if (!root)
        abort();
    g_autofree char *sub = g_build_filename(root, "a", NULL);
    g_autofree char *file = g_build_filename(root, "a", "file", NULL);
    if (g_mkdir(sub, 0755) < 0 || !g_file_set_contents(file, "hello", -1, NULL))
        abort();
    return root;
}

/* The packet's words, one a line. */
static int make_list(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_memdup2(data, size);
    int fd = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    for (size_t i = 0; i < size; i++)
        if (strchr("\",:", text[i]))
            text[i] = '\n';
    if (fd < 0 || write(fd, text, size) != (ssize_t)size ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) < 0)
        abort();
    return fd;
}

static void serve_packet(Control *control, const int *pair, const uint8_t *data, size_t size,
                         const char *root)
{
    /* Every second packet comes with a descriptor, every fourth with a list of files. */
    static unsigned packets;
    int reply_fd = -1;
    if (size == 0 || send(pair[0], data, size, MSG_DONTWAIT) < 0)
        return;
    json_t *request = wire_receive(pair[1], NULL, 1000, NULL);
    if (!request)
        return;
    json_t *origin = json_object_get(request, "origin");
    if (json_is_string(json_object_get(origin, "rootPath")))
        json_object_set_new(origin, "rootPath", json_string(root));
    /* No image is looked for: nobody is to be asked over a network. */
    const char *type = json_string_value(json_object_get(origin, "type"));
    if (type && strcmp(type, "rbd") == 0) {
        json_decref(request);
        return;
    }
    packets++;
    int fd = packets % 4 == 0   ? make_list(data, size)
             : packets % 2 == 0 ? open("/dev/null", O_RDWR | O_CLOEXEC)
                                : -1;
    const ConnectionPeer peer = {.connection = 1 + packets % 3};
    json_t *reply = ops_dispatch(control, &peer, request, fd, &reply_fd);
    /* Whatever was asked, the answer can be sent and read, and says whether it went well. */
    if (!reply || !wire_send(pair[1], reply, reply_fd, NULL))
        abort();
    json_t *read = wire_receive(pair[0], NULL, 1000, NULL);
    if (!json_is_boolean(json_object_get(read, "ok")))
        abort();
    json_decref(read);
    json_decref(reply);
    json_decref(request);
    hearth_close_fd(&reply_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    g_autofree char *root = make_root();
    Store *store = fake_store_new();
    Control control = {.store = store, .cache_dir = root, .dir_root = "/"};
    control.volumes = volumes_new(&(VolumesCaches){.store = store, .datasets = NULL}, NULL);
    control.jobs = jobs_new(control.volumes, store);
    const uint8_t *end = data + size;
    for (unsigned i = 0; data < end && i < MAX_PACKETS; i++) {
        const uint8_t *line_end = memchr(data, '\n', (size_t)(end - data));
        if (!line_end)
            line_end = end;
        serve_packet(&control, pair, data, (size_t)(line_end - data), root);
        data = line_end + 1;
    }
    volumes_connection_ended(control.volumes, 1);
    jobs_free(control.jobs);
    volumes_free(control.volumes);
    fake_store_free(store);
    close(pair[0]);
    close(pair[1]);
    harness_remove(g_steal_pointer(&root));
    return 0;
}
