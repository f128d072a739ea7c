/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether kept blocks of an image may be used. When Ceph no longer hears from a node, another
 * client may take over its image: librbd and krbd do after osd_client_watch_timeout (30 s) of
 * silence. The node gets no notice. So it asks every few seconds, and uses kept blocks only while
 * Ceph has said a short time ago that the image is still ours (for a reader: that its version is
 * still the same). The time counts from when that question was sent, by a clock that also runs
 * while the machine sleeps or the process is stopped, and each read checks it: a process that wakes
 * up late returns nothing old. Otherwise reads go to Ceph, which refuses them or lets them wait.
 *
 * A snapshot never changes, so nothing is asked.
 *
 * Each image has a thread of its own: sending a request to librados may block when very many
 * requests of the same image are under way, and the disk may block the keeper (space.c).
 */
#include <errno.h>
#include "cache/block/internal.h"

#define CHECK_MS 3000
/* Less than osd_client_watch_timeout minus the watch's ping interval, 10 s. */
#define GOOD_NS (10 * G_GINT64_CONSTANT(1000000000))
#define LONG_AGO_NS (-GOOD_NS)

static gboolean is_recent(const Cached *c)
{
    return image_clock_ns() - atomic_load(&c->watch.good_ns) < GOOD_NS;
}

gboolean watch_is_good(const Cached *c)
{
    return c->kept->immutable || (!atomic_load(&c->watch.lost) && is_recent(c));
}

void watch_note(Cached *c, ssize_t result)
{
    if (result == -ESHUTDOWN || result == -ESTALE)
        atomic_store(&c->watch.lost, TRUE);
}

static void on_checked(void *data, ssize_t result)
{
    Cached *c = data;
    Watch *w = &c->watch;
    watch_note(c, result);
    pthread_mutex_lock(&c->lock);
    if (result == 0)
        atomic_store(&w->good_ns, w->sent_ns);
    if (result == -EAGAIN) {
        atomic_store(&w->good_ns, LONG_AGO_NS);
        w->forget = TRUE;
    }
    w->checking = FALSE;
    pthread_mutex_unlock(&c->lock);
    /* A late answer says nothing about now. */
    if (result == -EAGAIN || (result == 0 && !is_recent(c)))
        wake_kick(&w->wake);
    cached_unuse(c);
}

static void send_check(Cached *c)
{
    Watch *w = &c->watch;
    pthread_mutex_lock(&c->lock);
    const gboolean begin = !w->checking && !w->forget && !atomic_load(&w->lost);
    if (begin) {
        w->checking = TRUE;
        w->sent_ns = image_clock_ns();
        c->under_way++;
    }
    pthread_mutex_unlock(&c->lock);
    if (begin)
        c->beneath->ops->check(c->beneath, on_checked, c);
}

static void forget_if_wanted(Cached *c)
{
    Watch *w = &c->watch;
    pthread_mutex_lock(&c->lock);
    const gboolean wanted = w->forget;
    pthread_mutex_unlock(&c->lock);
    if (!wanted)
        return;
    cached_forget(c);
    pthread_mutex_lock(&c->lock);
    w->forget = FALSE;
    pthread_mutex_unlock(&c->lock);
}

static void *watch_thread(void *data)
{
    Cached *c = data;
    do {
        forget_if_wanted(c);
        send_check(c);
    } while (wake_wait(&c->watch.wake, CHECK_MS));
    return NULL;
}

void watch_begin(Cached *c)
{
    Watch *w = &c->watch;
    wake_init(&w->wake);
    atomic_store(&w->good_ns, c->beneath->content.asked_ns);
    if (c->kept->immutable)
        return;
    int failed = pthread_create(&w->thread, NULL, watch_thread, c);
    w->runs = !failed;
    if (failed)
        g_warning("image %s: no thread to watch it, so it is read from Ceph: %s", c->kept->name,
                  g_strerror(failed));
}

void watch_stop(Cached *c)
{
    if (!c->watch.runs)
        return;
    wake_stop(&c->watch.wake);
    pthread_join(c->watch.thread, NULL);
}

void watch_destroy(Cached *c)
{
    wake_destroy(&c->watch.wake);
}
