/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/health.h"
#include "driver/node/dataset/internal.h"

static char *unserved(Staging *s, const char *volume, Deadline deadline)
{
    gboolean absent, attached;
    g_autoptr(GError) cause = NULL;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, &absent, &cause);
    if (!link && absent)
        return g_strdup("hearthd is not running on this node, so nobody serves the volume; see its "
                        "pod. Files fail until it is back and the volume is published anew");
    if (!link ||
        !hearthd_is_attached(link, volume, left_ms(deadline, STAGING_ASK_MS), &attached, &cause))
        return g_strdup(cause->message);
    return attached ? NULL
                    : g_strdup("hearthd was restarted and no longer serves this mount; restart the "
                               "pods that use it");
}

/* As above for a stack, of which another place may be served. */
static char *layerless(Staging *s, const DatasetPlace *place, Deadline deadline)
{
    gboolean served;
    g_autoptr(GError) cause = NULL;
    g_autofree char *why = unserved(s, place->volume, deadline);
    g_autoptr(GPtrArray) table = why ? NULL : staging_list(s, &cause);
    g_autoptr(HearthdLink) link = table ? hearthd_connect(s->socket_path, NULL, &cause) : NULL;
    if (link && dataset_place_is_served(s, link, table, place, &served, deadline, &cause) && served)
        return NULL;
    return g_strdup_printf("files that this node does not hold cannot be read: %s",
                           why     ? why
                           : cause ? cause->message
                                   : "hearthd was restarted; restart the pods that use it");
}

/* The root through FUSE and Ceph; an inode that is gone answers ESTALE or ENOENT. */
static char *rootless(Staging *s, const char *path, Deadline deadline)
{
    g_autoptr(GError) cause = NULL;
    if (s->mounter->ops->probe(s->mounter, -1, path, left_ms(deadline, G_MAXINT64), &cause))
        return NULL;
    return g_strdup_printf("the volume's root cannot be read: %s; if it was removed in Ceph, "
                           "restore it from a snapshot",
                           cause->message);
}

gboolean health_look(Staging *s, const char *volume, const char *path, gboolean device,
                     gint64 timeout_ms, struct statvfs *st, char **ill, GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    g_autoptr(GError) cause = NULL;
    g_auto(DatasetPlace) place = {0};
    g_autoptr(GPtrArray) table = staging_list(s, NULL);
    const gboolean stack = table && dataset_is_at(table, path, &place);
    *ill = stack ? layerless(s, &place, deadline) : unserved(s, volume, deadline);
    if (device)
        return TRUE;
    gboolean known =
        staging_statvfs(s, volume, path, left_ms(deadline, timeout_ms / 2), st, &cause);
    if (!known && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND)) {
        g_clear_pointer(ill, g_free);
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!*ill && !known)
        *ill = g_strdup_printf("the volume does not answer: %s; see hearthd's log and "
                               "`ceph status`",
                               cause->message);
    if (!*ill)
        *ill = rootless(s, stack ? place.fill : path, deadline);
    return TRUE;
}
