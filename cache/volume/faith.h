/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims that were opened on faith: Ceph did not answer, and the key was the one that it accepted
 * last. A claim that is mounted natively is not open at hearthd any more. So its origin is kept
 * here, and connects with the key of the claim until Ceph answers. A refusal ends the mounts of the
 * dataset for that user and key.
 */
#ifndef HEARTH_CACHE_VOLUME_FAITH_H
#define HEARTH_CACHE_VOLUME_FAITH_H

#include "cache/volume/spec.h"
#include "cache/origin/origin.h"

/* Claims beyond this number are not verified until they are staged again. */
#define FAITH_MAX 1024

typedef struct Faith Faith;

Faith *faith_new(void);
/* NULL is fine. */
void faith_free(Faith *faith);
/* Takes the origin of a claim that was opened as `dataset` if Ceph has not answered it yet; else
 * FALSE. Of several with the same user and key one is kept. */
gboolean faith_take(Faith *faith, const char *dataset, const VolumeSpec *spec, Origin *origin);
/* Calls `refused` for each claim that Ceph has refused since, and drops all that Ceph has answered.
 * Not from two threads at once. */
void faith_check(Faith *faith,
                 void (*refused)(const char *dataset, const VolumeSpec *spec, void *data),
                 void *data);

#endif
