/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file system on an image. Formatting is the one thing here that can destroy data, so:
 *
 * 1. Only a device that is blank is formatted, or one with the note "formatting", which we set
 *    before mkfs and take away after its result was synced: then the content is ours and was
 *    never mounted.
 * 2. Even with the note, a device with a superblock is formatted again only if it is not complete
 * and was never mounted: the note can be stale, if we died between the end of mkfs and taking it
 *    away, and the image was used otherwise since.
 * 3. What is not blank and has no file system that we mount is refused.
 */
#include <string.h>
#include <sys/mount.h>
#include "driver/node/image/internal.h"
#include "driver/node/mount/selinux.h"

#define NOTE "formatting"

static gboolean is_wanted(const char *found, const char *wanted)
{
    /* An ext4 made with few features is an ext3 or ext2 to libblkid. */
    return strcmp(found, wanted) == 0 ||
           (strcmp(wanted, "ext4") == 0 &&
            (strcmp(found, "ext3") == 0 || strcmp(found, "ext2") == 0));
}

static gboolean refuse_content(const LoopDevice *device, const BlockContent *content,
                               const VolumeUse *use, GError **error)
{
    if (content->type && use->fs_type)
        return hearth_fail(
            error, HEARTH_ERROR_FAILED_PRECONDITION,
            "the image (/dev/loop%d) has %s and %s is asked for; it is never formatted over "
            "content",
            device->number, content->type, use->fs_type);
    if (content->type)
        return hearth_fail(
            error, HEARTH_ERROR_FAILED_PRECONDITION,
            "the image (/dev/loop%d) has %s, which is not mounted; use a block volume",
            device->number, content->type);
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "the image (/dev/loop%d) has no file system that is known, but is not empty; "
        "it is never formatted over content: format it by hand, or use a block volume",
        device->number);
}

/* The type to mount, the caller's; NULL with the error when it cannot be mounted. */
static char *type_of(const LoopDevice *device, const BlockContent *content, const VolumeUse *use,
                     GError **error)
{
    static const char *const known[] = {"ext4", "xfs"};
    for (guint i = 0; content->type && i < G_N_ELEMENTS(known); i++)
        if (is_wanted(content->type, known[i]) &&
            (!use->fs_type || strcmp(use->fs_type, known[i]) == 0))
            return g_strdup(known[i]);
    refuse_content(device, content, use, error);
    return NULL;
}

static gboolean format_image(Staging *s, const ImagePaths *paths, const LoopDevice *device,
                             const VolumeUse *use, const char *type, Deadline deadline,
                             GError **error)
{
    NodeBlock *b = s->block;
    return b->ops->set_note(b, paths->file, NOTE, TRUE, left_ms(deadline, G_MAXINT64), error) &&
           b->ops->make(b, device->number, type, use->mkfs_options, left_ms(deadline, G_MAXINT64),
                        error) &&
           b->ops->set_note(b, paths->file, NOTE, FALSE, left_ms(deadline, G_MAXINT64), error);
}

/* Whether a formatting that was begun has come to its end, as rule 2 says. */
static gboolean is_complete(Staging *s, const LoopDevice *device, const BlockContent *content,
                            const char *type, gboolean *complete, Deadline deadline, GError **error)
{
    g_autoptr(GError) cause = NULL;
    *complete = s->block->ops->check(s->block, device->number, type, TRUE,
                                     left_ms(deadline, G_MAXINT64), &cause);
    if (*complete)
        return TRUE;
    if (content->unused && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* Makes sure that there is a file system, whole and checked. Its type, the caller's, or NULL. */
static char *prepare_fs(Staging *s, const ImagePaths *paths, const LoopDevice *device,
                        const VolumeUse *use, uint64_t *fs_bytes, Deadline deadline, GError **error)
{
    NodeBlock *b = s->block;
    g_auto(BlockContent) content = {0};
    gboolean begun = FALSE;
    const char *wanted = use->fs_type ? use->fs_type : "ext4";
    if (!b->ops->look(b, device->number, left_ms(deadline, G_MAXINT64), &content, error))
        return NULL;
    if (device->read_only)
        return type_of(device, &content, use, error);
    if (!b->ops->has_note(b, paths->file, NOTE, left_ms(deadline, G_MAXINT64), &begun, error))
        return NULL;
    *fs_bytes = device->bytes;
    if (content.blank || (begun && !content.type))
        return format_image(s, paths, device, use, wanted, deadline, error) ? g_strdup(wanted)
                                                                            : NULL;
    g_autofree char *type = type_of(device, &content, use, error);
    if (!type)
        return NULL;
    if (begun) {
        gboolean complete;
        if (!is_complete(s, device, &content, type, &complete, deadline, error))
            return NULL;
        gboolean fine = complete ? b->ops->set_note(b, paths->file, NOTE, FALSE,
                                                    left_ms(deadline, G_MAXINT64), error)
                                 : format_image(s, paths, device, use, type, deadline, error);
        return fine ? g_steal_pointer(&type) : NULL;
    }
    if (!b->ops->check(b, device->number, type, FALSE, left_ms(deadline, G_MAXINT64), error))
        return NULL;
    *fs_bytes = content.bytes;
    return g_steal_pointer(&type);
}

int image_fs_mount(Staging *s, const ImagePaths *paths, const LoopDevice *device,
                   const VolumeUse *use, char **grow, Deadline deadline, GError **error)
{
    uint64_t fs_bytes = device->bytes;
    g_autofree char *type = prepare_fs(s, paths, device, use, &fs_bytes, deadline, error);
    if (!type)
        return -1;
    if (!device->read_only && fs_bytes + IMAGE_LEFT_OVER_BYTES <= device->bytes) {
        g_autoptr(GError) cause = NULL;
        NodeBlock *b = s->block;
        if (b->ops->can_grow_mounted(b, type))
            *grow = g_strdup(type);
        else if (!b->ops->grow(b, device->number, type, NULL, left_ms(deadline, G_MAXINT64),
                               &cause))
            g_warning("/dev/loop%d: its file system stays smaller than the image: %s",
                      device->number, cause->message);
    }
    g_autoptr(GPtrArray) options = g_ptr_array_new();
    gboolean xfs = strcmp(type, "xfs") == 0;
    if (device->read_only) {
        /* Neither may replay its log, which would write. */
        g_ptr_array_add(options, (gpointer) "ro");
        g_ptr_array_add(options, (gpointer)(xfs ? "norecovery" : "noload"));
    }
    /*
     * XFS: a clone beside its origin; or one that died and that somebody still has open.
     * ext4: else the superblock says what an error does, and its owner may have it panic the node.
     * The class's own errors= comes later and wins.
     */
    g_ptr_array_add(options, (gpointer)(xfs ? "nouuid" : "errors=remount-ro"));
    for (guint i = 0; use->fs_options && use->fs_options[i]; i++)
        g_ptr_array_add(options, use->fs_options[i]);
    g_autofree char *context = use->context ? g_strconcat("context=", use->context, NULL) : NULL;
    if (context)
        g_ptr_array_add(options, context);
    g_ptr_array_add(options, NULL);
    int mount = s->block->ops->mount(s->block, device->number, type, (char *const *)options->pdata,
                                     use->attrs, left_ms(deadline, G_MAXINT64), error);
    g_autofree char *labelled = selinux_shown(use->context);
    if (mount < 0 && use->context)
        g_prefix_error(error, "its file system%s: ", labelled);
    return mount;
}
