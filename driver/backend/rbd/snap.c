/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: RBD's own, in the user's namespace of the volume's image, so that `rbd snap ls` shows
 * them. They are not protected: copies are of clone format 2, which lets a snapshot with copies be
 * removed (librbd moves it to a hidden namespace of the image until the last of them is gone).
 */
#include <errno.h>
#include "driver/backend/rbd/internal.h"

static int create_snapshot(RbdCall *call, rbd_image_t image)
{
    return rbd_snap_create(image, call->snapshot);
}

static void create_run(RbdCall *call)
{
    rbd_call_on_image(call, create_snapshot, -EEXIST, "taking a snapshot of");
}

gboolean rbd_snapshot_create(void *session, const VolumeId *volume, const char *snapshot,
                             gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, volume->name, snapshot), "taking a snapshot of",
                       create_run, RBD_CHANGE_MS, deadline_us, error);
}

/* Whether the image is a shell without snapshots, which is removed with its last one. */
static gboolean is_empty_shell(RbdCall *call, rbd_image_t image, gboolean *empty)
{
    guint hidden;
    g_autofree char *clone = NULL, *shell = NULL;
    g_autoptr(GPtrArray) left = g_ptr_array_new_with_free_func(g_free);
    *empty = FALSE;
    int rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    if (rc == 0 && rbd_image_is(image, shell)) {
        rc = rbd_snapshots_read(image, left, &hidden);
        *empty = rc == 0 && left->len == 0;
    }
    return rc == 0 || rbd_call_fail(call, rc, "looking at");
}

static void remove_run(RbdCall *call)
{
    rbd_image_t image;
    gboolean empty = FALSE;
    int rc = rbd_open(call->io, call->image, &image, NULL);
    if (rc == -ENOENT) {
        /* A crash may have left the note of a shell that is gone. */
        rc = rbd_note_clear(call->io, RBD_NOTE_SHELL, call->image);
        if (rc != 0)
            rbd_call_fail(call, rc, "removing the note of");
        return;
    }
    if (rc == 0) {
        rc = rbd_snap_remove(image, call->snapshot);
        if (rc == -EBUSY)
            rbd_call_refuse(call, HEARTH_ERROR_FAILED_PRECONDITION,
                            "snapshot %s of image %s is protected; this driver does not do that: "
                            "unprotect it with `rbd snap unprotect`, then try again",
                            call->snapshot, call->image);
        else if (rc == 0 || rc == -ENOENT)
            rc = is_empty_shell(call, image, &empty) ? 0 : -EIO;
        rbd_close(image);
    }
    if (rc != 0)
        rbd_call_fail(call, rc, "removing a snapshot of");
    else if (empty && rbd_remove_image(call)) {
        rc = rbd_note_clear(call->io, RBD_NOTE_SHELL, call->image);
        if (rc != 0)
            rbd_call_fail(call, rc, "removing the note of");
    }
}

gboolean rbd_snapshot_remove(void *session, const VolumeId *volume, const char *snapshot,
                             gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, volume->name, snapshot), "removing a snapshot of",
                       remove_run, G_MAXINT64, deadline_us, error);
}

static void look_run(RbdCall *call)
{
    rbd_image_t image;
    int rc = rbd_open_read_only(call->io, call->image, &image, call->snapshot);
    if (rc == 0)
        rbd_close(image);
    else if (rc == -ENOENT)
        rbd_call_refuse(call, HEARTH_ERROR_NOT_FOUND, "snapshot %s of image %s does not exist",
                        call->snapshot, call->image);
    else
        rbd_call_fail(call, rc, "looking at a snapshot of");
}

gboolean rbd_snapshot_look(void *session, const VolumeId *volume, const char *snapshot,
                           gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, volume->name, snapshot), "looking at a snapshot of",
                       look_run, RBD_LOOK_MS, deadline_us, error);
}

static void list_run(RbdCall *call)
{
    rbd_image_t image;
    guint hidden;
    call->names = g_ptr_array_new_with_free_func(g_free);
    int rc = rbd_open_read_only(call->io, call->image, &image, NULL);
    if (rc == -ENOENT)
        return;
    if (rc == 0) {
        rc = rbd_snapshots_read(image, call->names, &hidden);
        rbd_close(image);
    }
    if (rc != 0)
        rbd_call_fail(call, rc, "listing the snapshots of");
}

GPtrArray *rbd_snapshot_list(void *session, const VolumeId *volume, gint64 deadline_us,
                             GError **error)
{
    RbdCall *call = rbd_call_new(session, volume->name, NULL);
    if (!rbd_call_run(call, "listing the snapshots of", list_run, RBD_LOOK_MS, deadline_us, error))
        return NULL;
    GPtrArray *names = g_steal_pointer(&call->names);
    rbd_call_free(call);
    return names;
}
