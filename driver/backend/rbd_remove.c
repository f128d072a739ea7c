#include <errno.h>
#include "driver/backend/rbd_internal.h"

static void remove_run(RbdCall *call)
{
    int rc = rbd_remove(call->io, call->image);
    if (rc == -ENOTEMPTY)
        rbd_call_refuse(call, HEARTH_ERROR_FAILED_PRECONDITION, "image %s has snapshots",
                        call->image);
    else if (rc != 0 && rc != -ENOENT)
        rbd_call_fail(call, rc, "removing image");
}

gboolean rbd_volume_remove(void *session, const VolumeId *id, gboolean keep_snapshots,
                           gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    call->flag = keep_snapshots;
    return rbd_call_do(call, "removing image", remove_run, G_MAXINT64, deadline_us, error);
}
