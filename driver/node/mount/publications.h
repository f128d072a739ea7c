/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumes of Hearth that pods of this node have, from the mount table and kubelet's paths:
 * live volumes, datasets, file systems on images, and images as devices. The latter two are on loop
 * devices, whose backing file is on the mount of the image.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_PUBLICATIONS_H
#define HEARTH_DRIVER_NODE_MOUNT_PUBLICATIONS_H

#include <glib.h>

typedef struct Publication {
    char *volume; /* that hearthd serves: of a dataset, the one of all its claims */
    char *target; /* kubelet's path */
    char *pod;    /* its UID */
} Publication;

void publication_free(void *publication);
Publication *publication_copy(const Publication *publication);

/* The backing file of "loop3", the caller's; NULL: it has none. */
typedef char *(*PublicationsBacking)(const char *loop);
/* Publication *, in the order of the table; the caller's. `backing` NULL: as the kernel says. */
GPtrArray *publications_of(const char *mountinfo, PublicationsBacking backing);

#endif
