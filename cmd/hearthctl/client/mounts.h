/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the volume of a path in /proc/self/mountinfo (proc(5)). */
#ifndef HEARTH_CMD_HEARTHCTL_MOUNTS_H
#define HEARTH_CMD_HEARTHCTL_MOUNTS_H

#include <glib.h>
#include <jansson.h>

#define MOUNTS_FSTYPE "fuse.hearth"
#define MOUNTS_SOURCE_PREFIX "hearth:"
/* A dataset's mount: an overlay whose first layer is named <dataset>.<number>.manifest; hearthd
 * serves all of a dataset's mounts as one volume, WIRE_DATASET_PREFIX<dataset>. */
#define MOUNTS_STACK_FSTYPE "overlay"

/*
 * `path` is absolute and free of links (realpath(3)). The mount may be the staged one, a bind mount
 * of it or of a subdirectory. *inside is the path within the volume, "" for its root. FALSE with
 * G_IO_ERROR_NOT_FOUND when the path is on no volume of Hearth.
 */
gboolean mounts_find_volume(const char *mountinfo, const char *path, char **volume, char **inside,
                            GError **error);

/* A line of mountinfo. */
typedef struct MountEntry {
    int id;
    char *device; /* "major:minor" */
    char *point, *source;
    char *volume; /* that hearthd serves it by; NULL: it is none of Hearth's */
} MountEntry;

/* All of them: MountEntry *, the caller's. */
GPtrArray *mounts_entries(const char *mountinfo);
/* The mount that an absolute path is on; borrowed, NULL: none. */
const MountEntry *mounts_entry_of(const GPtrArray *entries, const char *path);

typedef struct LostMount {
    char *volume, *point;
    char *pod; /* UID; NULL: not known */
} LostMount;

/* The command that heals it, of those that were given as "UID=COMMAND"; NULL: none. Borrowed. */
const char *mounts_heal_of(char *const *heals, const LostMount *lost);

void mounts_free_lost(void *lost);
/* Whether these are one: a dataset is served as a volume for each user and key. */
gboolean mounts_same_volume(const char *a, const char *b);
/* Whether hearthd serves a mount of the volume. `served`: all pages of op "volumes". */
gboolean mounts_is_served(const json_t *served, const char *volume);

/*
 * The mounts of volumes that hearthd does not serve: LostMount *, the caller's. `served`: hearthd's
 * volumes, each with "volume" and "attached". Only mount points whose path has `within` count.
 * Where pods use a mount, only their mount points are listed, and not the one that they share.
 */
GPtrArray *mounts_lost(const char *mountinfo, const json_t *served, const char *within);

/* The volume that hearthd serves for this one, when a mount shows it to be a dataset; else a copy.
 */
char *mounts_served_volume(const char *mountinfo, const char *volume);

#endif
