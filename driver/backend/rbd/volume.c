/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes as images: create, look, list and grow. librbd makes an image in steps: an entry in the
 * pool's directory, the object that leads from the name to the ID, the header, the object map. An
 * image that was interrupted before the header cannot be opened, though its name is taken; librbd's
 * removal clears it away. One that was interrupted later is whole, but for an object map, which
 * librbd then does without.
 *
 * Notes beside the records hold what an image does not show: that a copy is not finished (librbd
 * makes the image before it has a parent, and gives it the parent before the parent knows of its
 * child), and that an image is only the shell that a deleted volume leaves for its snapshots. A
 * note is not image metadata, because copies inherit that.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/rbd/internal.h"

static BackendVolume *volume_new(const RbdCall *call, guint64 bytes)
{
    BackendVolume *volume = g_new0(BackendVolume, 1);
    volume->path = rbd_spec(&call->at, call->image);
    volume->bytes = (gint64)bytes;
    return volume;
}

static void look_at(RbdCall *call, rbd_image_t image)
{
    g_autofree char *clone = NULL, *shell = NULL;
    guint64 bytes = 0, overlap = 0;
    gboolean half = FALSE;
    char id[RBD_ID_MAX];
    int rc = rbd_get_size(image, &bytes);
    if (rc == 0)
        rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    if (rc == 0 && clone)
        rc = rbd_get_id(image, id, sizeof(id));
    if (rc == 0 && clone)
        rc = rbd_note_is_half(call->io, call->image, id, &half);
    if (rc != 0) {
        rbd_call_fail(call, rc, "looking at");
        return;
    }
    if (rbd_image_is(image, shell)) {
        rbd_call_missing(call);
        return;
    }
    call->volume = volume_new(call, bytes);
    struct timespec created;
    if (rbd_get_create_timestamp(image, &created) == 0)
        call->volume->created = created.tv_sec;
    gboolean parent = rbd_get_overlap(image, &overlap) == 0 && overlap > 0;
    if (g_strcmp0(clone, RBD_CLONE_FLATTEN) == 0) {
        call->volume->incomplete = call->volume->copying = call->volume->resume = parent;
    } else {
        call->volume->incomplete = half;
    }
}

static void look_run(RbdCall *call)
{
    rbd_image_t image;
    char id[RBD_ID_MAX];
    int rc = rbd_name_id(call->io, call->image, id);
    if (rc == -ENOENT) {
        rbd_call_missing(call);
        return;
    }
    if (rc == 0)
        rc = rbd_open_read_only(call->io, call->image, &image, NULL);
    if (rc == -ENOENT) {
        call->volume = volume_new(call, 0);
        call->volume->incomplete = TRUE;
        return;
    }
    if (rc != 0) {
        rbd_call_fail(call, rc, "opening");
        return;
    }
    look_at(call, image);
    rbd_close(image);
}

BackendVolume *rbd_volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                               GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    if (!rbd_call_run(call, "looking at", look_run, RBD_LOOK_MS, deadline_us, error))
        return NULL;
    BackendVolume *volume = g_steal_pointer(&call->volume);
    rbd_call_free(call);
    return volume;
}

/*
 * The shell of a deleted volume becomes the new volume's image: it is emptied, if it was not yet,
 * and grown. Only then is its note removed, so that it counts as a volume.
 */
static gboolean reuse_shell(RbdCall *call, rbd_image_t image)
{
    guint64 bytes = 0;
    int rc = rbd_get_size(image, &bytes);
    if (rc == 0 && bytes != 0)
        rc = rbd_image_resize(image, 0);
    if (rc == 0)
        rc = rbd_image_resize(image, call->bytes);
    if (rc == 0)
        rc = rbd_note_clear(call->io, RBD_NOTE_SHELL, call->image);
    return rc == 0 || rbd_call_fail(call, rc, "reviving image");
}

/* The name is taken by a whole image, a shell, or half an image. *again: it is free now. */
static gboolean reuse_name(RbdCall *call, gboolean *again)
{
    rbd_image_t image;
    int rc = rbd_open(call->io, call->image, &image, NULL);
    if (rc == -ENOENT) {
        *again = rbd_clear_name(call);
        return *again;
    }
    if (rc != 0)
        return rbd_call_fail(call, rc, "opening");
    g_autofree char *clone = NULL, *shell = NULL;
    rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    gboolean good = rc == 0 || rbd_call_fail(call, rc, "looking at");
    if (good && rbd_image_is(image, shell))
        good = reuse_shell(call, image);
    rbd_close(image);
    return good;
}

static void create_run(RbdCall *call)
{
    gboolean again = TRUE;
    for (int attempt = 0; again && attempt < 2; attempt++) {
        again = FALSE;
        int rc = rbd_create4(call->io, call->image, (guint64)call->bytes, call->options);
        if (rc == -EEXIST && attempt == 0) {
            if (!reuse_name(call, &again))
                return;
        } else if (rc != 0) {
            rbd_create_failed(call, rc);
            return;
        }
    }
    call->volume = volume_new(call, (guint64)call->bytes);
}

BackendVolume *rbd_volume_create(void *session, const VolumeId *id, const VolumeParams *params,
                                 gint64 bytes, gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    rbd_call_set_options(call, params);
    call->bytes = bytes;
    if (!rbd_call_run(call, "creating image", create_run, RBD_CHANGE_MS, deadline_us, error))
        return NULL;
    BackendVolume *made = g_steal_pointer(&call->volume);
    rbd_call_free(call);
    return made;
}

/* The pool's directory lists whole images, half made ones and shells. */
static void list_run(RbdCall *call)
{
    gsize n;
    rbd_image_spec_t *list;
    int rc = rbd_list_all(call->io, &list, &n);
    if (rc < 0) {
        rbd_call_fail(call, rc, "listing the images of");
        return;
    }
    call->names = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < n; i++)
        g_ptr_array_add(call->names, g_strdup(list[i].name));
    rbd_image_spec_list_cleanup(list, n);
    g_free(list);
}

GPtrArray *rbd_volume_list(void *session, const VolumeId *where, gint64 deadline_us, GError **error)
{
    (void)where;
    RbdCall *call = rbd_call_new(session, NULL, NULL);
    if (!rbd_call_run(call, "listing the images of", list_run, RBD_CHANGE_MS, deadline_us, error))
        return NULL;
    GPtrArray *names = g_steal_pointer(&call->names);
    rbd_call_free(call);
    return names;
}

static int resize(RbdCall *call, rbd_image_t image)
{
    return rbd_image_resize(image, call->bytes);
}

static void resize_run(RbdCall *call)
{
    rbd_call_on_image(call, resize, 0, "resizing image");
}

gboolean rbd_volume_resize(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                           GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    call->bytes = bytes;
    return rbd_call_do(call, "resizing image", resize_run, RBD_CHANGE_MS, deadline_us, error);
}
