/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of volumes that are Hearth's own. The volume that serves the mounts of a dataset is named
 * dataset-<32 hex digits>, or dataset-<32 hex digits>-<number> for a further authority (a Ceph user
 * and its key). The volume of a CacheWarmup is named warmup-<run>. No volume of a cluster may have
 * such a name: it would get the connection and the cached bytes of that volume.
 */
#ifndef HEARTH_CACHE_VOLUME_OWN_NAMES_H
#define HEARTH_CACHE_VOLUME_OWN_NAMES_H

#include <glib.h>
#include "cache/volume/spec.h"
#include "proto/wire.h"

/* FALSE with INVALID_ARGUMENT: the name is Hearth's own, and the spec does not fit it. */
gboolean own_names_check(const VolumeSpec *spec, GError **error);
/* The same before a mount is served: `dataset` is the ID of the volume's dataset when its fill
 * layer is served, else NULL. */
gboolean own_names_check_serving(const char *volume, const char *dataset, GError **error);
#endif
