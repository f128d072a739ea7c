/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mounted of an image's loop device, and whose it is.
 *
 * A file system has the device's number, and keeps the device from being another's. A published
 * device has not: its node can be bound while the device is gone, or is another volume's by now. So
 * whose a publication is stands in a note on the file below it (block.h). Without one - earlier
 * releases made none, and not every file system takes them - the device decides.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "driver/node/image/internal.h"
#include "driver/node/mount/kubelet_paths.h"

#define LOOP_MAJOR_NUMBER 7

gboolean image_is_fs_on(const MountEntry *entry, int number)
{
    return entry->dev == makedev(LOOP_MAJOR_NUMBER, (unsigned)number);
}

int image_bound_device(const MountEntry *entry)
{
    const char *name = strrchr(entry->root, '/');
    int number, length = 0;
    /* Of the host's /dev, or a container's own. */
    if (strcmp(entry->type, "devtmpfs") != 0 && strcmp(entry->type, "tmpfs") != 0)
        return -1;
    if (!name || sscanf(name, "/loop%d%n", &number, &length) != 1 || name[length])
        return -1;
    return number;
}

const MountEntry *image_find_fs(const GPtrArray *table, int number)
{
    for (guint i = 0; i < table->len; i++)
        if (image_is_fs_on(table->pdata[i], number))
            return table->pdata[i];
    return NULL;
}

gboolean image_is_published(Staging *s, const MountEntry *entry, const char *tag, int number)
{
    if (image_bound_device(entry) != number || kubelet_is_device_bind(entry->target))
        return FALSE;
    g_autofree char *whose = s->block->ops->file_tag(s->block, entry->target);
    return !whose || strcmp(whose, tag) == 0;
}

const MountEntry *image_find_publication(Staging *s, const GPtrArray *table, const char *tag,
                                         int number, const char *target)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        /* By suffix: where the host's root is mounted too, each mount is listed once more. */
        if (image_is_published(s, entry, tag, number) &&
            !(target && g_str_has_suffix(entry->target, target)))
            return entry;
    }
    return NULL;
}

const MountEntry *image_find_use(Staging *s, const GPtrArray *table, const char *tag, int number)
{
    const MountEntry *fs = image_find_fs(table, number);
    return fs ? fs : image_find_publication(s, table, tag, number, NULL);
}

gboolean image_is_mount_of(Staging *s, const MountEntry *entry, const char *volume)
{
    LoopDevice device;
    if (!s->block || (major(entry->dev) != LOOP_MAJOR_NUMBER && image_bound_device(entry) < 0))
        return FALSE;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    g_autofree char *whose =
        image_bound_device(entry) < 0 ? NULL : s->block->ops->file_tag(s->block, entry->target);
    if (whose)
        return strcmp(whose, place.tag) == 0;
    return s->block->ops->loop_find(s->block, place.tag, &device, NULL) && device.number >= 0 &&
           (image_is_fs_on(entry, device.number) || image_bound_device(entry) == device.number);
}

/* Whether a publication at `target` is the volume's, or nobody's, and its device is not there. */
static gboolean is_lost(Staging *s, const MountEntry *entry, const char *tag, gboolean *lost,
                        GError **error)
{
    LoopDevice device;
    const int number = image_bound_device(entry);
    *lost = FALSE;
    if (number < 0)
        return TRUE;
    if (!s->block->ops->loop_find(s->block, tag, &device, error))
        return FALSE;
    g_autofree char *whose = s->block->ops->file_tag(s->block, entry->target);
    *lost = whose ? strcmp(whose, tag) == 0 && device.number != number
                  : s->block->ops->loop_is_free(s->block, number);
    return TRUE;
}

gboolean image_clear_lost(Staging *s, const char *volume, const char *target, gint64 timeout_ms,
                          GError **error)
{
    gboolean lost = FALSE;
    if (!s->block)
        return TRUE;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, target) : NULL;
    if (!table || (entry && !is_lost(s, entry, place.tag, &lost, error)))
        return FALSE;
    /* Lazily: whoever has the node open has nothing of the volume. */
    return !lost || s->mounter->ops->unmount(s->mounter, target, TRUE, timeout_ms, error);
}
