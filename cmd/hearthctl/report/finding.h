/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the checks of a node: what was found, how good that is, and how to fix it. */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_FINDING_H
#define HEARTH_CMD_HEARTHCTL_REPORT_FINDING_H

#include <glib.h>
#include <jansson.h>
#include "cmd/hearthctl/report/style.h"

/* In order of how bad they are. */
typedef enum FindingLevel {
    FINDING_OK,
    FINDING_UNKNOWN, /* it could not be checked */
    FINDING_WARN,    /* it works, worse than it could */
    FINDING_BAD,     /* something does not work */
} FindingLevel;

typedef struct Findings Findings;

Findings *findings_new(void);
void findings_free(Findings *findings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Findings, findings_free)

/* `fix` says what to do about it, and is NULL where there is nothing to do; strings are copied. */
void findings_add(Findings *findings, FindingLevel level, const char *name, const char *fix,
                  const char *format, ...) G_GNUC_PRINTF(5, 6);

FindingLevel findings_worst(const Findings *findings);
guint findings_count(const Findings *findings, FindingLevel level);
/* One line a finding and the fix beneath, wrapped at the width of the view; at the end a sum, which
 * names what is bad. */
char **findings_lines(const Findings *findings, const View *view);
/* {"worst": LEVEL, "findings": [{"name", "level": "ok"|"unknown"|"warn"|"bad", "found",
 * "fix"}...]}; the caller's. */
json_t *findings_json(const Findings *findings);

/* Whether "6.12.3-amd64" is of this version or a later one; FALSE for what is no version. */
gboolean finding_kernel_is(const char *release, unsigned major, unsigned minor);
/* Whether a comma-separated list, as of a mount's options, has this one. */
gboolean finding_has_option(const char *options, const char *option);

#endif
