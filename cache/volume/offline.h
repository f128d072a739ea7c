/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to datasets that this node knows: also while Ceph is away. */
#ifndef HEARTH_CACHE_VOLUME_OFFLINE_H
#define HEARTH_CACHE_VOLUME_OFFLINE_H

#include "cache/dataset/datasets.h"
#include "cache/volume/spec.h"

/* How long Ceph has to answer before what is known here is used; less where it was away a moment
 * ago. */
#define AWAY_WAIT_MS 8000
#define AWAY_AGAIN_MS 3000
#define AWAY_AGAIN_SEC 30

/*
 * As spec_connect(). When the place is one that was noted (last_seen.h) and its manifest is here,
 * an origin that connects later (cache/origin/deferred.h) is given if Ceph does not answer in time
 * and the key is the one that it accepted last; an answer always counts. UNAVAILABLE for another
 * key.
 */
Origin *away_connect(Datasets *datasets, const VolumeSpec *spec, const Incarnation *incarnation,
                     GError **error);
/* Notes that the place is this dataset, and the spec's key, if that is what Ceph said of the place
 * when it last answered a connect: an open volume's connection may be older than a refusal. A note
 * that is there already is corrected by the connect itself. */
void away_note(Datasets *datasets, const VolumeSpec *spec, const char *dataset);
/* Ceph has refused the spec's key: it is not believed any more, until it is accepted again. */
void away_refused(Datasets *datasets, const VolumeSpec *spec);

#endif
