/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of Hearth's volumes that a job has, from mountinfo and what kubelet notes beside it.
 */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_TARGET_H
#define HEARTH_CMD_HEARTHCTL_WHY_TARGET_H

#include <glib.h>
#include "driver/node/mount/publications.h"

typedef struct TargetMount {
    char *device;  /* "major:minor" */
    char *volume;  /* that hearthd serves it by */
    char *point;   /* where this process reaches it */
    char *pod;     /* UID; NULL: not known */
    char *pv;      /* the PersistentVolume; NULL: not known */
    gboolean live; /* hearthd serves this mount itself; one of a dataset or an image is above it */
} TargetMount;

void target_mount_free(void *mount);

/* Those of the pod with this UID; NULL: of all pods. `mountinfo` is this process's. `backing` NULL:
 * loop devices are as the kernel says. */
GPtrArray *target_of_pod(const char *mountinfo, const char *uid, PublicationsBacking backing);
/* Those that a process sees; where it sees all of this machine, those that it has open files on.
 * `pods`: those of all pods. */
GPtrArray *target_of_process(const char *mountinfo, int pid, const GPtrArray *pods);
/* Each UID once; ends with NULL. The caller's. */
char **target_pods(const GPtrArray *mounts);

#endif
