/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publications of pods that hearthd does not serve any more, as after its restart: each access to
 * them fails until the pods are made again.
 */
#ifndef HEARTH_DRIVER_NODE_LOST_H
#define HEARTH_DRIVER_NODE_LOST_H

#include <glib.h>

/* Where to ask. Borrowed. */
typedef struct LostQuery {
    const char *hearthd_socket;
    /* Whether a volume that hearthd does not serve waits for it and fails no access. */
    gboolean (*waits)(void *data, const char *volume);
    void *data;
} LostQuery;

/* Publication * (driver/node/mount/publications.h), the caller's. NULL with an error: hearthd does
 * not answer, so that it is not known. */
GPtrArray *lost_publications(const LostQuery *query, GError **error);

#endif
