/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which run of hearthd this is. A run that was killed leaves sessions at the MDS whose capabilities
 * block all other clients for a minute; the next run ends them, by the names it knows they had. The
 * run's number is part of the names, so ending a dead session can never hit a live one.
 *
 * Kept in a file beside the control socket: gone with a reboot, as the sessions are by then.
 */
#ifndef HEARTH_CACHE_VOLUME_INCARNATION_H
#define HEARTH_CACHE_VOLUME_INCARNATION_H

#include <glib.h>

typedef struct Incarnation Incarnation;

/* Never fails: without a usable file this run has no predecessor that it knows of. */
Incarnation *incarnation_begin(const char *path);
/* closed: no session of this run is left; the next run ends them else. Frees. */
void incarnation_end(Incarnation *incarnation, gboolean closed);

/* What Ceph's session of a volume is called in this run; caller's. */
char *incarnation_client(const Incarnation *incarnation, const char *volume);
/* What it was called in the run before, if that was killed; else NULL. Caller's. */
char *incarnation_dead_client(const Incarnation *incarnation, const char *volume);

#endif
