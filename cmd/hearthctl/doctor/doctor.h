/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of hearthctl doctor. Each looks, changes nothing, and adds what it found; none fails
 * the others. */
#ifndef HEARTH_CMD_HEARTHCTL_DOCTOR_DOCTOR_H
#define HEARTH_CMD_HEARTHCTL_DOCTOR_DOCTOR_H

#include <sys/utsname.h>
#include "cmd/hearthctl/report/finding.h"
#include "cmd/hearthctl/client/client.h"

typedef struct Doctor {
    Ctl *ctl;
    Findings *findings;
    gboolean root, wide;
    struct utsname kernel;
    const char *cluster_config; /* NULL: its default place, where there may be none */
    const char *cache_dir;      /* NULL: the one hearthd tells */
    const char *kubeconfig;     /* NULL: as kube_config_load() finds one */
    const char *node;           /* in Kubernetes; NULL: not told */
    char *const *heals;         /* "UID=COMMAND" of pods, for mounts that are lost; may be NULL */
    json_t *hello, *status;     /* of hearthd; NULL: it does not answer */
    GError *silence;            /* why it does not */
} Doctor;

void doctor_kernel(Doctor *d);     /* what the kernel can do of what Hearth uses */
void doctor_node(Doctor *d);       /* limits, sysctls, clock */
void doctor_hearthd(Doctor *d);    /* whether it answers, its version, its errors */
void doctor_disk(Doctor *d);       /* the cache's disk and file system */
void doctor_ceph(Doctor *d);       /* libraries; whether monitors answer */
void doctor_kubernetes(Doctor *d); /* whether kubelet has registered the node plugin, and how */

/* The file, less its last newline, or NULL. */
char *doctor_read(const char *path);

#endif
