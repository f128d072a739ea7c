/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing images. librbd's own removal is used where possible: it refuses an image that is in use
 * or has snapshots, and deletes the data first and the name last, so after a crash or a deadline
 * the next call continues. Otherwise:
 *
 *     snapshots are kept      the image stays as their shell: a note, then it is emptied
 *     copies depend on it     (through hidden snapshots) a note, then it is moved to the trash, and
 *                             removed from there when the copies are gone
 *
 *     half a copy             the same, since librbd's removal goes by the name, and would take the
 *                             image of a later attempt if this one was stopped for a while
 *
 * librbd's removal must not run after half a move to the trash: it would delete the header of an
 * image whose name is gone, and with it the data of its copies. So the notes are read first.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/internal.h"
#include "driver/backend/rbd/internal.h"

/* Whether a client other than this one has the image open for writing. FALSE only for failures. */
static gboolean check_unused(RbdCall *call, rbd_image_t image)
{
    guint64 self = rados_get_instance_id(rados_ioctx_get_cluster(call->io));
    size_t max = 16;
    g_autofree rbd_image_watcher_t *list = NULL;
    int rc;
    do {
        g_free(list);
        list = g_new0(rbd_image_watcher_t, max);
        rc = rbd_watchers_list(image, list, &max);
    } while (rc == -ERANGE);
    if (rc != 0)
        return rbd_call_fail(call, rc, "listing the users of");
    g_autofree char *who = NULL;
    for (size_t i = 0; i < max && !who; i++) {
        if ((guint64)list[i].id != self)
            who = g_strdup(list[i].addr);
    }
    rbd_watchers_list_cleanup(list, max);
    g_autofree char *spec = rbd_spec(&call->at, call->image);
    return !who || rbd_call_refuse(call, HEARTH_ERROR_FAILED_PRECONDITION,
                                   "image %s is in use by the client at %s; unpublish the volume "
                                   "there first (`rbd status %s` shows who uses it; a client that "
                                   "died counts for 30 s)",
                                   spec, who, spec);
}

/* The image's ID in id[RBD_ID_MAX]; "" when there is none of the name. */
static gboolean read_id(RbdCall *call, char *id)
{
    rbd_image_t image;
    *id = '\0';
    int rc = rbd_open_read_only(call->io, call->image, &image, NULL);
    if (rc == 0) {
        rc = rbd_get_id(image, id, RBD_ID_MAX);
        rbd_close(image);
    }
    return rc == 0 || rc == -ENOENT || rbd_call_fail(call, rc, "opening");
}

/* Finishes a move to the trash that was begun under this name. *moved: there was one. */
static gboolean end_move(RbdCall *call, GHashTable *trash, gboolean *moved)
{
    GHashTableIter iter;
    gpointer id, name;
    char own[RBD_ID_MAX];
    gboolean read = FALSE;
    *moved = FALSE;
    g_hash_table_iter_init(&iter, trash);
    while (!*moved && g_hash_table_iter_next(&iter, &id, &name)) {
        if (strcmp(name, call->image) != 0)
            continue;
        if (!read && !read_id(call, own))
            return FALSE;
        read = TRUE;
        /* The note is not about a later image of the name. */
        if (*own && strcmp(own, id) != 0)
            continue;
        int rc = rbd_trash_move(call->io, call->image, 0);
        if (rc != 0 && rc != -ENOENT)
            return rbd_call_fail(call, rc, "moving to the trash");
        *moved = rc == 0;
    }
    return TRUE;
}

static gboolean move_to_trash(RbdCall *call, rbd_image_t image)
{
    char id[RBD_ID_MAX];
    int rc = rbd_get_id(image, id, sizeof(id));
    if (rc == 0)
        rc = rbd_note_set(call->io, RBD_NOTE_TRASH, id, call->image);
    rbd_close(image);
    if (rc == 0)
        rc = rbd_trash_move(call->io, call->image, 0);
    return rc == 0 || rbd_call_fail(call, rc, "moving to the trash");
}

static gboolean make_shell(RbdCall *call, rbd_image_t image)
{
    char id[RBD_ID_MAX];
    int rc = rbd_get_id(image, id, sizeof(id));
    if (rc == 0)
        rc = rbd_note_set(call->io, RBD_NOTE_SHELL, call->image, id);
    if (rc == 0)
        rc = rbd_image_resize(image, 0);
    rbd_close(image);
    return rc == 0 || rbd_call_fail(call, rc, "emptying image");
}

