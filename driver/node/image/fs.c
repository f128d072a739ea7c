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

static void refuse_content(const ImageFs *fs, const BlockContent *content, GError **error)
{
    const int number = fs->device->number;
    if (content->type && fs->use->fs_type)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "the image (/dev/loop%d) has %s and %s is asked for; it is never formatted "
                    "over content",
                    number, content->type, fs->use->fs_type);
    else if (content->type)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "the image (/dev/loop%d) has %s, which is not mounted; use a block volume",
                    number, content->type);
    else
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "the image (/dev/loop%d) has no file system that is known, but is not empty; "
                    "it is never formatted over content: format it by hand, or use a block volume",
                    number);
}

/* The type to mount, the caller's; NULL with the error when it cannot be mounted. */
static char *type_of(const ImageFs *fs, const BlockContent *content, GError **error)
{
    static const char *const known[] = {"ext4", "xfs"};
    const char *wanted = fs->use->fs_type;
    for (guint i = 0; content->type && i < G_N_ELEMENTS(known); i++)
        if (is_wanted(content->type, known[i]) && (!wanted || strcmp(wanted, known[i]) == 0))
            return g_strdup(known[i]);
    refuse_content(fs, content, error);
    return NULL;
}

static gint64 left_of(const ImageFs *fs)
{
    return left_ms(fs->deadline, G_MAXINT64);
}

static gboolean set_note(Staging *s, const ImageFs *fs, gboolean present, GError **error)
{
    return s->block->ops->set_note(s->block, fs->paths->file, NOTE, present, left_of(fs), error);
}

static gboolean format_image(Staging *s, const ImageFs *fs, const char *type, GError **error)
{
    NodeBlock *b = s->block;
    if (!set_note(s, fs, TRUE, error))
        return FALSE;
    if (!b->ops->make(b, fs->device->number, type, fs->use->mkfs_options, left_of(fs), error))
        return FALSE;
    return set_note(s, fs, FALSE, error);
}

/* Ends a formatting that was begun: formats again unless it is complete, as rule 2 says. */
static gboolean end_formatting(Staging *s, const ImageFs *fs, const BlockContent *content,
                               const char *type, GError **error)
{
    NodeBlock *b = s->block;
    g_autoptr(GError) cause = NULL;
    if (b->ops->check(b, fs->device->number, type, TRUE, left_of(fs), &cause))
        return set_note(s, fs, FALSE, error);
    if (content->unused && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION))
        return format_image(s, fs, type, error);
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* Makes sure that there is a file system, whole and checked. Its type, the caller's, or NULL. */
static char *prepare_fs(Staging *s, const ImageFs *fs, uint64_t *fs_bytes, GError **error)
{
    NodeBlock *b = s->block;
    const LoopDevice *device = fs->device;
    g_auto(BlockContent) content = {0};
    gboolean begun = FALSE;
    *fs_bytes = device->bytes;
    if (!b->ops->look(b, device->number, left_of(fs), &content, error))
        return NULL;
    if (device->read_only)
        return type_of(fs, &content, error);
    if (!b->ops->has_note(b, fs->paths->file, NOTE, left_of(fs), &begun, error))
        return NULL;
    if (content.blank || (begun && !content.type)) {
        const char *wanted = fs->use->fs_type ? fs->use->fs_type : "ext4";
        return format_image(s, fs, wanted, error) ? g_strdup(wanted) : NULL;
    }
    g_autofree char *type = type_of(fs, &content, error);
    if (!type)
        return NULL;
    if (begun)
        return end_formatting(s, fs, &content, type, error) ? g_steal_pointer(&type) : NULL;
    if (!b->ops->check(b, device->number, type, FALSE, left_of(fs), error))
        return NULL;
    *fs_bytes = content.bytes;
    return g_steal_pointer(&type);
}

/* Grows a file system that is smaller than its device, unless that is done when it is mounted:
 * then *grow is its type. */
static void grow_before_mount(Staging *s, const ImageFs *fs, const char *type, char **grow)
{
    NodeBlock *b = s->block;
    g_autoptr(GError) cause = NULL;
    if (b->ops->can_grow_mounted(b, type))
        *grow = g_strdup(type);
    else if (!b->ops->grow(b, fs->device->number, type, NULL, left_of(fs), &cause))
        g_warning("/dev/loop%d: its file system stays smaller than the image: %s",
                  fs->device->number, cause->message);
}

int image_fs_mount(Staging *s, const ImageFs *fs, char **grow, GError **error)
{
    const LoopDevice *device = fs->device;
    const VolumeUse *use = fs->use;
    uint64_t fs_bytes;
    g_autofree char *type = prepare_fs(s, fs, &fs_bytes, error);
    if (!type)
        return -1;
    if (!device->read_only && fs_bytes + IMAGE_LEFT_OVER_BYTES <= device->bytes)
        grow_before_mount(s, fs, type, grow);
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
    const BlockMount mount = {.number = device->number,
                              .type = type,
                              .options = (char *const *)options->pdata,
                              .attrs = use->attrs};
    int fd = s->block->ops->mount(s->block, &mount, left_of(fs), error);
    g_autofree char *labelled = selinux_shown(use->context);
    if (fd < 0 && use->context)
        g_prefix_error(error, "its file system%s: ", labelled);
    return fd;
}
