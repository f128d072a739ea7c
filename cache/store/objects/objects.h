/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that the store holds: lookup, damage, verification, eviction. Part of the store's
 * interface; users include cache/store/store.h.
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_OBJECTS_H
#define HEARTH_CACHE_STORE_OBJECTS_OBJECTS_H

#include "cache/store/disk/key.h"

typedef struct Store Store;

/*
 * Opens a complete object for reading and counts a use. Returns the descriptor (caller closes),
 * -ENOENT when it is not held, another -errno when the disk fails. An object whose length is not
 * `size` is dropped and reported as not held.
 */
int store_open_object(Store *store, const ObjectId *id, uint64_t size);
/* Whether a complete object is held: no disk access beyond the index. */
gboolean store_has(Store *store, const ObjectId *id);
/* Reports an error in reading an object's descriptor: drops the object, feeds disk health. */
void store_report_bad(Store *store, const ObjectId *id, int error);

/* --- verification --- */

#define STORE_VERIFY_BAD_MAX 32
/* A verification, in the order of object ids, over as many calls as it takes. */
typedef struct StoreVerify {
    /* Whether to verify an object of another tag too; NULL: no. */
    gboolean (*wanted)(void *data, const ObjectId *id);
    void *data;
    gboolean started;
    ObjectId after; /* where the next call continues; all zero: the beginning */
    gboolean end;   /* nothing is left */
    /* Results of this call: */
    uint64_t objects, bytes;
    uint64_t unchecked; /* objects without a checksum, since the index was lost */
    unsigned bad;       /* damaged objects; they are dropped, and fetched again when read */
    ObjectId bad_ids[STORE_VERIFY_BAD_MAX];
} StoreVerify;
/* Verifies about max_bytes of the objects tagged `tag` (NULL: all). 0 or -errno of the index. */
int store_verify_some(Store *store, const char *tag, StoreVerify *run, uint64_t max_bytes);

/* --- eviction --- */

/* Why objects are evicted. */
typedef enum StoreEvicts {
    STORE_EVICTS_ROOM,  /* the configured bounds, or a full disk */
    STORE_EVICTS_QUOTA, /* the volume's quota */
    STORE_EVICTS_ASKED, /* a request */
    STORE_EVICTS_REASONS
} StoreEvicts;

/*
 * Drops objects tagged `tag`, least recently used first, until `bytes` are freed (UINT64_MAX: all).
 * NULL: of all tags but pinned ones, those in use last, as automatic eviction does.
 * Returns the bytes freed.
 */
uint64_t store_evict(Store *store, const char *tag, uint64_t bytes);
/* As store_evict() with NULL, and then pinned objects too. */
uint64_t store_evict_pinned_too(Store *store, uint64_t bytes);
/* As store_evict(), to keep the tag's quota, and in the order of tags in use. */
uint64_t store_evict_over_quota(Store *store, const char *tag, uint64_t bytes);

/* --- other users of the directory --- */

/* Other files in the directory. They count like objects, up to half of the bound. */
typedef enum StoreOther { STORE_OTHER_MANIFESTS, STORE_OTHER_IMAGES, STORE_OTHERS } StoreOther;
/* Sets how many bytes these files have. */
void store_set_other_bytes(Store *store, StoreOther other, uint64_t bytes);
/* How many bytes images may have: the rest that objects leave, and at least half of all. */
uint64_t store_image_room(Store *store);

#endif
