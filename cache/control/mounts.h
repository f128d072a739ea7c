/* Which volume a path of this machine belongs to, told from /proc/self/mountinfo (proc(5)). */
#ifndef HEARTH_CONTROL_MOUNTS_H
#define HEARTH_CONTROL_MOUNTS_H

#include <glib.h>

#define MOUNTS_FSTYPE "fuse.hearth"
#define MOUNTS_SOURCE_PREFIX "hearth:"

/*
 * `path` is absolute and free of links (realpath(3)). The mount may be the staged one, a bind mount
 * of it or of a subdirectory. *inside is the path within the volume, "" for its root. FALSE with
 * G_IO_ERROR_NOT_FOUND when the path is on no volume of Hearth.
 */
gboolean mounts_find_volume(const char *mountinfo, const char *path, char **volume, char **inside,
                            GError **error);

#endif
