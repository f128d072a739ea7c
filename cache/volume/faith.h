/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was opened on faith: Ceph did not answer, and the key was the one it accepted last. A claim
 * that is mounted natively is not open at hearthd any more, so its origin goes on here, connecting
 * with the claim's own key until Ceph answers. A refusal ends what the dataset serves for that user
 * and key.
 */
#ifndef HEARTH_CACHE_VOLUME_FAITH_H
#define HEARTH_CACHE_VOLUME_FAITH_H

#include "cache/volume/spec.h"
#include "cache/origin/origin.h"

/* More than so many are not verified until they are staged again. */
#define FAITH_MAX 1024

typedef struct Faith Faith;

Faith *faith_new(void);
/* NULL is fine. */
void faith_free(Faith *faith);
/* Takes the origin of a claim that was opened as `dataset` if Ceph has not answered it yet; else
 * FALSE. Of several with the same user and key one is kept. */
gboolean faith_take(Faith *faith, const char *dataset, const VolumeSpec *spec, Origin *origin);
/* Calls `refused` for each that Ceph has refused since, and lets go of those it has answered. Not
 * from two threads at once. */
void faith_look(Faith *faith,
                void (*refused)(const char *dataset, const VolumeSpec *spec, void *data),
                void *data);

#endif
