/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/why/target.h"
#include <string.h>
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/mounts.h"

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
    *mount = (TargetMount){g_strdup(entry->device), volume, point, pod, pv_of(entry->point)};
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

static gboolean is_known(const json_t *volumes, const char *volume)
{
    for (size_t i = 0; i < json_array_size(volumes); i++)
        if (strcmp(ctl_string(json_array_get(volumes, i), "volume"), volume) == 0)
            return TRUE;
    return FALSE;
}

/* The handle that kubelet noted for the volume that is mounted here; NULL: it is none of Hearth's.
 */
static char *noted_volume(const char *point, const json_t *volumes)
{
    g_autofree char *dir = g_path_get_dirname(point);
    g_autofree char *path = g_build_filename(dir, "vol_data.json", NULL);
    json_auto_t *data = json_load_file(path, 0, NULL);
    const char *handle = ctl_string(data, "volumeHandle");
    return is_known(volumes, handle) ? g_strdup(handle) : NULL;
}

GPtrArray *target_of_pod(const char *mountinfo, const char *uid, const json_t *volumes)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(target_mount_free);
    g_autoptr(GPtrArray) entries = mounts_entries(mountinfo);
    for (guint i = 0; i < entries->len; i++) {
        const MountEntry *entry = entries->pdata[i];
        g_autofree char *pod = pod_of(entry->point);
        if (!pod || (uid && strcmp(pod, uid) != 0))
            continue;
        char *volume =
            entry->volume ? g_strdup(entry->volume) : noted_volume(entry->point, volumes);
        if (volume)
            add(all, entry, volume, g_strdup(entry->point), g_steal_pointer(&pod));
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

GPtrArray *target_of_process(const char *mountinfo, int pid)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(target_mount_free);
    g_autoptr(GPtrArray) entries = mounts_entries(mountinfo);
    g_autofree char *number = g_strdup_printf("%d", pid);
    const gboolean all_seen = sees_all(number);
    for (guint i = 0; i < entries->len; i++) {
        const MountEntry *entry = entries->pdata[i];
        if (entry->volume && (!all_seen || uses(number, entries, entry)))
            add(all, entry, g_strdup(entry->volume),
                g_strdup_printf("/proc/%d/root%s", pid, entry->point), NULL);
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
