#include "cache/control/own_names.h"
#include <string.h>

#define MAX_SLOT_DIGITS 9

static gboolean refuse(GError **error, const char *volume, const char *why)
{
    g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT,
                "volume %s: names that begin with \"" WIRE_DATASET_PREFIX
                "\" or \"" WIRE_WARMUP_PREFIX "\" are Hearth's own, %s; give the volume another "
                "volumeHandle",
                volume, why);
    return FALSE;
}

gboolean own_names_dataset(const char *volume, char dataset[WIRE_DATASET_DIGITS + 1])
{
    if (!g_str_has_prefix(volume, WIRE_DATASET_PREFIX))
        return FALSE;
    const char *id = volume + strlen(WIRE_DATASET_PREFIX);
    if (strspn(id, "0123456789abcdef") != WIRE_DATASET_DIGITS)
        return FALSE;
    const char *slot = id + WIRE_DATASET_DIGITS;
    const size_t digits = slot[0] == '-' ? strspn(slot + 1, "0123456789") : 0;
    if (slot[0] && (digits == 0 || digits > MAX_SLOT_DIGITS || slot[1 + digits]))
        return FALSE;
    memcpy(dataset, id, WIRE_DATASET_DIGITS);
    dataset[WIRE_DATASET_DIGITS] = '\0';
    return TRUE;
}

gboolean own_names_check(const VolumeSpec *spec, GError **error)
{
    char dataset[WIRE_DATASET_DIGITS + 1];
    if (g_str_has_prefix(spec->volume, WIRE_DATASET_PREFIX) &&
        !own_names_dataset(spec->volume, dataset))
        return refuse(error, spec->volume, "and this is no dataset's ID");
    if (wire_is_own_name(spec->volume) && (spec->is_image || !spec->read_only || !spec->cache))
        return refuse(error, spec->volume, "of snapshots that are cached");
    return TRUE;
}

gboolean own_names_check_serving(const char *volume, const char *dataset, GError **error)
{
    char named[WIRE_DATASET_DIGITS + 1];
    if (g_str_has_prefix(volume, WIRE_WARMUP_PREFIX))
        return refuse(error, volume, "and this one is never mounted");
    if (g_str_has_prefix(volume, WIRE_DATASET_PREFIX) &&
        !(dataset && own_names_dataset(volume, named) && strcmp(named, dataset) == 0))
        return refuse(error, volume, "of the fill layer of that very dataset");
    return TRUE;
}
