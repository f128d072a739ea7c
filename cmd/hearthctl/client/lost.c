/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the mounts that hearthd does not list whether anybody serves them. Nobody does when
 * statfs(2) fails with ENOTCONN, at once. One that is being served by another, or only now begins
 * to be, may not answer for long, so that a thread asks and is left behind after a while.
 */
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/mounts.h"
#include <errno.h>
#include <sys/vfs.h>

#define PROBE_MS 1000
/* Others than kubelet's mounts are not of pods, and may be of another hearthd. */
#define KUBELET_DIRECTORY "/kubelet/"

typedef struct Probe {
    char *point;
    GMutex lock;
    GCond ended;
    gboolean done; /* lock */
    int error;     /* lock */
} Probe;

static void probe_free(void *data)
{
    Probe *probe = data;
    g_free(probe->point);
    g_mutex_clear(&probe->lock);
    g_cond_clear(&probe->ended);
}

static void *ask(void *data)
{
    Probe *probe = data;
    struct statfs st;
    const int error = statfs(probe->point, &st) < 0 ? errno : 0;
    g_mutex_lock(&probe->lock);
    probe->error = error;
    probe->done = TRUE;
    g_cond_signal(&probe->ended);
    g_mutex_unlock(&probe->lock);
    g_atomic_rc_box_release_full(probe, probe_free);
    return NULL;
}

gboolean ctl_mount_is_dead(const char *point)
{
    Probe *probe = g_atomic_rc_box_new0(Probe);
    probe->point = g_strdup(point);
    g_mutex_init(&probe->lock);
    g_cond_init(&probe->ended);
    g_thread_unref(g_thread_new("probe", ask, g_atomic_rc_box_acquire(probe)));
    const gint64 end = g_get_monotonic_time() + PROBE_MS * G_TIME_SPAN_MILLISECOND;
    g_mutex_lock(&probe->lock);
    while (!probe->done && g_cond_wait_until(&probe->ended, &probe->lock, end))
        ;
    const gboolean dead = probe->done && probe->error == ENOTCONN;
    g_mutex_unlock(&probe->lock);
    g_atomic_rc_box_release_full(probe, probe_free);
    return dead;
}

GPtrArray *ctl_lost_mounts(const json_t *served)
{
    g_autofree char *mountinfo = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &mountinfo, NULL, NULL))
        return NULL;
    GPtrArray *lost = mounts_lost(mountinfo, served, KUBELET_DIRECTORY);
    for (guint i = lost->len; i-- > 0;)
        if (!ctl_mount_is_dead(((const LostMount *)lost->pdata[i])->point))
            g_ptr_array_remove_index(lost, i);
    return lost;
}
