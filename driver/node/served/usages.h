/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage of volumes when Ceph was last asked, for those that nobody uses: hearthd ends their
 * connection to Ceph, and kubelet asks for the usage of each volume once a minute.
 */
#ifndef HEARTH_DRIVER_NODE_SERVED_USAGES_H
#define HEARTH_DRIVER_NODE_SERVED_USAGES_H

#include <glib.h>
#include <sys/statvfs.h>

/* Thread-safe. */
typedef struct Usages Usages;

Usages *usages_new(void);
void usages_free(Usages *usages);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Usages, usages_free)

/* now_us: of g_get_monotonic_time(). */
void usages_put(Usages *usages, const char *volume, const struct statvfs *st, gint64 now_us);
/* FALSE: it is not known, or not from the last 10 minutes. */
gboolean usages_get(Usages *usages, const char *volume, gint64 now_us, struct statvfs *st);

#endif
