/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread has one pipe, which is empty between replies: one whose reply did not go out is closed.
 * The pipe is big enough for all of a reply before anything is put in it, so nothing waits for
 * room.
 */
#include "cache/fuse/object_reply.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <unistd.h>

/* The header is in a page of its own, and bytes that begin within a page end in one more. */
#define MORE_PAGES 2

typedef struct Pipe {
    int out, in;
    size_t size;
    uint32_t filled; /* length of the reply in it */
} Pipe;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread uint64_t current;

static void pipe_free(void *data)
{
    Pipe *p = data;
    close(p->out);
    close(p->in);
    g_free(p);
}

static void make_key(void)
{
    pthread_key_create(&key, pipe_free);
}

static void drop_pipe(Pipe *p)
{
    pthread_setspecific(key, NULL);
    pipe_free(p);
}

static Pipe *pipe_new(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return NULL;
    Pipe *p = g_new0(Pipe, 1);
    p->out = ends[0];
    p->in = ends[1];
    p->size = (size_t)MAX(fcntl(p->in, F_GETPIPE_SZ), 0);
    pthread_setspecific(key, p);
    return p;
}

/* NULL: there is none with so much room (pipe(7), pipe-user-pages-soft). */
static Pipe *pipe_for(size_t size)
{
    pthread_once(&once, make_key);
    Pipe *p = pthread_getspecific(key);
    if (!p)
        p = pipe_new();
    if (!p || p->size >= size)
        return p;
    const int grown = fcntl(p->in, F_SETPIPE_SZ, (int)size);
    if (grown < 0)
        return NULL;
    p->size = (size_t)grown;
    return p;
}

void object_reply_request(uint64_t unique)
{
    current = unique;
}

static gboolean fill(const Pipe *p, const struct fuse_out_header *header, int fd, uint64_t off)
{
    loff_t at = (loff_t)off;
    size_t left = header->len - sizeof(*header);
    if (write(p->in, header, sizeof(*header)) != (ssize_t)sizeof(*header))
        return FALSE;
    while (left > 0) {
        const ssize_t n = splice(fd, &at, p->in, NULL, left, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FALSE;
        left -= (size_t)n;
    }
    return TRUE;
}

gboolean object_reply_fill(int fd, size_t len, uint64_t off)
{
    if (!current || len < OBJECT_REPLY_MIN)
        return FALSE;
    Pipe *p = pipe_for(len + MORE_PAGES * (size_t)sysconf(_SC_PAGESIZE));
    if (!p)
        return FALSE;
    const struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + len),
                                           .unique = current};
    if (!fill(p, &header, fd, off)) {
        drop_pipe(p);
        return FALSE;
    }
    p->filled = header.len;
    return TRUE;
}

gboolean object_reply_send(fuse_req_t req, int fuse_fd)
{
    Pipe *p = pthread_getspecific(key);
    const ssize_t n = splice(p->out, NULL, fuse_fd, NULL, p->filled, 0);
    const int error = n < 0 ? errno : 0;
    if (n != (ssize_t)p->filled)
        drop_pipe(p);
    /* ENOENT: the read was interrupted, or the connection has ended; nobody waits for an answer. */
    if (n < 0 && error != ENOENT && error != ENODEV)
        return FALSE;
    fuse_reply_none(req);
    return TRUE;
}
