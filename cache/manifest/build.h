/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a manifest by walking an immutable tree: several threads list directories, one writes. The
 * walk is depth first as far as threads allow, so that what waits is bounded by the tree's depth
 * and its widest directory; what was listed and is not yet written is bounded too.
 */
#ifndef HEARTH_CACHE_MANIFEST_BUILD_H
#define HEARTH_CACHE_MANIFEST_BUILD_H

#include <gio/gio.h>
#include <stdatomic.h>
#include "cache/manifest/manifest.h"
#include "cache/origin/origin.h"

typedef struct BuildProgress {
    atomic_uint_fast64_t files, directories, bytes; /* written so far; bytes: of the files */
    atomic_bool cancel;                             /* set by anyone: the build ends, CANCELLED */
} BuildProgress;

/* An immutable tree; borrowed. */
typedef struct BuildTree {
    Origin *origin;
    OriginNode *root;
    OriginAttr attr;  /* of the root */
    unsigned threads; /* that list its directories; 0: 8 */
} BuildTree;

/*
 * Writes the manifest of the tree to a new file at fd, borrowed; `dir` takes temporary files.
 * Errors: G_IO_ERROR, naming the path in the tree where it is one of the tree's; what was written
 * is then of no use. NO_SPACE: it would take more than max_bytes.
 *
 * The tree's owner may be hostile: its names, sizes and attributes decide nothing but what is shown
 * of this tree, and how much is written or held in memory is bounded.
 */
gboolean manifest_build(int fd, const char *dir, const BuildTree *tree, uint64_t max_bytes,
                        BuildProgress *progress, GError **error);

#endif
