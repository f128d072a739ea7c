/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit finds where records and Ceph disagree at one location: records without their volume or
 * snapshot, volumes and snapshots of ours without a record, groups of snapshots that were not
 * taken, and what a call that was cut short has left. It compares the two sides themselves; there
 * is no other list of them.
 *
 * A call under way looks like one that crashed, so repair leaves everything that is younger than a
 * given age. A volume without a record may hold data, so it is removed only when it is named. It is
 * taken for ours by the prefix of its name, the default one or one that a record has; a prefix with
 * a bare UUID is ceph-csi's.
 */
#ifndef HEARTH_DRIVER_PROVISION_AUDIT_H
#define HEARTH_DRIVER_PROVISION_AUDIT_H

#include "driver/provision/provision.h"

typedef enum AuditKind {
    AUDIT_RECORD_WITHOUT_VOLUME,
    AUDIT_RECORD_WITHOUT_SNAPSHOT,
    AUDIT_RECORD_DAMAGED,
    AUDIT_VOLUME_INCOMPLETE,
    AUDIT_COPY_FAILED,
    AUDIT_COPY_UNFINISHED,
    AUDIT_COPY_SNAPSHOT,
    AUDIT_VOLUME_WITHOUT_RECORD,
    AUDIT_SNAPSHOT_WITHOUT_RECORD,
    AUDIT_GROUP_UNFINISHED,
    AUDIT_LEFTOVER,
} AuditKind;

typedef enum AuditFix {
    AUDIT_FIX_SAFE,    /* repair does what a repeated call would */
    AUDIT_FIX_BY_NAME, /* it may hold data: only when it is named */
    AUDIT_FIX_BY_HAND,
} AuditFix;

typedef struct AuditText {
    const char *name; /* "record-without-volume" */
    AuditFix fix;
    const char *means, *todo;
} AuditText;

const AuditText *audit_text(AuditKind kind);

typedef struct AuditFinding {
    AuditKind kind;
    VolumeId *id;   /* of the volume or group; without a name where only a snapshot's is known */
    char *snapshot; /* NULL: it is about the volume */
    gint64 created; /* seconds since 1970; 0: not known */
    char *detail;   /* what the backend said, or NULL */
    gboolean fixed;
    char *failure; /* why a fix that was asked for did not succeed; or NULL */
} AuditFinding;

/* The name by which an administrator refers to it: FS/GROUP/NAME or POOL[/NAMESPACE]/NAME, with
 * @SNAPSHOT; the caller's. */
char *audit_finding_name(const AuditFinding *finding);

typedef struct AuditReport {
    GPtrArray *findings;               /* AuditFinding* */
    guint records, volumes, snapshots; /* looked at */
} AuditReport;

AuditReport *audit_report_new(void);
void audit_report_free(AuditReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AuditReport, audit_report_free)

/*
 * Audits one location and adds to the report. `step_ms` bounds each call of the backend, not the
 * whole audit. After an error the report has only a part of the location.
 */
gboolean provision_audit(const Backend *backend, const VolumeId *location, const Secrets *secrets,
                         gint64 step_ms, AuditReport *report, GError **error);

/*
 * Fixes one finding, which is about the target: a safe one when it is `min_age_seconds` old, one
 * that may hold data when it is `named`. FALSE: the error has the reason. FAILED_PRECONDITION: it
 * may not be fixed in this way.
 */
gboolean provision_repair(const ProvisionTarget *at, const AuditFinding *finding,
                          gint64 min_age_seconds, gboolean named, GError **error);

#endif
