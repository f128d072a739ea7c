/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may block for long, by what it is about: a lane has one key, its work is merged, and
 * no lane waits for another. All lanes of the process share its threads: these are made when all
 * are busy, and end when they are not needed.
 *
 * When a run takes longer than a moment, the lane's work is given to another run, which may find a
 * way around the blocked one. A lane has at most LANE_RUNS_MAX runs, each later than the one
 * before; further work waits until one returns.
 *
 * So there are as many lanes as keys with work, each with one piece of merged work that waits, and
 * at most threads_max runs of one Lanes. When all of them are blocked, work waits: done() is called
 * only for work that was run.
 */
#ifndef HEARTH_CACHE_FUSE_LANES_H
#define HEARTH_CACHE_FUSE_LANES_H

#include <glib.h>
#include <stdint.h>

#define LANE_RUNS_MAX 8

typedef struct Lanes Lanes;

typedef struct LaneKey {
    uint64_t kind, a, b;
} LaneKey;

typedef struct LaneOps {
    /* Both pieces of work in one; called with the lock of the lanes held. */
    void *(*merge)(void *work, void *more);
    /* What decides where run() blocks: there is no use in another in the state of one that has not
     * returned. With the lock. */
    unsigned (*state)(void *data, const LaneKey *key, const void *work);
    /*
     * What run() needs of the work, which another run may take over meanwhile; called with the lock
     * held. NULL: it needs the work itself, and is not overtaken.
     */
    void *(*aim)(void *data, const LaneKey *key, const void *work);
    /* May block. Takes over the aim, or borrows the work. `tries`: the number of runs before it
     * that have not returned. */
    void (*run)(void *data, const LaneKey *key, void *aim_or_work, unsigned tries);
    /* The work was run, to the end; takes it over. */
    void (*done)(void *data, const LaneKey *key, void *work);
    unsigned threads_max;
} LaneOps;

/* NULL with G_IO_ERROR: no thread can be made. */
Lanes *lanes_start(const LaneOps *ops, void *data, GError **error);
/* Does all there is to do, then ends. Nothing may be added any more, but by done(). */
void lanes_stop(Lanes *lanes);
/* Takes over `work`. Waits for nothing. */
void lanes_add(Lanes *lanes, const LaneKey *key, void *work);
/* TRUE: there is nothing to do; FALSE: there still was after timeout_ms. One caller at a time. */
gboolean lanes_await_idle(Lanes *lanes, unsigned timeout_ms);
/* For tests: lanes with work, and threads of the process. */
unsigned lanes_count(Lanes *lanes);
unsigned lanes_threads(void);

#endif