/* librbd refuses to remove an image of a group, but before Ceph 19 moves it to the trash, from
 * where nothing would remove it. */
static gboolean check_ungrouped(RbdCall *call, rbd_image_t image)
{
    rbd_group_info_t group = {0};
    int rc = rbd_get_group(image, &group, sizeof(group));
    if (rc != 0)
        return rbd_call_fail(call, rc, "reading the group of");
    gboolean grouped = group.name && *group.name;
    rbd_group_info_cleanup(&group, sizeof(group));
    return !grouped || rbd_call_fail(call, -EMLINK, "removing image");
}

/* librbd says ENOENT also of an image that is there: when its pool is full and has no trash yet,
 * which librbd cannot make then. */
static int remove_by_name(RbdCall *call)
{
    char id[RBD_ID_MAX];
    int rc = rbd_remove(call->io, call->image);
    return rc == -ENOENT && rbd_name_id(call->io, call->image, id) == 0 ? -EDQUOT : rc;
}

/* Removes an image that librbd refuses to remove because of snapshots, ours or hidden ones. */
static gboolean remove_with_snapshots(RbdCall *call)
{
    rbd_image_t image;
    guint hidden;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    int rc = rbd_open(call->io, call->image, &image, NULL);
    if (rc == -ENOENT)
        return TRUE;
    if (rc != 0)
        return rbd_call_fail(call, rc, "opening");
    rc = rbd_snapshots_read(image, names, &hidden);
    gboolean good = (rc == 0 || rbd_call_fail(call, rc, "listing the snapshots of")) &&
                    (names->len == 0 || call->flag ||
                     rbd_call_refuse(call, HEARTH_ERROR_FAILED_PRECONDITION,
                                     "image %s has snapshots; remove them first", call->image)) &&
                    check_unused(call, image) && check_ungrouped(call, image);
    if (good && names->len > 0)
        return make_shell(call, image);
    if (good && hidden > 0)
        return move_to_trash(call, image);
    rbd_close(image);
    if (!good)
        return FALSE;
    rc = remove_by_name(call); /* the snapshots are gone by now */
    return rc == 0 || rc == -ENOENT || rbd_call_fail(call, rc, "removing image");
}

/* Sets the error for librbd's EBUSY: another client; an earlier call that still runs after its
 * deadline; or a move to the trash, which is then ended here. */
static gboolean explain_busy(RbdCall *call)
{
    rbd_image_t image;
    int rc = rbd_open_read_only(call->io, call->image, &image, NULL);
    if (rc == -ENOENT)
        return rbd_end_removals(call);
    if (rc != 0)
        return rbd_call_fail(call, rc, "opening");
    g_autofree char *clone = NULL, *shell = NULL;
    rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    if (rc == 0 && g_strcmp0(clone, RBD_CLONE_FLATTEN) == 0)
        rbd_call_refuse(call, HEARTH_ERROR_ABORTED, "image %s is being flattened; try again",
                        call->image);
    gboolean unused = !call->error && check_unused(call, image);
    rbd_close(image);
    return unused &&
           rbd_call_refuse(call, HEARTH_ERROR_ABORTED,
                           "image %s is being removed or changed; try again", call->image);
}

/* The name may have led to the image of a later attempt when it was moved: back with that. Images
 * of deleted volumes, which have a note, stay. ABORTED: there was one. */
static gboolean give_back_others(RbdCall *call, const char *id)
{
    g_autoptr(GHashTable) deleted = NULL;
    size_t n = 0;
    gboolean other = FALSE;
    int rc = rbd_trash_list(call->io, NULL, &n);
    if (rc != 0 && rc != -ERANGE)
        return rbd_call_fail(call, rc, "listing the trash for");
    n += 16;
    g_autofree rbd_trash_image_info_t *entries = g_new0(rbd_trash_image_info_t, n);
    rc = rbd_trash_list(call->io, entries, &n);
    if (rc < 0)
        return rbd_call_fail(call, rc, "listing the trash for");
    rc = rbd_notes_of_trash(call->io, &deleted, NULL);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (strcmp(entries[i].name, call->image) != 0 || strcmp(entries[i].id, id) == 0 ||
            g_hash_table_contains(deleted, entries[i].id))
            continue;
        other = TRUE;
        rc = rbd_trash_restore(call->io, entries[i].id, call->image);
    }
    rbd_trash_list_cleanup(entries, n);
    if (rc != 0)
        return rbd_call_fail(call, rc, "taking back from the trash");
    return !other || rbd_call_refuse(call, HEARTH_ERROR_ABORTED,
                                     "image %s was made just now; try again", call->image);
}

