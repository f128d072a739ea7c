/* SPDX-License-Identifier: Apache-2.0 */
/* The size of images on this node: their expansion, and what is reported of devices. */
#include "driver/node/image/internal.h"

gboolean image_is_staged(Staging *s, const char *volume, gboolean *staged, GError **error)
{
    LoopDevice device = {.number = -1};
    g_auto(ImagePaths) paths = {0};
    if (s->block)
        image_paths_of(s, volume, &paths);
    if (s->block && !s->block->ops->loop_find(s->block, paths.tag, &device, error))
        return FALSE;
    *staged = device.number >= 0;
    return TRUE;
}

/* Grows a mounted file system. Its type may not allow that, but its staging may have grown it. */
static gboolean grow_mounted(Staging *s, const LoopDevice *device, const MountEntry *entry,
                             Deadline deadline, GError **error)
{
    NodeBlock *b = s->block;
    g_auto(BlockContent) content = {0};
    if (!b->ops->can_grow_mounted(b, entry->type)) {
        if (!b->ops->look(b, device->number, left_ms(deadline, G_MAXINT64), &content, error))
            return FALSE;
        if (content.bytes + IMAGE_LEFT_OVER_BYTES > device->bytes)
            return TRUE;
    }
    return b->ops->grow(b, device->number, entry->type, entry->target,
                        left_ms(deadline, G_MAXINT64), error);
}

/* Grows the loop device to the image's size, as hearthd finds it now. */
static gboolean grow_device(Staging *s, const char *volume, const ImagePaths *paths,
                            LoopDevice *device, Deadline deadline, GError **error)
{
    guint64 image_bytes;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    return link &&
           hearthd_resize(link, volume, left_ms(deadline, G_MAXINT64), &image_bytes, error) &&
           s->block->ops->loop_grow(s->block, device->number, paths->file,
                                    left_ms(deadline, G_MAXINT64), &device->bytes, error);
}

gboolean image_expand(Staging *s, const char *volume, guint64 at_least, Deadline deadline,
                      guint64 *bytes, GError **error)
{
    LoopDevice device;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, volume, &paths);
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, NULL, error);
    if (!hold || !s->block->ops->loop_find(s->block, paths.tag, &device, error))
        return FALSE;
    if (device.number < 0)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is not staged on this node", volume);
    if (!grow_device(s, volume, &paths, &device, deadline, error))
        return FALSE;
    *bytes = device.bytes;
    if (*bytes < at_least)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s: the image has %" G_GUINT64_FORMAT
                           " bytes and %" G_GUINT64_FORMAT
                           " are asked for; ControllerExpandVolume comes first",
                           volume, *bytes, at_least);
    g_autoptr(GPtrArray) table = served_list(s, error);
    for (guint i = 0; table && i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (image_is_fs_on(entry, device.number) && !entry->read_only)
            return grow_mounted(s, &device, entry, deadline, error);
    }
    return table != NULL;
}

gboolean image_device_bytes(Staging *s, const char *volume, const char *path, gboolean *is_device,
                            guint64 *bytes, GError **error)
{
    LoopDevice device;
    *is_device = FALSE;
    if (!s->block)
        return TRUE;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, volume, &paths);
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, path, &entry, error) ||
        !s->block->ops->loop_find(s->block, paths.tag, &device, error))
        return FALSE;
    *is_device =
        entry && device.number >= 0 && image_is_published(s, entry, paths.tag, device.number);
    *bytes = device.bytes;
    return TRUE;
}
