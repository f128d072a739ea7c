/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look lists /proc, and takes the processes whose cgroup has the UID of the pod, or that descend
 * from the given one. What a process is, is found out once; a process that ends between two looks
 * is not seen. Of a thread that does not run, the call and the file are read: three small files.
 */
#include "cmd/hearthctl/why/waits.h"
#include "cmd/hearthctl/client/mounts.h"
#include "cmd/hearthctl/why/calls.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/autofd.h"

#define NAME_BYTES 256

typedef struct Process {
    gboolean ours;
    gboolean seen; /* its CPU time was read before */
    guint64 ticks, ticks_first;
} Process;

typedef struct Device {
    guint64 kinds[WAIT_KINDS];
    guint64 uninterruptible; /* of them; a terminal or a pipe never makes a thread wait so */
} Device;

struct Waits {
    char **uids; /* of pods; NULL: `root` and its descendants */
    int root;
    GHashTable *processes; /* int -> Process * */
    GHashTable *mounts;    /* mount namespace -> GPtrArray * of MountEntry */
    GHashTable *devices;   /* "major:minor" -> Device * */
    WaitsSum sum;
    guint64 pages, async;
};

static Waits *waits_new(void)
{
    Waits *w = g_new0(Waits, 1);
    w->processes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    w->mounts =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    w->devices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return w;
}

/* The driver "systemd" of cgroups writes an UID with "_" for "-". */
Waits *waits_of_pods(const char *const *uids)
{
    Waits *w = waits_new();
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (; *uids; uids++) {
        g_ptr_array_add(all, g_strdup(*uids));
        g_ptr_array_add(all, g_strdelimit(g_strdup(*uids), "-", '_'));
    }
    g_ptr_array_add(all, NULL);
    w->uids = (char **)g_ptr_array_steal(all, NULL);
    return w;
}

Waits *waits_of_process(int pid)
{
    Waits *w = waits_new();
    w->root = pid;
    return w;
}

void waits_free(Waits *w)
{
    if (!w)
        return;
    g_strfreev(w->uids);
    g_hash_table_unref(w->processes);
    g_hash_table_unref(w->mounts);
    g_hash_table_unref(w->devices);
    g_free(w);
}

/* ---- files of /proc ---- */

static char *read_of(int pid, const char *name)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* What follows the command in "stat", from the state on; NULL: it is gone. */
static const char *stat_fields(const char *stat)
{
    const char *end = stat ? strrchr(stat, ')') : NULL;
    return end && end[1] == ' ' ? end + 2 : NULL;
}

static gboolean parse_stat(const char *stat, char *state, int *parent, guint64 *ticks)
{
    guint64 user, kernel;
    const char *fields = stat_fields(stat);
    if (!fields ||
        sscanf(fields,
               "%c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
               state, parent, &user, &kernel) != 4)
        return FALSE;
    *ticks = user + kernel;
    return TRUE;
}

/* ---- which processes ---- */

static gboolean is_of_pod(const Waits *w, int pid)
{
    g_autofree char *cgroup = read_of(pid, "cgroup");
    for (char **uid = w->uids; cgroup && *uid; uid++)
        if (strstr(cgroup, *uid))
            return TRUE;
    return FALSE;
}

/* By the parent that an earlier look saw; kernel threads and the first process have none. */
static gboolean descends(const Waits *w, int pid, int parent)
{
    const Process *above = g_hash_table_lookup(w->processes, GINT_TO_POINTER(parent));
    return pid == w->root || (above && above->ours);
}

static Process *find(Waits *w, int pid, int parent)
{
    Process *p = g_hash_table_lookup(w->processes, GINT_TO_POINTER(pid));
    if (!p) {
        p = g_new0(Process, 1);
        p->ours = w->uids ? is_of_pod(w, pid) : descends(w, pid, parent);
        g_hash_table_insert(w->processes, GINT_TO_POINTER(pid), p);
    }
    return p;
}

/* ---- what a thread waits for ---- */

static const GPtrArray *mounts_of(Waits *w, int pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/ns/mnt", pid);
    g_autofree char *space = g_file_read_link(path, NULL);
    if (!space)
        return NULL;
    GPtrArray *mounts = g_hash_table_lookup(w->mounts, space);
    g_autofree char *text = mounts ? NULL : read_of(pid, "mountinfo");
    if (!mounts && text) {
        mounts = mounts_entries(text);
        g_hash_table_insert(w->mounts, g_steal_pointer(&space), mounts);
    }
    return mounts;
}

static const MountEntry *mount_of_fd(Waits *w, int pid, int fd)
{
    static const char member[] = "mnt_id:";
    g_autofree char *name = g_strdup_printf("fdinfo/%d", fd);
    g_autofree char *info = read_of(pid, name);
    const char *id = info ? strstr(info, member) : NULL;
    const GPtrArray *mounts = id ? mounts_of(w, pid) : NULL;
    for (guint i = 0; mounts && i < mounts->len; i++) {
        const MountEntry *entry = mounts->pdata[i];
        if (entry->id == (int)g_ascii_strtoll(id + strlen(member), NULL, 10))
            return entry;
    }
    return NULL;
}

