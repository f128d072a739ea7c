/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live volumes: directories of CephFS, or of the machine for development. The mount that hearthd
 * serves is the volume itself, and publications are binds of it. Datasets that cannot be mounted
 * natively are live volumes too.
 */
#include <sys/mount.h>
#include "driver/node/served/served.h"
#include "proto/wire_keys.h"

static gboolean live_takes(const VolumeAttributes *attributes)
{
    (void)attributes;
    return TRUE;
}

static gboolean live_stage(Staging *s, const NodeCall *call, GError **error)
{
    const ServedMount mount = {.volume = call->volume,
                               .path = call->staged,
                               .spec = call->spec,
                               .options = {.attrs = call->use.attrs, .context = call->use.context}};
    return served_mount(s, &mount, call->deadline, error);
}

static gboolean live_check(Staging *s, const NodeCall *call, NodeServed *served, GError **error)
{
    gboolean alive;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *entry = mount_find(table, call->staged);
    if (!entry)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is not staged at %s; stage it first", call->volume,
                           call->staged);
    if (!served_check_owner(s, entry, call->volume, error) ||
        !served_check_context(entry, call->volume, call->use.context,
                              HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link ||
        !served_is_alive(s, link, call->volume, call->staged, &alive, call->deadline, error))
        return FALSE;
    served->volume = g_strdup(call->volume);
    served->context = g_strdup(entry->context);
    served->lost = alive ? NULL : "hearthd had lost it";
    return TRUE;
}

static gboolean live_restore(Staging *s, const NodeCall *call, const NodeServed *served,
                             const json_t *spec, GError **error)
{
    const gboolean read_only = json_is_true(json_object_get(spec, WIRE_KEY_READ_ONLY));
    const ServedMount mount = {.volume = call->volume,
                               .path = call->staged,
                               .spec = spec,
                               .options = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                    (read_only ? MOUNT_ATTR_RDONLY : 0),
                                           .context = served->context}};
    return served_clear(s, call->volume, call->staged, TRUE, call->deadline, error) &&
           served_mount(s, &mount, call->deadline, error);
}

static gboolean live_publish(Staging *s, const NodeCall *call, GError **error)
{
    dev_t dev;
    return served_device_at(s, call->staged, &dev, error) &&
           served_show_for_group(s, call->volume, call->staged, dev, call->use.group,
                                 call->deadline, error) &&
           served_bind(s, call, dev, error);
}

static gboolean live_remove_target(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    return s->mounter->ops->remove_dir(s->mounter, cleanup->path, error);
}

static gboolean live_remove_unused(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    return served_detach_if_last(s, cleanup->volume, cleanup->deadline, error);
}

const NodeKind live_kind = {
    .name = "live",
    .takes = live_takes,
    .stage = live_stage,
    .check = live_check,
    .restore = live_restore,
    .publish = live_publish,
    .remove_target = live_remove_target,
    .remove_unused = live_remove_unused,
};
