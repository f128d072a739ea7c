/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on the inodes of all live volumes together that hearthd remembers. The kernel may ask for
 * each inode that it knows, so hearthd remembers it until the kernel forgets it. The kernel forgets
 * only when the memory of the node is short. Above the bound it is asked to forget inodes that are
 * not in use. Each volume gives up a part that is in proportion to what it has.
 */
#ifndef HEARTH_CACHE_FUSE_INODE_BUDGET_H
#define HEARTH_CACHE_FUSE_INODE_BUDGET_H

#include <glib.h>
#include <stdint.h>
#include <sys/queue.h>

#define INODE_BUDGET_DEFAULT 100000
/* What one takes, with what libcephfs remembers of it. */
#define INODE_BUDGET_BYTES 2304u

/* Who remembers inodes. Its memory, zero but for these, until inode_budget_leave(). */
typedef struct InodeHolder {
    /* Both are called with the budget's lock held, and do not wait. */
    uint64_t (*count)(void *data);
    void (*forget)(void *data, uint64_t n);
    void *data;
    LIST_ENTRY(InodeHolder) link; /* the budget's lock */
} InodeHolder;

/* 0: no bound. */
void inode_budget_set(uint64_t most);
uint64_t inode_budget_most(void);
uint64_t inode_budget_held(void);
void inode_budget_join(InodeHolder *holder);
/* No call is running on return. */
void inode_budget_leave(InodeHolder *holder);
/* One more, or one less, is remembered. */
void inode_budget_added(void);
void inode_budget_removed(void);

#endif
