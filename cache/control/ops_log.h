/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the log for each operation that changes something on the node: what it did, to which
 * volume, and who asked. One that failed is a warning with the reason. A warm job writes its own
 * line, when it ends (cache/warm/jobs.c).
 */
#ifndef HEARTH_CACHE_CONTROL_OPS_LOG_H
#define HEARTH_CACHE_CONTROL_OPS_LOG_H

#include "cache/control/call.h"

typedef struct OpsLog {
    const struct OpsLogRow *row; /* NULL: the operation has no line */
    char *name;                  /* of the volume, as it was before; NULL: of no volume */
    gboolean mounted;            /* likewise */
} OpsLog;

/* Before the operation: afterwards the volume may be gone. Clear with g_auto(OpsLog). */
void ops_log_begin(OpsLog *log, const Call *call);
/* error NULL: it succeeded. */
void ops_log_end(const OpsLog *log, const Call *call, const GError *error);
void ops_log_clear(OpsLog *log);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(OpsLog, ops_log_clear)

#endif
