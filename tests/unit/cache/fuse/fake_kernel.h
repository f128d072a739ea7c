/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side of /dev/fuse over a socket pair: sends requests as linux/fuse.h lays them out
 * and keeps the notifications that come between the replies. One thread uses it.
 */
#ifndef HEARTH_TESTS_FAKE_KERNEL_H
#define HEARTH_TESTS_FAKE_KERNEL_H

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/unit/harness.h"

typedef struct Kernel {
    int fd;
    uint64_t unique;
    uint32_t pid;           /* of the requests */
    unsigned pages_dropped; /* NOTIFY_INVAL_INODE with off >= 0 */
    uint64_t dropped_node;
    int64_t dropped_off, dropped_len; /* the last time */
    unsigned attrs_dropped;           /* ... with off < 0 */
} Kernel;

typedef struct Reply {
    int error; /* 0 or -errno */
    size_t len;
    union {
        char data[1 << 17];
        struct fuse_entry_out entry;
        struct fuse_open_out open;
        struct fuse_attr_out attr;
        struct fuse_write_out write;
        struct fuse_init_out init;
        struct {
            struct fuse_entry_out entry;
            struct fuse_open_out open;
        } create;
    };
} Reply;

/* The descriptor for the session. */
static inline int kernel_start(Kernel *k)
{
    int fds[2], size = 1 << 20;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    *k = (Kernel){.fd = fds[0]};
    return fds[1];
}

/* Receives one message; TRUE when it was the reply to `unique`. */
static inline gboolean kernel_receive(Kernel *k, uint64_t unique, Reply *reply, int timeout_ms)
{
    static char buf[1 << 18];
    struct pollfd p = {.fd = k->fd, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, timeout_ms) == 1, "the session did not answer");
    ssize_t n = read(k->fd, buf, sizeof(buf));
    ck_assert_int_ge(n, (ssize_t)sizeof(struct fuse_out_header));
    const struct fuse_out_header *out = (void *)buf;
    if (out->unique == 0) {
        if (out->error == FUSE_NOTIFY_INVAL_INODE) {
            const struct fuse_notify_inval_inode_out *i = (void *)(buf + sizeof(*out));
            if (i->off < 0) {
                k->attrs_dropped++;
            } else {
                k->pages_dropped++;
                k->dropped_node = i->ino;
                k->dropped_off = i->off;
                k->dropped_len = i->len;
            }
        }
        return FALSE;
    }
    ck_assert_uint_eq(out->unique, unique);
    reply->error = out->error;
    reply->len = (size_t)n - sizeof(*out);
    ck_assert_uint_le(reply->len, sizeof(reply->data));
    memcpy(reply->data, buf + sizeof(*out), reply->len);
    return TRUE;
}

static inline uint64_t kernel_send(Kernel *k, uint32_t opcode, uint64_t node, const void *body,
                                   size_t len)
{
    char buf[sizeof(struct fuse_in_header) + 70000];
    struct fuse_in_header in = {
        .len = (uint32_t)(sizeof(in) + len),
        .opcode = opcode,
        .unique = k->unique += 2,
        .nodeid = node,
        .uid = getuid(),
        .gid = getgid(),
        .pid = k->pid,
    };
    ck_assert_uint_le(in.len, sizeof(buf));
    memcpy(buf, &in, sizeof(in));
    memcpy(buf + sizeof(in), body, len);
    ck_assert_int_eq(send(k->fd, buf, in.len, MSG_NOSIGNAL), in.len);
    return in.unique;
}

static inline Reply *kernel_call(Kernel *k, uint32_t opcode, uint64_t node, const void *body,
                                 size_t len)
{
    static Reply reply;
    uint64_t unique = kernel_send(k, opcode, node, body, len);
    while (!kernel_receive(k, unique, &reply, 10000))
        ;
    return &reply;
}

static inline uint64_t kernel_send_init(Kernel *k)
{
    struct fuse_init_in in = {
        .major = FUSE_KERNEL_VERSION,
        .minor = FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = 131072,
        .flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS | FUSE_ATOMIC_O_TRUNC |
                 FUSE_HANDLE_KILLPRIV | FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS,
    };
    return kernel_send(k, FUSE_INIT, 0, &in, sizeof(in));
}

/* The flags of the reply. */
static inline uint32_t kernel_await_init(Kernel *k, uint64_t unique)
{
    static Reply reply;
    while (!kernel_receive(k, unique, &reply, 10000))
        ;
    ck_assert_int_eq(reply.error, 0);
    return reply.init.flags;
}

static inline uint32_t kernel_init(Kernel *k)
{
    return kernel_await_init(k, kernel_send_init(k));
}

static inline Reply *kernel_lookup(Kernel *k, uint64_t parent, const char *name)
{
    return kernel_call(k, FUSE_LOOKUP, parent, name, strlen(name) + 1);
}

static inline Reply *kernel_open(Kernel *k, uint64_t node, int flags)
{
    struct fuse_open_in in = {.flags = (uint32_t)flags};
    return kernel_call(k, FUSE_OPEN, node, &in, sizeof(in));
}

static inline Reply *kernel_read(Kernel *k, uint64_t node, uint64_t fh, uint64_t off, uint32_t size)
{
    struct fuse_read_in in = {.fh = fh, .offset = off, .size = size};
    return kernel_call(k, FUSE_READ, node, &in, sizeof(in));
}

static inline void kernel_release(Kernel *k, uint64_t node, uint64_t fh)
{
    struct fuse_release_in in = {.fh = fh};
    ck_assert_int_eq(kernel_call(k, FUSE_RELEASE, node, &in, sizeof(in))->error, 0);
}

#endif
