/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may change of a volume while it is staged: its cache quota, and the group its files are
 * shown for. One mount shows them for one group, so the group changes only while no pod uses the
 * volume: a later pod with another group gets its own; a pod beside it is refused, because it could
 * not read the files.
 */
#include "driver/node/hearthd/spec.h"
#include "driver/node/served/served.h"
#include "proto/wire_keys.h"

gboolean served_renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                      Deadline deadline, GError **error)
{
    gboolean attached;
    if (!hearthd_open(link, spec, left_ms(deadline, SERVED_ASK_MS), &attached, error))
        return FALSE;
    keeper_renew(s->keeper, volume, spec);
    return TRUE;
}

const MountEntry *served_find_publication(const GPtrArray *table, dev_t dev, const char *staged)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (entry->dev == dev && !g_str_has_suffix(entry->target, staged))
            return entry;
    }
    return NULL;
}

gboolean served_refuse_group(const char *volume, const MountEntry *other, gint64 group,
                             GError **error)
{
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "volume %s is published at %s for another fsGroup than %" G_GINT64_FORMAT
        ": pods that share a volume on one node need the same fsGroup; give them one, or "
        "keep them on different nodes",
        volume, other->target, group);
}

gboolean served_show_for_group(Staging *s, const char *volume, const char *staged, dev_t dev,
                               gint64 group, Deadline deadline, GError **error)
{
    if (group < 0)
        return TRUE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link || !watch_fetch(s->keeper, link, volume, error))
        return FALSE;
    json_t *kept = keeper_spec(s->keeper, volume);
    const json_t *now = json_object_get(kept, WIRE_KEY_MOUNT_GROUP);
    gboolean good = TRUE;
    if (!now || json_integer_value(now) != (json_int_t)group) {
        g_autoptr(GPtrArray) table = served_list(s, error);
        const MountEntry *other = table ? served_find_publication(table, dev, staged) : NULL;
        json_object_set_new(kept, WIRE_KEY_MOUNT_GROUP, json_integer((json_int_t)group));
        if (other)
            good = served_refuse_group(volume, other, group, error);
        else
            good = table && served_renew(s, link, volume, kept, deadline, error);
    }
    node_spec_free(kept);
    return good;
}

FsgroupWalk *served_steal_walk(Staging *s, const char *volume)
{
    gpointer walk = NULL, key = NULL;
    g_mutex_lock(&s->walks_lock);
    g_hash_table_steal_extended(s->walks, volume, &key, &walk);
    g_mutex_unlock(&s->walks_lock);
    g_free(key);
    return walk;
}

void served_keep_walk(Staging *s, const char *volume, FsgroupWalk *walk)
{
    if (!walk)
        return;
    g_mutex_lock(&s->walks_lock);
    g_hash_table_replace(s->walks, g_strdup(volume), walk);
    g_mutex_unlock(&s->walks_lock);
}
