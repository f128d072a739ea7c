/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the files of a manifest beneath a path, in the order in which their origin lists them: no
 * question to the origin, and no memory that grows with the number of files.
 */
#ifndef HEARTH_CACHE_WARM_WALK_NAMES_H
#define HEARTH_CACHE_WARM_WALK_NAMES_H

#include "cache/manifest/manifest.h"

typedef struct NamedFile {
    const char *path;      /* beneath the root */
    const char *directory; /* likewise; one string for the files of one that follow each other */
    uint64_t parent;       /* the directory's offset in the names */
    ObjectKey key;
} NamedFile;

/* `file` is called for each file that has bytes; FALSE ends the walk, and is the result then.
 * `path` is a directory's or a file's, "" for all. */
gboolean walk_names(const Manifest *manifest, const char *path,
                    gboolean (*file)(void *data, const NamedFile *file), void *data);

/*
 * Listing ahead: one request of a CephFS listing brings a thousand inodes, and opening one of them
 * needs no request then. A lookup by name is a request for each inode.
 */
typedef struct Ahead Ahead;

Ahead *ahead_new(Origin *origin);
void ahead_free(Ahead *ahead);
/* Makes it likely that the origin knows the file, which the walk has reached. */
void ahead_of(Ahead *ahead, const NamedFile *file);

#endif