/* Half a copy, by its ID. */
static gboolean remove_half(RbdCall *call, const char *id, GHashTable *trash, GQueue *freed)
{
    int rc = rbd_note_set(call->io, RBD_NOTE_TRASH, id, call->image);
    if (rc == 0)
        rc = rbd_trash_move(call->io, call->image, 0);
    if (rc == -EBUSY)
        return explain_busy(call);
    if (rc != 0 && rc != -ENOENT)
        return rbd_call_fail(call, rc, "moving to the trash");
    if (rc == 0 && !give_back_others(call, id))
        return FALSE;
    g_hash_table_insert(trash, g_strdup(id), g_strdup(call->image));
    rbd_trash_note(call->io, id, freed);
    return TRUE;
}

/* Whether there is half a copy of the name that can be opened; its ID in id[RBD_ID_MAX]. Others are
 * not opened for this. */
static gboolean find_half(RbdCall *call, char *id, gboolean *half)
{
    *half = FALSE;
    int rc = rbd_name_id(call->io, call->image, id);
    if (rc == 0)
        rc = rbd_note_is_half(call->io, call->image, id, half);
    if (rc != 0 && rc != -ENOENT)
        return rbd_call_fail(call, rc, "reading the notes of");
    if (*half && !read_id(call, id))
        return FALSE;
    *half = *half && *id;
    return TRUE;
}

gboolean rbd_remove_image(RbdCall *call)
{
    g_autoptr(GHashTable) trash = NULL;
    GQueue freed = G_QUEUE_INIT;
    gboolean moved = FALSE, good = TRUE, elsewhere = FALSE, half = FALSE;
    char id[RBD_ID_MAX];
    int rc = rbd_notes_of_trash(call->io, &trash, &elsewhere);
    if (rc != 0)
        return rbd_call_fail(call, rc, "reading the notes of");
    if (!end_move(call, trash, &moved) || (!moved && !find_half(call, id, &half)))
        return FALSE;
    if ((elsewhere || g_hash_table_size(trash) > 0) && !moved) {
        rbd_image_t image;
        if (rbd_open_read_only(call->io, call->image, &image, NULL) == 0) {
            rbd_trash_note_parent(image, &freed);
            rbd_close(image);
        }
    }
    if (half) {
        good = remove_half(call, id, trash, &freed);
    } else if (!moved) {
        rc = call->flag ? -ENOTEMPTY : remove_by_name(call);
        if (rc == -ENOTEMPTY || rc == -ECHILD)
            good = remove_with_snapshots(call);
        else if (rc == -EBUSY || rc == -EUCLEAN)
            good = explain_busy(call);
        else if (rc != 0 && rc != -ENOENT)
            good = rbd_call_fail(call, rc, "removing image");
    }
    if (good)
        rbd_trash_sweep(call->io, trash, &freed);
    rbd_freed_clear(&freed);
    return good;
}

gboolean rbd_clear_name(RbdCall *call)
{
    g_autoptr(GHashTable) trash = NULL;
    gboolean moved = FALSE;
    int rc = rbd_notes_of_trash(call->io, &trash, NULL);
    if (rc != 0)
        return rbd_call_fail(call, rc, "reading the notes of");
    if (!end_move(call, trash, &moved))
        return FALSE;
    rc = moved ? 0 : remove_by_name(call);
    return rc == 0 || rc == -ENOENT ||
           rbd_call_fail(call, rc, "removing what a crash left of image");
}

static void remove_run(RbdCall *call)
{
    rbd_remove_image(call);
}

gboolean rbd_volume_remove(void *session, const VolumeId *id, gboolean keep_snapshots,
                           gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    call->flag = keep_snapshots;
    return rbd_call_do(call, "removing image", remove_run, G_MAXINT64, deadline_us, error);
}
