/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills a program at a chosen call to Ceph, without a line for it in the program:
 *
 *   LD_PRELOAD=build/tools/ceph-faults.so CEPH_FAULT=after:3 hearth-csi ...
 *
 * Calls that leave the process are counted from 1 over all threads; at call N the process gets
 * SIGKILL before the library is entered, or after it has returned. CEPH_FAULT_LOG=FILE appends a
 * line for each call that returned: its milliseconds, its name, and the command of those to the
 * monitors and the mgr.
 *
 * CEPH_HOLD=rbd_remove:1 stops the thread that is about to make the Nth call of that name, as if it
 * was frozen there: it makes CEPH_HOLD_DIR/held and waits until CEPH_HOLD_DIR/go is there.
 *
 * The wrappers know nothing of the functions but that they take at most 10 integers or pointers and
 * return one: on the ABIs of Linux, words too many are not looked at.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef long (*Function)(long, long, long, long, long, long, long, long, long, long);

static atomic_int calls;
static int fault_call;
static int fault_after;
static int log_fd = -1;
static char hold_name[64];
static int hold_call;
static const char *hold_dir;
static atomic_int hold_calls;

__attribute__((constructor)) static void read_environment(void)
{
    const char *fault = getenv("CEPH_FAULT"), *log = getenv("CEPH_FAULT_LOG");
    if (fault && sscanf(fault, "before:%d", &fault_call) != 1)
        fault_after = sscanf(fault, "after:%d", &fault_call) == 1;
    const char *hold = getenv("CEPH_HOLD");
    hold_dir = getenv("CEPH_HOLD_DIR");
    if (hold && hold_dir && sscanf(hold, "%63[^:]:%d", hold_name, &hold_call) != 2)
        hold_call = 0;
    if (log)
        log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void hold_here(const char *name)
{
    char path[512];
    if (!hold_call || strcmp(name, hold_name) != 0 || ++hold_calls != hold_call)
        return;
    snprintf(path, sizeof(path), "%s/held", hold_dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    snprintf(path, sizeof(path), "%s/go", hold_dir);
    while (access(path, F_OK) != 0)
        usleep(5000);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* The second argument of commands is an array of one text. */
static void note(const char *name, long argument, const struct timespec *start)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ms =
        (double)(end.tv_sec - start->tv_sec) * 1e3 + (double)(end.tv_nsec - start->tv_nsec) / 1e6;
    char line[1024];
    const char *detail = strstr(name, "_command") ? *(const char *const *)argument : "";
    int n = snprintf(line, sizeof(line), "%.3f %s %s\n", ms, name, detail);
    if (n >= (int)sizeof(line)) {
        n = sizeof(line);
        line[n - 1] = '\n';
    }
    if (write(log_fd, line, (size_t)n) < 0)
        abort();
}

static Function find(const char *name)
{
    Function function;
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) {
        fprintf(stderr, "ceph-faults: there is no %s\n", name);
        abort();
    }
    memcpy(&function, &symbol, sizeof(function));
    return function;
}

#define WRAP(name)                                                                                 \
    long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j);     \
    long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)      \
    {                                                                                              \
        static _Atomic(Function) real;                                                             \
        Function function = real;                                                                  \
        if (!function)                                                                             \
            real = function = find(#name);                                                         \
        int call = ++calls;                                                                        \
        if (call == fault_call && !fault_after)                                                    \
            die();                                                                                 \
        hold_here(#name);                                                                          \
        struct timespec start;                                                                     \
        clock_gettime(CLOCK_MONOTONIC, &start);                                                    \
        long result = function(a, b, c, d, e, f, g, h, i, j);                                      \
        if (call == fault_call && fault_after)                                                     \
            die();                                                                                 \
        if (log_fd >= 0)                                                                           \
            note(#name, b, &start);                                                                \
        return result;                                                                             \
    }

WRAP(rados_connect)
WRAP(rados_exec)
WRAP(rados_mgr_command)
WRAP(rados_mon_command)
WRAP(rados_nobjects_list_open)
WRAP(rados_read)
WRAP(rados_read_op_operate)
WRAP(rados_remove)
WRAP(rados_stat)
WRAP(rados_write_op_operate)
WRAP(rbd_aio_compare_and_write)
WRAP(rbd_clone3)
WRAP(rbd_close)
WRAP(rbd_create4)
WRAP(rbd_get_group)
WRAP(rbd_get_parent)
WRAP(rbd_is_exclusive_lock_owner)
WRAP(rbd_list2)
WRAP(rbd_lock_get_owners)
WRAP(rbd_metadata_get)
WRAP(rbd_metadata_list)
WRAP(rbd_metadata_remove)
WRAP(rbd_metadata_set)
WRAP(rbd_open)
WRAP(rbd_open_by_id_read_only)
WRAP(rbd_open_read_only)
WRAP(rbd_quiesce_complete)
WRAP(rbd_quiesce_unwatch)
WRAP(rbd_quiesce_watch)
WRAP(rbd_remove)
WRAP(rbd_resize2)
WRAP(rbd_snap_create)
WRAP(rbd_snap_create2)
WRAP(rbd_snap_remove)
WRAP(rbd_trash_list)
WRAP(rbd_trash_move)
WRAP(rbd_trash_remove)
WRAP(rbd_trash_restore)
WRAP(rbd_watchers_list)
