/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is out of step at a place: records without their volume or snapshot, volumes and snapshots
 * of ours without a record, what half a call left. No list of them is kept anywhere: this compares
 * the two sides themselves.
 *
 * A call under way looks like one that crashed, so repair leaves what is younger than it is told;
 * and what has no record may hold somebody's data, so it goes only when it is named. What has no
 * record is taken for ours by its name's prefix, the default one or one that a record has; a prefix
 * and a bare UUID are ceph-csi's.
 */
#ifndef HEARTH_DRIVER_PROVISION_AUDIT_H
#define HEARTH_DRIVER_PROVISION_AUDIT_H

#include "driver/backend/backend.h"

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
    AUDIT_LEFTOVER,
} AuditKind;

typedef enum AuditMend {
    AUDIT_MEND_SAFE,    /* repair does what a repeated call would */
    AUDIT_MEND_BY_NAME, /* it may hold data: only when named */
    AUDIT_MEND_BY_HAND,
} AuditMend;

typedef struct AuditText {
    const char *name; /* "record-without-volume" */
    AuditMend mend;
    const char *means, *todo;
} AuditText;

const AuditText *audit_text(AuditKind kind);

typedef struct AuditFinding {
    AuditKind kind;
    VolumeId *id;   /* of the volume; without a name where only a snapshot's is known */
    char *snapshot; /* NULL: it is about the volume */
    gint64 created; /* seconds since 1970; 0: not known */
    char *detail;   /* what the backend said, or NULL */
    gboolean mended;
    char *failure; /* why it is not mended, though asked for; or NULL */
} AuditFinding;

/* What people call it, to be named by: FS/GROUP/NAME, POOL[/NAMESPACE]/NAME, with @SNAPSHOT; the
 * caller's. */
char *audit_finding_name(const AuditFinding *finding);

typedef struct AuditReport {
    GPtrArray *findings;               /* AuditFinding* */
    guint records, volumes, snapshots; /* looked at */
} AuditReport;

AuditReport *audit_report_new(void);
void audit_report_free(AuditReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AuditReport, audit_report_free)

/*
 * Looks at one place and adds to the report. `step_ms` bounds each call of the backend, not the
 * whole. An error, as of a backend, says that the place was not seen to its end.
 */
gboolean provision_audit(const Backend *backend, const VolumeId *place, const Secrets *secrets,
                         gint64 step_ms, AuditReport *report, GError **error);

/*
 * Mends one finding: what is safe when it is `min_age_seconds` old, what may hold data when
 * `named`. TRUE: mended. Else FALSE with the reason. FAILED_PRECONDITION: not to be mended so.
 */
gboolean provision_repair(const Backend *backend, const AuditFinding *finding,
                          const Secrets *secrets, gint64 step_ms, gint64 min_age_seconds,
                          gboolean named, GError **error);

#endif
