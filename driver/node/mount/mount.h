/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mounts of a node: the mount table (mountinfo, proc(5)), and the operations on mounts and
 * mount points that publishing a volume needs. NodeMounter is a table, so that its users are tested
 * without root, with each operation failing in turn.
 *
 * A volume's file system has type "fuse.hearth", or "overlay" for a dataset's stack
 * (driver/node/dataset/dataset.h), and source "hearth:<volume id>": so the mount table shows
 * which mounts are ours, also after a restart.
 *
 * Mounts are made detached (fsmount(2), open_tree(2)), set up completely and then placed with
 * move_mount(2). So no process sees a mount that is half made, and closing the descriptor of one
 * that was not placed removes it, also when the process dies. Needs Linux 5.12 (mount_setattr(2)).
 * mount(2) followed by a remount was rejected: a crash between the two leaves a writable
 * "read-only" mount.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_MOUNT_H
#define HEARTH_DRIVER_NODE_MOUNT_MOUNT_H

#include <glib.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include "common/error.h"

#define MOUNT_TYPE "fuse.hearth"
#define MOUNT_STACK_TYPE "overlay"
#define MOUNT_SOURCE_PREFIX "hearth:"

typedef struct MountEntry {
    uint64_t id;
    dev_t dev; /* the file system: shared by all binds of one mount */
    char *root;
    char *target;
    char *type;
    char *source;
    char *lower;        /* the first lower layer of an overlay; else NULL */
    char *context;      /* the SELinux context of all its files (selinux.h); NULL: none */
    gboolean read_only; /* this mount or its file system */
} MountEntry;

void mount_entry_free(MountEntry *entry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MountEntry, mount_entry_free)

/* How a file system of ours is mounted; borrowed. */
typedef struct MountOptions {
    uint64_t attrs;      /* MOUNT_ATTR_* */
    const char *context; /* the SELinux context of all its files; NULL: none is requested */
} MountOptions;

/* Fills in what the options of the file system say, as mountinfo has them. */
void mount_entry_take_options(MountEntry *entry, const char *super);
/* Parses one line of mountinfo, escapes (\040 and the like) decoded. NULL: malformed. */
MountEntry *mount_parse_line(const char *line);
/* Parses a whole mountinfo; malformed lines are skipped. Array of MountEntry in its order. */
GPtrArray *mount_parse(const char *text);
/* The mount that is visible at `target`: the last one of several. Borrowed; NULL: none. */
const MountEntry *mount_find(const GPtrArray *table, const char *target);
/* The volume id of a mount of ours, borrowed; NULL when it is something else. */
const char *mount_volume(const MountEntry *entry);
/* As above, but NULL for a stack: hearthd serves only a layer of it. */
const char *mount_served_volume(const MountEntry *entry);

/*
 * Checks a path that a caller wants mounted on and gives its canonical form, with symlinks in its
 * parent resolved, as in mountinfo. The last component need not exist and is never
 * followed. INVALID_ARGUMENT: not absolute, "." or ".." in it, "/", too long (`field` names the
 * argument); NOT_FOUND: its directory does not exist.
 */
char *mount_canonical_path(const char *path, const char *field, GError **error);

/* The kernel's message about a failed fsconfig(2) or fsmount(2), or NULL; the caller's. */
char *mount_context_message(int context);

/* The path with symlinks resolved in as much of it as exists; the caller's. */
char *mount_canonical_dir(const char *path);

#define MOUNT_FLAGS_KNOWN                                                                          \
    "ro, rw, exec, noexec, noatime, relatime, nodiratime, nosuid, nodev, context=..."
/*
 * Turns a capability's mount flags (ro, noatime, ...) into MOUNT_ATTR_* bits, and takes an SELinux
 * context among them; *context is the caller's, or NULL. INVALID_ARGUMENT for a flag that
 * is not allowed, with those that are.
 */
gboolean mount_parse_flags(char *const *flags, size_t n, uint64_t *attrs, char **context,
                           GError **error);

typedef struct NodeMounter NodeMounter;

/*
 * Errors are HEARTH_ERROR and name the path. Paths are canonical. `timeout_ms` bounds an operation
 * that a hung file system could hold for ever.
 */
typedef struct NodeMounterOps {
    void (*free)(NodeMounter *m);
    /* The mount table: array of MountEntry. */
    GPtrArray *(*list)(NodeMounter *m, GError **error);
    /* The mount that is visible at a path: *entry is the caller's; NULL: none. From Linux 6.13 on
     * this takes as long with a thousand mounts as with ten, unlike list(). */
    gboolean (*find)(NodeMounter *m, const char *path, MountEntry **entry, GError **error);
    /* A detached mount, or -1; closing it unmounts. *fuse_fd, through which it is served, is the
     * caller's, and may be open after an error too; else -1. */
    int (*mount_fuse)(NodeMounter *m, const char *volume, const MountOptions *options, int *fuse_fd,
                      GError **error);
    /* Ends the FUSE connection of a file system, whoever has descriptors of it: calls that wait
     * fail. Fine when it has ended. */
    gboolean (*abort_fuse)(NodeMounter *m, dev_t dev, GError **error);
    /*
     * A detached bind of the mount at `path`, or -1. Its flags are `attrs`, not those of the
     * original. FAILED_PRECONDITION when another file system than `dev` is mounted there.
     */
    int (*clone)(NodeMounter *m, const char *path, dev_t dev, uint64_t attrs, GError **error);
    /*
     * Whether a mount's root answers: its attributes are read again. mount_fd is one of the
     * above, or -1 for the mount at `path`, which in any case names it in messages.
     * FAILED_PRECONDITION: it is dead; DEADLINE_EXCEEDED, UNAVAILABLE: it hangs.
     */
    gboolean (*probe)(NodeMounter *m, int mount_fd, const char *path, gint64 timeout_ms,
                      GError **error);
    /* Places a detached mount on a directory that is not a mount point and not a symlink. */
    gboolean (*place)(NodeMounter *m, int mount_fd, const char *path, GError **error);
    /*
     * Removes the topmost mount. FAILED_PRECONDITION when it is in use, unless `lazy`. The
     * kernel removes it from the table first, and writes back afterwards: after
     * DEADLINE_EXCEEDED read the table again.
     */
    gboolean (*unmount)(NodeMounter *m, const char *path, gboolean lazy, gint64 timeout_ms,
                        GError **error);
    /*
     * Makes `path` an empty directory, or finds that it is one; *made: it made it.
     * FAILED_PRECONDITION when it is something else, or not empty.
     */
    gboolean (*make_dir)(NodeMounter *m, const char *path, gboolean *made, GError **error);
    /* Removes an empty directory; fine when there is none. FAILED_PRECONDITION for something else.
     */
    gboolean (*remove_dir)(NodeMounter *m, const char *path, GError **error);
    gboolean (*statvfs)(NodeMounter *m, const char *path, dev_t dev, gint64 timeout_ms,
                        struct statvfs *st, GError **error);
} NodeMounterOps;

struct NodeMounter {
    const NodeMounterOps *ops;
    gboolean selinux; /* the kernel labels files; contexts are for such nodes alone */
};

/* The kernel's; /dev/fuse and CAP_SYS_ADMIN are needed from the first mount on. */
NodeMounter *node_mounter_new(void);
static inline void node_mounter_free(NodeMounter *m)
{
    if (m)
        m->ops->free(m);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeMounter, node_mounter_free)

#endif
