/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/stats.h"
#include "driver/service/node/condition.h"

static Csi__V1__VolumeUsage *usage(RpcCall *call, Csi__V1__VolumeUsage__Unit unit, guint64 total,
                                   guint64 free, guint64 available, guint64 block)
{
    Csi__V1__VolumeUsage *u = rpc_alloc(call, sizeof(*u));
    if (!u)
        return NULL;
    csi__v1__volume_usage__init(u);
    u->unit = unit;
    /* CephFS counts inodes but has no bound on them: free is all ones. Only `used` is known then.
     */
    if (free == (fsfilcnt_t)-1) {
        u->used = (gint64)(total * block);
        return u;
    }
    u->total = (gint64)(total * block);
    u->available = (gint64)(available * block);
    u->used = (gint64)((total - MIN(total, free)) * block);
    return u;
}

/* The usage of a device, of which only the size is known, or of a volume that does not answer, of
 * which nothing is known: fields that are not set. kubelet reads the condition only from an answer
 * with a usage. */
static Csi__V1__VolumeUsage *bytes_only(RpcCall *call, guint64 total)
{
    Csi__V1__VolumeUsage *u = rpc_alloc(call, sizeof(*u));
    if (!u)
        return NULL;
    csi__v1__volume_usage__init(u);
    u->unit = CSI__V1__VOLUME_USAGE__UNIT__BYTES;
    u->total = (gint64)total;
    return u;
}

gboolean node_stats(RpcCall *call, const HealthReport *report,
                    Csi__V1__NodeGetVolumeStatsResponse *out)
{
    out->usage = rpc_alloc(call, 2 * sizeof(*out->usage));
    out->volume_condition = condition_new(call, report->fault, "the volume is mounted and answers");
    if (!out->usage || !out->volume_condition)
        return FALSE;
    if (report->device || report->fault) {
        out->usage[0] = bytes_only(call, report->bytes);
        out->n_usage = out->usage[0] ? 1 : 0;
        return out->n_usage == 1;
    }
    const struct statvfs *st = &report->st;
    guint64 block = st->f_frsize ? st->f_frsize : st->f_bsize;
    out->usage[0] = usage(call, CSI__V1__VOLUME_USAGE__UNIT__BYTES, st->f_blocks, st->f_bfree,
                          st->f_bavail, block);
    out->usage[1] =
        usage(call, CSI__V1__VOLUME_USAGE__UNIT__INODES, st->f_files, st->f_ffree, st->f_favail, 1);
    out->n_usage = out->usage[0] && out->usage[1] ? 2 : 0;
    return out->n_usage == 2;
}
