/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volume of this node a word means: what a person types in place of an ID. A volume has the
 * words
 *
 *     its ID; NAMESPACE/CLAIM; its PersistentVolume
 *     of a dataset: [GROUP/]SUBVOLUME@SNAPSHOT, the label, the number, and the words of the claims
 *     that were mounted as it
 *
 * A word wins over words that begin with it, and an ID over everything. Volumes of one dataset are
 * one thing.
 */
#ifndef HEARTH_CACHE_CONTROL_RESOLVE_H
#define HEARTH_CACHE_CONTROL_RESOLVE_H

#include "cache/control/ops.h"

/* A volume. Owns its strings. */
typedef struct ResolveEntry {
    char *id, *name;
    char *thing; /* equal for volumes that share what is cached */
    int rank;    /* of volumes of one thing the highest is meant */
    GPtrArray *words;
} ResolveEntry;

ResolveEntry *resolve_entry_new(const char *id, const char *name, const char *thing, int rank);
/* Adds a copy; NULL and "" are none. */
void resolve_entry_add(ResolveEntry *entry, const char *word);
/* Adds a dataset's title (dataset_key.h), with its group and without. */
void resolve_entry_add_title(ResolveEntry *entry, const char *title);
void resolve_entry_free(ResolveEntry *entry);

/* The ID, borrowed. NULL: NOT_FOUND lists what there is, INVALID_ARGUMENT what it may be. */
const char *resolve_pick(const GPtrArray *entries, const char *word, GError **error);

/* The ID of an open volume, a known dataset or a pinned volume; the caller's. Errors as above. An
 * ID of which something is cached is taken as it is. */
char *resolve_volume(Control *control, const char *word, GError **error);

#endif
