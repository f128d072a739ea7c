/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of Hearth's volumes that a job has, from mountinfo and what kubelet notes beside it.
 */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_TARGET_H
#define HEARTH_CMD_HEARTHCTL_WHY_TARGET_H

#include <glib.h>
#include <jansson.h>

typedef struct TargetMount {
    char *device; /* "major:minor" */
    char *volume; /* that hearthd serves it by */
    char *point;  /* where this process reaches it */
    char *pod;    /* UID; NULL: not known */
    char *pv;     /* the PersistentVolume; NULL: not known */
} TargetMount;

void target_mount_free(void *mount);

/*
 * Those of the pod with this UID; NULL: of all pods. `mountinfo` is this process's. An image's
 * mount does not name its volume: then kubelet's vol_data.json beside it does, if `volumes` (all
 * pages of the op) lists that.
 */
GPtrArray *target_of_pod(const char *mountinfo, const char *uid, const json_t *volumes);
/* Those that a process sees; where it sees all of this machine, those that it has open files on. */
GPtrArray *target_of_process(const char *mountinfo, int pid);
/* Each UID once; ends with NULL. The caller's. */
char **target_pods(const GPtrArray *mounts);

#endif
