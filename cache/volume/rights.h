/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a claim's own user may read a dataset's bytes, which others may have had fetched. */
#ifndef HEARTH_CACHE_VOLUME_RIGHTS_H
#define HEARTH_CACHE_VOLUME_RIGHTS_H

#include "cache/volume/spec.h"
#include "cache/manifest/manifest.h"

/* So many files of a manifest are asked for, spread over all of it. */
#define RIGHTS_FILES 4

/*
 * Asks the origin, whose user is the spec's, past the store. PERMISSION_DENIED: Ceph refuses it;
 * other errors: this cannot be told now. Blocks.
 */
gboolean rights_check(Origin *origin, const VolumeSpec *spec, const Manifest *manifest,
                      GError **error);

#endif
