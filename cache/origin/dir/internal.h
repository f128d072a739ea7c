/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of this folder, from the bottom up: nodes.c (nodes and their attributes),
 * names.c (entries of directories), file.c (open files, leases), locks.c, ops.c (the table of
 * operations).
 */
#ifndef HEARTH_CACHE_ORIGIN_DIR_INTERNAL_H
#define HEARTH_CACHE_ORIGIN_DIR_INTERNAL_H

#include "cache/origin/origin.h"
#include <pthread.h>
#include <stdio.h>

typedef struct DirOrigin {
    Origin base;
    dev_t dev;
    OriginNode *root;
    pthread_mutex_t lock;    /* guards what is marked so; never held across a system call that
                                may block on the file system */
    pthread_cond_t returned; /* a lease or a file was given back */
    GHashTable *nodes;       /* lock; (dev, ino) -> OriginNode, borrowed */
} DirOrigin;

struct OriginNode {
    dev_t dev;
    ino_t ino;
    mode_t type;       /* S_IFMT bits */
    int fd;            /* O_PATH */
    unsigned refs;     /* DirOrigin.lock */
    OriginFile *files; /* DirOrigin.lock; open files, singly linked */
    /* DirOrigin.lock; opens and truncations under way: no lease that conflicts is granted. */
    unsigned writers_coming, readers_coming;
};

/* A path that reaches the inode of an O_PATH descriptor, whatever its name is by now. */
typedef struct ProcPath {
    char text[32];
} ProcPath;

static inline ProcPath dir_proc_path(int fd)
{
    ProcPath path;
    snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
    return path;
}

/* nodes.c */
GHashTable *dir_nodes_new(void);
void dir_nodes_free(GHashTable *nodes);
/* Takes `fd`, an O_PATH descriptor, also on error; gives a counted node. */
int dir_node_from_fd(DirOrigin *origin, int fd, OriginNode **node, OriginAttr *attr);
int dir_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
               OriginAttr *attr);
OriginNode *dir_get(Origin *o, OriginNode *node);
void dir_put(Origin *o, OriginNode *node);
int dir_getattr(Origin *o, OriginNode *node, OriginAttr *attr);
/* 0, or -errno if it cannot be the name of an entry. */
int dir_check_name(const char *name);
/*
 * Gives a new entry its owner and mode. The group stays where a parent with the set-group-ID bit
 * has given it.
 */
int dir_give_to(int fd, const OriginNew *new, mode_t parent_mode);

/* names.c */
int dir_mkdir(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
              OriginNode **node, OriginAttr *attr);
int dir_mknod(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
              OriginNode **node, OriginAttr *attr);
int dir_symlink(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                OriginNode **node, OriginAttr *attr);
int dir_link(Origin *o, OriginNode *node, OriginNode *parent, const char *name, OriginAttr *attr);
int dir_unlink(Origin *o, OriginNode *parent, const char *name);
int dir_rmdir(Origin *o, OriginNode *parent, const char *name);
int dir_rename(Origin *o, OriginNode *from, const char *name, OriginNode *to, const char *new_name,
               unsigned flags);
int dir_opendir(Origin *o, OriginNode *node, OriginDir **dir);
int dir_readdir(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr, OriginEntry *entry);
int dir_closedir(Origin *o, OriginDir *dir);

/* file.c */
int dir_open(Origin *o, OriginNode *node, int flags, OriginFile **file);
int dir_create(Origin *o, OriginNode *parent, const char *name, const OriginNew *new, int flags,
               OriginCreated *created);
ssize_t dir_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off);
ssize_t dir_write(Origin *o, OriginFile *file, const void *buf, size_t len, uint64_t off);
int dir_fsync(Origin *o, OriginFile *file, gboolean data_only);
int dir_sync_node(Origin *o, OriginNode *node);
int dir_fallocate(Origin *o, OriginFile *file, int mode, uint64_t off, uint64_t len);
int dir_close(Origin *o, OriginFile *file);
int dir_lease(Origin *o, OriginFile *file, OriginLease kind, OriginRecall recall, void *data);
/* Truncates by node: a write as far as leases are concerned. */
int dir_truncate(DirOrigin *origin, OriginNode *node, off_t size);

/* locks.c */
int dir_locks_open(Origin *o, OriginNode *node, OriginLocks **locks);
int dir_lock_set(Origin *o, OriginLocks *locks, const struct flock *lock, uint64_t owner);
int dir_lock_get(Origin *o, OriginLocks *locks, struct flock *lock, uint64_t owner);
void dir_locks_close(Origin *o, OriginLocks *locks);

#endif
