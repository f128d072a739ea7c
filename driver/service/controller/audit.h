/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit over all backends, clusters and locations, with the driver's own user, like lists
 * (lists.c). A cluster that does not answer is reported, and the others are audited.
 */
#ifndef HEARTH_DRIVER_SERVICE_CONTROLLER_AUDIT_H
#define HEARTH_DRIVER_SERVICE_CONTROLLER_AUDIT_H

#include "driver/provision/audit.h"

typedef struct AuditConfig {
    Backend *const *backends; /* borrowed */
    gsize n_backends;
    const char *secret_dir; /* NULL: none, which is an error where a backend needs one */
    const char *cluster_id; /* NULL: all */
    gboolean repair;        /* fix what is safe */
    gint64 min_age_seconds;
    char *const *remove; /* names of findings to remove that may hold data; NULL: none */
} AuditConfig;

typedef struct AuditResult {
    AuditReport *report; /* findings in the order of cluster, location and name */
    GPtrArray *errors;   /* char*: clusters and locations that failed, and names that do not fit one
                            finding */
    guint locations;
} AuditResult;

AuditResult *audit_run(const AuditConfig *config);
void audit_result_free(AuditResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AuditResult, audit_result_free)

#endif
