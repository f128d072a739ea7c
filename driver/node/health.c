/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/health.h"
#include "driver/node/served/served.h"
#include "driver/node/staging.h"

/* Asks for the root through FUSE and Ceph; an inode that is gone answers ESTALE or ENOENT. */
static char *root_fault(Staging *s, const char *path, Deadline deadline)
{
    g_autoptr(GError) cause = NULL;
    if (s->mounter->ops->probe(s->mounter, -1, path, left_ms(deadline, G_MAXINT64), &cause))
        return NULL;
    return g_strdup_printf("the volume's root cannot be read: %s; if it was removed in Ceph, "
                           "restore it from a snapshot",
                           cause->message);
}

static gboolean find_device(Staging *s, const char *volume, const char *path, HealthReport *report,
                            GError **error)
{
    for (const NodeKind *const *kind = s->kinds; *kind && !report->device; kind++)
        if ((*kind)->device_bytes &&
            !(*kind)->device_bytes(s, volume, path, &report->device, &report->bytes, error))
            return FALSE;
    return TRUE;
}

gboolean health_check(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                      HealthReport *report, GError **error)
{
    const Deadline deadline = deadline_in(timeout_ms);
    g_autoptr(GError) cause = NULL;
    gboolean rests = FALSE;
    *report = (HealthReport){0};
    if (!find_device(s, volume, path, report, error))
        return FALSE;
    g_autoptr(MountEntry) entry = NULL;
    served_find(s, path, &entry, NULL);
    const NodeKind *kind = served_kind_of(s, entry);
    report->fault =
        kind->fault ? kind->fault(s, entry, deadline) : served_fault(s, volume, deadline, &rests);
    if (report->device)
        return TRUE;
    if (!report->fault && rests && entry && served_owns(s, entry, volume) &&
        usages_get(s->usages, volume, g_get_monotonic_time(), &report->st))
        return TRUE;
    const gboolean known =
        staging_statvfs(s, volume, path, left_ms(deadline, timeout_ms / 2), &report->st, &cause);
    if (!known && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND)) {
        health_report_clear(report);
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!report->fault && !known)
        report->fault = g_strdup_printf("the volume does not answer: %s; see hearthd's log and "
                                        "`ceph status`",
                                        cause->message);
    g_autofree char *layer = entry && kind->layer_below ? kind->layer_below(entry) : NULL;
    if (!report->fault)
        report->fault = root_fault(s, layer ? layer : path, deadline);
    if (!report->fault)
        usages_put(s->usages, volume, &report->st, g_get_monotonic_time());
    return TRUE;
}
