/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit finds, in words. */
#include <string.h>
#include "driver/provision/audit.h"

static const AuditText texts[] = {
    [AUDIT_RECORD_WITHOUT_VOLUME] = {"record-without-volume", AUDIT_FIX_SAFE,
                                     "CreateVolume or DeleteVolume ended half way; no data",
                                     "retry the call, or repair removes the record"},
    [AUDIT_RECORD_WITHOUT_SNAPSHOT] = {"record-without-snapshot", AUDIT_FIX_SAFE,
                                       "CreateSnapshot or DeleteSnapshot ended half way; no data",
                                       "retry the call, or repair removes the record"},
    [AUDIT_RECORD_DAMAGED] = {"record-damaged", AUDIT_FIX_BY_HAND,
                              "the record cannot be read, so its volume cannot be used",
                              "inspect the object, then correct or remove it"},
    [AUDIT_VOLUME_INCOMPLETE] = {"volume-incomplete", AUDIT_FIX_SAFE,
                                 "CreateVolume ended half way; no data",
                                 "retry the call, or repair removes it"},
    [AUDIT_COPY_FAILED] = {"copy-failed", AUDIT_FIX_SAFE,
                           "a restore or clone failed; the source has the data",
                           "retry the call, or repair removes it"},
    [AUDIT_COPY_UNFINISHED] = {"copy-unfinished", AUDIT_FIX_SAFE,
                               "copied, but not yet of the size asked for",
                               "retry the call, or repair finishes it"},
    [AUDIT_COPY_SNAPSHOT] = {"copy-snapshot", AUDIT_FIX_SAFE,
                             "a clone was made through it and is done or gone",
                             "retry the call, or repair removes it"},
    [AUDIT_VOLUME_WITHOUT_RECORD] = {"volume-without-record", AUDIT_FIX_BY_NAME,
                                     "has a name of this driver and no record; may hold data",
                                     "find out whose it is; remove it with --remove"},
    [AUDIT_SNAPSHOT_WITHOUT_RECORD] = {"snapshot-without-record", AUDIT_FIX_BY_NAME,
                                       "has a name of this driver and no record; may hold data",
                                       "find out whose it is; remove it with --remove"},
    [AUDIT_GROUP_UNFINISHED] = {"group-unfinished", AUDIT_FIX_SAFE,
                                "a group snapshot that was not taken, or is half deleted",
                                "retry the call, or repair removes it with its snapshots"},
    [AUDIT_LEFTOVER] = {"leftover", AUDIT_FIX_SAFE,
                        "of a deleted volume or snapshot; nothing needs it now",
                        "repair removes it; of an image the next DeleteVolumes do, too"},
};

const AuditText *audit_text(AuditKind kind)
{
    return &texts[kind];
}

char *audit_finding_name(const AuditFinding *f)
{
    const VolumeId *id = f->id;
    const char *parts[] = {id->fs_name, id->group, id->pool, id->rados_namespace, id->name};
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i] && *parts[i])
            g_string_append_printf(text, "%s%s", text->len ? "/" : "", parts[i]);
    }
    if (f->snapshot)
        g_string_append_printf(text, "@%s", f->snapshot);
    return g_string_free(text, FALSE);
}

static void finding_free(gpointer data)
{
    AuditFinding *f = data;
    volume_id_free(f->id);
    g_free(f->snapshot);
    g_free(f->detail);
    g_free(f->failure);
    g_free(f);
}

AuditReport *audit_report_new(void)
{
    AuditReport *report = g_new0(AuditReport, 1);
    report->findings = g_ptr_array_new_with_free_func(finding_free);
    return report;
}

void audit_report_free(AuditReport *report)
{
    if (!report)
        return;
    g_ptr_array_unref(report->findings);
    g_free(report);
}
