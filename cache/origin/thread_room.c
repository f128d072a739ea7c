/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of each limit is read when it is asked for, since other processes of the cgroup or
 * the node use it too. Threads that were taken and are being made count twice for that time: once
 * as taken, and once more as they appear. So there may be more room than it says, never less.
 */
#include "cache/origin/thread_room.h"
#include <gio/gio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "common/cgroup.h"
#include "common/io_error.h"
#include "common/monotonic.h"

/* For threads of Hearth's own, which are made when they are needed and can be gone without. */
#define SPARE 32
#define LOOK_MS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned taken; /* lock */
static _Atomic unsigned configured, waiting;
static _Atomic int64_t none_until_ms; /* there is no spare one */

typedef struct Room {
    uint64_t left;
    char *limit; /* text; NULL: none */
} Room;

static void narrow(Room *room, uint64_t left, const char *name, uint64_t most)
{
    if (left >= room->left)
        return;
    room->left = left;
    g_free(room->limit);
    room->limit = g_strdup_printf("%s is %" G_GUINT64_FORMAT, name, most);
}

static uint64_t number_of(const char *file)
{
    g_autofree char *text = NULL;
    return g_file_get_contents(file, &text, NULL, NULL) ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static uint64_t own_threads(void)
{
    g_autofree char *text = NULL;
    unsigned threads = 0;
    /* Field 20 of proc_pid_stat(5); the name before may contain anything. */
    const char *after =
        g_file_get_contents("/proc/self/stat", &text, NULL, NULL) ? strrchr(text, ')') : NULL;
    if (after)
        sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u",
               &threads);
    return threads;
}

/* Those of the whole node: "0.1 0.2 0.3 RUNNING/ALL LAST". */
static uint64_t all_threads(void)
{
    g_autofree char *text = NULL;
    unsigned long all = 0;
    if (g_file_get_contents("/proc/loadavg", &text, NULL, NULL))
        sscanf(text, "%*s %*s %*s %*u/%lu", &all);
    return all;
}

static void narrow_by_kernel(Room *room)
{
    static const char *const files[][2] = {
        {"/proc/sys/kernel/threads-max", "kernel.threads-max"},
        {"/proc/sys/kernel/pid_max", "kernel.pid_max"},
    };
    const uint64_t used = all_threads();
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        const uint64_t most = number_of(files[i][0]);
        if (most && used)
            narrow(room, most > used ? most - used : 0, files[i][1], most);
    }
}

static void look(Room *room)
{
    const uint64_t most = atomic_load(&configured);
    *room = (Room){.left = CGROUP_NONE};
    const uint64_t threads = most ? own_threads() : 0;
    if (most)
        narrow(room, most > threads ? most - threads : 0, "--max-threads", most);
    const Cgroup cgroup = CGROUP_OF_PROCESS;
    g_autofree char *file = NULL;
    uint64_t pids;
    const uint64_t left = cgroup_threads_left(&cgroup, &file, &pids);
    if (file)
        narrow(room, left, file, pids);
    narrow_by_kernel(room);
}

static gboolean try_take(unsigned n, Room *room)
{
    pthread_mutex_lock(&lock);
    look(room);
    const gboolean fits = room->left >= (uint64_t)taken + n + SPARE;
    if (fits)
        taken += n;
    pthread_mutex_unlock(&lock);
    return fits;
}

gboolean thread_room_take(unsigned n, int64_t wait_ms, GError **error)
{
    const int64_t until_ms = monotonic_ms() + wait_ms;
    gboolean waits = FALSE, fits;
    Room room;
    while (!(fits = try_take(n, &room)) && monotonic_ms() < until_ms) {
        if (!waits)
            atomic_fetch_add(&waiting, 1);
        waits = TRUE;
        g_free(room.limit);
        g_usleep(LOOK_MS * 1000);
    }
    if (waits)
        atomic_fetch_sub(&waiting, 1);
    if (!fits)
        io_fail(error, G_IO_ERROR_NO_SPACE,
                "no room for the %u threads of one more client of Ceph: %s, %" G_GUINT64_FORMAT
                " of it are left, and %u of these are kept for other work; raise the limit "
                "(kubelet's podPidsLimit, or hearthd's --max-threads), or use fewer volumes at "
                "once on this node",
                n, room.limit, room.left, SPARE);
    g_free(room.limit);
    return fits;
}

void thread_room_give(unsigned n)
{
    pthread_mutex_lock(&lock);
    taken -= n;
    pthread_mutex_unlock(&lock);
}

gboolean thread_room_has_spare(void)
{
    const int64_t now = monotonic_ms();
    if (now < atomic_load(&none_until_ms))
        return FALSE;
    Room room;
    pthread_mutex_lock(&lock);
    look(&room);
    const gboolean some = room.left > (uint64_t)taken + THREAD_ROOM_KEPT;
    pthread_mutex_unlock(&lock);
    g_free(room.limit);
    if (!some)
        atomic_store(&none_until_ms, now + LOOK_MS);
    return some;
}

gboolean thread_room_is_wanted(void)
{
    return atomic_load(&waiting) > 0;
}

void thread_room_set_most(unsigned most)
{
    atomic_store(&configured, most);
    atomic_store(&none_until_ms, 0);
}

void thread_room_look(uint64_t *threads, uint64_t *most)
{
    Room room;
    look(&room);
    *threads = own_threads();
    *most = room.left == CGROUP_NONE ? CGROUP_NONE : *threads + room.left;
    g_free(room.limit);
}
