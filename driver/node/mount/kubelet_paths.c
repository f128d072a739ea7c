/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/kubelet_paths.h"
#include <string.h>

typedef enum Kind { NONE, TARGET, SUBPATH, DEVICE_TARGET, DEVICE_BIND } Kind;

typedef struct Place {
    Kind kind;
    const char *pod, *volume; /* borrowed from the parts; NULL for NONE */
} Place;

static gboolean is(const char *part, const char *name)
{
    return strcmp(part, name) == 0;
}

/* Looked at from the end, as kubelet's own directory may be anywhere. */
static Place place_of(char *const *parts)
{
    const guint n = g_strv_length((char **)parts);
    if (n < 7)
        return (Place){.kind = NONE};
    char *const *p = parts + n - 6;
    if (is(p[0], "pods") && is(p[2], "volumes") && is(p[3], "kubernetes.io~csi") &&
        is(p[5], "mount"))
        return (Place){TARGET, p[1], p[4]};
    if (is(p[0], "pods") && is(p[2], "volume-subpaths"))
        return (Place){SUBPATH, p[1], p[3]};
    if (!is(p[0], "kubernetes.io") || !is(p[1], "csi") || !is(p[2], "volumeDevices"))
        return (Place){.kind = NONE};
    if (is(p[3], "publish"))
        return (Place){DEVICE_TARGET, p[5], p[4]};
    if (is(p[4], "dev"))
        return (Place){DEVICE_BIND, p[5], p[3]};
    return (Place){.kind = NONE};
}

gboolean kubelet_made_of(const char *path, const char *target)
{
    g_auto(GStrv) a = g_strsplit(path, "/", -1), b = g_strsplit(target, "/", -1);
    const Place bind = place_of(a), of = place_of(b);
    const gboolean fits = (bind.kind == SUBPATH && of.kind == TARGET) ||
                          (bind.kind == DEVICE_BIND && of.kind == DEVICE_TARGET);
    return fits && is(bind.pod, of.pod) && is(bind.volume, of.volume);
}

gboolean kubelet_is_device_bind(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    return place_of(parts).kind == DEVICE_BIND;
}

char *kubelet_pod_of(const char *target)
{
    g_auto(GStrv) parts = g_strsplit(target, "/", -1);
    const Place place = place_of(parts);
    return place.kind == TARGET || place.kind == DEVICE_TARGET ? g_strdup(place.pod) : NULL;
}
