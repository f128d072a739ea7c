/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name by which the kernel has each inode, and until when it may use that name without asking.
 * A change that is made through this session changes the kernel's own table at the same time: a
 * renamed inode keeps the rest of its time, and a removed name is gone. So a name that does not
 * lead to its inode any more was changed by another client.
 *
 * A lookup may cross a change that is made here, and get the answer from before it. So each change
 * is counted in its directory, and the kernel may not keep a name that was found in a directory
 * that has changed since the lookup began. The other way around, `moving` and `moves` show to a
 * check of a name against Ceph that the name is being changed here.
 *
 * A file has one such name at a time: names of a file with several are always asked for.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_KNOWN_NAMES_H
#define HEARTH_CACHE_FUSE_LIVE_KNOWN_NAMES_H

#include "cache/fuse/live/nodes.h"

/* For how long a name may be used: on the kernel's clock, and on ours, which has to be later. */
#define NAME_VALID_SEC 0.1
#define NAME_VALID_MS 200

/* A name that is going to be asked for. */
typedef struct NameAsked {
    Node *parent;
    const char *name;
    unsigned changes;
} NameAsked;

static inline NameAsked name_asked(Node *parent, const char *name)
{
    return (NameAsked){parent, name, atomic_load(&parent->changes)};
}

/* `node` was found there. TRUE: the name may be used without asking, which is only if `keep`. */
gboolean known_name_found(KnownNames *names, Node *node, const NameAsked *asked, gboolean is_dir,
                          gboolean keep);
/* Whether the name by which the kernel has it may still be used without asking. */
gboolean known_name_is_used(const Node *node);

KnownNames *known_names_new(void);
void known_names_free(KnownNames *names);
/* For name_change.c. */
void known_names_lock(KnownNames *names);
void known_names_unlock(KnownNames *names);
/* The node that the kernel has by that name; NULL: none. */
Node *known_names_find_locked(KnownNames *names, const Node *parent, const char *name);
/* name NULL: none. Another node that was known by the name is not found by it any more. */
void known_names_rename_locked(KnownNames *names, Node *node, const Node *parent, const char *name);
/* The node is about to be freed. */
void known_names_forget(KnownNames *names, Node *node);

#endif
