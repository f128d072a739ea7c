/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of hearthd and its cache, as lines of the screen of a node. */
#ifndef HEARTH_CMD_HEARTHCTL_VIEW_COUNTERS_H
#define HEARTH_CMD_HEARTHCTL_VIEW_COUNTERS_H

#include <jansson.h>
#include "cmd/hearthctl/report/lines.h"

/* All of them, of a "status" reply; `now_ms` is since 1970. */
void counters_add(Lines *lines, const json_t *status, gint64 now_ms, const View *view);
/* Only what went wrong since hearthd started: a line, or none. */
void counters_add_faults(Lines *lines, const json_t *cache, const View *view);

#endif
