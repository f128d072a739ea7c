/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to volumes, and to datasets that this node knows even while Ceph does not answer. */
#ifndef HEARTH_CACHE_VOLUME_OFFLINE_H
#define HEARTH_CACHE_VOLUME_OFFLINE_H

#include "cache/dataset/datasets.h"
#include "cache/volume/spec.h"

/* How long to wait for an answer of Ceph before a note of this node is used; shorter within
 * AWAY_AGAIN_SEC of a wait that timed out. */
#define AWAY_WAIT_MS 8000
#define AWAY_AGAIN_MS 3000
#define AWAY_AGAIN_SEC 30

/* The last answers of Ceph. Thread-safe. In all calls NULL stands for a hearthd without a cache,
 * which knows no datasets. */
typedef struct Offline Offline;

/* `datasets` is borrowed; NULL for NULL. */
Offline *offline_new(Datasets *datasets);
void offline_free(Offline *offline);

/*
 * As spec_connect(). For a location with a note (last_seen.h) whose manifest is on this node, it
 * returns an origin that connects later (cache/origin/deferred.h) if Ceph does not answer in time
 * and the key is the one that Ceph accepted last. An answer of Ceph always counts. UNAVAILABLE for
 * another key.
 */
Origin *offline_connect(Offline *offline, const VolumeSpec *spec, const Incarnation *incarnation,
                        GError **error);
/* Notes that the location is this dataset, with the spec's key, if this was Ceph's last answer to a
 * connect: the connection of an open volume may be older than a refusal. A connect itself corrects
 * a note that exists. */
void offline_note(Offline *offline, const VolumeSpec *spec, const char *dataset);
/* Ceph has refused the spec's key: no note of it is used until Ceph accepts the key again. */
void offline_refused(Offline *offline, const VolumeSpec *spec);

#endif
