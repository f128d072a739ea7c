/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals that were cut short. librbd removes an image by a move to the trash, where the entry is
 * marked as being removed (so `rbd trash ls` hides it and `rbd ls` shows it), and then empties it.
 * In between the name is free. The next removal by that name continues, unless
 *
 *   - an image of the name was made meanwhile: then no removal continues it
 *   - the move itself was cut short: the entry stays "moving", which no call of librbd repairs, and
 *     the image may still have its name
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/rbd/internal.h"

/* cls_rbd_types.h: TrashImageState */
#define STATE_NORMAL 0
#define STATE_MOVING 1

/* A method of the trash's object: its arguments are an ID and `n` bytes. -ENOENT: no such entry. */
static int on_entry(rados_ioctx_t io, const char *method, const char *id, const char *bytes,
                    gsize n)
{
    gsize length = strlen(id);
    guint32 prefix = GUINT32_TO_LE((guint32)length);
    char out[8];
    g_autofree char *in = g_malloc(sizeof(prefix) + length + n);
    memcpy(in, &prefix, sizeof(prefix));
    memcpy(in + sizeof(prefix), id, length);
    memcpy(in + sizeof(prefix) + length, bytes, n);
    int rc = rados_exec(io, "rbd_trash", "rbd", method, in, sizeof(prefix) + length + n, out,
                        sizeof(out));
    return MIN(rc, 0);
}

/* Marks a move as ended, if the entry is "moving". */
static int end_move(rados_ioctx_t io, const char *id)
{
    const char states[] = {STATE_NORMAL, STATE_MOVING};
    int rc = on_entry(io, "trash_state_set", id, states, sizeof(states));
    return rc == -ESTALE || rc == -ENOENT ? 0 : rc;
}

static gboolean end_removal(RbdCall *call, const char *id)
{
    int rc = end_move(call->io, id);
    if (rc == 0)
        rc = rbd_trash_remove(call->io, id, true);
    if (rc == 0 || rc == -ENOENT)
        return TRUE;
    if (rc != -EBUSY)
        return rbd_call_fail(call, rc, "ending the removal of image");
    return rbd_call_refuse(call, HEARTH_ERROR_ABORTED,
                           "image %s of an earlier volume is still being removed, or its client is "
                           "thought to be alive (for 30 s after its end); try again",
                           call->image);
}

gboolean rbd_end_removals(RbdCall *call)
{
    char id[RBD_ID_MAX];
    int rc = rbd_name_id(call->io, call->image, id);
    if (rc == 0)
        return rbd_call_refuse(call, HEARTH_ERROR_ABORTED, "image %s is being removed; try again",
                               call->image);
    if (rc != -ENOENT)
        return rbd_call_fail(call, rc, "looking for");
    gsize n;
    rbd_image_spec_t *list = NULL;
    rc = rbd_list_all(call->io, &list, &n);
    if (rc < 0)
        return rbd_call_fail(call, rc, "listing the images of");
    gboolean good = TRUE;
    for (gsize i = 0; good && i < n; i++) {
        if (strcmp(list[i].name, call->image) == 0)
            good = end_removal(call, list[i].id);
    }
    rbd_image_spec_list_cleanup(list, n);
    g_free(list);
    return good;
}

/* An image is in the trash and still has its name when the move was cut short before it lost that.
 */
static void clear_run(RbdCall *call)
{
    char id[RBD_ID_MAX];
    int rc = rbd_name_id(call->io, call->image, id);
    if (rc == -ENOENT) {
        rbd_end_removals(call);
        return;
    }
    if (rc == 0)
        rc = on_entry(call->io, "trash_remove", id, "", 0);
    if (rc != 0 && rc != -ENOENT)
        rbd_call_fail(call, rc, "taking out of the trash image");
}

gboolean rbd_volume_clear(void *session, const VolumeId *id, gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, id->name, NULL), "ending the removal of image",
                       clear_run, G_MAXINT64, deadline_us, error);
}
