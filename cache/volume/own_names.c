/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/own_names.h"
#include <string.h>

static gboolean fail_own_name(GError **error, const char *volume, const char *why)
{
    return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                     "volume %s: names that begin with \"" WIRE_DATASET_PREFIX
                     "\" or \"" WIRE_WARMUP_PREFIX
                     "\" are Hearth's own, %s; give the volume another "
                     "volumeHandle",
                     volume, why);
}

gboolean own_names_check(const VolumeSpec *spec, GError **error)
{
    char dataset[WIRE_DATASET_DIGITS + 1];
    if (g_str_has_prefix(spec->volume, WIRE_DATASET_PREFIX) &&
        !wire_dataset_of(spec->volume, dataset))
        return fail_own_name(error, spec->volume, "and this is no dataset's ID");
    if (wire_is_own_name(spec->volume) &&
        (kind_is_image(spec->kind) || !spec->read_only || !spec->cache))
        return fail_own_name(error, spec->volume, "of snapshots that are cached");
    return TRUE;
}

gboolean own_names_check_serving(const char *volume, const char *dataset, GError **error)
{
    char named[WIRE_DATASET_DIGITS + 1];
    if (g_str_has_prefix(volume, WIRE_WARMUP_PREFIX))
        return fail_own_name(error, volume, "and this one is never mounted");
    if (g_str_has_prefix(volume, WIRE_DATASET_PREFIX) &&
        !(dataset && wire_dataset_of(volume, named) && strcmp(named, dataset) == 0))
        return fail_own_name(error, volume, "of the fill layer of that very dataset");
    return TRUE;
}
