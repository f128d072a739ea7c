/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the threads of one more client of Ceph can be made. Ceph's libraries abort the process
 * when they cannot make a thread. So a client is made only while there is room for all its threads,
 * below the limits of the cgroup (pids.max), of the kernel and of --max-threads. Without room,
 * connections that nobody uses rest at once; a call that finds none even so gets an error, alone.
 *
 * RLIMIT_NPROC does not count for root, as which hearthd runs.
 */
#ifndef HEARTH_CACHE_ORIGIN_THREAD_ROOM_H
#define HEARTH_CACHE_ORIGIN_THREAD_ROOM_H

#include <glib.h>
#include <stdint.h>

/* Clients of Ceph, with what Hearth adds (docs/design/facts.md), and some more. */
#define THREAD_ROOM_CEPHFS 28
#define THREAD_ROOM_RBD 28
#define THREAD_ROOM_QUESTION 16
/* What thread_room_has_spare() leaves for threads that Hearth cannot do without. */
#define THREAD_ROOM_KEPT 8
/* How long a call waits for others to rest. */
#define THREAD_ROOM_WAIT_MS 8000

/* At most so many threads of the process. 0: as many as cgroup and kernel allow, the default. */
void thread_room_set_most(unsigned most);
/*
 * Before a client is made: n threads are taken, until they are given back. Waits for at most
 * wait_ms. NO_SPACE of G_IO_ERROR names the limit and the fix.
 */
gboolean thread_room_take(unsigned n, int64_t wait_ms, GError **error);
/* They are made, or are not needed: they count as threads of the process from now on. */
void thread_room_give(unsigned n);
/* A call waits for connections to rest. */
gboolean thread_room_is_wanted(void);

/*
 * Whether one more thread may be made that Hearth can do without. The threads of clients of Ceph
 * that are being made, which may take as long as Ceph pauses, and a few more are left alone. A "no"
 * is remembered for a moment; else it costs as much as reading some files of /proc.
 */
gboolean thread_room_has_spare(void);

/* Threads of the process, and how many it can have; most is UINT64_MAX without a limit. */
void thread_room_look(uint64_t *threads, uint64_t *most);

#endif
