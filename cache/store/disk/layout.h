/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's directory: lock, header, objects/ and partial/. Owns the descriptors; knows nothing
 * of the index. Functions on objects may be called from any thread; layout_open(), layout_mark(),
 * layout_reopen() and layout_close() by one at a time.
 */
#ifndef HEARTH_CACHE_STORE_DISK_LAYOUT_H
#define HEARTH_CACHE_STORE_DISK_LAYOUT_H

#include <stdatomic.h>
#include "cache/store/disk/format.h"
#include "cache/store/disk/key.h"

typedef enum LayoutTrust {
    LAYOUT_CLEAN,     /* new, or closed in order: the index is complete */
    LAYOUT_SAME_BOOT, /* the owner died: objects without a record are complete, but unrecorded */
    LAYOUT_UNTRUSTED, /* the machine died: objects without a record must not be served */
} LayoutTrust;

typedef struct Layout {
    char *path;
    char boot_id[40];
    int lock_fd, dir_fd, objects_fd, partial_fd;
    gboolean tmpfile; /* O_TMPFILE and linkat() work here */
    atomic_ulong next_partial;
    uint32_t crashes; /* owners in a row that died young, before this one */
} Layout;

typedef struct LayoutOptions {
    const char *boot_id;     /* NULL: the kernel's */
    gboolean any_filesystem; /* do not refuse network file systems and overlays */
    gboolean named_partials; /* do not use O_TMPFILE */
} LayoutOptions;

/*
 * Creates or opens, locks, empties partial/, and marks the store as open. Errors: G_IO_ERROR BUSY,
 * NOT_SUPPORTED (format version, file system), INVALID_DATA, READ_ONLY, NOT_DIRECTORY,
 * PERMISSION_DENIED, NO_SPACE, FAILED; each names the path and the fix.
 */
gboolean layout_open(Layout *layout, const char *path, const LayoutOptions *options,
                     LayoutTrust *trust, GError **error);
/*
 * Makes what is missing after the directory, or parts of it, vanished under its owner. The
 * descriptors keep their numbers, so other threads may go on using them meanwhile.
 */
gboolean layout_reopen(Layout *layout, const LayoutOptions *options, LayoutTrust *trust,
                       GError **error);
/* Whether the directories are still the ones at the path. */
gboolean layout_present(const Layout *layout);
/* Writes the header durably: one of FORMAT_STATE_*. 0 or -errno. */
int layout_mark(Layout *layout, uint32_t state, uint32_t crashes);
void layout_close(Layout *layout);

/* "<2 hex>/<32 hex>", below objects_fd. */
#define LAYOUT_NAME_BYTES (3 + OBJECT_ID_HEX + 1)
void layout_name(const ObjectId *id, char name[LAYOUT_NAME_BYTES]);
/* openat(2) for reading that leaves the access time alone. Descriptor or -errno; -EMFILE: also
 * when the others are left for connections (descriptors.h), as below. */
int layout_open_object(const Layout *layout, const ObjectId *id);
int layout_unlink_object(const Layout *layout, const ObjectId *id);

/* A file under way. */
typedef struct Partial {
    int fd;        /* -1: none */
    char name[32]; /* "" when it has none (O_TMPFILE) */
} Partial;
/* `id`: of the object that it will be; NULL: of none. */
int layout_partial_create(Layout *layout, const ObjectId *id, Partial *partial);
/* Space on the disk, so that writes there need not exclude one another. 0 also where the file
 * system has no such thing; -errno. */
int layout_partial_allocate(const Partial *partial, uint64_t off, uint64_t bytes);
/*
 * Space for `size` bytes on the disk, at once, and another descriptor of it that passes the page
 * cache by: the caller's. -1 where the file system has no such thing; -errno other than that.
 */
int layout_partial_direct(const Partial *partial, uint64_t size, int *direct);
/* Gives it its object's name; -EEXIST when that is taken. The descriptor stays open. */
int layout_partial_link(Layout *layout, Partial *partial, const ObjectId *id);
/* Removes its name below partial/, if it has one. The descriptor stays open. */
void layout_partial_forget(Layout *layout, Partial *partial);

#endif