/* The text at an address of the process, as much as there is of it; the caller's. */
static char *text_of(int pid, guint64 address)
{
    char name[NAME_BYTES];
    g_autofree char *path = g_strdup_printf("/proc/%d/mem", pid);
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? pread(fd, name, sizeof(name) - 1, (off_t)address) : -1;
    if (n <= 0)
        return NULL;
    name[n] = '\0';
    return g_strdup(name);
}

static const MountEntry *mount_of_path(Waits *w, int pid, const Call *call)
{
    g_autofree char *name = text_of(pid, call->path);
    if (!name)
        return NULL;
    if (name[0] != '/' && call->fd != AT_FDCWD)
        return mount_of_fd(w, pid, call->fd);
    g_autofree char *link = g_strdup_printf("/proc/%d/cwd", pid);
    g_autofree char *cwd = name[0] == '/' ? NULL : g_file_read_link(link, NULL);
    g_autofree char *whole = g_canonicalize_filename(name, cwd ? cwd : "/");
    const GPtrArray *mounts = mounts_of(w, pid);
    return mounts ? mounts_entry_of(mounts, whole) : NULL;
}

static void add_wait(Waits *w, const char *name, WaitKind kind, char state)
{
    Device *device = g_hash_table_lookup(w->devices, name);
    if (!device) {
        device = g_new0(Device, 1);
        g_hash_table_insert(w->devices, g_strdup(name), device);
    }
    device->kinds[kind]++;
    device->uninterruptible += state == 'D';
}

/* Descriptors are of the whole process. */
static void look_at_call(Waits *w, int pid, const char *task, char state)
{
    g_autofree char *name = g_strdup_printf("task/%s/syscall", task);
    g_autofree char *line = read_of(pid, name);
    const Call call = line ? call_parse(line) : (Call){.file = CALL_NONE};
    const MountEntry *mount = NULL;
    if (call.file == CALL_PAGE)
        w->pages++;
    else if (call.file == CALL_ASYNC)
        w->async++;
    else if (call.file == CALL_FD)
        mount = mount_of_fd(w, pid, call.fd);
    else if (call.file == CALL_PATH)
        mount = mount_of_path(w, pid, &call);
    if (mount)
        add_wait(w, mount->device, call.kind, state);
}

static void look_at_threads(Waits *w, int pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task", pid);
    g_autoptr(GDir) tasks = g_dir_open(path, 0, NULL);
    for (const char *task; tasks && (task = g_dir_read_name(tasks));) {
        g_autofree char *name = g_strdup_printf("task/%s/stat", task);
        g_autofree char *stat = read_of(pid, name);
        const char *fields = stat_fields(stat);
        if (!fields)
            continue;
        w->sum.threads++;
        if (fields[0] == 'R')
            w->sum.running++;
        else if (fields[0] == 'S' || fields[0] == 'D')
            look_at_call(w, pid, task, fields[0]);
    }
}

/* ---- the look ---- */

static void count_cpu(const Waits *w, Process *p, guint64 ticks)
{
    if (!p->seen)
        p->ticks_first = w->sum.looks == 0 ? ticks : 0;
    p->seen = TRUE;
    p->ticks = ticks;
}

gboolean waits_look(Waits *w)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    gboolean any = FALSE;
    for (const char *name; proc && (name = g_dir_read_name(proc));) {
        const int pid = atoi(name);
        const Process *known =
            pid > 0 ? g_hash_table_lookup(w->processes, GINT_TO_POINTER(pid)) : NULL;
        if (pid <= 0 || (known && !known->ours))
            continue;
        g_autofree char *stat = read_of(pid, "stat");
        char state;
        int parent;
        guint64 ticks;
        if (!parse_stat(stat, &state, &parent, &ticks) || state == 'Z' || state == 'X')
            continue;
        Process *p = find(w, pid, parent);
        if (!p->ours)
            continue;
        any = TRUE;
        count_cpu(w, p, ticks);
        look_at_threads(w, pid);
    }
    w->sum.ended = !any && w->sum.looks > 0;
    w->sum.looks += any ? 1 : 0;
    return any;
}

WaitsSum waits_sum(const Waits *w)
{
    WaitsSum sum = w->sum;
    GHashTableIter iter;
    void *value;
    guint64 ticks = 0;
    g_hash_table_iter_init(&iter, w->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Process *p = value;
        ticks += p->ticks - p->ticks_first;
    }
    sum.cpu_sec = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return sum;
}

void waits_on(const Waits *w, const char *device, guint64 kinds[WAIT_KINDS])
{
    const Device *found = g_hash_table_lookup(w->devices, device);
    memset(kinds, 0, WAIT_KINDS * sizeof(*kinds));
    if (found)
        memcpy(kinds, found->kinds, sizeof(found->kinds));
}

guint64 waits_elsewhere(const Waits *w, const char *const *devices)
{
    GHashTableIter iter;
    void *name, *value;
    guint64 sum = 0;
    g_hash_table_iter_init(&iter, w->devices);
    while (g_hash_table_iter_next(&iter, &name, &value))
        if (!g_strv_contains(devices, name))
            sum += ((const Device *)value)->uninterruptible;
    return sum;
}

guint64 waits_for_completions(const Waits *w)
{
    return w->async;
}

guint64 waits_for_pages(const Waits *w)
{
    return w->pages;
}
