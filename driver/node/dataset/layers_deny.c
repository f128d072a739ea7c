/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/dataset/layers_deny.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"

#define EVENTS (FAN_OPEN_PERM | FAN_ACCESS_PERM)

struct LayersDeny {
    pthread_mutex_t lock; /* a leaf */
    GHashTable *closed;   /* lock: set of dev_t */
    int fan, stop;        /* fan: lock until the thread runs; -1: none yet */
    pthread_t thread;
};

LayersDeny *layers_deny_new(void)
{
    LayersDeny *d = g_new0(LayersDeny, 1);
    pthread_mutex_init(&d->lock, NULL);
    d->closed = g_hash_table_new(NULL, NULL);
    d->fan = d->stop = -1;
    return d;
}

/* Nothing here touches the file system asked about, or this thread would wait for itself. */
static void answer_all(int fan)
{
    struct fanotify_event_metadata events[64];
    ssize_t n = read(fan, events, sizeof(events));
    for (struct fanotify_event_metadata *e = events; n > 0 && FAN_EVENT_OK(e, n);
         e = FAN_EVENT_NEXT(e, n)) {
        const struct fanotify_response no = {.fd = e->fd, .response = FAN_DENY};
        if ((e->mask & EVENTS) && write(fan, &no, sizeof(no)) < 0)
            g_warning("fanotify: no answer: %s", g_strerror(errno));
        if (e->fd >= 0)
            close(e->fd);
    }
}

static void *run(void *data)
{
    LayersDeny *d = data;
    struct pollfd fds[] = {{.fd = d->fan, .events = POLLIN}, {.fd = d->stop, .events = POLLIN}};
    while (!fds[1].revents) {
        if (poll(fds, 2, -1) > 0 && fds[0].revents)
            answer_all(d->fan);
    }
    return NULL;
}

static int start_locked(LayersDeny *d)
{
    if (d->fan >= 0)
        return 0;
    hearth_autofd int fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK,
                                          O_RDONLY | O_LARGEFILE | O_CLOEXEC);
    if (fan < 0)
        return -errno;
    hearth_autofd int stop = eventfd(0, EFD_CLOEXEC);
    if (stop < 0)
        return -errno;
    d->fan = fan;
    d->stop = stop;
    int r = pthread_create(&d->thread, NULL, run, d);
    if (r) {
        d->fan = d->stop = -1;
        return -r;
    }
    hearth_steal_fd(&fan);
    hearth_steal_fd(&stop);
    return 0;
}

void layers_deny_free(LayersDeny *d)
{
    if (d->fan >= 0) {
        eventfd_write(d->stop, 1);
        pthread_join(d->thread, NULL);
        close(d->fan);
        close(d->stop);
    }
    g_hash_table_unref(d->closed);
    pthread_mutex_destroy(&d->lock);
    g_free(d);
}

static int mark_locked(LayersDeny *d, const char *path, dev_t dev, gboolean on)
{
    struct stat st;
    hearth_autofd int point = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (point < 0 || fstat(point, &st) < 0)
        return -errno;
    if (st.st_dev != dev)
        return 0; /* another one meanwhile */
    g_autofree char *self = g_strdup_printf("/proc/self/fd/%d", point);
    const unsigned how = (on ? FAN_MARK_ADD : FAN_MARK_REMOVE) | FAN_MARK_FILESYSTEM;
    return fanotify_mark(d->fan, how, EVENTS, AT_FDCWD, self) == 0 ? 0 : -errno;
}

gboolean layers_deny_set(LayersDeny *d, const char *path, dev_t dev, gboolean on, GError **error)
{
    gpointer key = GSIZE_TO_POINTER((gsize)dev);
    pthread_mutex_lock(&d->lock);
    int r = 0;
    if (on || g_hash_table_contains(d->closed, key)) {
        r = start_locked(d);
        /* Also when it was closed before: the number may be another file system's by now. */
        if (r == 0)
            r = mark_locked(d, path, dev, on);
        if (r == 0 && on)
            g_hash_table_add(d->closed, key);
        else if (!on)
            g_hash_table_remove(d->closed, key);
    }
    pthread_mutex_unlock(&d->lock);
    if (r < 0)
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s cannot be %s (fanotify): %s", path,
                    on ? "closed" : "opened again", g_strerror(-r));
    return r == 0;
}
