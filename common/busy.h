/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumes and mount points that operations are working on. An operation does not wait for
 * another: the second one is refused with ABORTED, as CSI requires, and the caller tries again. The
 * exception is our own work in the background, which no caller knows: it is short, and an operation
 * waits for it.
 */
#ifndef HEARTH_COMMON_BUSY_H
#define HEARTH_COMMON_BUSY_H

#include <glib.h>
#include "common/error.h"

typedef struct Busy Busy;
typedef struct BusyHold BusyHold;

Busy *busy_new(void);
void busy_free(Busy *busy);

/*
 * Takes the volume and, unless NULL, the mount point; both or neither. NULL with ABORTED when
 * another holds either.
 */
BusyHold *busy_take(Busy *busy, const char *volume, const char *path, GError **error);
/* As above for the background: the volume alone, and NULL without an error. */
BusyHold *busy_take_background(Busy *busy, const char *volume);
/* As busy_take() of the volume alone, but waits until a moment in monotonic time, in
 * microseconds. For a resource that several volumes share. */
BusyHold *busy_take_until(Busy *busy, const char *volume, gint64 until_us, GError **error);
void busy_release(BusyHold *hold);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BusyHold, busy_release)

#endif
