/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/why/target.h"
#include <string.h>
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/mounts.h"
#include "proto/wire.h"

/* .../pods/<UID>/volumes/kubernetes.io~csi/<PV>/mount, of kubelet. */
#define PODS "/pods/"
#define CSI_VOLUMES "/volumes/kubernetes.io~csi/"

void target_mount_free(void *data)
{
    TargetMount *mount = data;
    g_free(mount->device);
    g_free(mount->volume);
    g_free(mount->point);
    g_free(mount->pod);
    g_free(mount->pv);
    g_free(mount);
}

/* The PersistentVolume in kubelet's path; NULL: it is no such path. */
static char *pv_of(const char *point)
{
    const char *volumes = strstr(point, CSI_VOLUMES);
    const char *pv = volumes ? volumes + strlen(CSI_VOLUMES) : NULL;
    return pv && strchr(pv, '/') ? g_strndup(pv, strcspn(pv, "/")) : NULL;
}

static void add(GPtrArray *all, const MountEntry *entry, char *volume, char *point, char *pod)
{
    TargetMount *mount = g_new0(TargetMount, 1);
    *mount = (TargetMount){.device = g_strdup(entry->device),
                           .volume = volume,
                           .point = point,
                           .pod = pod,
                           .pv = pv_of(entry->point),
                           .live = entry->volume && !g_str_has_prefix(volume, WIRE_DATASET_PREFIX)};
    g_ptr_array_add(all, mount);
}

/* The UID in kubelet's path of a pod's volume; NULL: it is no such path. */
static char *pod_of(const char *point)
{
    const char *volumes = strstr(point, CSI_VOLUMES);
    const char *pod = volumes ? g_strrstr_len(point, volumes - point, PODS) : NULL;
    return pod ? g_strndup(pod + strlen(PODS), (gsize)(volumes - pod - (gssize)strlen(PODS)))
               : NULL;
}

/* What is mounted there; NULL: none of Hearth's. Borrowed. */
static const char *published(const GPtrArray *publications, const char *point)
{
    for (guint i = 0; i < publications->len; i++) {
        const Publication *p = publications->pdata[i];
        if (strcmp(p->target, point) == 0)
            return p->volume;
    }
    return NULL;
}

GPtrArray *target_of_pod(const char *mountinfo, const char *uid, PublicationsBacking backing)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(target_mount_free);
    g_autoptr(GPtrArray) entries = mounts_entries(mountinfo);
    g_autoptr(GPtrArray) publications = publications_of(mountinfo, backing);
    for (guint i = 0; i < entries->len; i++) {
        const MountEntry *entry = entries->pdata[i];
        g_autofree char *pod = pod_of(entry->point);
        if (!pod || (uid && strcmp(pod, uid) != 0))
            continue;
        const char *volume = entry->volume ? entry->volume : published(publications, entry->point);
        if (volume)
            add(all, entry, g_strdup(volume), g_strdup(entry->point), g_steal_pointer(&pod));
    }
    return all;
}

/* ---- of a process ---- */

static char *link_of(const char *pid, const char *name)
{
    g_autofree char *path = g_build_filename("/proc", pid, name, NULL);
    return g_file_read_link(path, NULL);
}

/* A process in a container sees its own volumes alone. */
static gboolean sees_all(const char *pid)
{
    g_autofree char *theirs = link_of(pid, "ns/mnt"), *ours = link_of("self", "ns/mnt");
    return g_strcmp0(theirs, ours) == 0;
}

static gboolean is_on(const GPtrArray *entries, const MountEntry *entry, const char *path)
{
    const MountEntry *found = path && path[0] == '/' ? mounts_entry_of(entries, path) : NULL;
    return found && strcmp(found->device, entry->device) == 0;
}

static gboolean uses(const char *pid, const GPtrArray *entries, const MountEntry *entry)
{
    g_autofree char *dir = g_build_filename("/proc", pid, "fd", NULL), *cwd = link_of(pid, "cwd");
    g_autoptr(GDir) files = g_dir_open(dir, 0, NULL);
    gboolean used = is_on(entries, entry, cwd);
    for (const char *fd; !used && files && (fd = g_dir_read_name(files));) {
        g_autofree char *name = g_build_filename("fd", fd, NULL), *path = link_of(pid, name);
        used = is_on(entries, entry, path);
    }
    return used;
}

/* The volume of a mount that names none: an image's is on the device that a pod has. */
static const char *volume_of(const MountEntry *entry, const GPtrArray *pods)
{
    for (guint i = 0; !entry->volume && i < pods->len; i++) {
        const TargetMount *one = pods->pdata[i];
        if (strcmp(one->device, entry->device) == 0)
            return one->volume;
    }
    return entry->volume;
}

GPtrArray *target_of_process(const char *mountinfo, int pid, const GPtrArray *pods)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(target_mount_free);
    g_autoptr(GPtrArray) entries = mounts_entries(mountinfo);
    g_autofree char *number = g_strdup_printf("%d", pid);
    const gboolean all_seen = sees_all(number);
    for (guint i = 0; i < entries->len; i++) {
        const MountEntry *entry = entries->pdata[i];
        const char *volume = volume_of(entry, pods);
        if (volume && (!all_seen || uses(number, entries, entry)))
            add(all, entry, g_strdup(volume), g_strdup_printf("/proc/%d/root%s", pid, entry->point),
                NULL);
    }
    return all;
}

char **target_pods(const GPtrArray *mounts)
{
    g_autoptr(GPtrArray) pods = g_ptr_array_new();
    for (guint i = 0; i < mounts->len; i++) {
        const TargetMount *mount = mounts->pdata[i];
        if (mount->pod && !g_ptr_array_find_with_equal_func(pods, mount->pod, g_str_equal, NULL))
            g_ptr_array_add(pods, g_strdup(mount->pod));
    }
    g_ptr_array_add(pods, NULL);
    return (char **)g_ptr_array_steal(pods, NULL);
}
