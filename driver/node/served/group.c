/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may change of a volume while it is staged: its cache quota, its user and key, and the group
 * its files are shown for. One mount shows them for one group, so the group changes only while no
 * pod uses the volume: a later pod with another group gets its own; a pod beside it is refused,
 * because it could not read the files.
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

static gint64 group_in(const json_t *spec)
{
    const json_t *group = json_object_get(spec, WIRE_KEY_MOUNT_GROUP);
    return group ? json_integer_value(group) : -1;
}

gboolean served_update(Staging *s, const ServedUpdate *u, Deadline deadline, GError **error)
{
    const gint64 group = u->spec ? group_in(u->spec) : u->group;
    if (!u->spec && group < 0)
        return TRUE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    node_spec_auto_t *kept = link ? watch_spec(s->keeper, link, u->volume, error) : NULL;
    if (!kept)
        return FALSE;
    if (u->spec && !node_spec_same_volume(kept, u->spec))
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                           "volume %s is staged at %s already, with other parameters; unstage it "
                           "first",
                           u->volume, u->staged);
    /* Another key is not believed: hearthd tries it. */
    gboolean changed = u->spec && node_spec_update(kept, u->spec);
    const gboolean regroup = group >= 0 && group_in(kept) != group;
    g_autoptr(GPtrArray) table = regroup ? served_list(s, error) : NULL;
    if (regroup && !table)
        return FALSE;
    const MountEntry *other = regroup ? served_find_publication(table, u->dev, u->staged) : NULL;
    if (regroup && !other) {
        json_object_set_new(kept, WIRE_KEY_MOUNT_GROUP, json_integer((json_int_t)group));
        changed = TRUE;
    }
    if (changed && !served_renew(s, link, u->volume, kept, deadline, error))
        return FALSE;
    return !other || served_refuse_group(u->volume, other, group, error);
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
