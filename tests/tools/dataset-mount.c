/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the node plugin does of a dataset with hearthd, and nothing more: opens a volume, has its
 * manifest made, mounts the fill layer.
 *
 *   dataset-mount SOCKET DIR <REQUEST
 *
 * REQUEST is the "open" of proto/wire.h without "op". Prints the reply to "manifest"; DIR,
 * when given, is mounted and attached. The mount stays, and hearthd serves it, when this has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include "proto/wire.h"

#define WAIT_MS 600000

static json_t *call(int socket, json_t *request, int fd)
{
    g_autoptr(GError) error = NULL;
    json_t *reply = wire_call(socket, request, fd, NULL, WAIT_MS + 10000, &error);
    json_decref(request);
    if (!reply) {
        fprintf(stderr, "dataset-mount: %s\n", error->message);
        exit(1);
    }
    return reply;
}

static int mount_fuse(const char *dir)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    g_autofree char *options =
        g_strdup_printf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
    if (fd < 0 ||
        mount("hearth:fill", dir, "fuse.hearth", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0) {
        fprintf(stderr, "dataset-mount: %s: %s\n", dir, strerror(errno));
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: dataset-mount SOCKET [DIR] <REQUEST\n");
        return 2;
    }
    json_t *open_request = json_loadf(stdin, 0, NULL);
    int socket = wire_connect(argv[1], &error);
    if (!open_request || socket < 0) {
        fprintf(stderr, "dataset-mount: %s\n", error ? error->message : "no JSON");
        return 2;
    }
    g_autofree char *volume = g_strdup(json_string_value(json_object_get(open_request, "volume")));
    json_object_set_new(open_request, "op", json_string("open"));
    json_decref(call(socket, open_request, -1));
    json_t *manifest = call(
        socket, json_pack("{s:s, s:s, s:i}", "op", "manifest", "volume", volume, "waitMs", WAIT_MS),
        -1);
    json_dumpf(manifest, stdout, JSON_COMPACT);
    printf("\n");
    json_decref(manifest);
    if (argc == 3)
        json_decref(call(
            socket, json_pack("{s:s, s:s, s:s}", "op", "attach", "volume", volume, "layer", "fill"),
            mount_fuse(argv[2])));
    return 0;
}
