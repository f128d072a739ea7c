/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, for threads that are made when there are some, up to a bound, and end when there is none.
 * A task is given for now or for later; one that finds all threads busy waits, and keeps no thread.
 */
#ifndef HEARTH_COMMON_TASKS_H
#define HEARTH_COMMON_TASKS_H

#include <glib.h>
#include <stdint.h>
#include <sys/queue.h>

typedef struct Tasks Tasks;

/* The giver's memory, zero but for `run`, until run() is called, which may free it or give it
 * again. */
typedef struct Task {
    void (*run)(struct Task *task);
    TAILQ_ENTRY(Task) link; /* Tasks.lock, as the next */
    uint64_t due_ms;        /* 0: at once */
    gboolean given;         /* run() is not called yet */
} Task;

/* `least` threads stay once they were made. */
Tasks *tasks_new(unsigned least, unsigned most);
/* Before tasks are given: a thread beside others is made only when has_spare() says that one may
 * be. Tasks wait for those that there are otherwise. */
void tasks_set_spare(Tasks *tasks, gboolean (*has_spare)(void));
/* Runs what was given for now, and waits until no thread is left. NULL is fine. */
void tasks_free(Tasks *tasks);
/* Those of the process, for tasks that do not wait for Ceph. They never end. */
Tasks *tasks_common(void);

/* FALSE: no thread can be had, not even one that is busy. Takes no lock but its own. */
gboolean tasks_give(Tasks *tasks, Task *task);
/* In so many milliseconds, at the earliest. */
gboolean tasks_give_later(Tasks *tasks, Task *task, uint64_t ms);
/* TRUE: it was given, and run() is not called. */
gboolean tasks_take_back(Tasks *tasks, Task *task);
/* How many threads there are. */
unsigned tasks_threads(Tasks *tasks);

#endif
