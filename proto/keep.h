/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between hearth-keeper and its clients, by SOCK_SEQPACKET: each request has one reply.
 * hearth-keeper holds descriptors under names, and knows nothing of what they are.
 *
 *     KEEP_PUT   name, descriptors   replaces what is held under the name; EMFILE, ENOSPC
 *     KEEP_DROP  name                closes what is held; fine if nothing is
 *     KEEP_NEXT  name                -> the first name after this one, with duplicates of its
 *                                    descriptors; ENOENT: there is none. "" is before all names.
 */
#ifndef HEARTH_PROTO_KEEP_H
#define HEARTH_PROTO_KEEP_H

#include <stdint.h>

/* In the directory of hearthd's socket. */
#define KEEP_SOCKET "keeper.sock"
#define KEEP_DEFAULT_SOCKET "/run/hearth/" KEEP_SOCKET
#define KEEP_NAME_MAX 511
#define KEEP_FDS_MAX 3

typedef enum KeepOp {
    KEEP_PUT = 1,
    KEEP_DROP,
    KEEP_NEXT,
} KeepOp;

typedef struct KeepMessage {
    int32_t what; /* in a request a KeepOp, in a reply 0 or an errno */
    char name[KEEP_NAME_MAX + 1];
    int fds[KEEP_FDS_MAX];
    unsigned n_fds;
} KeepMessage;

/* 0 or -errno. Borrows the descriptors. Waits as the socket does (SO_SNDTIMEO); `flags` of send(2).
 */
int keep_send(int socket, const KeepMessage *message, int flags);
/* 0, with descriptors that are the caller's (CLOEXEC); -ENOTCONN: the other end is gone; -EMFILE: a
 * descriptor did not fit in; -EBADMSG: no such message. Waits as the socket does. */
int keep_receive(int socket, KeepMessage *message, int flags);
/* Closes its descriptors. */
void keep_close(KeepMessage *message);

/* A socket that is bound, or connected, to the path; -errno. Connecting, and each call later, waits
 * for `limit_sec`. */
int keep_listen(const char *path);
int keep_connect(const char *path, int limit_sec);

#endif
