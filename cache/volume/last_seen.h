/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of the dataset at a location in Ceph when it was last seen, a JSON object in each file
 * <cache>/manifests/place.<32 hex digits>. With a note, a dataset whose manifest is on this node
 * can be opened while Ceph does not answer.
 *
 * A snapshot can be deleted and another one made with its name. So a note is only used while Ceph
 * does not answer, and only for the same user with the key that Ceph accepted last; an answer of
 * Ceph always counts. The note has a slow hash of the key (key_hash.h).
 */
#ifndef HEARTH_CACHE_VOLUME_LAST_SEEN_H
#define HEARTH_CACHE_VOLUME_LAST_SEEN_H

#include "cache/volume/spec.h"

/* The most that are kept; the oldest ones go first. */
#define LAST_SEEN_MAX 256

/* Notes the dataset at the spec's location, and that Ceph accepted its key; failures are logged.
 * `dir` is the directory of the manifests. Slow. */
void last_seen_note(const char *dir, const VolumeSpec *spec, const char *dataset);
/* The dataset's ID, the caller's; NULL: not known. */
char *last_seen_dataset(const char *dir, const VolumeSpec *spec);
/* Whether the spec's key is the one that was noted. Slow. */
gboolean last_seen_key_matches(const char *dir, const VolumeSpec *spec);
void last_seen_forget(const char *dir, const VolumeSpec *spec);
/* All of them: the dataset's ID -> [{"clusterID", "fsName", "rootPath"}...]; a new reference. */
json_t *last_seen_list(const char *dir);

#endif
