/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a claim on objects, by tag: a tag that is in use (a mount of it is served) is evicted
 * after those that are not, and a pinned one only by who names it. Pins are in the file <dir>/pins,
 * so that they hold from the first moment after a restart; uses are told anew by whoever serves.
 */
#ifndef HEARTH_CACHE_STORE_CLAIMS_H
#define HEARTH_CACHE_STORE_CLAIMS_H

#include <pthread.h>
#include "cache/store/index/key.h"

typedef enum ClaimRank {
    CLAIM_NONE,
    CLAIM_USED,
    CLAIM_PINNED,
} ClaimRank;

typedef struct Claims {
    pthread_mutex_t lock; /* a leaf; guards all below */
    GHashTable *by_id;    /* TagId * in the value -> Claim */
} Claims;

void claims_init(Claims *claims);
void claims_destroy(Claims *claims);
/* Reads the pins; a damaged file is told of and counts as empty. */
void claims_load(Claims *claims, int dir_fd);
/* Writes the pins, durably. 0 or -errno. */
int claims_save(Claims *claims, int dir_fd);

/* `by` is 1 or -1. */
void claims_use(Claims *claims, const char *tag, int by);
/* FALSE: it was so already. */
gboolean claims_pin(Claims *claims, const char *tag, gboolean on);
ClaimRank claims_rank(Claims *claims, const TagId *id);
/* The tags of this rank, as TagId; freed by the caller. */
GArray *claims_list(Claims *claims, ClaimRank rank);
/* The texts of the pinned ones, in order; freed by the caller. */
GPtrArray *claims_pinned(Claims *claims);

#endif
