/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of this folder, from the bottom up: connection.c (which one is current, and
 * who uses it), checks.c (whether Ceph answers on it), rest.c (one that nobody uses ends),
 * keepers.c (the threads that make, check and end them), use.c (calls get one, or wait for it),
 * locks.c (file locks), reconnect.c (the origin); its operations: calls.h, nodes.c, files.c,
 * names.c, ops.c (the table).
 */
#ifndef HEARTH_CACHE_ORIGIN_RECONNECT_INTERNAL_H
#define HEARTH_CACHE_ORIGIN_RECONNECT_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cache/origin/reconnect/reconnect.h"

/* While it is in use Ceph is asked this often, and a lease counts for so long (checks.c). */
#define RECONNECT_CHECK_MS 3000
#define RECONNECT_LEASE_MS 12000

/*
 *   current -> over: lost (connection_lose) or at rest (rest.c) -> ending, once no call uses it
 *           -> ended (abandon(), or its close, has returned)
 *
 * The struct of a lost one stays until the origin is closed, since nodes and files name the one
 * they are of. The struct of one at rest is used for the next connection, with another number:
 * nodes remember the number.
 */
typedef struct Connection {
    Origin *inner;          /* NULL: ended at rest */
    uint64_t number;        /* changes only while no call uses it */
    _Atomic unsigned uses;  /* running calls */
    _Atomic gboolean over;  /* set under Reconnect.lock, which guards all below */
    gboolean rests;         /* over, and all that was written is in Ceph; else it was lost */
    gboolean ending, ended; /* in this order */
    int64_t lost_ms;
    int64_t end_calls_ms; /* when its calls are ended, if any wait then; 0: they are */
    /* Checks, numbered from 1; one is under way at a time. */
    uint64_t wanted, begun, answered, failed;
    gboolean checking; /* a thread runs them */
    int64_t asked_ms;  /* when the check under way was sent; 0: there is none */
    int64_t
        suspect_ms; /* since when a new client is answered and that check is not; 0: it is not so */
    GPtrArray *left;  /* nodes to put when it ends; Reconnect.left_mutex */
    GPtrArray *files; /* of one that was lost, to close when it has ended; NULL: none */
} Connection;

typedef struct Reconnect {
    Origin base;
    const ReconnectOps *ops;
    void *data;
    pthread_mutex_t lock;
    pthread_cond_t changed;      /* current, a connection's state, resting, stopping, keepers */
    Connection *_Atomic current; /* set under lock; NULL: at rest, or not connected again yet */
    GPtrArray *connections;      /* lock, as the next; all structs */
    uint64_t numbers;            /* given to connections */
    _Atomic gboolean stopping;   /* set under lock */
    _Atomic uint64_t session;    /* of the current one, or of the one to come */
    _Atomic int64_t heard_ms;    /* when the last check that was answered was sent; 0: none was */
    /* Since when Ceph was asked and has not answered; 0: it has. Of checks, and of connecting. */
    _Atomic int64_t unanswered_ms;
    _Atomic int64_t data_ms;                 /* when a read of a file was last answered */
    _Atomic unsigned leases;                 /* held */
    _Atomic gboolean leased;                 /* one has begun since the lease keeper looked */
    _Atomic gboolean dozes;                  /* the lease keeper: the next lease wakes it */
    _Atomic unsigned handles;                /* open files and listings */
    _Atomic gboolean touched;                /* used since rest.c looked */
    _Atomic gboolean resting;                /* set under lock: the next use has it connect */
    gboolean keeper_runs, lease_keeper_runs; /* lock, as all of these */
    gboolean rest_begins;                    /* a thread finds out whether it can rest */
    gboolean after_loss;                     /* the connection before was lost */
    gboolean refused;                        /* Ceph refuses the next one */
    unsigned waiters;                        /* for the next one */
    int64_t told_ms;                         /* when the log was told that there is none yet */
    int64_t idle_ms;                         /* since when nothing has used it */
    pthread_mutex_t listener_mutex;          /* guards listener, also while it is called */
    OriginListener listener;
    pthread_mutex_t locks_mutex; /* a leaf; guards both of the next */
    GPtrArray *locks;            /* OriginLocks that are open */
    GPtrArray *lost_locks;       /* closed ones, of connections that were lost */
    pthread_mutex_t left_mutex;  /* guards Connection.left, and number with the lock */
} Reconnect;

/* CLOCK_BOOTTIME: goes on while the machine sleeps and this process is stopped. */
int64_t boottime_ms(void);

static inline gboolean is_loss(int64_t r)
{
    return r == -ESHUTDOWN || r == -ENOTCONN;
}

