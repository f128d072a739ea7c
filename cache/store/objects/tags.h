/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tags are in use or pinned, and how those in use are read. Objects of a tag that is in use
 * (a mount of it is served) are evicted after all others; objects of a pinned tag only by a request
 * that names the tag. Pins are in the file <dir>/pins, so they hold from the first moment after a
 * restart; uses are reported again by the code that serves mounts.
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_TAGS_H
#define HEARTH_CACHE_STORE_OBJECTS_TAGS_H

#include <pthread.h>
#include "cache/store/disk/key.h"

/* The order of eviction. */
typedef enum TagRank {
    TAG_RANK_NONE,
    TAG_RANK_USED,
    TAG_RANK_PINNED,
} TagRank;

typedef struct Tags {
    pthread_mutex_t lock; /* a leaf; guards all below */
    GHashTable *by_id;    /* TagId * in the value -> TagState */
} Tags;

void tags_init(Tags *tags);
void tags_destroy(Tags *tags);
/* Reads the pins; a damaged file is logged and counts as empty. */
void tags_load(Tags *tags, int dir_fd);
/* Writes the pins, durably. 0 or -errno. */
int tags_save(Tags *tags, int dir_fd);

/* `by` is 1 or -1. */
void tags_use(Tags *tags, const char *tag, int by);
/* FALSE: the tag was in this state already. */
gboolean tags_pin(Tags *tags, const char *tag, gboolean on);
TagRank tags_rank(Tags *tags, const TagId *id);
/* An object of the tag was fetched; `again`: it had been evicted. */
void tags_fetched(Tags *tags, const TagId *id, gboolean again);
/*
 * Which end of a tag to evict from now (victims.h): TRUE as often as one of the last objects
 * fetched had been evicted before, and in one of 16 cases never.
 */
gboolean tags_takes_newest(Tags *tags, const TagId *id);
/* The tags of this rank, as TagId; freed by the caller. */
GArray *tags_list(Tags *tags, TagRank rank);
/* The texts of the pinned tags, in order; freed by the caller. */
GPtrArray *tags_pinned(Tags *tags);

#endif
