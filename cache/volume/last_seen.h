/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which dataset a place in Ceph was when it was last seen: <cache>/manifests/place.<32 hex digits>,
 * a JSON object each. With it a dataset whose manifest is here can be opened while Ceph is away.
 *
 * A snapshot can be deleted and another made by its name, so a place is only believed where Ceph
 * does not answer, and only for the user that it was seen with and the key that Ceph accepted of it
 * last; whenever Ceph answers, its word counts. Of the key a slow hash is kept (key_hash.h).
 */
#ifndef HEARTH_CACHE_VOLUME_LAST_SEEN_H
#define HEARTH_CACHE_VOLUME_LAST_SEEN_H

#include "cache/volume/spec.h"

/* More are never kept; those noted least recently go. */
#define PLACES_MAX 256

/* Notes what the spec's place is, and that Ceph accepted its key; failures are logged. `dir` is
 * that of the manifests. Slow. */
void last_seen_note(const char *dir, const VolumeSpec *spec, const char *dataset);
/* The dataset's ID, the caller's; NULL: not known. */
char *last_seen_dataset(const char *dir, const VolumeSpec *spec);
/* Whether the spec's key is the one that was noted. Slow. */
gboolean last_seen_key_matches(const char *dir, const VolumeSpec *spec);
void last_seen_forget(const char *dir, const VolumeSpec *spec);
/* All of them: the dataset's ID -> [{"clusterID", "fsName", "rootPath"}...]; a new reference. */
json_t *last_seen_list(const char *dir);

#endif
