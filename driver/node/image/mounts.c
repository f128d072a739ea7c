/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of an image's parts, the mounts of its loop device, and to which volume a mount
 * belongs.
 *
 * A file system has the device's number, and keeps the device from going to another volume. A
 * published device does not: its node can be bound while the device is gone, or belongs to another
 * volume by now. So the owner of a publication is in a note on the file below it (block.h). Without
 * a note - earlier releases made none, and not every file system takes them - the device decides.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "driver/node/image/internal.h"
#include "driver/node/mount/kubelet_paths.h"

#define LOOP_MAJOR_NUMBER 7
/* The digits of a hash that are a name. */
#define HASH_DIGITS 32

void image_paths_clear(ImagePaths *paths)
{
    g_free(paths->dir);
    g_free(paths->file);
    g_free(paths->tag);
}

void image_paths_of(const Staging *s, const char *volume, ImagePaths *paths)
{
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, volume, -1);
    hash[HASH_DIGITS] = '\0';
    paths->dir = g_build_filename(s->device_dir, hash, NULL);
    paths->file = g_build_filename(paths->dir, "image", NULL);
    /* Of the path too: a machine may be several nodes. */
    g_autofree char *tag = g_compute_checksum_for_string(G_CHECKSUM_SHA256, paths->dir, -1);
    tag[HASH_DIGITS] = '\0';
    paths->tag = g_strconcat(MOUNT_SOURCE_PREFIX, tag, NULL);
}

gboolean image_is_fs_on(const MountEntry *entry, int number)
{
    return entry->dev == makedev(LOOP_MAJOR_NUMBER, (unsigned)number);
}

int image_bound_device(const MountEntry *entry)
{
    const char *name = strrchr(entry->root, '/');
    int number, length = 0;
    /* A file system of the host's /dev, or of a container's. */
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
    g_autofree char *owner = s->block->ops->file_tag(s->block, entry->target);
    return !owner || strcmp(owner, tag) == 0;
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

gboolean image_owns(Staging *s, const MountEntry *entry, const char *volume)
{
    LoopDevice device;
    if (!s->block || (major(entry->dev) != LOOP_MAJOR_NUMBER && image_bound_device(entry) < 0))
        return FALSE;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, volume, &paths);
    g_autofree char *owner =
        image_bound_device(entry) < 0 ? NULL : s->block->ops->file_tag(s->block, entry->target);
    if (owner)
        return strcmp(owner, paths.tag) == 0;
    return s->block->ops->loop_find(s->block, paths.tag, &device, NULL) && device.number >= 0 &&
           (image_is_fs_on(entry, device.number) || image_bound_device(entry) == device.number);
}

/* Whether a publication is the volume's, or has no known owner, and its device is gone. */
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
    g_autofree char *owner = s->block->ops->file_tag(s->block, entry->target);
    *lost = owner ? strcmp(owner, tag) == 0 && device.number != number
                  : s->block->ops->loop_is_free(s->block, number);
    return TRUE;
}

gboolean image_clear_lost(Staging *s, const char *volume, const char *target, Deadline deadline,
                          GError **error)
{
    gboolean lost = FALSE;
    if (!s->block)
        return TRUE;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, volume, &paths);
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, target, &entry, error) ||
        (entry && !is_lost(s, entry, paths.tag, &lost, error)))
        return FALSE;
    /* Lazily: a process that has the node open has nothing of the volume. */
    return !lost ||
           s->mounter->ops->unmount(s->mounter, target, TRUE, left_ms(deadline, G_MAXINT64), error);
}
