/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network link that is late: a TUN interface in this network namespace and one in that of another
 * process, and every packet is given on after a time, in each direction half of it. For kernels
 * without netem.
 *
 *   late-link PID INTERFACE MICROSECONDS
 *
 * Both interfaces have that name. Prints "ready" when both are there; addresses and routes are for
 * the caller to set. Ends with its process.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MTU_MAX 65536

typedef struct Packet {
    gint64 due; /* g_get_monotonic_time */
    gsize bytes;
    char data[];
} Packet;

typedef struct Direction {
    int from, to;
    gint64 late_us;
    GAsyncQueue *under_way; /* in the order of `due` */
} Direction;

static int must(const char *what, int rc)
{
    if (rc >= 0)
        return rc;
    fprintf(stderr, "late-link: %s: %s\n", what, g_strerror(errno));
    exit(1);
}

static int interface_open(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    g_strlcpy(request.ifr_name, name, sizeof(request.ifr_name));
    int fd = must("/dev/net/tun", open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    must(name, ioctl(fd, TUNSETIFF, &request));
    return fd;
}

static void *take(void *data)
{
    Direction *d = data;
    static _Thread_local char buf[MTU_MAX];
    for (;;) {
        const ssize_t n = read(d->from, buf, sizeof(buf));
        if (n < 0 && (errno == EIO || errno == EINTR)) { /* it is not up yet */
            g_usleep(1000);
            continue;
        }
        must("read", (int)n);
        Packet *p = g_malloc(sizeof(Packet) + (gsize)n);
        p->due = g_get_monotonic_time() + d->late_us;
        p->bytes = (gsize)n;
        memcpy(p->data, buf, p->bytes);
        g_async_queue_push(d->under_way, p);
    }
    return NULL;
}

/* A packet that the other interface does not take is lost, as on any link. */
static void *give(void *data)
{
    Direction *d = data;
    for (;;) {
        g_autofree Packet *p = g_async_queue_pop(d->under_way);
        const gint64 early = p->due - g_get_monotonic_time();
        if (early > 0)
            g_usleep((gulong)early);
        if (write(d->to, p->data, p->bytes) < 0 && errno != EIO && errno != EINVAL)
            must("write", -1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: late-link PID INTERFACE MICROSECONDS\n");
        return 2;
    }
    g_autofree char *path = g_strdup_printf("/proc/%s/ns/net", argv[1]);
    const int here = interface_open(argv[2]);
    must(path, setns(must(path, open(path, O_RDONLY | O_CLOEXEC)), CLONE_NEWNET));
    const int there = interface_open(argv[2]);
    const gint64 late_us = g_ascii_strtoll(argv[3], NULL, 10) / 2;
    Direction ways[] = {{here, there, late_us, g_async_queue_new()},
                        {there, here, late_us, g_async_queue_new()}};
    GThread *last = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_thread_unref(g_thread_new("take", take, &ways[i]));
        last = g_thread_new("give", give, &ways[i]);
    }
    puts("ready");
    fflush(stdout);
    g_thread_join(last);
    return 0;
}
