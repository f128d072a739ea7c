/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group snapshots. The controller asks, through librbd's quiescing, that nothing be written to any
 * of the images until each has its snapshot (driver/backend/rbd/group.c). Other clients are made to
 * wait by taking the exclusive lock from them. Our lock cannot be taken (lock.c), so we pause
 * ourselves: new writes wait, writes under way end, and then the note "paused" says so, with a text
 * that is unique to this pause. The note is removed before writes continue: while it exists,
 * nothing is written.
 *
 * librbd calls from threads of its own, which must not block, so each answer has a thread. When the
 * controller dies, librbd ends the pause after 20 s.
 */
#include <errno.h>
#include "cache/origin/rbd/internal.h"

#define NOTE "paused"

static void on_thread(RbdImage *r, void *(*run)(void *))
{
    pthread_t thread;
    pthread_mutex_lock(&r->quiet.lock);
    r->quiet.threads++;
    pthread_mutex_unlock(&r->quiet.lock);
    if (pthread_create(&thread, NULL, run, r) == 0)
        pthread_detach(thread);
    else
        run(r); /* late is better than never */
}

static void thread_ends(RbdImage *r)
{
    pthread_mutex_lock(&r->quiet.lock);
    r->quiet.threads--;
    pthread_cond_broadcast(&r->quiet.changed);
    pthread_mutex_unlock(&r->quiet.lock);
}

static void *pause_thread(void *data)
{
    RbdImage *r = data;
    pthread_mutex_lock(&r->quiet.lock);
    while (r->quiet.paused && r->quiet.writing)
        pthread_cond_wait(&r->quiet.changed, &r->quiet.lock);
    gboolean paused = r->quiet.paused;
    pthread_mutex_unlock(&r->quiet.lock);
    int result = -ECANCELED;
    if (paused) {
        g_autofree char *unique = g_uuid_string_random();
        result = r->base.ops->set_note(&r->base, NOTE, unique);
    }
    rbd_quiesce_complete(r->image, r->quiet.watch, result);
    thread_ends(r);
    return NULL;
}

static void *resume_thread(void *data)
{
    RbdImage *r = data;
    int result = r->base.ops->set_note(&r->base, NOTE, NULL);
    if (result < 0)
        g_warning("image %s: its note of a pause stays: %s", r->spec, g_strerror(-result));
    pthread_mutex_lock(&r->quiet.lock);
    r->quiet.paused = FALSE;
    GQueue waiting = r->quiet.waiting;
    g_queue_init(&r->quiet.waiting);
    r->quiet.writing += g_queue_get_length(&waiting);
    pthread_cond_broadcast(&r->quiet.changed);
    pthread_mutex_unlock(&r->quiet.lock);
    for (RbdWrite *w = g_queue_pop_head(&waiting); w; w = g_queue_pop_head(&waiting))
        w->begin(w);
    thread_ends(r);
    return NULL;
}

static void on_quiesce(void *data)
{
    RbdImage *r = data;
    pthread_mutex_lock(&r->quiet.lock);
    r->quiet.paused = TRUE;
    pthread_mutex_unlock(&r->quiet.lock);
    on_thread(r, pause_thread);
}

static void on_unquiesce(void *data)
{
    on_thread(data, resume_thread);
}

void rbd_quiet_init(RbdImage *r)
{
    pthread_mutex_init(&r->quiet.lock, NULL);
    pthread_cond_init(&r->quiet.changed, NULL);
    g_queue_init(&r->quiet.waiting);
}

int rbd_quiet_watch(RbdImage *r)
{
    int result = rbd_quiesce_watch(r->image, on_quiesce, on_unquiesce, r, &r->quiet.watch);
    r->quiet.watching = result == 0;
    return result;
}

void rbd_quiet_destroy(RbdImage *r)
{
    if (r->quiet.watching)
        rbd_quiesce_unwatch(r->image, r->quiet.watch);
    pthread_mutex_lock(&r->quiet.lock);
    while (r->quiet.threads)
        pthread_cond_wait(&r->quiet.changed, &r->quiet.lock);
    pthread_mutex_unlock(&r->quiet.lock);
    pthread_cond_destroy(&r->quiet.changed);
    pthread_mutex_destroy(&r->quiet.lock);
}

void rbd_quiet_begin(RbdImage *r, RbdWrite *write)
{
    pthread_mutex_lock(&r->quiet.lock);
    gboolean waits = r->quiet.paused;
    if (waits)
        g_queue_push_tail(&r->quiet.waiting, write);
    else
        r->quiet.writing++;
    pthread_mutex_unlock(&r->quiet.lock);
    if (!waits)
        write->begin(write);
}

void rbd_quiet_end(RbdImage *r)
{
    pthread_mutex_lock(&r->quiet.lock);
    if (--r->quiet.writing == 0)
        pthread_cond_broadcast(&r->quiet.changed);
    pthread_mutex_unlock(&r->quiet.lock);
}
