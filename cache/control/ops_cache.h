/* SPDX-License-Identifier: Apache-2.0 */
/* Pin, evict and verify: operations on what is cached. */
#ifndef HEARTH_CACHE_CONTROL_OPS_CACHE_H
#define HEARTH_CACHE_CONTROL_OPS_CACHE_H

#include "cache/control/call.h"

/* What is pinned: ReportPin, cleared with the array. */
GArray *ops_pins(Control *control);

gboolean ops_pin(Call *call, GError **error);
gboolean ops_evict(Call *call, GError **error);
gboolean ops_verify(Call *call, GError **error);

#endif
