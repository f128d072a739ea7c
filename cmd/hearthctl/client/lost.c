/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the mounts that hearthd does not list whether anybody serves them. Nobody does when
 * statfs(2) fails with ENOTCONN, at once. One that is being served by another, or only now begins
 * to be, may not answer for long, so that a thread asks and is left behind after a while.
 */
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/mounts.h"
#include "driver/node/mount/publications.h"
#include "proto/wire.h"
#include <errno.h>
#include <string.h>
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

static gboolean is_live(const char *mountinfo, const Publication *p)
{
    g_autofree char *volume = NULL, *inside = NULL;
    return mounts_find_volume(mountinfo, p->target, &volume, &inside, NULL) &&
           !g_str_has_prefix(volume, WIRE_DATASET_PREFIX);
}

static gboolean is_listed(const GPtrArray *lost, const char *point)
{
    for (guint i = 0; i < lost->len; i++)
        if (strcmp(((const LostMount *)lost->pdata[i])->point, point) == 0)
            return TRUE;
    return FALSE;
}

/* What a pod has of a dataset or an image is on another file system than the one that hearthd
 * serves, so that statfs(2) knows nothing. A pod gets it only while hearthd serves it. */
static void add_publications(GPtrArray *lost, const GPtrArray *all, const json_t *served)
{
    for (guint i = 0; i < all->len; i++) {
        const Publication *p = all->pdata[i];
        if (!strstr(p->target, KUBELET_DIRECTORY) || mounts_is_served(served, p->volume) ||
            is_listed(lost, p->target))
            continue;
        for (guint k = lost->len; k-- > 0;) {
            const LostMount *one = lost->pdata[k];
            if (!one->pod && strcmp(one->volume, p->volume) == 0)
                g_ptr_array_remove_index(lost, k);
        }
        LostMount *one = g_new0(LostMount, 1);
        *one = (LostMount){g_strdup(p->volume), g_strdup(p->target), g_strdup(p->pod)};
        g_ptr_array_add(lost, one);
    }
}

GPtrArray *ctl_publications(void)
{
    g_autofree char *mountinfo = NULL;
    return g_file_get_contents("/proc/self/mountinfo", &mountinfo, NULL, NULL)
               ? publications_of(mountinfo, NULL)
               : NULL;
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
    /* One that live volumes have is asked above. */
    g_autoptr(GPtrArray) all = ctl_publications();
    for (guint i = all ? all->len : 0; i-- > 0;)
        if (is_live(mountinfo, all->pdata[i]))
            g_ptr_array_remove_index(all, i);
    if (all)
        add_publications(lost, all, served);
    return lost;
}
