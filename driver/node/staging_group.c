/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may change of a volume while it is staged: how many bytes of it are cached, and the group
 * its files are for. One mount shows them for one group, so that changes only while nobody has the
 * volume: a pod that comes after the last one with another group gets its own, and one that comes
 * beside it is refused instead of finding files it cannot read.
 */
#include "driver/node/hearthd/spec.h"
#include "driver/node/staging_internal.h"

gboolean staging_renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                       Deadline deadline, GError **error)
{
    gboolean attached;
    if (!hearthd_open(link, spec, left_ms(deadline, STAGING_ASK_MS), &attached, error))
        return FALSE;
    keeper_renew(s->keeper, volume, spec);
    return TRUE;
}

const MountEntry *staging_find_publication(const GPtrArray *table, dev_t dev, const char *staged,
                                           const char *target)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (entry->dev == dev && !g_str_has_suffix(entry->target, staged) &&
            !(target && g_str_has_suffix(entry->target, target)))
            return entry;
    }
    return NULL;
}

gboolean staging_other_group(const char *volume, const MountEntry *other, gint64 group,
                             GError **error)
{
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                "volume %s is published at %s for another fsGroup than %" G_GINT64_FORMAT
                ": pods that share a volume on one node need the same fsGroup; give them one, or "
                "keep them on different nodes",
                volume, other->target, group);
    return FALSE;
}

gboolean staging_take_group(Staging *s, const char *volume, const char *staged, dev_t dev,
                            gint64 group, Deadline deadline, GError **error)
{
    if (group < 0)
        return TRUE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link || !watch_fetch(s->keeper, link, volume, error))
        return FALSE;
    json_t *kept = keeper_spec(s->keeper, volume);
    const json_t *now = json_object_get(kept, "mountGroup");
    gboolean good = TRUE;
    if (!now || json_integer_value(now) != (json_int_t)group) {
        g_autoptr(GPtrArray) table = staging_list(s, error);
        const MountEntry *other = table ? staging_find_publication(table, dev, staged, NULL) : NULL;
        json_object_set_new(kept, "mountGroup", json_integer((json_int_t)group));
        good = table && (other ? staging_other_group(volume, other, group, error)
                               : staging_renew(s, link, volume, kept, deadline, error));
    }
    node_spec_free(kept);
    return good;
}

FsgroupWalk *staging_take_walk(Staging *s, const char *volume)
{
    gpointer walk = NULL, key = NULL;
    g_mutex_lock(&s->walks_lock);
    g_hash_table_steal_extended(s->walks, volume, &key, &walk);
    g_mutex_unlock(&s->walks_lock);
    g_free(key);
    return walk;
}

void staging_keep_walk(Staging *s, const char *volume, FsgroupWalk *walk)
{
    if (!walk)
        return;
    g_mutex_lock(&s->walks_lock);
    g_hash_table_replace(s->walks, g_strdup(volume), walk);
    g_mutex_unlock(&s->walks_lock);
}
