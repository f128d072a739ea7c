/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads read requests from: descriptors in one epoll set. A source is in one of two states.
 *
 * Quiet: it is armed (EPOLLONESHOT), or a thread that has taken it arms it as soon as it has read.
 * It has a thread only while a request is served.
 *
 * Busy, while many requests come: some threads stay with it and wait in read(2) for the next
 * request, which takes two system calls less than through epoll. It is armed only when no thread
 * waits so. A signal takes the threads back when it becomes quiet.
 *
 * A source is held, and not armed, while too many threads serve it. It costs nothing meanwhile.
 *
 * The last thread without a source is always left to a source that has none, since more can come
 * late, or never. While threads are scarce, because no more can be made, none stays with a source.
 */
#ifndef HEARTH_CACHE_FUSE_READER_SOURCES_H
#define HEARTH_CACHE_FUSE_READER_SOURCES_H

#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* Stuck threads of all sources, and of one, about. A source has at most as many as the others
 * leave, and always one: however many sources hang, the next one is served. */
#define READER_STUCK_MAX 512
#define READER_SOURCE_STUCK_MAX 64
/* Threads that stay with busy sources, and with one. */
#define READER_STAY_MAX 64
#define READER_SOURCE_STAY_MAX 8

typedef struct ReaderSource ReaderSource;

typedef struct ReaderSourceOps {
    /* Reads a request. -EAGAIN: there is none; 0: there will be none any more. */
    ssize_t (*receive)(ReaderSource *source, void *buffer, size_t size);
    /* Whether receive() waits until there is one. A signal ends that. */
    void (*set_waits)(ReaderSource *source, gboolean on);
    /* May block. */
    void (*process)(ReaderSource *source, void *buffer, size_t len);
    /* Behind the last request. */
    void (*ended)(ReaderSource *source);
} ReaderSourceOps;

/* What a thread has taken. */
typedef struct ReaderTaken {
    ReaderSource *source;         /* NULL: nothing */
    LIST_ENTRY(ReaderTaken) link; /* of the source's readers */
    pthread_t thread;             /* constant */
    gboolean reads;               /* waits for a request, or is about to */
    gboolean stays;               /* with a busy source */
    gboolean stuck;
    int64_t since_ms; /* has a request */
} ReaderTaken;

/* `lock` of ReaderSources guards all that is not constant. */
struct ReaderSource {
    const ReaderSourceOps *ops; /* constant, as are fd and id */
    int fd;
    uint64_t id;
    TAILQ_ENTRY(ReaderSource) held_link, busy_link;
    gboolean armed, held, busy;
    gboolean dead;     /* there will be no more requests */
    gboolean stopping; /* nothing is read any more */
    gboolean end_told;
    unsigned taken;                   /* threads that have it */
    unsigned stuck, reading, staying; /* of these */
    LIST_HEAD(, ReaderTaken) readers; /* those that read */
    int64_t window_ms;                /* when the count of requests began */
    unsigned requests;
    uint64_t events;
};

typedef struct ReaderSources {
    pthread_mutex_t lock; /* held across no callback */
    pthread_cond_t returned;
    int epoll; /* constant */
    GHashTable *by_id;
    uint64_t last_id;   /* 0 is no source */
    unsigned fresh_max; /* constant */
    unsigned stuck;
    unsigned staying;
    unsigned threads, taken; /* that there are, and those of them that have a source */
    gboolean scarce;
    TAILQ_HEAD(, ReaderSource) held, busy;
} ReaderSources;

/* `fresh_max`: the threads that may serve one source, those that are stuck not counted. */
gboolean reader_sources_init(ReaderSources *all, unsigned fresh_max, GError **error);
void reader_sources_clear(ReaderSources *all);

gboolean reader_source_add(ReaderSources *all, ReaderSource *source, GError **error);
/* Waits until no thread has it. */
void reader_source_remove(ReaderSources *all, ReaderSource *source);

/* There is one more thread. */
void reader_sources_thread_came(ReaderSources *all);
/* Whether a thread without a source may end; then it counts no more. */
gboolean reader_sources_thread_may_go(ReaderSources *all);

/* For what epoll returned: the thread is to read. FALSE: it has ended, is being stopped, or has to
 * leave the last thread to others; then reader_sources_look_locked() has work. */
gboolean reader_source_take(ReaderSources *all, ReaderTaken *taken, uint64_t id);
/* What receive() returned. TRUE: reader_sources_look_locked() has work. */
gboolean reader_source_received(ReaderSources *all, ReaderTaken *taken, ssize_t len);
/* The request was answered. TRUE: the thread is to read another one; FALSE: it has nothing any
 * more. */
gboolean reader_source_answered(ReaderSources *all, ReaderTaken *taken);

/* ---- with the lock */

/* Whether more threads are needed than can be made. */
void reader_sources_scarce_locked(ReaderSources *all, gboolean scarce);
void reader_source_is_stuck_locked(ReaderSources *all, ReaderTaken *taken);
/* Sources that are idle become quiet. FALSE: there is nothing to look after, until something is
 * received. */
gboolean reader_sources_look_locked(ReaderSources *all);

#endif
