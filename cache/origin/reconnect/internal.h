/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by reconnect.c (connections) and ops.c (operations on them, the table). */
#ifndef HEARTH_CACHE_ORIGIN_RECONNECT_INTERNAL_H
#define HEARTH_CACHE_ORIGIN_RECONNECT_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cache/origin/reconnect/reconnect.h"

/*
 *   current -> lost (lose) -> ending, once no call uses it -> ended (abandon() has returned)
 *
 * The struct stays until the origin is closed, since nodes and files name the one they are of.
 */
typedef struct Connection {
    Origin *inner;
    uint64_t number;
    _Atomic unsigned uses;  /* running calls */
    _Atomic gboolean lost;  /* set under Reconnect.lock, which guards all below */
    gboolean ending, ended; /* in this order */
    int64_t lost_ms;
    /* Checks, numbered from 1; one is under way at a time. */
    uint64_t wanted, begun, answered, failed;
    gboolean checking; /* a thread runs them */
    int64_t asked_ms;  /* when the check under way was sent; 0: there is none */
    int64_t
        suspect_ms; /* since when a new client is answered and that check is not; 0: it is not so */
    GPtrArray *left; /* nodes to put when it ends; Reconnect.left_mutex */
} Connection;

typedef struct Reconnect {
    Origin base;
    const ReconnectOps *ops;
    void *data;
    pthread_mutex_t lock;
    pthread_cond_t changed;      /* current, a connection's state, stopping */
    Connection *_Atomic current; /* set under lock; NULL: lost, and not connected again yet */
    GPtrArray *connections;      /* lock; all there were */
    _Atomic gboolean stopping;   /* set under lock */
    gboolean keeper_ended;       /* lock */
    _Atomic uint64_t number;     /* of the current one, or of the one to come */
    _Atomic int64_t heard_ms;    /* when the last check that was answered was sent; 0: none was */
    /* Since when Ceph was asked and has not answered; 0: it has. Of checks, and of connecting. */
    _Atomic int64_t unanswered_ms;
    _Atomic int64_t data_ms;        /* when a read of a file was last answered */
    _Atomic unsigned leases;        /* held */
    _Atomic gboolean leased;        /* one has begun since the lease keeper looked */
    _Atomic gboolean dozes;         /* the lease keeper: the next lease wakes it */
    pthread_mutex_t listener_mutex; /* guards listener, also while it is called */
    OriginListener listener;
    pthread_mutex_t left_mutex; /* guards Connection.left */
    pthread_t keeper, lease_keeper;
} Reconnect;

/* CLOCK_BOOTTIME: goes on while the machine sleeps and this process is stopped. */
int64_t boottime_ms(void);

static inline gboolean is_loss(int64_t r)
{
    return r == -ESHUTDOWN || r == -ENOTCONN;
}

/* The current connection, in use until connection_done(); NULL: there is none, also after waiting
 * for a while. */
Connection *connection_use(Reconnect *o, gboolean wait);
/* A certain one; FALSE: it has ended. */
gboolean connection_use_this(Reconnect *o, Connection *c);
/* r: the call's result. */
void connection_done(Reconnect *o, Connection *c, int64_t r);
/* Puts a node of a lost connection when no call can use it any more. */
void connection_put_at_end(Reconnect *o, Connection *c, OriginNode *inner);
/* Asks Ceph, beginning now. 0, or -EIO: the connection is lost, or its state is unknown. */
int connection_check(Reconnect *o, Connection *c);
/* 1: one lease more is held, -1: one less. */
void connection_count_lease(Reconnect *o, int change);
/* Ceph was heard from lately enough for a new lease. */
gboolean connection_was_just_heard(Reconnect *o);

/* A read of a file was answered by OSDs. */
void connection_heard_data(Reconnect *o);

/* Starts with the first connection; origin_ops is the table of the origin. */
Origin *reconnect_begin(const OriginOps *origin_ops, Origin *first, const ReconnectOps *ops,
                        void *data);
void reconnect_destroy(Origin *base);
void reconnect_listen(Origin *base, const OriginListener *listener);
void reconnect_reach(Origin *base, const char *monitors, const char *key, unsigned timeout_sec);
uint64_t reconnect_session(Origin *base);
gboolean reconnect_vouches(Origin *base);
uint64_t reconnect_silent_ms(Origin *base);

#endif
