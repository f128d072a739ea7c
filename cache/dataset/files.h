/* SPDX-License-Identifier: Apache-2.0 */
/* The manifests in the cache directory: <cache>/manifests/<32 hex digits>, complete or not there.
 */
#ifndef HEARTH_CACHE_DATASET_FILES_H
#define HEARTH_CACHE_DATASET_FILES_H

#include <gio/gio.h>
#include "cache/manifest/manifest.h"

/* Below the cache directory. */
#define MANIFESTS_DIR "manifests"

/* Makes the directory below the cache directory unless it is there; its path. */
char *manifests_dir(const char *cache_dir, GError **error);
/*
 * Opens a manifest, reads and checks all of it, and notes the use; NULL without an error: there is
 * none. One that is damaged, of another tree or of another version is removed, which is logged.
 */
Manifest *manifests_open(const char *dir, const char *id, const Origin *origin,
                         const OriginAttr *root);
/* A file without a name, to be written. -1 with an error. */
int manifests_create(const char *dir, GError **error);
/* Gives it its name, durably. */
gboolean manifests_publish(const char *dir, const char *id, int fd, GError **error);
/*
 * Removes those used least recently beyond max_files and max_bytes (0: no bound), but none in
 * `keep`, a set of IDs. Returns the bytes of what is left.
 */
uint64_t manifests_prune(const char *dir, GHashTable *keep, unsigned max_files, uint64_t max_bytes);
/* Whether overlayfs can use the directory `objects` as a layer; FALSE with why not. */
gboolean manifests_layer_works(const char *objects, GError **error);

#endif
