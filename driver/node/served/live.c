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

static gboolean live_check(Staging *s, const NodeCall *call, StagedVolume *staged, GError **error)
{
    g_auto(MountState) state = {0};
    if (!served_read_state(s, call->volume, call->staged, &state, call->deadline, error))
        return FALSE;
    if (!state.entry)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is not staged at %s; stage it first", call->volume,
                           call->staged);
    if (!served_check_context(state.entry, call->volume, call->use.context,
                              HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    staged->volume = g_strdup(call->volume);
    staged->context = g_strdup(state.entry->context);
    staged->lost = state.alive ? NULL : "hearthd had lost it";
    return TRUE;
}

static gboolean live_restore(Staging *s, const NodeCall *call, const StagedVolume *staged,
                             const json_t *spec, GError **error)
{
    const gboolean read_only = json_is_true(json_object_get(spec, WIRE_KEY_READ_ONLY));
    const ServedMount mount = {.volume = call->volume,
                               .path = call->staged,
                               .spec = spec,
                               .options = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                    (read_only ? MOUNT_ATTR_RDONLY : 0),
                                           .context = staged->context}};
    return served_clear(s, call->volume, call->staged, TRUE, call->deadline, error) &&
           served_mount(s, &mount, call->deadline, error);
}

static gboolean live_publish(Staging *s, const NodeCall *call, GError **error)
{
    ServedUpdate update = {
        .volume = call->volume, .staged = call->staged, .group = call->use.group};
    if (!served_device_at(s, call->staged, &update.dev, error))
        return FALSE;
    if (!served_update(s, &update, call->deadline, error))
        return FALSE;
    return served_bind(s, call, update.dev, error);
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