/* --- connection.c --- */
/* Becomes the current one. */
void connection_add_locked(Reconnect *o, Origin *inner);
/* One more, or less, of the process. */
void connection_count(int change);
/* Ceph is asked, from now on. */
void connection_asked(Reconnect *o, int64_t now);
/* FALSE: it is over. */
gboolean connection_try_use(Reconnect *o, Connection *c);
typedef enum ConnectionUse {
    CONNECTION_USED,  /* until connection_done() */
    CONNECTION_ENDED, /* by abandon(): what is of it is still to be freed */
    CONNECTION_GONE,  /* with all that was of it */
} ConnectionUse;
/* A certain one, by the number that it had. */
ConnectionUse connection_use_this(Reconnect *o, Connection *c, uint64_t number);
/* r: the call's result. */
void connection_done(Reconnect *o, Connection *c, int64_t r);
/* Whether a call uses any of them. */
gboolean connection_any_used_locked(const Reconnect *o);
void connection_lose_locked(Reconnect *o, Connection *c);
/* Puts a node of a connection that is over when no call can use it any more. */
void connection_put_at_end(Reconnect *o, Connection *c, uint64_t number, OriginNode *inner);
void connection_put_left(Reconnect *o, Connection *c);
/* Whether the connection was lost, and the file is closed when it has ended: a close could wait in
 * it. */
gboolean connection_close_at_end(Reconnect *o, Connection *c, OriginFile *inner);
void connection_close_left_locked(Reconnect *o, Connection *c);
/* 1: one lease more is held, -1: one less. */
void connection_count_lease(Reconnect *o, int change);

/* --- checks.c --- */
/* Ceph has answered what was sent then. */
void checks_heard_locked(Reconnect *o, int64_t sent);
/* A read of a file was answered by OSDs. */
void checks_heard_data(Reconnect *o);
/* Has a check begin, and gives its number. It uses the connection while it runs. */
uint64_t checks_want_locked(Reconnect *o, Connection *c);
/* Asks Ceph, beginning now. 0, or -EIO: the connection is lost, or its state is unknown. */
int checks_ask(Reconnect *o, Connection *c);
/* Ceph was heard from lately enough for a new lease. */
gboolean checks_just_heard(Reconnect *o);
gboolean reconnect_vouches(Origin *base);
uint64_t reconnect_silent_ms(Origin *base);

/* --- rest.c --- */
/* Now and then, on a connection that is current: it begins to rest once it was idle for long. */
void rest_look_locked(Reconnect *o, Connection *c);
/* There is no connection, and the next use makes one. */
void rest_until_used_locked(Reconnect *o);
/* Ends what has begun to rest, when no call uses it. */
void rest_end(Reconnect *o, Connection *c);
/* r, the result of opening a file or a listing, which is counted. */
int rest_count_handle(Reconnect *o, int r);

/* --- keepers.c --- */
/* Starts those that do not run. FALSE: a thread could not be made. */
gboolean keepers_start_locked(Reconnect *o);
/* Ends what is over, not used any more, and quiet; has calls that wait on it return. FALSE:
 * something is not so yet. */
gboolean keepers_end_over_locked(Reconnect *o);

/* --- use.c --- */
/* The current connection, in use until connection_done(). NULL: there is none, also after waiting
 * for a while. `wait` ends a rest. */
Connection *connection_use(Reconnect *o, gboolean wait);

/* --- locks.c --- */
/* `node` is on that connection, which is in use. */
int locks_open_on(Reconnect *o, Connection *c, uint64_t ino, OriginNode *node, OriginLocks **locks);
int reconnect_lock_set(Origin *base, OriginLocks *locks, const struct flock *lock, uint64_t owner);
int reconnect_lock_get(Origin *base, OriginLocks *locks, struct flock *lock, uint64_t owner);
void reconnect_locks_close(Origin *base, OriginLocks *locks);
/* Whether locks of the inode that were not closed yet are of another connection. */
gboolean locks_are_lost(Reconnect *o, const Connection *c, uint64_t ino);
/* At the end, while the connections' structs are there. */
void locks_free_lost(Reconnect *o);

/* --- reconnect.c --- */
/* Starts with the first connection; origin_ops is the table of the origin. NULL: no thread could be
 * made, and the first connection is closed. */
Origin *reconnect_begin(const OriginOps *origin_ops, Origin *first, const ReconnectOps *ops,
                        void *data);
void reconnect_destroy(Origin *base);
void reconnect_listen(Origin *base, const OriginListener *listener);
void reconnect_reach(Origin *base, const char *monitors, const char *key, unsigned timeout_sec);
uint64_t reconnect_session(Origin *base);
gboolean reconnect_rests(Origin *base);

#endif
