/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the user of a claim may read a dataset's bytes, which another user may have had fetched.
 */
#ifndef HEARTH_CACHE_VOLUME_RIGHTS_H
#define HEARTH_CACHE_VOLUME_RIGHTS_H

#include "cache/volume/spec.h"
#include "cache/manifest/manifest.h"

/* Number of files that are checked, spread over the manifest. */
#define RIGHTS_FILES 4

/*
 * Asks the origin, whose user is the spec's, past the store. PERMISSION_DENIED: Ceph refuses it;
 * other errors: it is not known now. Blocks.
 */
gboolean rights_check(Origin *origin, const VolumeSpec *spec, const Manifest *manifest,
                      GError **error);

#endif
