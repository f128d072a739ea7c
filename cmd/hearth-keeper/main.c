/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth-keeper: holds the node plugin's descriptors of mounts, so that these outlive a hearthd and
 * a node plugin that end at the same time (docs/design/node.md, "After hearthd"). It is linked
 * statically, with the C library alone, reads no file, and touches no mount: nothing can hang it.
 */
#include "cmd/hearth-keeper/table.h"
#include "common/descriptor_limit.h"
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Node plugins; there is one. */
#define CLIENTS_MAX 8
/* How long mounts may wait while no node plugin runs. */
#define ALONE_MS (10 * 60 * 1000)
#define ACCEPT_AGAIN_MS 100

static const char help[] =
    "Usage: hearth-keeper [--socket=PATH]\n\n"
    "Holds descriptors of the mounts of a node for its node plugin (hearth-csi --role=node), so\n"
    "that mounts stay when node plugin and hearthd end at the same time.\n\n"
    "  --socket=PATH   where it listens (" KEEP_DEFAULT_SOCKET ")\n"
    "  --version       print the version and exit\n"
    "  --help          print this and exit\n";

static void answer(KeepMessage *request, KeepMessage *reply)
{
    switch (request->what) {
    case KEEP_PUT:
        reply->what = table_put(request);
        break;
    case KEEP_DROP:
        table_drop(request->name);
        break;
    case KEEP_NEXT:
        reply->what = table_next(request->name, reply);
        break;
    default:
        reply->what = ENOSYS;
    }
    keep_close(request);
}

/* Not 0: the client is gone, or does not read its replies. */
static int serve(int client)
{
    KeepMessage request, reply = {0};
    const int rc = keep_receive(client, &request, MSG_DONTWAIT);
    if (rc == -EAGAIN)
        return 0;
    if (rc == 0)
        answer(&request, &reply);
    else if (rc == -EMFILE || rc == -EBADMSG)
        reply.what = -rc;
    else
        return rc;
    return keep_send(client, &reply, MSG_DONTWAIT);
}

/* The socket's file is root's; a descriptor of it may have got elsewhere. */
static int is_own_user(int client)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void add_client(struct pollfd *fds, int listener)
{
    const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) {
        poll(NULL, 0, ACCEPT_AGAIN_MS);
        return;
    }
    for (int i = 1; i <= CLIENTS_MAX && is_own_user(client); i++) {
        if (fds[i].fd < 0) {
            fds[i].fd = client;
            return;
        }
    }
    close(client);
}

static int any_client(const struct pollfd *fds)
{
    int any = 0;
    for (int i = 1; i <= CLIENTS_MAX; i++)
        any |= fds[i].fd >= 0;
    return any;
}

static void drop_all(void)
{
    KeepMessage first;
    while (table_next("", &first) == 0)
        table_drop(first.name);
}

static void serve_all(int listener)
{
    struct pollfd fds[1 + CLIENTS_MAX];
    for (int i = 0; i <= CLIENTS_MAX; i++)
        fds[i] = (struct pollfd){.fd = i == 0 ? listener : -1, .events = POLLIN};
    for (;;) {
        const int changed = poll(fds, 1 + CLIENTS_MAX, any_client(fds) ? -1 : ALONE_MS);
        if (changed == 0)
            drop_all();
        if (changed <= 0)
            continue;
        for (int i = 1; i <= CLIENTS_MAX; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0 && serve(fds[i].fd) != 0) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
        }
        if (fds[0].revents != 0)
            add_client(fds, listener);
    }
}

/* The first process of a container ends only by signals that it handles. */
static void end(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *path = KEEP_DEFAULT_SOCKET;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 's')
            path = optarg;
        else if (o == 'v' || o == 'h')
            return fputs(o == 'h' ? help : "hearth-keeper " HEARTH_VERSION "\n", stdout) < 0;
        else
            return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "hearth-keeper: unexpected argument '%s'; see --help\n", argv[optind]);
        return 2;
    }
    signal(SIGTERM, end);
    signal(SIGINT, end);
    raise_descriptor_limit();
    const int listener = keep_listen(path);
    if (listener < 0) {
        fprintf(stderr, "hearth-keeper: %s: %s\n", path, strerror(-listener));
        return 1;
    }
    fprintf(stderr, "{\"level\":\"info\",\"program\":\"hearth-keeper\",\"msg\":\"serves on %s\"}\n",
            path);
    serve_all(listener);
}
